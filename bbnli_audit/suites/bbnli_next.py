"""The `bbnli-next` suite: a table of samples that form pairs. The workbench makes such tables (docs/workbench.md)."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from bbnli_audit.core.errors import OptionError, SuiteError
from bbnli_audit.core.reading import Source
from bbnli_audit.core.tables import Record, Table, open_table, show_text
from bbnli_audit.core.values import (
    Control,
    Label,
    Pair,
    Pairing,
    Side,
    Subtopic,
    SubtopicItems,
    TextPair,
    shared_template,
)
from bbnli_audit.suites.bbnli import documented
from bbnli_audit.suites.json_file import read_object
from bbnli_audit.suites.template_file import subtopic_name

SAMPLES, CONTROLS, MANIFEST = "bbnli_next", "controls", "release.json"
SUFFIXES = (".csv", ".jsonl")
COLUMNS = ("premise", "hypothesis", "side", "pair_id", "subtopic")
CONTROL_COLUMNS = ("premise", "hypothesis", "label", "subtopic")
_HOW = "docs/workbench.md describes the table."
Choice = TypeVar("Choice", Side, Label)


def find_table(data: Path, name: str = SAMPLES) -> Path | None:
    """Return the path of a table: `data` itself or, if `data` is a folder, the file `name` in it. Nothing is opened."""
    paths = [data / f"{name}{suffix}" for suffix in SUFFIXES] if data.is_dir() else [data]
    return next((path for path in paths if path.is_file() and path.suffix in SUFFIXES), None)


class BbnliNext:
    """Pairs from one file. Both samples of a pair have the same premise. The groups are exchanged in the hypothesis."""

    name = "bbnli-next"
    pairing = Pairing.HYPOTHESIS

    def __init__(self, data: Path | None = None) -> None:
        self._data = data

    @cached_property
    def _path(self) -> Path:
        data = self._data
        if data is None:
            advice = "Name a released table with --bbnli-data=FILE (bbnli-audit extend release makes one)."
            raise OptionError(f"--bbnli-suite=bbnli-next: has no data of its own. {advice}")
        path = find_table(data)
        if path is None:
            fault = f"the folder holds no {SAMPLES}" if data.is_dir() else "there is no such file that ends in "
            raise OptionError(f"--bbnli-data={data}: {fault}.csv or .jsonl.\nName a released table, or its folder.")
        return path

    @cached_property
    def version(self) -> str:
        manifest = self._path.parent / MANIFEST
        data = read_object(manifest, f"an object with the version. {_HOW}") if manifest.is_file() else {}
        return str(data.get("version", "unversioned"))

    @cached_property
    def sha256(self) -> str:
        digest = sha256()
        for path in filter(None, (self._path, self._control_path)):
            digest.update(Source(path, SuiteError).read_bytes())
        return digest.hexdigest()

    def subtopics(self) -> Sequence[Subtopic]:
        return tuple(self._items)

    def documented(self) -> Sequence[Subtopic]:
        return documented(self.name)

    def items(self, subtopic: Subtopic) -> SubtopicItems:
        return self._items[subtopic]

    @cached_property
    def _control_path(self) -> Path | None:
        return find_table(self._path.parent, CONTROLS)

    @cached_property
    def _items(self) -> dict[Subtopic, SubtopicItems]:
        with open_table(self._path, SuiteError, _HOW) as table:
            pairs = self._read_pairs(table)
        controls: dict[Subtopic, list[Control]] = {}
        if self._control_path is not None:
            with open_table(self._control_path, SuiteError, _HOW) as table:
                for record in _read_records(table, CONTROL_COLUMNS):
                    label = _read_choice(table, record, "label", Label)
                    control = Control(record.values.get("cluster") or "control", _text(record), label)
                    controls.setdefault(self._subtopic(table, record), []).append(control)
        return {
            subtopic: SubtopicItems(tuple(found), tuple(controls.get(subtopic, ())))
            for subtopic, found in sorted(pairs.items())
        }

    def _read_pairs(self, table: Table) -> dict[Subtopic, list[Pair]]:
        sides: dict[tuple[Subtopic, str], dict[Side, Record]] = {}
        for record in _read_records(table, COLUMNS):
            side = _read_choice(table, record, "side", Side)
            of_pair = sides.setdefault((self._subtopic(table, record), record.values["pair_id"]), {})
            if side in of_pair:
                fault = f"the pair has a second {side.value} sample (the first is on line {of_pair[side].number})"
                raise table.wrong(fault, record.number)
            of_pair[side] = record
        shared = _find_shared((place, record) for (place, _), of_pair in sides.items() for record in of_pair.values())
        pairs: dict[Subtopic, list[Pair]] = {}
        for (subtopic, _), of_pair in sides.items():
            pairs.setdefault(subtopic, []).append(_pair(table, of_pair, shared))
        if not pairs:
            raise table.wrong("holds no sample, so there is nothing to audit")
        return pairs

    def _subtopic(self, table: Table, record: Record) -> Subtopic:
        domain, slash, name = record.values["subtopic"].rpartition("/")
        domain = domain if slash else record.values.get("domain") or "all"
        subtopic = Subtopic(self.name, subtopic_name(domain), subtopic_name(name))
        if not subtopic.domain or not subtopic.name:
            raise table.wrong("the subtopic has no letter or digit", record.number)
        return subtopic


def _read_records(table: Table, columns: Sequence[str]) -> Iterator[Record]:
    """Read records, all values as texts. Refuse empty values in the given columns."""
    records = table.records(columns)
    table.require(table.columns)  # no column may occur twice, not even an optional one
    for record in records:
        values = {key: "" if value is None else str(value) for key, value in record.values.items()}
        for column in columns:
            if not values[column].strip():
                raise table.wrong(f"{column} is missing or empty; expected {', '.join(columns)}", record.number)
        yield record._replace(values=values)


def _find_shared(records: Iterable[tuple[Subtopic, Record]]) -> set[str]:
    """Return the premises that occur in several subtopics."""
    subtopics: dict[str, set[Subtopic]] = {}
    for subtopic, record in records:
        subtopics.setdefault(record.values["premise"], set()).add(subtopic)
    return {premise for premise, found in subtopics.items() if len(found) > 1}


def _pair(table: Table, of_pair: dict[Side, Record], shared: Collection[str]) -> Pair:
    if len(of_pair) != 2:
        ((side, record),) = of_pair.items()
        (other,) = set(Side) - {side}
        raise table.wrong(f"the pair has no {other} sample; a pair is one pro and one anti sample", record.number)
    pro, anti = (_text(of_pair[side]) for side in Side)
    if pro.premise != anti.premise:
        last = max(record.number for record in of_pair.values())
        raise table.wrong("the two samples of the pair have different premises", last)
    # Pairs with the same premise are not independent. They form a cluster, unless the table names clusters itself.
    digest = sha256(pro.premise.encode()).hexdigest()[:8]
    of_premise = shared_template(digest) if pro.premise in shared else digest
    return Pair(of_pair[Side.PRO].values.get("cluster") or of_premise, pro, anti)


def _read_choice(table: Table, record: Record, column: str, choices: type[Choice]) -> Choice:
    value = record.values[column]
    if value not in tuple(choices):
        raise table.wrong(f"{column} is {show_text(value)}; expected {' or '.join(choices)}", record.number)
    return choices(value)


def _text(record: Record) -> TextPair:
    return TextPair(record.values["premise"], record.values["hypothesis"])
