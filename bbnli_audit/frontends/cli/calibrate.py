"""`bbnli-audit calibrate`: which limits would a measured model need? Shown as a change of the threshold file."""

import argparse
import math
import os
import re
from collections.abc import Iterator
from dataclasses import asdict
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bbnli_audit.audit.gate.calibration import (
    PER,
    REASON,
    Calibration,
    Proposal,
    edit,
    find_reason,
    is_override,
    propose,
)
from bbnli_audit.core.errors import OptionError, ThresholdsError
from bbnli_audit.core.results.audit import HIGHER_IS_BETTER
from bbnli_audit.core.values import Subtopic
from bbnli_audit.frontends.cli.arguments import add_command, write_json, write_out

if TYPE_CHECKING:
    from bbnli_audit.audit.gate.thresholds import Thresholds
    from bbnli_audit.core.results.audit import AuditResult


def add_parser(commands: Any) -> None:
    parser = add_command(
        commands,
        "calibrate",
        run,
        what="propose limits from a measured model, as a change of thresholds.yaml",
        description=(
            "Proposes limits from a result: the upper bound of each measure plus a margin, rounded up to 0.01 (of a\n"
            "measure where more is better, the lower bound less the margin, rounded down).\n"
            "Prints a change of the threshold file to review; nothing is written without --write."
        ),
        examples=(
            "bbnli-audit calibrate bias-report/result.json",
            "bbnli-audit calibrate bias-report/result.json --per domain --margin 0.03",
            "bbnli-audit calibrate bias-report/result.json --per subtopic --write",
        ),
    )
    parser.add_argument("result", metavar="RESULT", type=Path, help="a result.json, or the report folder with it")
    parser.add_argument(
        "--thresholds",
        metavar="FILE",
        type=Path,
        default=Path("thresholds.yaml"),
        help="the file to change (default: thresholds.yaml)",
    )
    parser.add_argument("--margin", type=float, default=0.02, help="allowed beyond each bound (default: 0.02)")
    parser.add_argument("--per", choices=PER, default="defaults", help="where limits are written (default: defaults)")
    parser.add_argument("--data", metavar="DIR", type=Path, help="BBNLI data, for other names (default: our own)")
    parser.add_argument("--write", action="store_true", help="change the file")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead (docs/commands.md)")


def run(arguments: argparse.Namespace) -> int:
    from bbnli_audit.audit.gate.thresholds import parse_thresholds, read_thresholds
    from bbnli_audit.core.files import replacing
    from bbnli_audit.core.results.file import read_result

    margin: float = arguments.margin
    if not math.isfinite(margin) or not 0 <= margin <= 1:
        raise OptionError(f"--margin={margin:g}: expected a share of samples from 0 to 1, such as 0.02.")
    result = read_result(arguments.result)
    path: Path = arguments.thresholds
    read_thresholds(path, _name(path))  # its messages; line ends are kept below
    with path.open(encoding="utf-8", newline="") as file:
        text = file.read()
    thresholds = parse_thresholds(text, _name(path))
    subtopics = _find_subtopics(result, thresholds, arguments.data)
    calibration = propose(result, thresholds, subtopics, margin, arguments.per)
    changed = edit(text, calibration, thresholds, _reason(result, margin)) if calibration.changes else text
    if arguments.write and changed != text:
        try:
            with replacing(path.resolve()) as out:
                out.write(changed)
        except OSError as exc:
            raise ThresholdsError(f"{_name(path)}: cannot be written: {exc.strerror}. It is as it was.") from exc
    diff = make_diff(text, changed, _name(path))
    notes = list(_notes(arguments, result, thresholds, calibration))
    if arguments.json:
        write_json(_as_document(arguments, result, calibration, notes, diff))
    else:
        write_out("".join(f"# {line}\n" for line in (*_header(arguments, result, calibration), *notes)) + diff)
    return 0


def make_diff(before: str, after: str, name: str) -> str:
    """Give a change that `git apply` and `patch -p0` take."""
    old, new = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (before, after))
    shown = f"{name}\t" if " " in name else name
    diff = unified_diff(old, new, fromfile=shown, tofile=shown)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in diff)


def _name(path: Path) -> str:
    """Name the file as seen from here: that is what a change must call it."""
    full = Path(os.path.normpath(path.absolute()))
    return full.relative_to(Path.cwd()).as_posix() if full.is_relative_to(Path.cwd()) else str(path)


def _reason(result: "AuditResult", margin: float) -> str:
    return f"{REASON}{_model(result)}: upper bound plus {margin:g}"


def _model(result: "AuditResult") -> str:
    return f"{result.model.name} (fingerprint {result.model.fingerprint[:12]})"


def _find_subtopics(result: "AuditResult", thresholds: "Thresholds", data: Path | None) -> list[Subtopic]:
    """Give the subtopics of a result with their other names, which the threshold file may use."""
    from bbnli_audit.suites.bbnli import OWN_DATA, Bbnli

    suite = Bbnli(data or OWN_DATA)
    named = {subtopic.path: subtopic for subtopic in (*suite.documented(), *suite.subtopics())}
    audited = [row.path for row in result.subtopics]
    for path in (*audited, *result.settings.get("not_audited", ())):
        named.setdefault(path, Subtopic(*path.split("/", 2)))
    for suite_name in {path.partition("/")[0] for path in audited} & set(thresholds.file.suites):
        known = {
            f"{subtopic.domain}/{name}"
            for subtopic in named.values()
            if subtopic.suite == suite_name
            for name in (subtopic.name, *subtopic.aliases)
        }
        for name in thresholds.file.suites[suite_name].subtopics:
            if name not in known:
                source = thresholds.source("suites", suite_name, "subtopics", name)
                raise ThresholdsError(
                    f"{source}: the subtopic {name!r} is neither in the result nor in the data, so it may be another "
                    "name of one that was measured. Give the data that was audited with --data=DIR, or mend the name."
                )
    return [named[path] for path in audited]


def _header(arguments: argparse.Namespace, result: "AuditResult", calibration: Calibration) -> Iterator[str]:
    name = _name(arguments.thresholds)
    yield (
        f"Limits from {_model(result)}, {len(result.subtopics)} subtopics: upper bounds plus {arguments.margin:g}, "
        "rounded up to 0.01."
    )
    changes = calibration.changes
    if not changes:
        yield f"Nothing to change in {name}: its limits are these already."
    elif arguments.write:
        yield f"Written to {name}."
    else:
        otherwise = "" if Path(name).is_absolute() or ".." in name else ", or this output to: git apply -p0"
        yield f"Nothing was written. Review this; then give --write{otherwise}"
    for proposal in changes:
        yield _tell(proposal)
    n_same = len(calibration.proposals) - len(changes)
    if changes and n_same:
        yield f"{n_same} other limits stay as they are."


def _tell(proposal: Proposal) -> str:
    return (
        f"{'loosens' if proposal.is_looser else 'tightens'} {'.'.join(proposal.where)} {proposal.key}: "
        f"{proposal.old:.2f} -> {proposal.new:.2f} "
        f"({proposal.subtopic}: {_bound_name(proposal.measure)} {proposal.bound:.3f})"
    )


def _bound_name(measure: str) -> str:
    return "lower bound" if measure in HIGHER_IS_BETTER else "upper bound"


def _notes(
    arguments: argparse.Namespace, result: "AuditResult", thresholds: "Thresholds", calibration: Calibration
) -> Iterator[str]:
    for failure in calibration.failures:
        value = "" if failure.value is None else f" ({failure.value:.3f}, limit {failure.limit:g})"
        yield f"WARNING: {failure.subtopic} FAILs {failure.measure}{value}: a limit made from it lets that fault pass."
    for kept in calibration.kept:
        yield (
            f"kept {kept.key}: {kept.limit:.2f} of {kept.subtopic} ({kept.source}), a nearer limit; its "
            f"{_bound_name(kept.measure)} is {kept.bound:.3f}"
        )
    data = thresholds.file.model_dump(exclude_unset=True)
    for where in dict.fromkeys(proposal.where for proposal in calibration.changes):
        if is_override(where) and not find_reason(data, where).startswith(REASON):
            yield f"kept the reason of {'.'.join(where)}: see whether it still holds"
    for path, measure in calibration.no_data:
        yield f"no data: {measure} of {path} was not measured"
    missing = result.settings.get("not_audited", ())
    if missing and arguments.per != "subtopic":
        yield f"not audited, though these limits hold for them too: {', '.join(missing)}"
    measured, wanted = result.settings.get("confidence"), thresholds.file.confidence
    if measured != wanted:
        yield f"WARNING: the result was measured at confidence {measured}, and {thresholds.name} asks for {wanted}"
    if calibration.changes:
        yield "Comments of the file stay as they are: see whether they still hold."


def _as_document(
    arguments: argparse.Namespace, result: "AuditResult", calibration: Calibration, notes: list[str], diff: str
) -> dict[str, Any]:
    return {
        "model": {"name": result.model.name, "fingerprint": result.model.fingerprint},
        "thresholds": _name(arguments.thresholds),
        "per": arguments.per,
        "margin": arguments.margin,
        "proposals": [{**asdict(p), "where": list(p.where), "is_looser": p.is_looser} for p in calibration.proposals],
        "kept": [asdict(kept) for kept in calibration.kept],
        "failures": [asdict(failure) for failure in calibration.failures],
        "notes": notes,
        "diff": diff,
        "is_written": bool(arguments.write and diff),
    }
