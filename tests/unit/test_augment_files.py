"""`bbnli-audit augment`: files in and out, and the report."""

import json
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bbnli_audit.frontends.cli import augment
from bbnli_audit.workbench.augment import reading, writing
from bbnli_audit.workbench.augment.lexicon import read_lexicon
from bbnli_audit.workbench.augment.run import Augmenter
from bbnli_audit.workbench.augment.swap import Swapper
from tests.augmented_files import EXPECTED, ROWS, as_text, read, run, write


@pytest.mark.parametrize("source", ["in.csv", "in.jsonl", "in.csv.gz", "in.jsonl.gz", "in.parquet"])
@pytest.mark.parametrize("out", ["out.csv", "out.jsonl", "out.csv.gz", "out.jsonl.gz", "out.parquet"])
def test_every_format_becomes_every_other(tmp_path: Path, source: str, out: str) -> None:
    assert run(write(tmp_path / source), tmp_path / out) == 0
    written = read(tmp_path / out)
    if "csv" in source or "csv" in out:  # a cell is a text, whatever it was
        expected = as_text(EXPECTED)
        written = as_text(written)
    else:
        expected = EXPECTED
    assert written == expected
    assert [list(row) for row in written] == [list(row) for row in EXPECTED]


def test_swapped_only_writes_copies_alone(tmp_path: Path) -> None:
    for suffix in (".csv", ".jsonl", ".parquet"):
        out = tmp_path / f"out{suffix}"
        run(write(tmp_path / f"in{suffix}"), out, "--swapped-only")
        assert [str(row["id"]) for row in read(out)] == ["1", "3"]
        assert {str(row["augmented"]).lower() for row in read(out)} == {"true"}


def test_only_rows_that_name_an_occupation_are_copied(tmp_path: Path) -> None:
    source, out = write(tmp_path / "in.jsonl"), tmp_path / "out.jsonl"
    run(source, out, "--only-occupations")
    assert [row["id"] for row in read(out) if row["augmented"]] == [1]
    (tmp_path / "own.txt").write_text("# mine\nzorvian tamer\nsister  # a test\n")
    out.unlink()
    run(source, out, "--occupations", tmp_path / "own.txt")
    assert [row["id"] for row in read(out) if row["augmented"]] == [3]
    assert len(read(out)) == 4


def test_plurals_and_other_cases_of_occupations_count(tmp_path: Path) -> None:
    texts = ["SECRETARIES met her", "two construction workers and him", "Salespeople saw her", "a nursery saw her"]
    rows = [{"premise": text, "hypothesis": "x"} for text in texts]
    run(write(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl", "--only-occupations", "--swapped-only")
    assert [row["premise"].split()[0] for row in read(tmp_path / "out.jsonl")] == ["SECRETARIES", "two", "Salespeople"]


def test_other_columns_hold_the_texts_if_named(tmp_path: Path) -> None:
    rows = [{"gold": 1, "sentence1": "he ran", "sentence2": "a man", "premise": "he"}]
    source, out = write(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl"
    run(source, out, "--premise-column", "sentence1", "--hypothesis-column=sentence2", "--swapped-only")
    assert read(out) == [
        {"gold": 1, "sentence1": "she ran", "sentence2": "a woman", "premise": "he", "augmented": True}
    ]


def test_a_json_row_keeps_its_own_spelling(tmp_path: Path) -> None:
    line = '{"premise":"caf\\u00e9 \\ud800 \\u2028","hypothesis":"no","n":1.10,"big":12345678901234567890123}'
    swapped = '{"premise":"he, caf\\u00e9 \\ud800","hypothesis":"é"}'
    (tmp_path / "in.jsonl").write_bytes(f"\ufeff{line}\r\n\n  {swapped}".encode())
    run(tmp_path / "in.jsonl", tmp_path / "out.jsonl")
    first, second, third = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
    assert first == f'{line[:-1]}, "augmented": false}}'
    assert second == f'{swapped[:-1]}, "augmented": false}}'
    assert json.loads(third) == {**json.loads(swapped), "premise": "she, café \ud800", "augmented": True}


def test_parquet_keeps_types_and_metadata(tmp_path: Path) -> None:
    schema = pa.schema(
        [
            pa.field("premise", pa.dictionary(pa.int32(), pa.string())),
            pa.field("when", pa.timestamp("ns"), metadata={"a": "b"}),
            pa.field("hypothesis", pa.large_string(), nullable=False),
            pa.field("tags", pa.list_(pa.struct([("t", pa.int8())]))),
        ],
        metadata={"huggingface": json.dumps({"info": {"features": {"premise": {}}}}), "other": "kept"},
    )
    rows = {
        "premise": ["he", None, "no", "he"],
        "when": [1, 2, None, 4],
        "hypothesis": ["his dog", "she", "none", "x"],
        "tags": [[{"t": 1}], None, [], [{"t": None}]],
    }
    pq.write_table(pa.table(rows, schema=schema), tmp_path / "in.parquet")
    run(tmp_path / "in.parquet", tmp_path / "out.parquet")
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.column("premise").to_pylist() == ["he", "she", None, "no", "he", "she"]
    assert table.column("hypothesis").to_pylist() == ["his dog", "her dog", "she", "none", "x", "x"]
    assert table.column("tags").to_pylist()[:3] == [[{"t": 1}], [{"t": 1}], None]
    assert table.schema.remove(4).equals(pq.read_schema(tmp_path / "in.parquet"))
    assert table.schema.metadata[b"other"] == b"kept"
    features = json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]
    assert features == {"premise": {}, "augmented": {"dtype": "bool", "_type": "Value"}}


def test_batches_and_row_groups_do_not_change_what_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{**ROWS[n % 3], "id": n} for n in range(200)]
    for suffix in (".csv", ".jsonl", ".parquet"):
        source = write(tmp_path / f"in{suffix}", rows)
        run(source, tmp_path / f"whole{suffix}")
        with monkeypatch.context() as small:
            small.setattr(reading, "BATCH", 7)
            small.setattr(writing, "ROW_GROUP", 11)
            run(source, tmp_path / f"parts{suffix}")
        assert read(tmp_path / f"parts{suffix}") == read(tmp_path / f"whole{suffix}")
        assert len(read(tmp_path / f"parts{suffix}")) == 200 + 133
    assert pq.ParquetFile(tmp_path / "parts.parquet").metadata.num_row_groups > 10


def test_a_copy_of_no_row_is_a_file_without_rows(tmp_path: Path) -> None:
    for suffix in (".csv", ".jsonl", ".parquet"):
        source = write(tmp_path / f"in{suffix}", [ROWS[1]])
        for out in (".csv", ".jsonl", ".parquet"):
            run(source, tmp_path / f"from_{suffix[1:4]}{out}", "--swapped-only")
            assert read(tmp_path / f"from_{suffix[1:4]}{out}") == []


def test_a_row_with_a_missing_text_stays_and_is_counted(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"premise": None, "hypothesis": "he"}, {"premise": "he", "hypothesis": ""}]
    report = tmp_path / "report.json"
    run(write(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl", "--report", report)
    assert [row["hypothesis"] for row in read(tmp_path / "out.jsonl")] == ["he", "", ""]
    assert json.loads(report.read_text())["rows"]["missing_text"] == 1


def test_the_report_counts_rows_terms_and_decisions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [*ROWS, {**ROWS[2], "premise": "The King and his man-made lake", "hypothesis": "a guard saw her"}]
    report = tmp_path / "report.json"
    assert run(write(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl", "--report", report) == 0
    found = json.loads(report.read_text(encoding="utf-8"))
    assert found["rows"] == {
        "read": 4,
        "written": 7,
        "copied": 3,
        "copied_from": {"male": 0, "female": 1, "both": 2},
        "copied_with_terms_left": 1,
        "nothing_to_swap": 1,
        "no_occupation": 0,
        "missing_text": 0,
    }
    assert {(one["term"], one["became"]): one["n"] for one in found["swapped"]} == {
        ("her", "his"): 1,
        ("her", "him"): 1,
        ("his", "her"): 2,
        ("she", "he"): 1,
        ("boy", "girl"): 1,
        ("sister", "brother"): 1,
    }
    assert {(one["term"], one["became"], one["rule"]): one["n"] for one in found["decided"]} == {
        ("her", "him", "end_of_clause"): 1,
        ("her", "his", "noun_phrase"): 1,
        ("his", "her", "noun_phrase"): 2,
    }
    assert found["left"] == {"kept": {"man-made": 1}, "capitalised": {"king": 1}}
    assert found["lexicon"]["sides"] == ["male", "female"]
    out = capsys.readouterr().out
    assert "copied              3 rows with terms swapped: male 0, female 1, both 2\n" in out
    assert "nurse" not in out
    assert "nurse" not in json.dumps(found)


def test_texts_are_shown_only_when_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write(tmp_path / "in.jsonl")
    run(source, tmp_path / "out.jsonl", "--show", 1)
    out = capsys.readouterr().out
    assert "The nurse lost his keys." in out
    assert "A girl ran" not in out
    run(source, tmp_path / "second.jsonl", "--json")
    assert "examples" not in json.loads(capsys.readouterr().out)
    run(source, tmp_path / "third.jsonl", "--json", "--show", 2)
    assert len(json.loads(capsys.readouterr().out)["examples"]) == 2


def test_progress_is_for_terminals_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write(tmp_path / "in.jsonl")
    run(source, tmp_path / "out.jsonl")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(augment, "_SECONDS_BETWEEN_MOVES", 0.0)
    run(source, tmp_path / "second.jsonl")
    assert "augment: 100%  3 rows" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", [".csv", ".jsonl.gz", ".parquet"])
def test_an_interrupted_run_leaves_no_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    monkeypatch.setattr(writing, "ROW_GROUP", 1)
    source, out = write(tmp_path / f"in{suffix}"), tmp_path / f"out{suffix}"

    def interrupt(_n_rows: int, _share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Augmenter(Swapper(read_lexicon())).run(source, out, reading.TextColumns(), progress=interrupt)
    assert {path.name for path in tmp_path.iterdir()} == {source.name}


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    monkeypatch.setattr(reading, "BATCH", 100)
    augmenter = Augmenter(Swapper(read_lexicon()))
    peaks = []
    for n_rows in (50, 500, 2_000):  # the first lets everything load
        source = write(tmp_path / f"in{suffix}", [{**ROWS[0], "id": n} for n in range(n_rows)])
        tracemalloc.start()
        try:
            augmenter.run(source, tmp_path / f"out-{n_rows}{suffix}", reading.TextColumns())
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[2] < 1.2 * peaks[1]
