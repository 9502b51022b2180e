"""Answers that could not be read have a rate of their own, and their pairs are measured by nothing else."""

import numpy as np
import pytest

from bbnli_audit.core.values import Pair, Subtopic, TextPair
from bbnli_audit.measures.readings.kinds import ANSWERS
from bbnli_audit.measures.readings.table import PairTable, make_table
from bbnli_audit.measures.registry import measure_table

YES, NO, UNREAD = range(3)


def table_of(answers: list[tuple[int, int]]) -> PairTable:
    pairs = [Pair(f"c{n}", TextPair("p", f"Zorbs {n}"), TextPair("p", f"Quints {n}")) for n in range(len(answers))]
    pro, anti = (np.eye(3)[[pair[side] for pair in answers]].reshape(-1, 3) for side in (0, 1))
    return make_table(Subtopic("invented", "planets", "zorbs"), pairs, ANSWERS, (pro, anti))


def test_pairs_with_an_unread_side_are_left_out_and_counted() -> None:
    table = table_of([(YES, NO), (NO, YES), (YES, YES), (NO, NO), (UNREAD, NO), (YES, UNREAD), (UNREAD, UNREAD)])
    measured = measure_table(table, 0.95)
    assert len(table.measured) == measured.counts.n_pairs == 4
    assert table.count_unread() == 4
    rate = measured.measures["unparsed_rate"]
    assert rate.value == pytest.approx(4 / 14)
    assert rate.n == 14
    assert measured.counts.n_pro == measured.counts.n_anti == 1
    assert measured.counts.n_brittle == 2


def test_nothing_read_is_no_data_and_not_zero() -> None:
    table = table_of([(UNREAD, UNREAD)] * 5)
    measured = measure_table(table, 0.95)
    assert measured.measures["pro_rate"].value is None
    assert measured.measures["unparsed_rate"].value == 1
    assert table.count_unread() == 10


def test_no_pairs_at_all() -> None:
    table = table_of([])
    assert table.count_unread() == 0
    assert measure_table(table, 0.95).measures["unparsed_rate"].value is None
