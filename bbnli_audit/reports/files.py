"""The files of a report folder: what was found, and what people read of it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bbnli_audit.core.errors import OptionError, ResultError
from bbnli_audit.core.files import replacing
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.file import NAME as RESULT
from bbnli_audit.core.results.file import write_result

if TYPE_CHECKING:
    import pandas as pd

SCHEMA, CSV, PARQUET, PAGE, SUMMARY, CARD = (
    "result.schema.json",
    "pairs.csv",
    "pairs.parquet",
    "report.html",
    "summary.md",
    "model_card.md",
)
REPORTS = (PAGE, SUMMARY, CARD)
FILES = (RESULT, SCHEMA, CSV, PARQUET, *REPORTS)


def write_data(result: AuditResult, pairs: "pd.DataFrame", folder: Path) -> None:
    """Write what was found: enough to make every report again.

    Raises:
        OptionError: when the folder cannot be written to.
    """
    from bbnli_audit.core.results.schema import json_schema

    def write() -> None:
        write_result(result, folder / RESULT)
        with replacing(folder / SCHEMA) as file:
            file.write(f"{json.dumps(json_schema(), indent=1)}\n")
        with replacing(folder / CSV) as file:
            pairs.to_csv(file, index=False, lineterminator="\n")
        _write_parquet(pairs, folder / PARQUET)

    _writing(folder, write)


def write_reports(result: AuditResult, pairs: "pd.DataFrame", folder: Path) -> None:
    """Write what people read. The same result and pairs give the same bytes.

    Raises:
        OptionError: when the folder cannot be written to.
    """
    from bbnli_audit.reports.html_page import render_page
    from bbnli_audit.reports.model_card import model_card
    from bbnli_audit.reports.summary import summary_markdown

    texts = {PAGE: render_page(result, pairs), SUMMARY: summary_markdown(result), CARD: model_card(result)}

    def write() -> None:
        for name, text in texts.items():
            with replacing(folder / name) as file:
                file.write(text)

    _writing(folder, write)


def remove_files(folder: Path) -> None:
    """Remove the reports of an earlier run, and nothing else."""
    for name in FILES:
        (folder / name).unlink(missing_ok=True)


def read_pairs(result: AuditResult, folder: Path) -> "pd.DataFrame":
    """Read the pair table that belongs to a result, as it was when it was written.

    Raises:
        ResultError: when there is none, or it is not that of the result.
    """
    import pandas as pd

    from bbnli_audit.measures.frame import COLUMNS, PROBABILITY_COLUMNS

    path = next((folder / name for name in (PARQUET, CSV) if (folder / name).is_file()), None)
    if path is None:
        raise ResultError(f"{folder}: has neither {PARQUET} nor {CSV}, which the page needs. Run the audit again.")
    try:
        if path.name == PARQUET:
            import pyarrow.parquet as pq

            table = pq.read_table(path)
            pairs = pd.DataFrame({name: table.column(name).to_pylist() for name in table.column_names})
        else:
            pairs = pd.read_csv(path, dtype=str, keep_default_na=False)
            # Python's float reads back exactly what was written; the parser of older pandas does not.
            pairs = pairs.assign(**{name: pairs[name].map(float) for name in PROBABILITY_COLUMNS if name in pairs})
    except (OSError, ValueError) as exc:  # pyarrow's errors are ValueErrors, and so are pandas' parser errors
        raise ResultError(f"{path}: cannot be read: {exc}. Run the audit again.") from exc
    missing = [name for name in COLUMNS if name not in pairs]
    if missing:
        raise ResultError(f"{path}: has no column {missing[0]!r}. It was changed, or is no pair table of an audit.")
    _check_pairs(result, pairs, path)
    return pairs[list(COLUMNS)]


def _check_pairs(result: AuditResult, pairs: "pd.DataFrame", path: Path) -> None:
    """Refuse a table whose pairs do not show what the result says: it is of another run."""
    from bbnli_audit.measures.frame import cells_by_cluster

    paths = pairs["suite"] + "/" + pairs["domain"] + "/" + pairs["subtopic"]
    try:
        found = {str(name): cells_by_cluster(rows) for name, rows in pairs.groupby(paths)}
    except ValueError as exc:
        raise ResultError(f"{path}: {exc}. It was changed: run the audit again.") from exc
    if found != result.pairs:
        raise ResultError(f"{path}: is not of the same run as {RESULT} beside it. Run the audit again.")


def _write_parquet(pairs: "pd.DataFrame", path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({str(name): pa.array(pairs[name].tolist()) for name in pairs})
    with replacing(path, "wb") as file:
        pq.write_table(table, file)


def _writing(folder: Path, write: Callable[[], None]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write()
    except OSError as exc:
        raise OptionError(f"{folder}: cannot be written: {exc.strerror or exc}. Give a folder that can.") from exc
