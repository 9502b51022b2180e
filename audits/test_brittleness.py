"""Errors that do not depend on the group: the same wrong answer for both."""

from bbnli_audit import SubtopicHandle


def test_brittleness(bbnli: SubtopicHandle) -> None:
    bbnli.require("brittleness_rate")
