"""Writes and reads the files of a report folder: the data of a result, and the reports for people."""

import json
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bbnli_audit.core.errors import OptionError, ResultError
from bbnli_audit.core.files import replacing
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.file import NAME as RESULT
from bbnli_audit.core.results.file import json_schema, write_result
from bbnli_audit.core.tables import (
    ParquetTable,
    Record,
    Table,
    guard_formula,
    open_table,
    show_text,
    unguard_formula,
)
from bbnli_audit.measures.readings.kinds import reading_of
from bbnli_audit.measures.readings.table import DIRECTION, PLACES, TEXTS, PairTable, Reading
from bbnli_audit.reports.folder import (
    CARD,
    CSV,
    FINISHED,
    PAGE,
    PARQUET,
    SCHEMA,
    SUMMARY,
    UNFINISHED,
    check_files,
    writing,
)
from bbnli_audit.reports.html_page import render_page
from bbnli_audit.reports.model_card import model_card
from bbnli_audit.reports.page_data import tables_by_path
from bbnli_audit.reports.report import Report
from bbnli_audit.reports.summary import summary_markdown

if TYPE_CHECKING:
    import pandas as pd

REPORTS = (
    Report(PAGE, render_page),
    Report(SUMMARY, lambda result, _: summary_markdown(result)),
    Report(CARD, lambda result, _: model_card(result)),
)
FILES = (RESULT, SCHEMA, CSV, PARQUET, *(report.name for report in REPORTS))


def write_data(result: AuditResult, pairs: PairTable, folder: Path) -> None:
    """Write the data files of a run. All reports can be made again from them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with writing(folder):
        write_result(result, folder / RESULT)
        with replacing(folder / SCHEMA) as file:
            file.write(_schema_text())
        with replacing(folder / CSV) as file:
            shown = {name: pairs.frame[name].map(guard_formula) for name in (*PLACES, *TEXTS)}
            # The CSV writer quotes a text with a lone carriage return only if the line ending contains one.
            has_return = any("\r" in text for column in shown.values() for text in column)
            pairs.frame.assign(**shown).to_csv(file, index=False, lineterminator="\r\n" if has_return else "\n")
        with replacing(folder / PARQUET, "wb") as file:
            columns = {str(name): pa.array(pairs.frame[name].tolist()) for name in pairs.frame}
            pq.write_table(pa.table(columns), file)


@cache  # the schema is the same for every result, and making it takes a tenth of a second
def _schema_text() -> str:
    return f"{json.dumps(json_schema(), indent=1)}\n"


def write_reports(result: AuditResult, pairs: PairTable, folder: Path, more: Sequence[Report] = ()) -> None:
    """Write the reports for people. The same result and pairs give the same bytes.

    If a report of another project (in `more`) cannot be made, raise an OptionError after all other reports are written.
    """
    _check_names(more)
    with writing(folder):
        for report in REPORTS:
            _write(report, result, pairs, folder)
    troubles = []
    for report in more:
        try:
            _write(report, result, pairs, folder)
        except Exception as exc:  # noqa: BLE001 - another project's code may raise anything
            troubles.append(f"The report {report.name!r} could not be made: {type(exc).__name__}: {exc}")
    if troubles:
        raise OptionError("\n".join(troubles))


def check_folder(folder: Path, more: Sequence[Report] = ()) -> None:
    """Refuse a report folder in which someone else's file would be replaced."""
    _check_names(more)
    check_files(folder, (*_names(more), FINISHED, UNFINISHED), "--bbnli-report")


def remove_files(folder: Path, more: Sequence[Report] = ()) -> None:
    """Remove the files of an earlier run, and nothing else."""
    check_folder(folder, more)
    with writing(folder):
        for name in _names(more):
            (folder / name).unlink(missing_ok=True)


def _names(more: Iterable[Report]) -> tuple[str, ...]:
    return (*FILES, *(report.name for report in more))


def read_pairs(result: AuditResult, folder: Path) -> PairTable:
    """Read the pair table of a result. If it cannot be used, a ResultError says why."""
    path = next((folder / name for name in (PARQUET, CSV) if (folder / name).is_file()), None)
    if path is None:
        raise ResultError(f"{folder}: has neither {PARQUET} nor {CSV}, which the page needs. Run the audit again.")
    reading = reading_of(result.model.kind)
    with open_table(path, ResultError, "It was changed: run the audit again.") as table:
        columns = _find_columns(table, reading, result.model.kind)
        frame = _read_frame(table, columns, reading)
    if DIRECTION not in frame:  # an earlier version wrote no directions
        frame = frame.assign(**{DIRECTION: ""})
    pairs = PairTable(frame[[*PLACES, *TEXTS, *reading.columns]], reading)
    _check_pairs(result, pairs, path)
    return pairs


def _find_columns(table: Table, reading: Reading, kind: str) -> list[str]:
    """Return the columns to read. Other columns are not read, whatever they hold."""
    columns = [*PLACES, *TEXTS, *reading.columns]
    missing = [name for name in columns if name not in table.columns and name != DIRECTION]
    if missing and "pro_label" in table.columns:
        fault = f"was written by an earlier version, with other columns for a model of the kind {kind!r}"
        raise table.wrong(fault, advice="\nRun the audit again; stored predictions make it quick.")
    if missing:
        raise table.wrong(f"has no column {missing[0]!r}", advice="It was changed, or is not a pair table of an audit.")
    found = [name for name in columns if name in table.columns]
    table.require(found)
    return found


def _read_frame(table: Table, columns: Sequence[str], reading: Reading) -> "pd.DataFrame":
    import pandas as pd

    if isinstance(table, ParquetTable):
        _check_types(table, columns, reading)
    convert = _from_parquet if isinstance(table, ParquetTable) else _from_csv
    values: dict[str, list[Any]] = {name: [] for name in columns}
    for record in table.records(columns):
        for name in columns:
            values[name].append(convert(table, record, name, reading))
    return pd.DataFrame(values)


def _check_types(table: ParquetTable, columns: Sequence[str], reading: Reading) -> None:
    """Refuse a column that does not have the expected type, number or text. Python cannot hold every other type."""
    from pyarrow import types

    for name in columns:
        found, is_number = table.schema.field(name).type, name in reading.numbers
        is_right = types.is_floating(found) if is_number else types.is_string(found) or types.is_large_string(found)
        # A table without rows has columns of the type null. If a table has rows, `_from_parquet` refuses such a column.
        if not is_right and not types.is_null(found):
            raise table.wrong(f"the column {name!r} does not hold {'numbers' if is_number else 'texts'}")


def _from_parquet(table: Table, record: Record, name: str, _: Reading) -> str | float:
    value: str | float | None = record.values[name]
    if value is None:
        raise table.wrong(f"holds no {name}", record.number)
    return value


def _from_csv(table: Table, record: Record, name: str, reading: Reading) -> str | float:
    text: str = record.values[name]
    if name not in reading.numbers:
        return unguard_formula(text) if name in (*PLACES, *TEXTS) else text
    try:
        return float(text)
    except ValueError as exc:
        raise table.wrong(f"{name} holds {show_text(text)}, which is not a number", record.number) from exc


def _check_pairs(result: AuditResult, pairs: PairTable, path: Path) -> None:
    """Refuse a table that does not agree with the result: the table is of another run, or was changed."""
    try:
        found = {name: table.cells_by_cluster() for name, table in tables_by_path(pairs).items()}
    except KeyError as exc:
        raise ResultError(f"{path}: holds {exc}, which no audit writes there: run the audit again.") from exc
    except ValueError as exc:
        raise ResultError(f"{path}: {exc}. It was changed: run the audit again.") from exc
    if found != {name: cells for name, cells in result.pairs.items() if cells or name in found}:
        raise ResultError(f"{path}: is not of the same run as {RESULT} beside it. Run the audit again.")


def _check_names(more: Iterable[Report]) -> None:
    """Refuse reports of other projects that would write outside the folder, or over another file."""
    taken = {*FILES, FINISHED, UNFINISHED}
    for report in more:
        if not isinstance(report, Report):
            raise OptionError(f"A report was given as a {type(report).__name__}; expected a bbnli_audit.Report.")
        name = report.name
        if not name or name in (".", "..") or set(name) & set("/\\\0"):
            raise OptionError(f"The report {name!r} needs a plain file name, such as 'my_report.md'.")
        if name.casefold() in taken:
            raise OptionError(f"The report {name!r} has the name of another file in the report folder. Rename it.")
        taken.add(name.casefold())


def _write(report: Report, result: AuditResult, pairs: PairTable, folder: Path) -> None:
    content = report.render(result, pairs)
    if not isinstance(content, str | bytes):
        raise TypeError(f"expected text or bytes, found a {type(content).__name__}")
    with replacing(folder / report.name, "wb") as file:
        file.write(content.encode("utf-8", "replace") if isinstance(content, str) else content)
