"""The `bbnli-next` suite: a table of samples in pairs, such as the workbench releases (docs/workbench.md)."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from bbnli_audit.core.errors import OptionError, SuiteError
from bbnli_audit.core.values import Control, Label, Pair, Pairing, Side, Subtopic, SubtopicItems, TextPair
from bbnli_audit.suites.json_file import read_object
from bbnli_audit.suites.template_file import subtopic_name

SAMPLES, CONTROLS, MANIFEST = "bbnli_next", "controls", "release.json"
SUFFIXES = (".csv", ".jsonl")
COLUMNS = ("premise", "hypothesis", "side", "pair_id", "subtopic")
CONTROL_COLUMNS = ("premise", "hypothesis", "label", "subtopic")
_HOW = "docs/workbench.md describes the table."


class _Row(NamedTuple):
    line: int
    values: Mapping[str, str]


def is_release(data: Path) -> bool:
    """Say whether a path is a table of samples, or a folder with one, by the names of files alone."""
    paths = [data / f"{SAMPLES}{suffix}" for suffix in SUFFIXES] if data.is_dir() else [data]
    return any(path.is_file() and path.suffix in SUFFIXES for path in paths)


class BbnliNext:
    """Samples of one file, two for each pair: the premise stands, the groups of the hypothesis are exchanged."""

    name = "bbnli-next"
    pairing = Pairing.HYPOTHESIS

    def __init__(self, data: Path | None = None) -> None:
        self._data = data

    @cached_property
    def _path(self) -> Path:
        data = self._data
        if data is None:
            raise OptionError(
                "--bbnli-suite=bbnli-next: has no data of its own. Give a released table with --bbnli-data=FILE "
                "(bbnli-audit extend release makes one)."
            )
        paths = [data / f"{SAMPLES}{suffix}" for suffix in SUFFIXES] if data.is_dir() else [data]
        for path in paths:
            if path.is_file() and path.suffix in SUFFIXES:
                return path
        what = (
            f"the folder holds no {SAMPLES}.csv or .jsonl" if data.is_dir() else "there is no such .csv or .jsonl file"
        )
        raise OptionError(f"--bbnli-data={data}: {what}.\nGive a released table, or the folder with it.")

    @cached_property
    def version(self) -> str:
        manifest = self._path.parent / MANIFEST
        if not manifest.is_file():
            return "unversioned"
        return str(read_object(manifest, f"an object with the version. {_HOW}").get("version", "unversioned"))

    @cached_property
    def sha256(self) -> str:
        digest = sha256(self._path.read_bytes())
        if self._control_path is not None:
            digest.update(self._control_path.read_bytes())
        return digest.hexdigest()

    def subtopics(self) -> Sequence[Subtopic]:
        return tuple(self._items)

    def documented(self) -> Sequence[Subtopic]:
        from bbnli_audit.suites.bbnli import DOCUMENTED

        return [Subtopic(self.name, domain, name) for domain, names in DOCUMENTED.items() for name in names]

    def items(self, subtopic: Subtopic) -> SubtopicItems:
        return self._items[subtopic]

    @cached_property
    def _control_path(self) -> Path | None:
        paths = [self._path.parent / f"{CONTROLS}{suffix}" for suffix in SUFFIXES]
        return next((path for path in paths if path.is_file()), None)

    @cached_property
    def _items(self) -> dict[Subtopic, SubtopicItems]:
        pairs = self._read_pairs()
        controls: dict[Subtopic, list[Control]] = {}
        if self._control_path is not None:
            for row in _read_rows(self._control_path, CONTROL_COLUMNS):
                controls.setdefault(self._subtopic(self._control_path, row), []).append(
                    _control(self._control_path, row)
                )
        return {
            subtopic: SubtopicItems(tuple(found), tuple(controls.get(subtopic, ())))
            for subtopic, found in sorted(pairs.items())
        }

    def _read_pairs(self) -> dict[Subtopic, list[Pair]]:
        path = self._path
        sides: dict[tuple[Subtopic, str], dict[Side, _Row]] = {}
        for row in _read_rows(path, COLUMNS):
            subtopic, side = self._subtopic(path, row), _side(path, row)
            of_pair = sides.setdefault((subtopic, row.values["pair_id"]), {})
            if side in of_pair:
                raise _wrong(
                    path, row, f"the pair has a second {side.value} sample (the first is on line {of_pair[side].line})"
                )
            of_pair[side] = row
        found: dict[Subtopic, list[Pair]] = {}
        for (subtopic, _), of_pair in sides.items():
            if len(of_pair) != 2:
                (side, row), *_ = of_pair.items()
                other = Side.ANTI if side is Side.PRO else Side.PRO
                raise _wrong(path, row, f"the pair has no {other.value} sample; a pair is one pro and one anti sample")
            pro, anti = of_pair[Side.PRO], of_pair[Side.ANTI]
            if pro.values["premise"] != anti.values["premise"]:
                raise _wrong(path, max(pro, anti), "the two samples of the pair have different premises")
            found.setdefault(subtopic, []).append(_pair(pro, anti))
        if not found:
            raise SuiteError(f"{path}: holds no sample, so there is nothing to audit. {_HOW}")
        return found

    def _subtopic(self, path: Path, row: _Row) -> Subtopic:
        domain, slash, name = row.values["subtopic"].rpartition("/")
        domain = domain if slash else row.values.get("domain") or "all"
        subtopic = Subtopic(self.name, subtopic_name(domain), subtopic_name(name))
        if not subtopic.domain or not subtopic.name:
            raise _wrong(path, row, "the subtopic has no letter or digit")
        return subtopic


def _pair(pro: _Row, anti: _Row) -> Pair:
    texts = [TextPair(row.values["premise"], row.values["hypothesis"]) for row in (pro, anti)]
    # Pairs on one premise are not independent of each other, whatever else the table says of them.
    cluster = pro.values.get("cluster") or sha256(texts[0].premise.encode()).hexdigest()[:8]
    return Pair(cluster, *texts)


def _control(path: Path, row: _Row) -> Control:
    label = row.values["label"]
    if label not in tuple(Label):
        raise _wrong(path, row, f"label is {label!r:.30}; expected {', '.join(Label)}")
    text = TextPair(row.values["premise"], row.values["hypothesis"])
    return Control(row.values.get("cluster") or "control", text, Label(label))


def _side(path: Path, row: _Row) -> Side:
    given = row.values["side"]
    if given not in tuple(Side):
        raise _wrong(path, row, f"side is {given!r:.30}; expected pro or anti")
    return Side(given)


def _wrong(path: Path, row: _Row, fault: str) -> SuiteError:
    return SuiteError(f"{path}:{row.line}: {fault}. {_HOW}")


def _read_rows(path: Path, columns: Sequence[str]) -> Iterator[_Row]:
    """Read and check the rows. Messages name lines and quote no sentence."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for row in _parse_csv(path, file) if path.suffix == ".csv" else _parse_jsonl(path, file):
                for column in columns:
                    if not str(row.values.get(column) or "").strip():
                        raise _wrong(path, row, f"{column} is missing or empty; expected {', '.join(columns)}")
                yield row
    except UnicodeDecodeError as exc:
        raise SuiteError(f"{path}: is not UTF-8. Save it as UTF-8.") from exc
    except OSError as exc:
        raise SuiteError(f"{path}: cannot be read: {exc.strerror}.") from exc


def _parse_csv(path: Path, file: Any) -> Iterator[_Row]:
    reader = csv.DictReader(file, strict=True)
    try:
        names = list(reader.fieldnames or ())
        if len(set(names)) < len(names):
            raise SuiteError(f"{path}:1: names a column twice. Remove one. {_HOW}")
        for values in reader:
            if None in values or None in values.values():
                raise _wrong(path, _Row(reader.line_num, {}), "has more or fewer values than the header has columns")
            yield _Row(reader.line_num, values)
    except csv.Error as exc:
        raise SuiteError(f"{path}:{reader.line_num}: is not valid CSV: {exc}. Mend that line.") from exc


def _parse_jsonl(path: Path, file: Any) -> Iterator[_Row]:
    for line, text in enumerate(file, start=1):
        if not text.strip():
            continue
        try:
            values = json.loads(text)
        except json.JSONDecodeError as exc:
            raise SuiteError(f"{path}:{line}: is not valid JSON: {exc.msg}. Mend that line.") from exc
        if not isinstance(values, dict):
            raise _wrong(path, _Row(line, {}), "is no object")
        yield _Row(line, {key: "" if value is None else str(value) for key, value in values.items()})
