"""Opens what the options of an audit name: suites, subtopics to leave out, limits."""

from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from bbnli_audit.audit.gate.thresholds import Thresholds, name_below, read_thresholds
from bbnli_audit.audit.model_reader import Items
from bbnli_audit.core.errors import OptionError, SuiteError, suggest
from bbnli_audit.core.options import AuditOptions, wrong_type
from bbnli_audit.core.values import TEMPLATE_PAIRINGS, Pairing, Subtopic
from bbnli_audit.measures.registry import check_audits, check_families
from bbnli_audit.models.adapter import Parts
from bbnli_audit.suites.bbnli import Bbnli
from bbnli_audit.suites.protocol import Suite, audits_of, check_suite, families_of
from bbnli_audit.suites.registry import BUILT_IN, open_suite, place_data, read_data, read_names, suite_of


def open_suites(options: AuditOptions, foreign: Collection[Suite]) -> list[Suite]:
    """Open the suites that the options name or hold.

    `foreign` are the suites of other projects. If --bbnli-suite is not given, all `foreign` suites are opened, too.
    """
    pairing = options.pairing
    if pairing is not None and pairing not in TEMPLATE_PAIRINGS:
        raise OptionError(f"--bbnli-pairing={pairing}: there is no such pairing. {suggest(pairing, TEMPLATE_PAIRINGS)}")
    for suite in (*options.suites, *foreign):
        check_suite(suite)
    given, others = None if options.data is None else str(options.data), {suite.name: suite for suite in foreign}
    names = list(others)
    if options.suite != "":
        _refuse_twins([*BUILT_IN, *(suite.name for suite in foreign)])
        names = read_names(options.suite or None, others)
        if options.suite is None:
            names[0] = suite_of(None if given is None else options.data_folder / given)
    data = {name: place_data(path, options.data_folder) for name, path in read_data(given, names, others).items()}
    how = None if pairing is None else Pairing(pairing)
    suites = [*(open_suite(name, data.get(name), how, others) for name in names), *options.suites]
    for suite in suites:
        check_families(suite.name, families_of(suite))
        check_audits(suite.name, audits_of(suite))
        _ = suite.version  # read its manifest now: later, an error would end pytest with a traceback
    _refuse_twins([suite.name for suite in suites])
    return suites


def _refuse_twins(names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise SuiteError(f"Two suites are named {name!r}; results and limits are kept by name. Rename one.")


def find_reader(file: Path, models: Iterable[object], suites: Iterable[Suite]) -> str | None:
    """Name the model or suite that would read a new file with this path as one of its own; None if none would."""
    folder = file.parent.resolve()
    for name in models:
        if (
            isinstance(name, str)
            and Path(name).is_dir()
            and folder in {each.resolve() for each in Parts(Path(name)).all}
        ):
            return f"the model {name}"
    for suite in suites:
        data = suite.folders if isinstance(suite, Bbnli) else ()  # other suites read files of certain names only
        if {folder, folder.parent} & {each.resolve() for each in data}:
            return f"the suite {suite.name}"
    return None


def find_excluded(given: str | None, known: dict[str, Subtopic]) -> list[str]:
    """Return the paths that the patterns of --bbnli-exclude leave out."""
    excluded: list[str] = []
    for pattern in [part.strip() for part in (given or "").split(",") if part.strip()]:
        matching = [path for path in known if fnmatchcase(path, pattern)]
        if not matching:
            raise OptionError(f"--bbnli-exclude={pattern}: names no subtopic. {suggest(pattern, known)}")
        excluded.extend(path for path in matching if path not in excluded)
    if known and len(excluded) == len(known):
        raise OptionError("--bbnli-exclude leaves out every subtopic, so there is nothing to audit.")
    return excluded


def read_limits(given: Any, root: Path, items: Items, others: Collection[str]) -> Thresholds:
    """Read the threshold file, and refuse names of suites or subtopics that do not exist.

    `given` is the path of the file, or a `Thresholds` object, which is used as it is. `others` are all suites that
    exist, audited in this run or not.
    """
    if isinstance(given, str | Path):
        thresholds = read_thresholds(Path(given), name_below(Path(given), root))
    elif isinstance(given, Thresholds):
        thresholds = given
    else:
        raise wrong_type("thresholds", given, "a path or a Thresholds object")
    known = [subtopic for suite in items.suites for subtopic in (*suite.subtopics(), *suite.documented())]
    thresholds.check_names(known, others)
    return thresholds
