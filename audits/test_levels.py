"""Domains and whole suites: a small bias everywhere shows there before it shows in any one subtopic."""

from bbnli_audit import LevelHandle


def test_level(bbnli_level: LevelHandle) -> None:
    bbnli_level.require()
