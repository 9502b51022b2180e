"""Waivers: a named owner lets a crossed limit, or growth since the baseline, pass until a date."""

from dataclasses import dataclass
from datetime import date

from bbnli_audit.audit.gate.thresholds_schema import WaiverEntry
from bbnli_audit.core.results.rows import Waiver
from bbnli_audit.measures.registry import find_limited


@dataclass(frozen=True, slots=True)
class ActiveWaiver:
    """A waiver for one measure of one subtopic, domain or suite, and where it is written."""

    subtopic: str
    measure: str
    reason: str
    owner: str
    expires: date
    source: str
    is_for_growth: bool = False  # if not, the waiver is for a crossed limit
    up_to: float | None = None  # the largest growth that it covers; None for any

    @classmethod
    def of(cls, entry: WaiverEntry, source: str) -> "ActiveWaiver":
        """Make a waiver from an entry of the file; `source` is its file and line."""
        return cls(
            entry.subtopic,
            find_limited(entry.measure).name,
            entry.reason,
            entry.owner,
            entry.expires,
            source,
            is_for_growth=entry.waives == "growth",
            up_to=entry.up_to,
        )

    def on(self, today: date) -> Waiver:
        """Return the waiver in the form that results hold. On its last day, a waiver has not expired yet."""
        expires = self.expires.isoformat()
        return Waiver(self.reason, self.owner, expires, self.source, is_expired=today > self.expires, up_to=self.up_to)
