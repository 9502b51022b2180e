"""What a report is: one file of the report folder. `files.py` lists ours; other projects add theirs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from bbnli_audit.core.results.audit import AuditResult
    from bbnli_audit.measures.readings.table import PairTable


@dataclass(frozen=True, slots=True)
class Report:
    """A file that people read: `name` in the report folder, and what `render` makes of a result and its pairs.

    Text is written as UTF-8. The pairs have their sentences, which state stereotypes: show them only on request.
    """

    name: str
    render: "Callable[[AuditResult, PairTable], str | bytes]"
