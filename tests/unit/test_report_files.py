"""The report folder: what is written, read again and removed, and the reports that other projects add."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bbnli_audit.core.errors import OptionError, ResultError
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.file import read_result
from bbnli_audit.measures.readings.table import PLACES, TEXTS, PairTable
from bbnli_audit.reports.files import (
    FILES,
    REPORTS,
    check_folder,
    read_pairs,
    remove_files,
    write_data,
    write_reports,
)
from bbnli_audit.reports.folder import CSV, FINISHED, PARQUET, UNFINISHED, has_report
from bbnli_audit.reports.report import Report
from tests.browser.pages import LikelihoodPredictor, MixedPredictor, YesNoPredictor, audit

Audited = tuple[AuditResult, PairTable]


@pytest.fixture(scope="module", params=[MixedPredictor, YesNoPredictor, LikelihoodPredictor])
def audited(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Audited:
    return audit(tmp_path_factory.mktemp("suite"), 8, request.param)


@pytest.fixture(scope="module")
def classified(tmp_path_factory: pytest.TempPathFactory) -> Audited:
    return audit(tmp_path_factory.mktemp("suite"), 8)


def list_reports(result: AuditResult, pairs: PairTable) -> str:
    return f"{result.model.name}: {len(pairs)} pairs\n"


MINE = Report("mine.txt", list_reports)


@pytest.mark.parametrize("name", [PARQUET, CSV])
def test_a_folder_gives_the_same_reports_again(audited: Audited, name: str, tmp_path: Path) -> None:
    result, pairs = audited
    folder, again = tmp_path / "report", tmp_path / "again"
    write_data(result, pairs, folder)
    write_reports(result, pairs, folder)
    assert {path.name for path in folder.iterdir()} == set(FILES)
    assert pd.read_csv(folder / CSV).columns.tolist() == [*PLACES, *TEXTS, *pairs.reading.columns]
    for other in {PARQUET, CSV} - {name}:
        (folder / other).unlink()
    found = read_result(folder)
    read = read_pairs(found, folder)
    assert read.reading is pairs.reading
    pd.testing.assert_frame_equal(read.frame, pairs.frame, check_dtype=False, check_exact=True)
    write_reports(found, read, again)
    for report in REPORTS:
        assert (again / report.name).read_bytes() == (folder / report.name).read_bytes()


def test_a_table_of_an_earlier_version_says_what_to_do(audited: Audited, classified: Audited, tmp_path: Path) -> None:
    result, pairs = audited
    write_data(result, classified[1], tmp_path)  # before, all kinds of models had the columns of a classifier
    if pairs.reading.name == "labels":
        assert len(read_pairs(result, tmp_path)) == len(pairs)
        return
    message = "was written by an earlier version.*\nRun the audit again; stored predictions make it quick"
    with pytest.raises(ResultError, match=message):
        read_pairs(result, tmp_path)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("pro_label", "maybe", "pro_label holds 'maybe'.* It was changed: run the audit again"),
        ("pro_label", "contradiction", "is not of the same run as result.json beside it"),
        ("pro_entailment", "much", "pro_entailment holds 'much', which is not a number. It was changed: run the"),
        ("pro_entailment", "much too much", "pro_entailment holds a text of 13 characters, which is not a number"),
    ],
)
def test_a_table_that_was_changed_is_refused(
    classified: Audited, tmp_path: Path, column: str, value: str, message: str
) -> None:
    result, pairs = classified
    write_data(result, pairs, tmp_path)
    (tmp_path / PARQUET).unlink()
    pairs.frame.assign(**{column: value}).to_csv(tmp_path / CSV, index=False)
    with pytest.raises(ResultError, match=message):
        read_pairs(result, tmp_path)


NOT_TEXTS = "the column '{}' does not hold texts. It was changed: run the audit again"
NOT_NUMBERS = NOT_TEXTS.replace("texts", "numbers")


@pytest.mark.parametrize(
    ("column", "change", "message"),
    [
        ("suite", lambda values: pa.array(range(len(values))), NOT_TEXTS),
        ("suite", lambda values: pa.nulls(len(values)), "row 1: holds no suite"),
        ("pair_id", lambda values: pa.array([*values[:-1], None]), "row 160: holds no pair_id"),
        ("pro_label", lambda values: pa.array([[each] for each in values]), NOT_TEXTS),
        ("direction", lambda values: pa.array([{"a": each} for each in values]), NOT_TEXTS),
        ("cluster", lambda values: pa.array([2**62] * len(values), pa.timestamp("us")), NOT_TEXTS),
        ("anti_premise", lambda values: pa.array(values).dictionary_encode(), NOT_TEXTS),
        ("pro_entailment", lambda values: pa.array(map(str, values)), NOT_NUMBERS),
        ("pro_entailment", lambda values: pa.array([[each] for each in values]), NOT_NUMBERS),
        ("pro_entailment", lambda values: pa.array([*values[:-1], None]), "row 160: holds no pro_entailment"),
    ],
)
def test_a_column_of_another_kind_is_refused(
    classified: Audited, tmp_path: Path, column: str, change: Callable[[list[Any]], pa.Array], message: str
) -> None:
    result, pairs = classified
    write_data(result, pairs, tmp_path)
    table = pq.read_table(tmp_path / PARQUET)
    place, values = table.column_names.index(column), table.column(column).to_pylist()
    pq.write_table(table.set_column(place, column, change(values)), tmp_path / PARQUET)
    with pytest.raises(ResultError, match=f"{PARQUET}: {message.format(column)}"):
        read_pairs(result, tmp_path)


def test_other_columns_of_a_table_are_not_read(classified: Audited, tmp_path: Path) -> None:
    result, pairs = classified
    write_data(result, pairs, tmp_path)
    table = pq.read_table(tmp_path / PARQUET)
    late = pa.array([2**62] * len(table), pa.timestamp("us"))  # too late for a Python value
    more = table.append_column("late", late).append_column("late", late)
    more = more.set_column(0, "suite", pa.array(table.column("suite").to_pylist(), pa.large_string()))
    pq.write_table(more, tmp_path / PARQUET)
    pd.testing.assert_frame_equal(read_pairs(result, tmp_path).frame, pairs.frame, check_dtype=False, check_exact=True)


def test_a_table_that_has_a_column_twice_is_refused(classified: Audited, tmp_path: Path) -> None:
    result, pairs = classified
    write_data(result, pairs, tmp_path)
    table = pq.read_table(tmp_path / PARQUET)
    pq.write_table(table.append_column("suite", table.column("suite")), tmp_path / PARQUET)
    with pytest.raises(ResultError, match=f"{PARQUET}: has the column 'suite' twice"):
        read_pairs(result, tmp_path)


def test_a_table_without_a_column_is_refused(classified: Audited, tmp_path: Path) -> None:
    result, pairs = classified
    write_data(result, replace(pairs, frame=pairs.frame.drop(columns="pro_label")), tmp_path)
    with pytest.raises(ResultError, match=r"has no column 'pro_label'\. It was changed, or is not a pair table"):
        read_pairs(result, tmp_path)


def test_another_projects_report_is_written_and_removed(classified: Audited, tmp_path: Path) -> None:
    result, pairs = classified
    data = Report("mine.bin", lambda *_: b"\xff\x00")
    write_data(result, pairs, tmp_path)
    write_reports(result, pairs, tmp_path, [MINE, data])
    assert (tmp_path / "mine.txt").read_text() == f"invented-nli: {len(pairs)} pairs\n"
    assert (tmp_path / "mine.bin").read_bytes() == b"\xff\x00"
    (tmp_path / "theirs.txt").write_text("kept")
    remove_files(tmp_path, [MINE, data])
    assert [path.name for path in tmp_path.iterdir()] == ["theirs.txt"]


@pytest.mark.parametrize("name", [*FILES, MINE.name])
@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_files_of_others_stay_and_their_folder_is_refused(tmp_path: Path, name: str, kind: str) -> None:
    theirs = tmp_path / name
    if kind == "file":
        theirs.write_text("# theirs\n")
    elif kind == "folder":
        theirs.mkdir()
    else:
        theirs.symlink_to("nowhere")
    for act in (check_folder, remove_files):
        with pytest.raises(OptionError, match=f"holds a {name} that no audit wrote"):
            act(tmp_path, [MINE])
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("end", ["If none is running, it broke: run it again.", "If none runs, run it again."])
def test_the_mark_of_an_unfinished_run_is_known_from_every_version(tmp_path: Path, end: str) -> None:
    (tmp_path / UNFINISHED).write_text(f"An audit began to write here and has not finished. {end}\n")
    check_folder(tmp_path)


def test_each_file_of_a_report_is_known_as_ours(audited: Audited, tmp_path: Path) -> None:
    result, pairs = audited
    write_data(result, pairs, tmp_path)
    write_reports(result, pairs, tmp_path)
    for name in FILES:
        alone = tmp_path / f"only {name}"
        alone.mkdir()
        assert not has_report(alone)
        shutil.copy(tmp_path / name, alone)
        check_folder(alone)
        assert has_report(alone)


def test_a_report_that_breaks_is_named_and_costs_no_other_file(classified: Audited, tmp_path: Path) -> None:
    def broken(result: AuditResult, _: PairTable) -> str:
        raise KeyError(result.model.name)

    wrong = Report("wrong.txt", lambda *_: 3)  # type: ignore[arg-type]  # what is tested
    with pytest.raises(OptionError) as caught:
        write_reports(*classified, tmp_path, [Report("broken.txt", broken), wrong, MINE])
    assert str(caught.value) == (
        "The report 'broken.txt' could not be made: KeyError: 'invented-nli'\n"
        "The report 'wrong.txt' could not be made: TypeError: expected text or bytes, found a int"
    )
    assert {path.name for path in tmp_path.iterdir()} == {*(report.name for report in REPORTS), "mine.txt"}


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\\b", "../summary.md", "a\0b"])
def test_a_report_needs_a_plain_file_name(classified: Audited, tmp_path: Path, name: str) -> None:
    with pytest.raises(OptionError, match="needs a plain file name"):
        write_reports(*classified, tmp_path, [Report(name, list_reports)])
    with pytest.raises(OptionError, match="needs a plain file name"):
        remove_files(tmp_path, [Report(name, list_reports)])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [*FILES, "Summary.MD", FINISHED, UNFINISHED, "Run-Finished.txt", MINE.name])
def test_a_report_does_not_replace_another(classified: Audited, tmp_path: Path, name: str) -> None:
    with pytest.raises(OptionError, match=r"has the name of another file in the report folder\. Rename it"):
        write_reports(*classified, tmp_path, [MINE, Report(name, list_reports)])
    assert not list(tmp_path.iterdir())


def test_only_reports_are_reports(classified: Audited, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"A report was given as a function; expected a bbnli_audit\.Report"):
        write_reports(*classified, tmp_path, [list_reports])  # type: ignore[list-item]  # what is tested


def test_a_folder_that_cannot_be_written_is_told(classified: Audited, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for write in (write_data, write_reports):
        with pytest.raises(OptionError, match="file: cannot be written: File exists"):
            write(*classified, tmp_path / "file")
