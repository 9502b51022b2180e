"""`predictions:FILE`: probabilities that were stored elsewhere, for models that cannot be loaded here.

Messages name file, line and column and never a text: the sentences of suites stay hidden. The standard library reads
CSV and JSONL, because it keeps every text as it is and knows the line of every record.
"""

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from io import StringIO
from math import isnan
from pathlib import Path
from stat import S_ISDIR
from typing import TYPE_CHECKING, SupportsFloat

from bbnli_audit.core.errors import ModelError, OptionError
from bbnli_audit.core.results.audit import ModelInfo
from bbnli_audit.core.values import Label, TextPair
from bbnli_audit.models.classifier.labels import NOT_ENTAILMENT, columns_of
from bbnli_audit.models.protocol import Predictions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PREDICTIONS = "predictions:"
TEXT_COLUMNS = ("premise", "hypothesis")
THREE_LABELS = tuple(label.value for label in Label)
TWO_LABELS = (Label.ENTAILMENT.value, NOT_ENTAILMENT)

# As `check_predictions` has them: float32 rounds, and half precision rounds more.
_SLACK_OF_A_VALUE = 1e-6
_SLACK_OF_A_SUM = 1e-3
_NUMBER = re.compile(
    r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*|\s*[+-]?(nan|inf|infinity)\s*", re.ASCII | re.IGNORECASE
)
# What may be shown of a value that is no number. Anything else may be a sentence in the wrong column.
_HARMLESS = re.compile(r"[\d\s.,:;%eE_/+-]{0,24}|n/?an?|none|null", re.ASCII | re.IGNORECASE)
_ONE_WORD = re.compile(r"\s*[\w.-]{1,40}\s*")


def check_recorded(name: str, labels: str | None = None) -> Path:
    """Refuse what can be seen without reading the file, and give its path."""
    path = Path(name.removeprefix(PREDICTIONS))
    known = "Stored probabilities are read from a .parquet, .csv or .jsonl file."
    if name == PREDICTIONS:
        raise OptionError(f"--model={name}: names no file. {known}")
    try:
        is_folder = S_ISDIR(path.stat().st_mode)
    except FileNotFoundError as exc:
        raise OptionError(
            f"--model={name}: there is no such file.\nA relative path counts from the folder where pytest was started."
        ) from exc
    except OSError as exc:
        raise OptionError(f"--model={name}: cannot be read: {exc.strerror}.") from exc
    if is_folder:
        raise OptionError(f"--model={name}: is a folder. {known}")
    suffix = path.suffix.lower()
    if suffix not in _READERS:
        shown = f"ends in {path.suffix!r}" if suffix else "has no suffix"
        raise OptionError(f"--model={name}: the file's name {shown}. {known}")
    if labels is not None:
        raise OptionError(
            f"--bbnli-labels={labels}: has no use with --model={name}, whose columns are found by their names.\n"
            "Leave the option out; if the columns bear the wrong names, rename them in the file."
        )
    return path


class RecordedPredictor:
    """Looks texts up in a file. The fingerprint is that of the file's bytes."""

    def __init__(self, name: str) -> None:
        path = check_recorded(name)
        try:
            data = path.read_bytes()
        except OSError as exc:
            raise ModelError(f"{path}: cannot be read: {exc.strerror}.") from exc
        table = _READERS[path.suffix.lower()](data, path)
        order = _find_labels(table)
        self._row_of, self._probabilities = _read_rows(table, order)
        self.info = ModelInfo(
            name=name,
            fingerprint=sha256(data).hexdigest(),
            kind="recorded",
            backend="recorded",
            dtype="float64",
            labels=order,
        )

    def predict(self, texts: Sequence[TextPair]) -> Predictions:
        import numpy as np

        distinct = set(texts)
        n_missing = sum(text not in self._row_of for text in distinct)
        if n_missing:
            raise ModelError(
                f"{self.info.name}: {n_missing} of {len(distinct)} texts that are needed are not in the file, so they "
                "have no probabilities.\n`bbnli-audit suites texts` writes the texts that are needed (give it the same "
                "data and pairing as the audit). Predict all of them, and leave the texts exactly as they are."
            )
        rows = np.array([self._row_of[text] for text in texts], dtype=np.intp)
        return Predictions(self._probabilities[rows], np.zeros(len(texts), dtype=np.bool_))


@dataclass(frozen=True, slots=True)
class _Table:
    """A file as it stands: values are text, numbers, or whatever else was found there."""

    path: Path
    columns: Sequence[str]
    rows: Iterable[tuple[int, Mapping[str, object]]]
    unit: str = "line"

    def place(self, number: int) -> str:
        return f"{self.path}:{number}" if self.unit == "line" else f"{self.path}: {self.unit} {number}"


def _find_labels(table: _Table) -> tuple[str, ...]:
    """Find out whether the file has three labels or two.

    Raises:
        ModelError: when columns are missing, or stand there twice.
    """
    order = next((order for order in (THREE_LABELS, TWO_LABELS) if set(order) <= set(table.columns)), None)
    missing = [column for column in (*TEXT_COLUMNS, *(order or THREE_LABELS)) if column not in table.columns]
    if missing:
        raise ModelError(
            f"{table.path}: has no column {', '.join(missing)}. {_tell_columns(table.columns)}\nIt needs premise, "
            "hypothesis, entailment, neutral, contradiction (or entailment, not_entailment instead of the three)."
        )
    assert order is not None  # or labels would be missing
    for column in (*TEXT_COLUMNS, *order):
        if list(table.columns).count(column) > 1:
            raise ModelError(f"{table.path}: has the column {column} twice. Remove or rename one.")
    return order


def _tell_columns(columns: Sequence[str]) -> str:
    # Where the header is forgotten, the first record's sentences stand in its place.
    shown = [repr(column) for column in columns if _ONE_WORD.fullmatch(column)]
    n_others = len(columns) - len(shown)
    if n_others:
        shown.append(f"{n_others} whose name is not one word (is the first line a header, with commas between?)")
    return f"Columns found: {', '.join(shown)}."


def _read_rows(table: _Table, order: Sequence[str]) -> "tuple[dict[TextPair, int], NDArray[np.float64]]":
    """Check every row; give the row of each distinct text, and (n_texts, 3) probabilities in `Label` order."""
    import numpy as np

    found: dict[TextPair, tuple[int, tuple[float, ...]]] = {}
    for number, record in table.rows:
        place = table.place(number)
        premise, hypothesis = (_text_of(record, column, place) for column in TEXT_COLUMNS)
        values = tuple(_probability_of(record, column, place) for column in order)
        if abs(sum(values) - 1) > _SLACK_OF_A_SUM:
            raise ModelError(
                f"{place}: {' + '.join(order)} is {sum(values):g}; the probabilities of a text add up to 1. "
                "Apply softmax first."
            )
        first, known = found.setdefault(TextPair(premise, hypothesis), (number, values))
        if known != values:
            raise ModelError(
                f"{place}: has the same premise and hypothesis as {table.unit} {first}, but other probabilities, so "
                "we cannot tell which are right. Remove one of them."
            )
    if not found:
        raise _empty(table.path)
    rows = [[0.0 if column is None else values[column] for column in columns_of(order)] for _, values in found.values()]
    return {text: row for row, text in enumerate(found)}, np.array(rows, dtype=np.float64)


def _text_of(record: Mapping[str, object], column: str, place: str) -> str:
    value = _get(record, column, place)
    if not isinstance(value, str):
        what = "missing (null)" if value is None else f"a {type(value).__name__}"
        raise ModelError(f"{place}: {column} is {what}; it must be a text.")
    return value


def _probability_of(record: Mapping[str, object], column: str, place: str) -> float:
    value = _get(record, column, place)
    if not isinstance(value, SupportsFloat) or isinstance(value, bool):
        raise ModelError(
            f"{place}: {column} is {_show(value)}, which is not a number. Give a probability from 0 to 1, as in 0.25."
        )
    number = float(value)
    if isnan(number):
        raise ModelError(
            f"{place}: {column} is NaN, so the text has no label. Look at the model's outputs for it: the weights may "
            "be damaged, or too large for the number type."
        )
    if not -_SLACK_OF_A_VALUE <= number <= 1 + _SLACK_OF_A_VALUE:
        problem = "negative" if number < 0 else "above 1"
        raise ModelError(f"{place}: {column} is {number:g}; a probability is never {problem}. Apply softmax first.")
    return number


def _get(record: Mapping[str, object], column: str, place: str) -> object:
    if column not in record:
        raise ModelError(f"{place}: has no {column}, although the first record has. Every record needs the same keys.")
    return record[column]


def _show(value: object) -> str:
    if not isinstance(value, str):
        return "missing (null)" if value is None else f"a {type(value).__name__}"
    return repr(value) if _HARMLESS.fullmatch(value) else f"a text of {len(value)} characters"


# One reader a format


def _read_csv(data: bytes, path: Path) -> _Table:
    records = _csv_records(_decode(data, path), path)
    _, header = next(records, (0, []))
    if not header:
        raise _empty(path)

    def rows() -> Iterator[tuple[int, Mapping[str, object]]]:
        for line, cells in records:
            if len(cells) != len(header):
                raise ModelError(
                    f"{path}:{line}: has {len(cells)} values for {len(header)} columns. A text that holds a comma, a "
                    "quote or a line break must stand in double quotes."
                )
            yield (
                line,
                {
                    column: cell if column in TEXT_COLUMNS else _parse_number(cell)
                    for column, cell in zip(header, cells, strict=True)
                },
            )

    return _Table(path, header, rows())


def _csv_records(text: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Give each record that is no blank line, with the line it begins in."""
    # newline="" leaves line breaks inside of texts as they are.
    reader = csv.reader(StringIO(text, newline=""), strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as exc:
            raise ModelError(
                f"{path}:{line}: is not valid CSV: {exc}. Write it with a CSV library, commas between the values."
            ) from exc
        if cells is None:
            return
        if cells:
            yield line, cells


def _parse_number(cell: str) -> str | float:
    return float(cell) if _NUMBER.fullmatch(cell) else cell


def _read_jsonl(data: bytes, path: Path) -> _Table:
    # Not splitlines(): JSON may hold other line separators inside of texts.
    lines = [(number, line) for number, line in enumerate(_decode(data, path).split("\n"), 1) if line.strip()]
    if not lines:
        raise _empty(path)
    return _Table(path, list(_parse_object(*lines[0], path)), ((n, _parse_object(n, line, path)) for n, line in lines))


def _parse_object(number: int, line: str, path: Path) -> dict[str, object]:
    try:
        record = json.loads(line, parse_int=float)
    except (ValueError, RecursionError) as exc:
        told = exc.msg if isinstance(exc, json.JSONDecodeError) else type(exc).__name__
        raise ModelError(f"{path}:{number}: is not valid JSON: {told}. Write one object a line.") from exc
    if not isinstance(record, dict):
        raise ModelError(f"{path}:{number}: holds a {type(record).__name__}. Write one object a line.")
    return record


def _read_parquet(data: bytes, path: Path) -> _Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not data:
        raise _empty(path)
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        names = file.schema_arrow.names
        wanted = [name for name in dict.fromkeys(names) if name in {*TEXT_COLUMNS, *THREE_LABELS, *TWO_LABELS}]
        table = file.read(columns=wanted)
        table.validate()
        columns = [column.to_pylist() for column in table.columns]
    except (pa.ArrowException, OSError, ValueError) as exc:
        raise ModelError(
            f"{path}: is not valid Parquet: {type(exc).__name__}. It may be cut off, or of another format: "
            "write it again."
        ) from exc
    records = (dict(zip(table.column_names, values, strict=True)) for values in zip(*columns, strict=True))
    return _Table(path, names, enumerate(records, 1), unit="row")


_READERS: dict[str, Callable[[bytes, Path], _Table]] = {
    ".parquet": _read_parquet,
    ".csv": _read_csv,
    ".jsonl": _read_jsonl,
}


def _decode(data: bytes, path: Path) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        raise ModelError(f"{path}:{line}: is not UTF-8. Save the file as UTF-8.") from exc


def _empty(path: Path) -> ModelError:
    return ModelError(
        f"{path}: is empty: it holds no row of probabilities. `bbnli-audit suites texts` writes the texts to predict."
    )
