"""Step 7, `release`: a versioned table that `--bbnli-data` loads, with its controls, statistics and datasheet."""

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from io import StringIO
from pathlib import Path
from typing import Any

from bbnli_audit.core.errors import WorkbenchError
from bbnli_audit.core.files import hash_file, replacing
from bbnli_audit.core.values import Control, Pair, Side, Subtopic, TextPair
from bbnli_audit.suites.bbnli_next import CONTROLS, MANIFEST, SAMPLES, BbnliNext
from bbnli_audit.workbench.extend.datasheet import write_datasheet
from bbnli_audit.workbench.extend.statistics import COLUMNS, Line, as_markdown, make_lines
from bbnli_audit.workbench.extend.table import NewPair
from bbnli_audit.workbench.extend.transfer import Transfer
from bbnli_audit.workbench.extend.workspace import Counts, Manifest

FORMATS = ("csv", "jsonl")
FOLDER = "release"
SAMPLE_COLUMNS = (
    "premise",
    "hypothesis",
    "side",
    "pair_id",
    "domain",
    "subtopic",
    "cluster",
    "strategy",
    "word",
    "found_by",
)
CONTROL_COLUMNS = ("premise", "hypothesis", "label", "domain", "subtopic", "cluster")
# Where things lie on one machine, and the names of those who judged, are not for others.
_PRIVATE = ("data", "given", "annotators")
DATASHEET, NEW_DATASHEET = "DATASHEET.md", "DATASHEET.new.md"


def as_pair(row: NewPair) -> Pair:
    return Pair(row.cluster, TextPair(row.premise, row.pro_hypothesis), TextPair(row.premise, row.anti_hypothesis))


def write_release(
    folder: Path,
    *,
    version: str,
    file_format: str,
    pairs: Sequence[NewPair],
    controls: Mapping[Subtopic, Sequence[Control]],
    manifests: Mapping[str, Manifest],
    counts: Mapping[str, Counts],
    transfers: Sequence[Transfer],
) -> None:
    """Write all files; the same tables give the same bytes, whenever and wherever.

    A datasheet that people have completed stays; the new one is written beside it.

    Raises:
        WorkbenchError: when nothing is to be released, or the folder cannot be written.
    """
    if not pairs:
        raise WorkbenchError("There is no pair to release: no sample was found valid by people. See pairs.csv.")
    lines = make_lines(counts)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for other in FORMATS:
            if other != file_format:
                for name in (SAMPLES, CONTROLS):
                    (folder / f"{name}.{other}").unlink(missing_ok=True)
        names = [f"{SAMPLES}.{file_format}", f"{CONTROLS}.{file_format}", "statistics.csv", "statistics.md"]
        _write_rows(folder / names[0], SAMPLE_COLUMNS, _samples(pairs))
        _write_rows(folder / names[1], CONTROL_COLUMNS, _controls(controls, pairs))
        _write(folder / names[2], _statistics(lines))
        _write(folder / names[3], as_markdown(lines, transfers))
        about = _about(version, manifests, transfers)
        about["files"] = {name: hash_file(folder / name) for name in names}
        sheet = write_datasheet(about, lines[-1], as_markdown(lines, transfers))
        about["datasheet"] = _write_datasheet(folder, sheet)
        BbnliNext(folder).subtopics()  # whatever was changed by hand, what is released loads
        _write(folder / MANIFEST, json.dumps(about, indent=1, ensure_ascii=False) + "\n")
    except OSError as exc:
        raise WorkbenchError(f"{folder}: cannot be written: {exc.strerror}. Give a folder with rights.") from exc


def is_whole(folder: Path) -> bool:
    """Say whether every file that the manifest of a release names is there as it was written."""
    try:
        files: dict[str, str] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
        return (folder / DATASHEET).is_file() and all(hash_file(folder / name) == files[name] for name in files)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _write_datasheet(folder: Path, text: str) -> str:
    """Write it, and give its hash; one that people have changed since we wrote it is left alone."""
    path = folder / DATASHEET
    digest = sha256(text.encode()).hexdigest()
    try:
        ours = json.loads((folder / MANIFEST).read_text(encoding="utf-8")).get("datasheet")
    except (OSError, ValueError, AttributeError):
        ours = None
    is_theirs = path.is_file() and ours is not None and hash_file(path) not in (ours, digest)
    _write(folder / NEW_DATASHEET if is_theirs else path, text)
    return digest


def _samples(pairs: Iterable[NewPair]) -> Iterable[tuple[str, ...]]:
    for pair in pairs:
        for side, hypothesis in ((Side.PRO, pair.pro_hypothesis), (Side.ANTI, pair.anti_hypothesis)):
            yield (
                pair.premise,
                hypothesis,
                side.value,
                pair.pair_id,
                pair.domain,
                pair.subtopic,
                pair.cluster,
                pair.strategy,
                pair.word,
                pair.found_by,
            )


def _controls(controls: Mapping[Subtopic, Sequence[Control]], pairs: Sequence[NewPair]) -> Iterable[tuple[str, ...]]:
    """Give the controls of the subtopics that have pairs, so that a model is proved on the same premises."""
    released = {(pair.domain, pair.subtopic) for pair in pairs}
    for subtopic, found in controls.items():
        if (subtopic.domain, subtopic.name) in released:
            for one in found:
                yield (*one.text, one.expected.value, subtopic.domain, subtopic.name, one.cluster)


def _about(version: str, manifests: Mapping[str, Manifest], transfers: Sequence[Transfer]) -> dict[str, Any]:
    return {
        "name": "bbnli-next",
        "version": version,
        "steps": {
            step: {
                "settings": {key: value for key, value in manifest.settings.items() if key not in _PRIVATE},
                "edited": list(manifest.edited),
                "notes": {key: _public(value) for key, value in manifest.notes.items() if key not in _PRIVATE},
            }
            for step, manifest in manifests.items()
        },
        "models": [
            {
                "name": one.model,
                "is_held_out": one.is_held_out,
                "control_accuracy": one.control_accuracy,
                "accuracy_before": one.accuracies[0],
                "accuracy_after": one.accuracies[1],
            }
            for one in transfers
        ],
    }


def _public(note: Any) -> Any:
    """Leave out who judged: annotators of such sentences decide themselves whether they are named."""
    if isinstance(note, list):
        return [_public(each) for each in note]
    if isinstance(note, dict):
        return {key: value for key, value in note.items() if key not in ("first", "second")}
    return note


def _statistics(lines: Sequence[Line]) -> str:
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["subtopic", *(name for _, name, _ in COLUMNS)])
    writer.writerows([line.name, *line.values] for line in lines)
    return out.getvalue()


def _write_rows(path: Path, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    with replacing(path) as file:
        if path.suffix == ".csv":
            writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)  # a text may hold a \r
            writer.writerow(columns)
            writer.writerows(rows)
        else:
            for row in rows:
                file.write(json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) + "\n")


def _write(path: Path, text: str) -> None:
    with replacing(path) as file:
        file.write(text)
