"""The release that a result belongs to. `audit/release.py` finds it."""

from typing import Annotated

from bbnli_audit.core.results.rows import Told, result


@result
class Release:
    """The release that was audited. Unknown fields are null."""

    name: Annotated[str | None, Told("As given, or the tag that CI or git names.")] = None
    commit: Annotated[str | None, Told("As given, or what CI or git has checked out.")] = None
    date: Annotated[str | None, Told("A day or a time in UTC (ISO 8601): as given, or that of the commit.")] = None

    @property
    def parts(self) -> dict[str, str]:
        """The known fields, by their titles in reports."""
        parts = {"Name": self.name, "Commit": self.commit, "Date": self.date}
        return {title: value for title, value in parts.items() if value}

    @property
    def day(self) -> str | None:
        return None if self.date is None else self.date[:10]

    @property
    def short_commit(self) -> str | None:
        return None if self.commit is None else self.commit[:10]
