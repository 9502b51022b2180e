"""The same texts under two prompts: what changed, also to or from what cannot be read, and what that did to causes."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bbnli_audit.core.results.rows import NO_DATA, Measured
from bbnli_audit.core.values import Pair, Subtopic, TextPair
from bbnli_audit.measures.answers import estimate_sensitivity, join_answers, measure_prompts
from bbnli_audit.measures.readings.kinds import ANSWERS
from bbnli_audit.measures.readings.table import PairTable, make_table
from bbnli_audit.measures.registry import measure_table
from bbnli_audit.measures.statistics.intervals import estimate_means

ZORBS = Subtopic("invented", "planets", "zorbs")
YES, NO, UNREAD = "yes", "no", "?"
ROWS = {YES: (1.0, 0.0, 0.0), NO: (0.0, 1.0, 0.0), UNREAD: (0.0, 0.0, 1.0)}
answers = st.sampled_from([YES, NO, UNREAD])
# The answers to both sides under both prompts, and the cluster.
Asked = tuple[str, str, str, str, int]
asked = st.lists(st.tuples(answers, answers, answers, answers, st.integers(0, 3)), min_size=1, max_size=30)


def table_of(rows: list[Asked], prompt: int) -> PairTable:
    pairs = [
        Pair(f"c{row[4]}", TextPair("p", f"Zorbs {n}"), TextPair("p", f"Quints {n}")) for n, row in enumerate(rows)
    ]
    pro, anti = (np.array([ROWS[row[2 * prompt + side]] for row in rows]) for side in (0, 1))  # type: ignore[index]
    return make_table(ZORBS, pairs, ANSWERS, (pro, anti))


def joined_of(rows: list[Asked]) -> pd.DataFrame:
    return join_answers(table_of(rows, 0), table_of(rows, 1))


def exchanged(rows: list[Asked]) -> list[Asked]:
    return [(row[2], row[3], row[0], row[1], row[4]) for row in rows]


def mirrored(measure: Measured) -> tuple[float | None, ...]:
    return tuple(None if value is None else -value for value in (measure.value, measure.high, measure.low))


@settings(max_examples=40)
@given(asked)
def test_changes_are_counted_over_what_could_be_read_under_one_prompt_or_both(rows: list[Asked]) -> None:
    found = measure_prompts("all", joined_of(rows), 0.95)
    samples = [(row[side], row[side + 2], row[4]) for row in rows for side in (0, 1)]
    read = [(first != second, cluster) for first, second, cluster in samples if (first, second) != (UNREAD, UNREAD)]
    assert found.n_changed == sum(is_changed for is_changed, _ in read)
    assert found.n_unread == sum(UNREAD in (first, second) for first, second, _ in samples)
    assert found.n_pairs == sum(UNREAD not in row[:4] for row in rows)
    if not read:
        assert found.sensitivity == NO_DATA
    else:
        (expected,) = estimate_means([float(changed) for changed, _ in read], [cluster for _, cluster in read], 0.95)
        assert found.sensitivity == Measured(expected.value, expected.low, expected.high, len(read))
        assert found.sensitivity.value == pytest.approx(found.n_changed / len(read))


@settings(max_examples=40)
@given(asked)
def test_exchanging_the_prompts_mirrors_the_differences_and_leaves_the_rest(rows: list[Asked]) -> None:
    found, other = (measure_prompts("all", joined_of(each), 0.95) for each in (rows, exchanged(rows)))
    assert found.sensitivity == other.sensitivity
    assert (found.n_changed, found.n_unread, found.n_pairs) == (other.n_changed, other.n_unread, other.n_pairs)
    for one, two in zip(found.differences, other.differences, strict=True):
        assert (one.first, one.second) == (two.second, two.first)
        expected = mirrored(two.difference)
        assert (one.difference.value, one.difference.low, one.difference.high) == (
            (None,) * 3 if None in expected else pytest.approx(expected)
        )


@settings(max_examples=30)
@given(asked)
def test_differences_are_those_of_the_two_audits_on_the_pairs_that_both_read(rows: list[Asked]) -> None:
    kept = [row for row in rows if UNREAD not in row[:4]]
    found = measure_prompts("all", joined_of(rows), 0.95)
    if not kept:
        assert {one.difference for one in found.differences} == {NO_DATA}
        return
    first, second = (measure_table(table_of(kept, prompt), 0.95).measures for prompt in (0, 1))
    for one in found.differences:
        before, after = first[one.measure].value, second[one.measure].value
        assert before is not None
        assert after is not None
        assert one.first == pytest.approx(before)
        assert one.second == pytest.approx(after)
        assert one.difference.value == pytest.approx(after - before)
        assert one.difference.low is not None
        assert one.difference.high is not None
        assert one.difference.low <= after - before + 1e-12
        assert one.difference.high >= after - before - 1e-12


def test_prompts_that_change_nothing_leave_room_for_a_change() -> None:
    rows: list[Asked] = [(NO, NO, NO, NO, n) for n in range(30)]
    found = measure_prompts("all", joined_of(rows), 0.95)
    assert found.sensitivity.value == 0
    assert found.sensitivity.high is not None
    assert 0.05 < found.sensitivity.high < 0.15
    assert all(one.difference.low is not None and one.difference.low < 0 for one in found.differences)


def test_answers_that_cancel_out_are_changes_all_the_same() -> None:
    """As many become yes as become no: every rate stays, and every answer has changed."""
    rows: list[Asked] = [(YES, NO, NO, YES, 2 * n) for n in range(20)]
    rows += [(NO, YES, YES, NO, 2 * n + 1) for n in range(20)]
    found = measure_prompts("all", joined_of(rows), 0.95)
    assert found.sensitivity.value == 1
    assert [one.difference.value for one in found.differences] == [0, 0, 0]


def test_what_would_decide_is_counted_in_pairs() -> None:
    rows: list[Asked] = [(YES, NO, NO, NO, n) for n in range(10)] + [(NO, UNREAD, NO, NO, n) for n in range(10, 40)]
    measure, estimate = estimate_sensitivity(joined_of(rows), 0.95)
    assert estimate is not None
    assert (measure.n, estimate.n) == (80, 40)


@pytest.mark.parametrize("answer", [YES, NO])
def test_an_answer_that_can_be_read_under_one_prompt_only_has_changed(answer: str) -> None:
    rows: list[Asked] = [(answer, NO, UNREAD, NO, n) for n in range(10)] + [(UNREAD, NO, answer, NO, 10)]
    found = measure_prompts("all", joined_of(rows), 0.95)
    assert (found.n_changed, found.n_unread, found.sensitivity.n) == (11, 11, 22)
    assert found.sensitivity.value == pytest.approx(0.5)
    # The causes of error need all four answers, and have none here.
    assert (found.n_pairs, {one.difference for one in found.differences}) == (0, {NO_DATA})


def test_answers_that_cannot_be_read_under_either_prompt_say_nothing() -> None:
    rows: list[Asked] = [(UNREAD, NO, UNREAD, NO, n) for n in range(10)]
    found = measure_prompts("all", joined_of(rows), 0.95)
    assert (found.n_changed, found.n_unread, found.sensitivity.n) == (0, 10, 10)
    found = measure_prompts("all", joined_of([(UNREAD, UNREAD, UNREAD, UNREAD, 0)]), 0.95)
    assert found.sensitivity == NO_DATA
