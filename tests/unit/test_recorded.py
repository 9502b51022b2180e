"""Stored probabilities come back as they were stored."""

import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bbnli_audit.core.errors import OptionError
from bbnli_audit.core.options import ModelOptions
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.opening import plan_model
from tests.recorded_files import GOOD, ONE, TWO, formats, open_file, row, stored, write_csv

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
            "--bbnli-labels=entailment,neutral,contradiction: is not used with --model=predictions:a.csv: its columns "
            "are found by their names.\nLeave the option out; if the columns have the wrong names, rename them",
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
        plan_model(name, ModelOptions(labels=labels))
    assert str(caught.value).startswith(message)


def test_the_option_opens_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_csv(Path("a.csv"), GOOD)
    found = plan_model("predictions:a.csv", ModelOptions()).open([]).predictor
    assert found.info.name == "predictions:a.csv"
    assert found.predict([ONE]).probabilities.tolist() == [[0.7, 0.2, 0.1]]


def run_python(code: str, *args: str) -> str:
    done = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@formats
def test_reading_loads_no_model_library(tmp_path: Path, suffix: str) -> None:
    stored(tmp_path, suffix)
    code = """
import sys
from bbnli_audit.models.opening import plan_model
from bbnli_audit.core.options import ModelOptions
from bbnli_audit.core.values import TextPair
plan_model(sys.argv[1], ModelOptions()).open([]).predictor.predict([TextPair(*sys.argv[2:])])
print([name for name in ("torch", "transformers", "pandas") if name in sys.modules])
"""
    assert run_python(code, f"predictions:{tmp_path / 'stored'}{suffix}", *ONE) == "[]\n"
