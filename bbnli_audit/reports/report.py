"""Defines a report: one file of the report folder. `files.py` lists our reports; other projects can add theirs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from bbnli_audit.core.results.audit import AuditResult
    from bbnli_audit.measures.readings.table import PairTable


@dataclass(frozen=True, slots=True)
class Report:
    """A file that people read: its `name` in the report folder, and `render`, which returns its content.

    Text is written as UTF-8. The pairs include sentences that state stereotypes: show sentences only on request.
    """

    name: str
    render: "Callable[[AuditResult, PairTable], str | bytes]"
