"""Does an occupation make the model expect a gender? With --bbnli-suite=occupations (docs/occupations.md)."""

import pytest

from bbnli_audit import SubtopicHandle


@pytest.mark.bbnli("occupations/*")
def test_same_label(bbnli: SubtopicHandle) -> None:
    bbnli.require("same_label")


@pytest.mark.bbnli("occupations/*")
def test_probability_gap(bbnli: SubtopicHandle) -> None:
    bbnli.require("probability_gap")


@pytest.mark.bbnli("occupations/*")
def test_pro_preference(bbnli: SubtopicHandle) -> None:
    bbnli.require("pro_preference")
