"""`predictions:FILE`: probabilities that were stored elsewhere, for models that cannot be loaded here."""

import re
from collections.abc import Sequence
from hashlib import sha256
from io import BytesIO
from math import isnan
from pathlib import Path
from stat import S_ISDIR
from typing import SupportsFloat

from bbnli_audit.core.errors import ModelError, OptionError
from bbnli_audit.core.reading import ANY_SIZE, Source
from bbnli_audit.core.results.rows import ModelInfo
from bbnli_audit.core.tables import CsvTable, Record, Table, open_table
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.labels import THREE_LABELS, TWO_LABELS, columns_of
from bbnli_audit.models.options import ModelKind, ModelSettings
from bbnli_audit.models.protocol import ModelSource, Predictions

PREDICTIONS = "predictions:"
SUFFIXES = (".parquet", ".csv", ".jsonl")

# The same tolerances as in `check_predictions`. They allow for rounding in float32 and in half precision.
_SLACK_OF_A_VALUE = 1e-6
_SLACK_OF_A_SUM = 1e-3
_NUMBER = re.compile(r"\s*[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|nan|inf|infinity)\s*", re.ASCII | re.IGNORECASE)
# Values that messages may show although they are not numbers. Any other value may be a sentence in the wrong column.
_HARMLESS = re.compile(r"[\d\s.,:;%eE_/+-]{0,24}|n/?an?|none|null", re.ASCII | re.IGNORECASE)
_HOW = (
    "It needs premise, hypothesis, entailment, neutral, contradiction (or entailment, not_entailment instead of the "
    "three). `bbnli-audit suites texts` writes the texts to predict."
)


def check_recorded(name: str, labels: str | None = None) -> Path:
    """Refuse faults that can be seen without reading the file, and return its path."""
    path = Path(name.removeprefix(PREDICTIONS))
    fault = ""
    try:
        if name == PREDICTIONS:
            fault = "names no file"
        elif S_ISDIR(path.stat().st_mode):
            fault = "is a folder"
        elif path.suffix.lower() not in SUFFIXES:
            fault = f"the file's name ends in {path.suffix!r}" if path.suffix else "the file's name has no suffix"
    except FileNotFoundError as exc:
        advice = "A relative path counts from the folder where pytest was started."
        raise OptionError(f"--model={name}: there is no such file.\n{advice}") from exc
    except OSError as exc:
        raise OptionError(f"--model={name}: cannot be read: {exc.strerror}.") from exc
    if fault:
        raise OptionError(f"--model={name}: {fault}. Stored probabilities are read from a {', '.join(SUFFIXES)} file.")
    if labels is not None:
        fault = f"is not used with --model={name}: its columns are found by their names"
        advice = "Leave the option out; if the columns have the wrong names, rename them in the file."
        raise OptionError(f"--bbnli-labels={labels}: {fault}.\n{advice}")
    return path


class RecordedPredictor:
    """Looks texts up in a file. The fingerprint is a hash of the file's bytes."""

    def __init__(self, name: str) -> None:
        import numpy as np

        path = check_recorded(name)
        data = Source(path, ModelError).read_bytes(ANY_SIZE)
        # Integers are read as floats, whatever their length.
        with open_table(path, ModelError, _HOW, file=BytesIO(data), parse_int=float) as table:
            has_two = set(TWO_LABELS) <= set(table.columns) and not set(THREE_LABELS) <= set(table.columns)
            order = TWO_LABELS if has_two else THREE_LABELS
            found = _read_rows(table, order)
        self._row_of = {text: row for row, text in enumerate(found)}
        columns = columns_of(order)
        rows = [[0.0 if column is None else values[column] for column in columns] for values in found.values()]
        self._probabilities = np.array(rows, dtype=np.float64)  # (n_texts, 3), in `Label` order
        self.info = ModelInfo(name, sha256(data).hexdigest(), "recorded", "recorded", "float64", order)

    def predict(self, texts: Sequence[TextPair]) -> Predictions:
        import numpy as np

        distinct = set(texts)
        n_missing = sum(text not in self._row_of for text in distinct)
        if n_missing:
            raise ModelError(
                f"{self.info.name}: {n_missing} of {len(distinct)} texts that are needed are not in the file.\n"
                "`bbnli-audit suites texts` writes the texts that are needed (give it the same data and pairing as the "
                "audit). Predict all of them, and leave the texts exactly as they are."
            )
        rows = np.array([self._row_of[text] for text in texts], dtype=np.intp)
        return Predictions(self._probabilities[rows], np.zeros(len(texts), dtype=np.bool_))


def _read_rows(table: Table, order: Sequence[str]) -> dict[TextPair, tuple[float, ...]]:
    """Check all rows. Return the probabilities of each distinct text, in the order of the labels in `order`."""
    found: dict[TextPair, tuple[int, tuple[float, ...]]] = {}
    for record in table.records((*TextPair._fields, *order)):
        text = TextPair(*(record.values[column] for column in TextPair._fields))
        for column, value in text._asdict().items():
            if not isinstance(value, str):
                raise table.wrong(f"{column} is {_show(value)}; it must be a text", record.number, "")
        values = tuple(_probability_of(table, record, column) for column in order)
        if abs(sum(values) - 1) > _SLACK_OF_A_SUM:
            fault = f"{' + '.join(order)} is {sum(values):g}; the probabilities of a text add up to 1"
            raise table.wrong(fault, record.number, "Apply softmax first.")
        first, known = found.setdefault(text, (record.number, values))
        if known != values:
            fault = f"has the same premise and hypothesis as {table.unit} {first} but other probabilities"
            raise table.wrong(fault, record.number, "Remove one of them.")
    if not found:
        raise table.wrong("holds no row")
    return {text: values for text, (_, values) in found.items()}


def _probability_of(table: Table, record: Record, column: str) -> float:
    value = record.values[column]
    if isinstance(table, CsvTable) and _NUMBER.fullmatch(value):
        value = float(value)
    if not isinstance(value, SupportsFloat) or isinstance(value, bool):
        advice = "Write a probability from 0 to 1, such as 0.25."
        raise table.wrong(f"{column} is {_show(value)}, which is not a number", record.number, advice)
    number = float(value)
    if isnan(number):
        advice = "Look at the model's outputs for it: the weights may be damaged, or too large for the number type."
        raise table.wrong(f"{column} is NaN, so the text has no label", record.number, advice)
    if not -_SLACK_OF_A_VALUE <= number <= 1 + _SLACK_OF_A_VALUE:
        problem = "negative" if number < 0 else "above 1"
        advice = "Apply softmax first."
        raise table.wrong(f"{column} is {number:g}; a probability is never {problem}", record.number, advice)
    return number


def _show(value: object) -> str:
    if not isinstance(value, str):
        return "missing (null)" if value is None else f"a {type(value).__name__}"
    return repr(value) if _HARMLESS.fullmatch(value) else f"a text of {len(value)} characters"


def _check(name: str, settings: ModelSettings) -> None:
    settings.refuse_all(name)
    check_recorded(name, settings.labels)


KIND = ModelKind(
    "recorded",
    f"{PREDICTIONS}FILE",
    lambda name: name.startswith(PREDICTIONS),
    _check,
    lambda name, _: ModelSource.of(RecordedPredictor(name)),
)
