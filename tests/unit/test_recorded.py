"""Stored probabilities come back as they were stored, and a file that cannot be trusted is refused by line."""

import csv
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bbnli_audit.cli.main import main
from bbnli_audit.cli.suites import needed_texts
from bbnli_audit.errors import ModelError, OptionError
from bbnli_audit.predictors.proof import probe_items
from bbnli_audit.predictors.recorded import RecordedPredictor
from bbnli_audit.predictors.resolve import Computing, check_model, find_model
from bbnli_audit.suites.bbnli import Bbnli
from bbnli_audit.values import Pairing, TextPair
from tests.invented import template_data, write_templates

Rows = Sequence[Mapping[str, Any]]


def write_csv(path: Path, rows: Rows) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def write_jsonl(path: Path, rows: Rows) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8", newline="")


def write_parquet(path: Path, rows: Rows) -> None:
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), path)


WRITERS: dict[str, Callable[[Path, Rows], None]] = {
    ".csv": write_csv,
    ".jsonl": write_jsonl,
    ".parquet": write_parquet,
}
formats = pytest.mark.parametrize("suffix", list(WRITERS))


def row(text: tuple[str, str], *values: Any) -> dict[str, Any]:
    labels = ("entailment", "neutral", "contradiction") if len(values) == 3 else ("entailment", "not_entailment")
    return dict(zip(("premise", "hypothesis", *labels), (*text, *values), strict=True))


ONE = TextPair("Zorbs live on the red moon.", "Zorbs juggle.")
TWO = TextPair("Quints live on the red moon.", "Quints juggle.")
GOOD = [row(ONE, 0.7, 0.2, 0.1), row(TWO, 0.25, 0.5, 0.25)]


def open_file(path: Path) -> RecordedPredictor:
    return RecordedPredictor(f"predictions:{path}")


def stored(folder: Path, suffix: str, rows: Rows = GOOD) -> RecordedPredictor:
    path = folder / f"stored{suffix}"
    WRITERS[suffix.lower()](path, rows)
    return open_file(path)


def lines(path: Path, *content: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in content), encoding="utf-8")
    return path


# What comes back


@formats
def test_each_text_gets_its_own_probabilities_in_any_order(tmp_path: Path, suffix: str) -> None:
    predictor = stored(tmp_path, suffix)
    found = predictor.predict([TWO, ONE, TWO])
    assert found.probabilities.tolist() == [[0.25, 0.5, 0.25], [0.7, 0.2, 0.1], [0.25, 0.5, 0.25]]
    assert found.probabilities.dtype == np.float64
    assert found.is_truncated.tolist() == [False] * 3
    assert predictor.predict([]).probabilities.shape == (0, 3)


@formats
def test_the_model_is_known_by_the_bytes_of_the_file(tmp_path: Path, suffix: str) -> None:
    info = stored(tmp_path, suffix).info
    path = tmp_path / f"stored{suffix}"
    assert info.name == f"predictions:{path}"
    assert info.fingerprint == sha256(path.read_bytes()).hexdigest()
    assert (info.kind, info.backend, info.dtype) == ("recorded", "recorded", "float64")
    assert info.labels == ("entailment", "neutral", "contradiction")


@formats
def test_two_labels_have_no_contradiction(tmp_path: Path, suffix: str) -> None:
    predictor = stored(tmp_path, suffix, [row(ONE, 0.75, 0.25)])
    assert predictor.info.labels == ("entailment", "not_entailment")
    assert predictor.predict([ONE]).probabilities.tolist() == [[0.75, 0.25, 0.0]]


@formats
def test_columns_stand_in_any_order_beside_others(tmp_path: Path, suffix: str) -> None:
    rows = [{"note": "n", **dict(reversed(line.items())), "label": "neutral"} for line in GOOD]
    assert stored(tmp_path, suffix, rows).predict([ONE]).probabilities.tolist() == [[0.7, 0.2, 0.1]]


@pytest.mark.parametrize("suffix", [".CSV", ".Jsonl", ".PARQUET"])
def test_the_case_of_the_suffix_does_not_matter(tmp_path: Path, suffix: str) -> None:
    assert stored(tmp_path, suffix).predict([ONE]).probabilities.tolist() == [[0.7, 0.2, 0.1]]


@formats
def test_a_text_may_stand_there_twice_with_the_same_probabilities(tmp_path: Path, suffix: str) -> None:
    assert stored(tmp_path, suffix, [*GOOD, GOOD[0]]).predict([ONE]).probabilities.tolist() == [[0.7, 0.2, 0.1]]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_byte_order_mark_and_blank_lines_are_tolerated(tmp_path: Path, suffix: str) -> None:
    stored(tmp_path, suffix)
    path = tmp_path / f"stored{suffix}"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\n\n") + b"\n")
    assert open_file(path).predict([ONE]).probabilities.tolist() == [[0.7, 0.2, 0.1]]


def test_files_that_pandas_wrote_are_read(tmp_path: Path) -> None:
    frame = pd.DataFrame([*GOOD, row(TextPair("NA", ""), 1, 0, 0), row(TextPair('a,"b"\nc', " null"), 0, 1, 0)])
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_csv(tmp_path / "b.csv")
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    frame.astype({"premise": "category", "neutral": "float32"}).to_parquet(tmp_path / "a.parquet")
    for name in ("a.csv", "b.csv", "a.jsonl", "a.parquet"):
        found = open_file(tmp_path / name).predict([TWO, TextPair("NA", ""), TextPair('a,"b"\nc', " null")])
        assert found.probabilities.tolist() == [[0.25, 0.5, 0.25], [1, 0, 0], [0, 1, 0]]


@st.composite
def probabilities(draw: st.DrawFn) -> tuple[float, float, float]:
    weights = draw(st.lists(st.floats(0, 1), min_size=3, max_size=3).filter(lambda found: sum(found) > 1e-3))
    entailment, neutral, contradiction = (weight / sum(weights) for weight in weights)
    return entailment, neutral, contradiction


AWKWARD = [
    '"quoted", with commas',
    "two\nlines",
    "cr\rlf\r\n",
    "NA",
    "null",
    "nan",
    "",
    "  leading",
    "\u2028é😀\ufeff",
    "1.0",
]
characters = st.characters(exclude_categories=["Cs"])
texts = st.builds(TextPair, *[st.sampled_from(AWKWARD) | st.text(characters, max_size=20)] * 2)


@formats
@settings(max_examples=60)
@given(st.dictionaries(texts, probabilities(), min_size=1, max_size=8))
@example({TextPair(one, other): (0.1, 0.7, 0.2) for one in AWKWARD for other in AWKWARD})
def test_awkward_texts_and_exact_probabilities_survive(
    suffix: str, table: dict[TextPair, tuple[float, float, float]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        predictor = stored(Path(folder), suffix, [row(text, *values) for text, values in table.items()])
    found = predictor.predict(list(table))
    assert [tuple(values) for values in found.probabilities.tolist()] == list(table.values())


# What is refused

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
        f"{tmp_path / 'stored'}{suffix}{place}: has the same premise and hypothesis as {first}, but other "
        "probabilities, so we cannot tell which are right. Remove one of them."
    )


@formats
def test_missing_columns_are_named_with_those_found(tmp_path: Path, suffix: str) -> None:
    rows = [{"premise": ONE.premise, "Hypothesis": ONE.hypothesis, "entailment": 0.5, "neutral": 0.5}]
    with pytest.raises(ModelError) as caught:
        stored(tmp_path, suffix, rows)
    assert str(caught.value) == (
        f"{tmp_path / 'stored'}{suffix}: has no column hypothesis, contradiction. Columns found: 'premise', "
        "'Hypothesis', 'entailment', 'neutral'.\nIt needs premise, hypothesis, entailment, neutral, contradiction (or "
        "entailment, not_entailment instead of the three)."
    )


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "", "a.csv: is empty: it holds no row of probabilities. `bbnli-audit suites texts` writes the texts"),
        ("a.jsonl", "\n \n", "a.jsonl: is empty: "),
        ("a.parquet", "", "a.parquet: is empty: "),
        ("a.csv", f"{HEADER}\n", "a.csv: is empty: "),
        ("a.parquet", f"{HEADER}\n", "a.parquet: is not valid Parquet: ArrowInvalid. It may be cut off, or of another"),
        ("a.csv", f"{HEADER},neutral\n", "a.csv: has the column neutral twice. Remove or rename one."),
        ("a.csv", f"{HEADER}\nA b,c,0.5,0.5\n", "a.csv:2: has 4 values for 5 columns. A text that holds a comma"),
        ("a.csv", f'{HEADER}\n"a\nb",c,1,0,0\n"no end,c,1,0,0\n', "a.csv:4: is not valid CSV: unexpected end of data."),
        ("a.csv", f'{HEADER}\n"a\nb",c,1,0,0\nd,e,1,0,x1\n', "a.csv:4: contradiction is a text of 2 characters, which"),
        ("a.csv", f'{HEADER}\na,b,"0,9",0.1,0\n', "a.csv:2: entailment is '0,9', which is not a number. Give a"),
        ("a.csv", f"{HEADER}\na,b,90%,0.1,0\n", "a.csv:2: entailment is '90%', which is not a number."),
        ("a.csv", f"{HEADER}\na,b,,0.1,0\n", "a.csv:2: entailment is '', which is not a number."),
        ("a.csv", f"{HEADER}\na,b,1_0,0.1,0\n", "a.csv:2: entailment is '1_0', which is not a number."),
        ("a.csv", f"{HEADER}\na,b,NaN,0.1,0\n", "a.csv:2: entailment is NaN, so the text has no label."),
        ("a.csv", f"{HEADER}\na,b,N/A,0.1,0\n", "a.csv:2: entailment is 'N/A', which is not a number."),
        ("a.jsonl", "{}\n{", "a.jsonl: has no column premise, hypothesis, entailment, neutral, contradiction. Columns"),
        ("a.jsonl", "{", "a.jsonl:1: is not valid JSON: Expecting property name enclosed in double quotes. Write one"),
        ("a.jsonl", "[" * 100_000, "a.jsonl:1: is not valid JSON: RecursionError. Write one object a line."),
        ("a.jsonl", "[1]\n", "a.jsonl:1: holds a list. Write one object a line."),
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
            "a.jsonl:2: has no neutral, although the first record has. Every record needs the same keys.",
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
        f"predictions:{tmp_path / 'stored.csv'}: 3 of 5 texts that are needed are not in the file, so they have no "
        "probabilities.\n`bbnli-audit suites texts` writes the texts that are needed (give it the same data and "
        "pairing as the audit). Predict all of them, and leave the texts exactly as they are."
    )


# What is refused before the file is read


@pytest.mark.parametrize(
    ("name", "labels", "message"),
    [
        ("predictions:none.csv", None, "--model=predictions:none.csv: there is no such file.\nA relative path counts"),
        ("predictions:none", None, "--model=predictions:none: there is no such file."),
        ("predictions:", None, "--model=predictions:: names no file. Stored probabilities are read from a .parquet,"),
        ("predictions:folder", None, "--model=predictions:folder: is a folder. Stored probabilities are read from a"),
        ("predictions:a.txt", None, "--model=predictions:a.txt: the file's name ends in '.txt'. Stored probabilities"),
        ("predictions:a", None, "--model=predictions:a: the file's name has no suffix. Stored probabilities are read"),
        ("predictions:a.csv/b.csv", None, "--model=predictions:a.csv/b.csv: cannot be read: Not a directory."),
        (
            "predictions:a.csv",
            "entailment,neutral,contradiction",
            "--bbnli-labels=entailment,neutral,contradiction: has no use with --model=predictions:a.csv, whose columns "
            "are found by their names.\nLeave the option out; if the columns bear the wrong names, rename them",
        ),
    ],
)
def test_what_needs_no_reading_is_refused_at_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, labels: str | None, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    for file in ("a", "a.txt", "a.csv"):
        Path(file).touch()
    with pytest.raises(OptionError) as caught:
        check_model(name, labels, Computing())
    assert str(caught.value).startswith(message)


def test_the_option_opens_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_csv(Path("a.csv"), GOOD)
    check_model("predictions:a.csv", None, Computing())
    found = find_model("predictions:a.csv")
    assert found.info.name == "predictions:a.csv"
    assert found.open().predict([ONE]).probabilities.tolist() == [[0.7, 0.2, 0.1]]


def run_python(code: str, *args: str) -> str:
    done = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_parquet_without_its_package(tmp_path: Path) -> None:
    stored(tmp_path, ".parquet")
    code = """
import sys
sys.modules["pyarrow"] = None  # as if it were not installed
from bbnli_audit.errors import OptionError
from bbnli_audit.predictors.recorded import RecordedPredictor, check_recorded
for function in (check_recorded, RecordedPredictor):
    try:
        function(sys.argv[1])
    except OptionError as exc:
        print(exc)
"""
    name = f"predictions:{tmp_path / 'stored.parquet'}"
    expected = f'--model={name} needs the package pyarrow: pip install "bbnli-audit[parquet]"\n'
    assert run_python(code, name) == expected * 2


@formats
def test_reading_loads_no_model_library(tmp_path: Path, suffix: str) -> None:
    stored(tmp_path, suffix)
    code = """
import sys
from bbnli_audit.predictors.resolve import Computing, check_model, find_model
from bbnli_audit.values import TextPair
check_model(sys.argv[1], None, Computing())
find_model(sys.argv[1]).open().predict([TextPair(*sys.argv[2:])])
print([name for name in ("torch", "transformers", "pandas") if name in sys.modules])
"""
    assert run_python(code, f"predictions:{tmp_path / 'stored'}{suffix}", *ONE) == "[]\n"


# The texts to predict


@pytest.mark.parametrize("pairing", list(Pairing))
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", None])
def test_the_command_writes_every_text_once_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str | None, pairing: Pairing
) -> None:
    identical = ["Everybody juggles.", 1, 2]  # on a premise without groups
    write_templates(
        tmp_path / "data",
        bias_hypothesis_stereotypical=[*template_data()["bias_hypothesis_stereotypical"], identical],
    )
    path = tmp_path / f"texts{suffix}"
    args = ["suites", "texts", "bbnli", "--data", str(tmp_path / "data"), "--pairing", pairing.value]
    assert main([*args, *(["--output", str(path)] if suffix else [])]) == 0
    out = capsys.readouterr().out
    content = path.read_text(encoding="utf-8") if suffix else out
    if suffix == ".jsonl":
        records = [json.loads(line) for line in content.splitlines()]
    else:
        records = list(csv.DictReader(content.splitlines()))
    found = [TextPair(**record) for record in records]
    suite = Bbnli(tmp_path / "data", pairing)
    items = suite.items(suite.subtopics()[0])
    assert items.n_identical > 0
    expected = {control.text for control in (*probe_items(), *items.controls)}
    expected |= {pair.pro for pair in items.usable} | {pair.anti for pair in items.usable}
    assert set(found) == expected
    assert found == sorted(expected) == needed_texts(suite)
    if suffix:
        assert out == (
            f"{len(expected)} texts are in {path}. Add the columns entailment, neutral, contradiction, then: "
            f"pytest --model=predictions:{path}\n"
        )


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("texts.parquet", "texts.parquet: give a name that ends in .csv or .jsonl."),
        (
            "there.csv",
            "there.csv: is there already, and may hold probabilities by now. Remove it, or give another name.",
        ),
        ("nowhere/texts.csv", "texts.csv: cannot be written: No such file or directory."),
    ],
)
def test_an_output_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], output: str, message: str
) -> None:
    write_templates(tmp_path / "data")
    lines(tmp_path / "there.csv", "dear to somebody")
    args = ["suites", "texts", "--data", str(tmp_path / "data"), "--output", str(tmp_path / output)]
    assert main(args) == 4
    err = capsys.readouterr().err
    assert err.startswith("ERROR: --output=")
    assert err.endswith(f"{message}\n")
    assert (tmp_path / "there.csv").read_text() == "dear to somebody\n"
