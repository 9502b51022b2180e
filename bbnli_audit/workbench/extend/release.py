"""Step 7, `release`: writes a versioned table for `--bbnli-data`, with its controls, statistics and datasheet."""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from bbnli_audit.core.errors import WorkbenchError
from bbnli_audit.core.files import hash_file
from bbnli_audit.core.outcomes import CellCounts
from bbnli_audit.core.reading import parse_json
from bbnli_audit.core.values import Control, Pair, Side, Subtopic, TextPair
from bbnli_audit.core.words import figure
from bbnli_audit.suites.bbnli_next import CONTROLS, MANIFEST, SAMPLES, BbnliNext
from bbnli_audit.workbench.extend.table import NewPair
from bbnli_audit.workbench.workspace import Counts, Manifest, telling, write_rows, write_text, writing

FORMATS = ("csv", "jsonl")
FOLDER = "release"
DATASHEET, NEW_DATASHEET = "DATASHEET.md", "DATASHEET.new.md"
_TEMPLATE = Path(__file__).parent / "assets" / "datasheet.md.jinja"
_OF_PAIR = ("pair_id", "domain", "subtopic", "cluster", "strategy", "word", "found_by")
_SAMPLE_COLUMNS = ("premise", "hypothesis", "side", *_OF_PAIR)
_CONTROL_COLUMNS = ("premise", "hypothesis", "label", "domain", "subtopic", "cluster")
# Settings and notes that are not published, because they contain paths on this machine or names of annotators.
_PRIVATE = ("data", "given", "annotators")
_NAMES = ("first", "second")  # keys of the two annotators in a note about agreement
Line = tuple[str, tuple[int, ...]]  # a row of the statistics: its name (a subtopic, a domain or "all"), its numbers
# The columns of the statistics. Each has a step, the name of one of the step's counts, and a title.
COLUMNS = (
    ("mask", "hypotheses", "hypothesis templates"),
    ("mask", "masked_templates", "masked templates"),
    ("expand", "masked_samples", "masked samples"),
    ("fill", "filled_samples", "filled samples"),
    ("filter", "kept_samples", "mispredicted"),
    ("filter", "hypotheses_to_judge", "hypotheses to judge"),
    ("agree", "valid", "valid"),
    ("counterfactual", "valid_samples", "valid samples"),
    ("counterfactual", "pairs", "pairs"),
    ("counterfactual", "samples", "samples"),
)
_ABOUT_MODELS = """\
# The models before and after

Every sample is neutral, so accuracy is the share of samples called neutral. `before` is the suite that was extended,
`after` this version, both on the subtopics of this version. A held-out model had no part in choosing the samples, so
its loss of accuracy shows whether samples that are hard for some models are hard for others.
"""


@dataclass(frozen=True, slots=True)
class Transfer:
    """How one model labels the suite that was extended (`before`), and the new version of the suite (`after`).

    A held-out model had no part in choosing the samples.
    """

    model: str
    is_held_out: bool
    control_accuracy: float | None
    before: CellCounts
    after: CellCounts


@dataclass(frozen=True, slots=True)
class Release:
    """The content of a release, and how it was made. `manifests` and `counts` have an entry for each step."""

    version: str
    file_format: str
    pairs: Sequence[NewPair]
    controls: Mapping[Subtopic, Sequence[Control]]
    manifests: Mapping[str, Manifest]
    counts: Mapping[str, Counts]
    transfers: Sequence[Transfer]


def as_pair(row: NewPair) -> Pair:
    return Pair(row.cluster, TextPair(row.premise, row.pro_hypothesis), TextPair(row.premise, row.anti_hypothesis))


def write_release(folder: Path, release: Release) -> None:
    """Write all files. The same tables always give the same bytes.

    A datasheet that people have completed stays, and the new one is written beside it.
    """
    if not release.pairs:
        raise WorkbenchError("There are no pairs to release: pairs.csv is empty.")
    lines = make_lines(release.counts)
    tables = as_markdown(lines, release.transfers)
    samples, controls = f"{SAMPLES}.{release.file_format}", f"{CONTROLS}.{release.file_format}"
    with telling(folder, "written"):
        folder.mkdir(parents=True, exist_ok=True)
        for other in set(FORMATS) - {release.file_format}:
            for name in (SAMPLES, CONTROLS):
                (folder / f"{name}.{other}").unlink(missing_ok=True)
        _write(folder / samples, _SAMPLE_COLUMNS, _samples(release.pairs))
        _write(folder / controls, _CONTROL_COLUMNS, _controls(release))
        with writing(folder / "statistics.csv") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["subtopic", *(name for _, name, _ in COLUMNS)])
            writer.writerows([name, *values] for name, values in lines)
        write_text(folder / "statistics.md", tables)
        about = _about(release)
        names = (samples, controls, "statistics.csv", "statistics.md")
        about["files"] = {name: hash_file(folder / name) for name in names}
        about["datasheet"] = _write_datasheet(folder, _render_datasheet(about, lines[-1], tables))
        BbnliNext(folder).subtopics()  # check that the release can be loaded, since people may have edited tables
        write_text(folder / MANIFEST, json.dumps(about, indent=1, ensure_ascii=False) + "\n")


def is_whole(folder: Path) -> bool:
    """Whether the datasheet exists, and all files that the manifest names exist and are unchanged."""
    try:
        files: dict[str, str] = parse_json((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
        return (folder / DATASHEET).is_file() and all(hash_file(folder / name) == files[name] for name in files)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _render_datasheet(about: Mapping[str, Any], total: Line, tables: str) -> str:
    """Return the datasheet in Markdown, with the questions of Gebru et al., Datasheets for Datasets (2021).

    Known facts are filled in; people have to write the other answers.
    """
    from jinja2 import Environment, StrictUndefined

    # The datasheet is Markdown, made from the tables of the people who release it. So nothing is escaped.
    environment = Environment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)  # noqa: S701
    steps = about["steps"]
    return environment.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(
        name=about["name"],
        version=about["version"],
        n_pairs=total[1][-2],
        n_samples=total[1][-1],
        **{step: steps[step]["settings"] for step in ("mask", "fill", "filter", "agree")},
        n_annotators=steps["agree"]["notes"]["n_annotators"],
        edited=sorted({file for step in steps.values() for file in step["edited"]}),
        tables=tables,
    )


def _write_datasheet(folder: Path, text: str) -> str:
    """Write the datasheet and return its hash. If people have changed the old one, write the new one beside it."""
    path = folder / DATASHEET
    digest = sha256(text.encode()).hexdigest()
    try:
        ours = parse_json((folder / MANIFEST).read_text(encoding="utf-8")).get("datasheet")
    except (OSError, ValueError, AttributeError):
        ours = None
    is_theirs = path.is_file() and hash_file(path) not in (ours, digest)
    write_text(folder / NEW_DATASHEET if is_theirs else path, text)
    return digest


def _samples(pairs: Iterable[NewPair]) -> Iterator[tuple[str, ...]]:
    for pair in pairs:
        for side, hypothesis in ((Side.PRO, pair.pro_hypothesis), (Side.ANTI, pair.anti_hypothesis)):
            yield (pair.premise, hypothesis, side.value, *(getattr(pair, column) for column in _OF_PAIR))


def _controls(release: Release) -> Iterator[tuple[str, ...]]:
    """Yield a row for each control of a released subtopic. Models are checked on these controls before an audit."""
    released = {(pair.domain, pair.subtopic) for pair in release.pairs}
    for subtopic, found in release.controls.items():
        if (subtopic.domain, subtopic.name) in released:
            for one in found:
                yield (*one.text, one.expected.value, subtopic.domain, subtopic.name, one.cluster)


def _about(release: Release) -> dict[str, Any]:
    return {
        "name": "bbnli-next",
        "version": release.version,
        "steps": {
            step: {
                "settings": {key: value for key, value in manifest.settings.items() if key not in _PRIVATE},
                "edited": list(manifest.edited),
                "notes": {key: _unnamed(value) for key, value in manifest.notes.items() if key not in _PRIVATE},
            }
            for step, manifest in release.manifests.items()
        },
        "models": [
            {
                "name": one.model,
                "is_held_out": one.is_held_out,
                "control_accuracy": one.control_accuracy,
                "accuracy_before": accuracy(one.before),
                "accuracy_after": accuracy(one.after),
            }
            for one in release.transfers
        ],
    }


def _unnamed(note: Any) -> Any:
    """Leave out the annotators' names. Annotators decide for themselves whether to be named in a release."""
    if isinstance(note, list):
        return [_unnamed(each) for each in note]
    return {key: value for key, value in note.items() if key not in _NAMES} if isinstance(note, dict) else note


def _write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    if path.suffix == ".csv":
        write_rows(path, columns, rows)
    else:
        objects = (dict(zip(columns, row, strict=True)) for row in rows)
        write_text(path, "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in objects))


def accuracy(cells: CellCounts) -> float | None:
    """Return the share of samples labelled neutral, which is the right label of every sample."""
    return 1 - cells.n_mispredicted / cells.n_samples if cells.n_samples else None


def make_lines(counts: Mapping[str, Counts]) -> list[Line]:
    """Return the rows of the statistics: each subtopic, then the sums of each domain, then the sums of all."""
    paths = sorted({path for found in counts.values() for path in found})
    rows = {path: tuple(counts[step].get(path, {}).get(name, 0) for step, name, _ in COLUMNS) for path in paths}
    domains = dict.fromkeys(path.partition("/")[0] for path in paths)
    sums = [(domain, _sum(row for path, row in rows.items() if path.startswith(f"{domain}/"))) for domain in domains]
    return [*rows.items(), *sums, ("all", _sum(rows.values()))]


def _sum(rows: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*rows, strict=True)))


def as_markdown(lines: Sequence[Line], transfers: Sequence[Transfer]) -> str:
    from bbnli_audit.reports.markdown import table  # here, so that the commands start fast

    titles = ["", *(title for _, _, title in COLUMNS)]
    steps = table(titles, [[name, *(f"{value:,}" for value in values)] for name, values in lines])
    shares = ("accuracy", "pro", "anti", "brittle")
    titles = ["model", "held out", "controls right"]
    titles += [f"{when}: {share}" for when in ("before", "after") for share in shares]
    rows = []
    for each in transfers:
        held_out = "yes" if each.is_held_out else "no"
        rows.append([each.model, held_out, figure(each.control_accuracy), *_shares(each.before), *_shares(each.after)])
    return f"# What each step left\n\n{steps}\n\n{_ABOUT_MODELS}\n{table(titles, rows)}\n"


def _shares(cells: CellCounts) -> list[str]:
    n = cells.n_samples
    shares = (found / n if n else None for found in (cells.n_pro, cells.n_anti, cells.n_brittle))
    return [figure(value) for value in (accuracy(cells), *shares)]
