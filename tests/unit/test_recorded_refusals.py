"""A file of probabilities that cannot be trusted is refused, by line."""

import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bbnli_audit.core.errors import ModelError
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.recorded import RecordedPredictor
from tests.recorded_files import (
    GOOD,
    ONE,
    TWO,
    formats,
    lines,
    open_file,
    row,
    stored,
)

HEADER = "premise,hypothesis,entailment,neutral,contradiction"


@formats
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((math.nan, 0.5, 0.5), "entailment is NaN, so the text has no label. Look at the model's outputs for it"),
        ((1.2, -0.2, 0.0), "entailment is 1.2; a probability is never above 1. Apply softmax first."),
        ((0.5, 0.75, -0.25), "contradiction is -0.25; a probability is never negative. Apply softmax first."),
        ((math.inf, 0.0, 0.0), "entailment is inf; a probability is never above 1."),
        (
            (0.5, 0.5, 0.5),
            "entailment + neutral + contradiction is 1.5; the probabilities of a text add up to 1. Apply",
        ),
        ((0.1, 0.1, 0.1), "entailment + neutral + contradiction is 0.3; the probabilities of a text add up to 1."),
        ((0.5, 0.4, 0.0989), "entailment + neutral + contradiction is 0.9989; the probabilities"),
        ((0.9, None, 0.1), "neutral is "),
    ],
)
def test_what_is_no_probability_is_refused_by_line(
    tmp_path: Path, suffix: str, values: tuple[float, ...], message: str
) -> None:
    rows = [GOOD[0], row(TWO, *values), row(TextPair("Later", "rows are not named"), 7.0, 7.0, 7.0)]
    place = {".csv": ":3", ".jsonl": ":2", ".parquet": ": row 2"}[suffix]
    with pytest.raises(ModelError) as caught:
        stored(tmp_path, suffix, rows)
    assert str(caught.value).startswith(f"{tmp_path / 'stored'}{suffix}{place}: {message}")


@pytest.mark.parametrize("off", [0.0009, -0.0009])
def test_a_rounded_sum_is_taken_as_it_is(tmp_path: Path, off: float) -> None:
    predictor = stored(tmp_path, ".csv", [row(ONE, 0.5, 0.25, 0.25 + off)])
    assert predictor.predict([ONE]).probabilities.tolist() == [[0.5, 0.25, 0.25 + off]]


@formats
def test_two_answers_to_one_text_are_refused_by_both_lines(tmp_path: Path, suffix: str) -> None:
    place, first = {".csv": (":4", "line 2"), ".jsonl": (":3", "line 1"), ".parquet": (": row 3", "row 1")}[suffix]
    with pytest.raises(ModelError) as caught:
        stored(tmp_path, suffix, [*GOOD, row(ONE, 0.1, 0.2, 0.7)])
    assert str(caught.value) == (
        f"{tmp_path / 'stored'}{suffix}{place}: has the same premise and hypothesis as {first} but other "
        "probabilities. Remove one of them."
    )


@formats
def test_missing_columns_are_named_with_those_found(tmp_path: Path, suffix: str) -> None:
    rows = [{"premise": ONE.premise, "Hypothesis": ONE.hypothesis, "entailment": 0.5, "neutral": 0.5}]
    with pytest.raises(ModelError) as caught:
        stored(tmp_path, suffix, rows)
    place = "" if suffix == ".parquet" else ":1"
    assert str(caught.value) == (
        f"{tmp_path / 'stored'}{suffix}{place}: has no column 'hypothesis', 'contradiction'. Columns found: 'premise', "
        "'Hypothesis', 'entailment', 'neutral'. It needs premise, hypothesis, entailment, neutral, contradiction (or "
        "entailment, not_entailment instead of the three). `bbnli-audit suites texts` writes the texts to predict."
    )


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "", "a.csv: holds no row. It needs premise, hypothesis, entailment, neutral, contradiction (or"),
        ("a.jsonl", "\n \n", "a.jsonl: holds no row. "),
        ("a.parquet", "", "a.parquet: is not valid Parquet: ArrowInvalid. It may be cut off or in"),
        ("a.csv", f"{HEADER}\n", "a.csv: holds no row. "),
        ("a.parquet", f"{HEADER}\n", "a.parquet: is not valid Parquet: ArrowInvalid. It may be cut off or in another"),
        ("a.csv", f"{HEADER},neutral\n", "a.csv:1: has the column 'neutral' twice. Remove or rename one."),
        ("a.csv", f"{HEADER}\nA b,c,0.5,0.5\n", "a.csv:2: has 4 values for 5 columns. A text that holds a comma"),
        ("a.csv", f'{HEADER}\n"a\nb",c,1,0,0\n"no end,c,1,0,0\n', "a.csv:4: is not valid CSV: unexpected end of data."),
        ("a.csv", f'{HEADER}\n"a\nb",c,1,0,0\nd,e,1,0,x1\n', "a.csv:4: contradiction is a text of 2 characters, which"),
        ("a.csv", f'{HEADER}\na,b,"0,9",0.1,0\n', "a.csv:2: entailment is '0,9', which is not a number. Write a"),
        ("a.csv", f"{HEADER}\na,b,90%,0.1,0\n", "a.csv:2: entailment is '90%', which is not a number."),
        ("a.csv", f"{HEADER}\na,b,,0.1,0\n", "a.csv:2: entailment is '', which is not a number."),
        ("a.csv", f"{HEADER}\na,b,1_0,0.1,0\n", "a.csv:2: entailment is '1_0', which is not a number."),
        ("a.csv", f"{HEADER}\na,b,NaN,0.1,0\n", "a.csv:2: entailment is NaN, so the text has no label."),
        ("a.csv", f"{HEADER}\na,b,N/A,0.1,0\n", "a.csv:2: entailment is 'N/A', which is not a number."),
        (
            "a.jsonl",
            "{}\n{",
            "a.jsonl:1: has no column 'premise', 'hypothesis', 'entailment', 'neutral', 'contradiction'. Col",
        ),
        ("a.jsonl", "{", "a.jsonl:1: is not valid JSON: Expecting property name enclosed in double quotes. Write one"),
        ("a.jsonl", "[" * 100_000, "a.jsonl:1: is not valid JSON: RecursionError. Write one object per line."),
        ("a.jsonl", "[1]\n", "a.jsonl:1: holds a list. Write one object per line."),
        (
            "a.jsonl",
            json.dumps({**GOOD[0], "premise": None}),
            "a.jsonl:1: premise is missing (null); it must be a text.",
        ),
        ("a.jsonl", json.dumps({**GOOD[0], "premise": 7}), "a.jsonl:1: premise is a float; it must be a text."),
        ("a.jsonl", json.dumps({**GOOD[0], "neutral": "0.2"}), "a.jsonl:1: neutral is '0.2', which is not a number."),
        ("a.jsonl", json.dumps({**GOOD[0], "neutral": True}), "a.jsonl:1: neutral is a bool, which is not a number."),
        ("a.jsonl", json.dumps({**GOOD[0], "neutral": [1]}), "a.jsonl:1: neutral is a list, which is not a number."),
        (
            "a.jsonl",
            json.dumps(GOOD[0]) + '\n{"premise": "a", "hypothesis": "b", "entailment": 1}',
            "a.jsonl:2: has no neutral, but the first record has. Every record needs the same keys.",
        ),
    ],
)
def test_a_malformed_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(content, encoding="utf-8")
    with pytest.raises(ModelError) as caught:
        RecordedPredictor(f"predictions:{name}")
    assert str(caught.value).startswith(message)


def test_a_number_of_any_length_is_a_number(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", json.dumps(GOOD[0]).replace("0.7", "9" * 5000))
    with pytest.raises(ModelError, match="entailment is inf; a probability is never above 1"):
        open_file(path)


def test_another_encoding_is_refused_by_line(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(f"{HEADER}\nA caf\u00e9.,b,1,0,0\n".encode("latin-1"))
    with pytest.raises(ModelError, match=r"a\.csv:2: is not UTF-8\. Save the file as UTF-8\."):
        open_file(path)


def test_a_parquet_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    stored(tmp_path, ".parquet")
    path = tmp_path / "stored.parquet"
    whole = path.read_bytes()
    for n_bytes in (3, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:n_bytes])
        with pytest.raises(ModelError, match="is not valid Parquet"):
            open_file(path)
    path.write_bytes(b"PAR1" + b"\0" * (whole.index(b"Zorbs") + 40 - 4) + whole[whole.index(b"Zorbs") + 40 :])
    with pytest.raises(ModelError, match="is not valid Parquet"):
        open_file(path)


def test_parquet_columns_of_other_types_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    columns: dict[str, Any] = {name: [GOOD[0][name]] for name in GOOD[0]}
    for name, values, message in (
        ("premise", pa.array([b"bytes"]), "row 1: premise is a bytes; it must be a text."),
        ("neutral", pa.array(["0.2"]), "row 1: neutral is '0.2', which is not a number."),
        ("neutral", pa.array([{"x": 0.2}]), "row 1: neutral is a dict, which is not a number."),
    ):
        pq.write_table(pa.table({**columns, name: values}), path)
        with pytest.raises(ModelError) as caught:
            open_file(path)
        assert str(caught.value).startswith(f"{path}: {message}")


@pytest.mark.parametrize(
    "content",
    [
        f"{ONE.premise},{ONE.hypothesis},0.7,0.2,0.1\n",  # no header
        f"{HEADER}\n0.7,0.2,0.1,{ONE.premise},{ONE.hypothesis}\n",  # the wrong header
        f"{HEADER}\n{ONE.premise},{ONE.hypothesis},Zorbs,0.2,0.1\n",  # one word
        f"{HEADER}\n{ONE.premise},{ONE.hypothesis},7,2,1\n",
        f"{HEADER}\n{ONE.premise},{ONE.hypothesis},,too,Zorbs,0.2,0.1\n",
        f'{HEADER}\n{ONE.premise},{ONE.hypothesis}" Zorbs,1,0,0\n"{ONE.premise}" x,b,1,0,0\n',
        f"{HEADER.replace(',', ';')}\n{ONE.premise};{ONE.hypothesis};1;0;0\n",
    ],
)
def test_no_message_quotes_a_text(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ModelError) as caught:
        open_file(path)
    assert "orbs" not in str(caught.value)
    assert "moon" not in str(caught.value)
    with pytest.raises(ModelError) as caught:
        stored(tmp_path, ".jsonl").predict([ONE, TextPair("Are Zorbs", "on the moon?")])
    assert "orbs" not in str(caught.value)


def test_a_forgotten_header_is_suspected(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.csv", f"{ONE.premise},{ONE.hypothesis},0.7,0.2,0.1")
    with pytest.raises(ModelError) as caught:
        open_file(path)
    assert (
        "Columns found: '0.7', '0.2', '0.1', 2 whose name is not one word (is the first line a header, with commas "
        "between?)." in str(caught.value)
    )


def test_texts_that_are_not_in_the_file_are_counted(tmp_path: Path) -> None:
    predictor = stored(tmp_path, ".csv")
    others = [TextPair("a", "b"), TextPair("a", "c"), TextPair(f" {ONE.premise}", ONE.hypothesis)]
    with pytest.raises(ModelError) as caught:
        predictor.predict([ONE, *others, *others, TWO])
    assert str(caught.value) == (
        f"predictions:{tmp_path / 'stored.csv'}: 3 of 5 texts that are needed are not in the file.\n"
        "`bbnli-audit suites texts` writes the texts that are needed (give it the same data and "
        "pairing as the audit). Predict all of them, and leave the texts exactly as they are."
    )
