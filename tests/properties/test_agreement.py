"""Agreement and decisions, and judgements that survive their files."""

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from bbnli_audit.workbench.review.decide import (
    BY_STANCE,
    OVERALL,
    DecidedBy,
    Policy,
    agreements,
    decide,
    disagreements,
)
from bbnli_audit.workbench.review.exchange import read_csv, read_tasks, said, take_into, write_csv, write_tasks
from bbnli_audit.workbench.review.judgements import Judgements, Taken
from bbnli_audit.workbench.review.states import ReviewVerdict, Stance, State, as_time, clean_note
from tests.review_workspace import make_items, state

LABELS = ("valid-pro", "valid-anti", "invalid", "incoherent")
ITEMS = make_items(8)
IDS = [item.id for item in ITEMS]
opinion = st.dictionaries(st.sampled_from(IDS), st.sampled_from(LABELS).map(state))
judged = st.dictionaries(st.sampled_from(["ana", "ben", "cem", "dia"]), opinion, max_size=4)


@given(judged)
def test_two_annotators_disagree_on_the_items_on_which_they_are_not_alike(states: dict[str, dict[str, State]]) -> None:
    for each in agreements(ITEMS, states):
        if each.scope == OVERALL and each.over == BY_STANCE:
            two = {name: states[name] for name in (each.first, each.second)}
            assert each.n_items - each.n_alike == len(disagreements(ITEMS, two))


@given(judged, st.sampled_from(Policy))
def test_every_item_is_decided_once_and_as_a_count_by_hand_says(
    states: dict[str, dict[str, State]], policy: Policy
) -> None:
    decisions = decide(ITEMS, states, policy)
    assert [each.item for each in decisions] == list(ITEMS)
    for each in decisions:
        votes = Counter(of[each.item.id].label for of in states.values() if each.item.id in of)
        n = votes.total()
        winners = [label for label, count in votes.items() if 2 * count > n]
        if n < 2:
            expected = DecidedBy.UNJUDGED
        elif len(votes) == 1:
            expected = DecidedBy.AGREEMENT
        elif policy is Policy.DROP:
            expected = DecidedBy.DROPPED
        else:
            expected = DecidedBy.OPEN if n == 2 else DecidedBy.MAJORITY if winners else DecidedBy.DROPPED
        assert each.decided_by is expected
        if each.verdict is not None:
            assert [State(each.verdict, each.stance).label] == winners


@given(judged)
def test_what_a_third_opinion_settles_was_open_before(states: dict[str, dict[str, State]]) -> None:
    dropping, asking = (decide(ITEMS, states, policy) for policy in (Policy.DROP, Policy.THIRD))
    for drop, ask in zip(dropping, asking, strict=True):
        if drop.verdict is ReviewVerdict.VALID:
            assert ask.verdict is ReviewVerdict.VALID
        if drop != ask:
            assert drop.decided_by is DecidedBy.DROPPED


notes = st.text().map(clean_note)
verdicts = st.one_of(
    st.builds(State, st.just(ReviewVerdict.VALID), st.sampled_from([None, Stance.PRO, Stance.ANTI]), notes),
    st.builds(State, st.sampled_from([ReviewVerdict.INVALID, ReviewVerdict.INCOHERENT]), st.none(), notes),
    st.builds(State, st.none(), st.none(), notes.filter(bool)),
)
times = st.datetimes().map(lambda time: as_time(time.isoformat()))
timed = st.builds(lambda each, time: State(each.verdict, each.stance, each.note, time), verdicts, times)
names = st.sampled_from(["ana", "ben@example.org", 'Ó, "quoted"'])
everything = st.dictionaries(names, st.dictionaries(st.sampled_from(IDS), timed, min_size=1), min_size=1, max_size=3)


@given(everything)
@settings(max_examples=25)
def test_judgements_survive_either_file_and_a_second_import_adds_nothing(states: dict[str, dict[str, State]]) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        n = sum(map(len, states.values()))
        assert write_csv(folder / "judgements.csv", states) == n
        assert write_tasks(folder / "tasks.json", ITEMS, states) == n
        files = {
            "judgements.csv": read_csv(folder / "judgements.csv"),
            "tasks.json": read_tasks(folder / "tasks.json", {}),
        }
        for file, found in files.items():
            assert sorted(found, key=str) == sorted(said(states), key=str)
            with Judgements(folder / f"{file}.sqlite") as judgements:
                assert take_into(judgements, folder / file, found, IDS).n_added == n
                assert judgements.states() == states
                # The other file holds the same.
                for other in files.values():
                    assert judgements.take(other) == Taken(0, n, 0)
                assert len(judgements.rows()) == n
