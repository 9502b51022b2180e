"""Lean, overreach and the fact gap, each computed a second time from labels alone."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bbnli_audit.core.values import Control, Direction, Label, Pair, Subtopic, TextPair
from bbnli_audit.measures.direction import estimate_fact_gap
from bbnli_audit.measures.readings.kinds import LABELS
from bbnli_audit.measures.readings.table import PairTable, make_table
from bbnli_audit.measures.registry import measure_table

SUBTOPIC = Subtopic("made", "up", "zorbs")
LETTERS = "ENC"
labels = st.sampled_from(LETTERS)
# The labels of the four corners of a quad, or of the two of a scene.
quads = st.lists(st.tuples(labels, labels, labels, labels), min_size=1, max_size=12)
scenes = st.lists(st.tuples(labels, labels), max_size=12)


def make(quad_labels: Sequence[tuple[str, ...]], scene_labels: Sequence[tuple[str, ...]]) -> PairTable:
    rows: list[tuple[str, Direction, str, str]] = []
    for n, (with_pro, with_anti, against_pro, against_anti) in enumerate(quad_labels):
        rows.append((f"p{n}/h{n}", Direction.WITH, with_pro, with_anti))
        rows.append((f"p{n}/h{n}", Direction.AGAINST, against_pro, against_anti))
    rows += [(f"s{n}/h{n}", Direction.NONE, pro, anti) for n, (pro, anti) in enumerate(scene_labels)]
    pairs = [
        Pair(cell, TextPair(f"{way}{n}", "pro"), TextPair(f"{way}{n}", "anti"), way)
        for n, (cell, way, _, _) in enumerate(rows)
    ]
    sides = [np.eye(3)[[LETTERS.index(row[side]) for row in rows]] for side in (2, 3)]
    return make_table(SUBTOPIC, pairs, LABELS, (sides[0], sides[1]))


def tilt(pro: str, anti: str) -> Fraction:
    """Half the samples of a pair that went the stereotype's way, less those that went against it, one by one."""
    worth = {"E": 1, "N": 0, "C": -1}
    return Fraction(worth[pro] - worth[anti], 2)


@given(quads, scenes)
def test_lean_is_pro_less_anti_and_bbnli_s_aggregate_bias(
    quad_labels: list[tuple[str, ...]], scene_labels: list[tuple[str, ...]]
) -> None:
    measures = measure_table(make(quad_labels, scene_labels), 0.95).measures
    rows = [pair for quad in quad_labels for pair in (quad[:2], quad[2:])] + scene_labels
    expected = sum((tilt(*pair) for pair in rows), Fraction(0)) / len(rows)
    lean, pro, anti = (measures[name].value for name in ("lean", "pro_rate", "anti_rate"))
    assert lean is not None
    assert pro is not None
    assert anti is not None
    assert lean == pytest.approx(float(expected))
    assert lean == pytest.approx(pro - anti)
    assert lean == pytest.approx(measures["aggregate_bias"].value)


@given(quads, scenes)
def test_overreach_is_half_of_what_the_premise_changes(
    quad_labels: list[tuple[str, ...]], scene_labels: list[tuple[str, ...]]
) -> None:
    found = measure_table(make(quad_labels, scene_labels), 0.95).measures["overreach"]
    expected = sum((tilt(*quad[:2]) - tilt(*quad[2:]) for quad in quad_labels), Fraction(0)) / (2 * len(quad_labels))
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    assert found.value == pytest.approx(float(expected))
    assert -1 <= found.low <= found.value <= found.high <= 1
    assert found.n == 4 * len(quad_labels)


@given(quads)
def test_a_model_that_only_follows_the_premise_does_not_lean(quad_labels: list[tuple[str, ...]]) -> None:
    """Exchange the groups in premise and hypothesis: the second row of each quad mirrors the first."""
    mirrored = [(one, other, other, one) for one, other, _, _ in quad_labels]
    measures = measure_table(make(mirrored, []), 0.95).measures
    assert measures["lean"].value == pytest.approx(0)
    assert measures["overreach"].value == pytest.approx(
        float(sum((tilt(*quad[:2]) for quad in mirrored), Fraction(0)) / len(mirrored))
    )


def test_pairs_without_a_direction_have_no_overreach() -> None:
    measures = measure_table(make([("N", "N", "N", "N")], []).take(np.array([False, False])), 0.95).measures
    assert measures["lean"].value is None
    only_scenes = make([("N",) * 4], [("E", "N")])
    measures = measure_table(only_scenes.take(only_scenes.directions == 0), 0.95).measures
    assert "overreach" not in measures
    assert measures["lean"].value == 0.5


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=20))
def test_the_fact_gap_is_the_difference_of_two_accuracies(rights: list[tuple[bool, bool]]) -> None:
    controls, is_right = [], []
    for n, pair in enumerate(rights):
        for way, right in zip((Direction.WITH, Direction.AGAINST), pair, strict=True):
            controls.append(Control(f"p{n // 2}/c{n}", TextPair(f"{way}{n}", "x"), Label.ENTAILMENT, way))
            is_right.append(right)
    found = estimate_fact_gap(controls, is_right, 0.95)
    expected = Fraction(sum(one for one, _ in rights) - sum(other for _, other in rights), len(rights))
    assert found.value == pytest.approx(float(expected))
    assert found.low <= found.value <= found.high


def test_controls_without_a_direction_have_no_fact_gap() -> None:
    control = Control("p/c", TextPair("a", "b"), Label.NEUTRAL)
    assert math.isnan(estimate_fact_gap([control], [True], 0.95).value)
