"""Errors that depend on the group: which way they lean, towards the stereotype, and against it."""

from bbnli_audit import SubtopicHandle


def test_lean(bbnli: SubtopicHandle) -> None:
    bbnli.require("lean")


def test_pro(bbnli: SubtopicHandle) -> None:
    bbnli.require("pro_rate")


def test_anti(bbnli: SubtopicHandle) -> None:
    bbnli.require("anti_rate")
