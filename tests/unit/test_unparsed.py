"""Answers that could not be read have a rate of their own, and their pairs are measured by nothing else."""

import pytest

from bbnli_audit.measures.unparsed import UNPARSED_RATE, measure_parsed
from tests.strategies import frame_of

YES, NO, UNREAD = "entailment", "neutral", "contradiction"


def test_pairs_with_an_unread_side_are_left_out_and_counted() -> None:
    frame = frame_of([(YES, NO), (NO, YES), (YES, YES), (NO, NO), (UNREAD, NO), (YES, UNREAD), (UNREAD, UNREAD)])
    parsed, measured, n_unparsed = measure_parsed(frame, 0.95)
    assert len(parsed) == measured.counts.n_pairs == 4
    assert n_unparsed == 4
    rate = measured.measures[UNPARSED_RATE]
    assert rate.value == pytest.approx(4 / 14)
    assert rate.n == 14
    assert measured.counts.n_pro == measured.counts.n_anti == 1
    assert measured.counts.n_brittle == 2


def test_nothing_read_is_no_data_and_not_zero() -> None:
    _, measured, n_unparsed = measure_parsed(frame_of([(UNREAD, UNREAD)] * 5), 0.95)
    assert measured.measures["pro_rate"].value is None
    assert measured.measures[UNPARSED_RATE].value == 1
    assert n_unparsed == 10


def test_no_pairs_at_all() -> None:
    _, measured, n_unparsed = measure_parsed(frame_of([]), 0.95)
    assert n_unparsed == 0
    assert UNPARSED_RATE not in measured.measures
