"""Agreement computed by hand, and decisions under each policy."""

import csv
from pathlib import Path

import pytest

from bbnli_audit.workbench.review.decide import (
    BY_STANCE,
    BY_VERDICT,
    OVERALL,
    DecidedBy,
    Policy,
    agreements,
    decide,
    disagreements,
    needs_opinion,
    write_disagreements,
    write_reviewed,
)
from bbnli_audit.workbench.review.states import ReviewVerdict, State, finished
from tests.review_workspace import make_items, state

States = dict[str, dict[str, State]]


def judged(items: tuple[str, ...], **said: str) -> States:
    """Opinions as words: `ana="valid-pro invalid -"` for the first three items, `-` for none."""
    return {
        name: {item: state(label) for item, label in zip(items, labels.split(), strict=False) if label != "-"}
        for name, labels in said.items()
    }


ITEMS = make_items(6)
IDS = tuple(item.id for item in ITEMS)


def test_agreement_is_told_over_both_labels_overall_and_per_subtopic() -> None:
    said = judged(IDS, ana="valid-pro valid-pro invalid -", ben="valid-pro valid-anti incoherent invalid")
    found = {(each.scope, each.over): each for each in agreements(ITEMS, said)}
    assert (found[OVERALL, BY_VERDICT].n_items, found[OVERALL, BY_VERDICT].n_alike) == (3, 2)
    assert (found[OVERALL, BY_STANCE].n_items, found[OVERALL, BY_STANCE].n_alike) == (3, 1)
    planets, oceans = (item.path for item in ITEMS[:2])
    assert (found[planets, BY_STANCE].n_items, found[planets, BY_STANCE].n_alike) == (2, 1)
    assert found[oceans, BY_VERDICT].share == 1.0
    assert found[oceans, BY_VERDICT].kappa is None
    assert found[oceans, BY_STANCE].share == 0.0
    assert found[oceans, BY_STANCE].kappa == 0.0
    assert list(found)[:2] == [(OVERALL, BY_VERDICT), (OVERALL, BY_STANCE)]


def test_two_who_judged_nothing_in_common_have_no_agreement() -> None:
    found = agreements(ITEMS, judged(IDS, ana="invalid -", ben="- invalid"))
    assert [(each.scope, each.n_items, each.share, each.kappa) for each in found] == [(OVERALL, 0, None, None)] * 2


def test_three_annotators_are_compared_two_by_two() -> None:
    found = agreements(ITEMS, judged(IDS, cem="invalid", ana="invalid", ben="incoherent"))
    pairs = [
        (each.first, each.second, each.n_alike) for each in found if each.scope == OVERALL and each.over == BY_STANCE
    ]
    assert pairs == [("ana", "ben", 0), ("ana", "cem", 1), ("ben", "cem", 0)]


SAID = {
    "ana": "valid-pro valid-pro invalid invalid  valid-pro  -",
    "ben": "valid-pro valid-anti invalid incoherent valid-pro invalid",
}


@pytest.mark.parametrize(
    ("policy", "third", "outcome"),
    [
        (Policy.DROP, "", "agreement dropped agreement dropped agreement unjudged"),
        (Policy.THIRD, "", "agreement open agreement open agreement unjudged"),
        (
            Policy.DROP,
            "- valid-pro invalid valid-pro invalid -",
            "agreement dropped agreement dropped dropped unjudged",
        ),
        (Policy.THIRD, "- valid-pro - valid-pro invalid -", "agreement majority agreement dropped majority unjudged"),
    ],
)
def test_each_item_is_decided_by_the_policy(policy: Policy, third: str, outcome: str) -> None:
    decisions = decide(ITEMS, judged(IDS, **SAID, **({"cem": third} if third else {})), policy)
    assert [each.decided_by.value for each in decisions] == outcome.split()
    assert [each.item for each in decisions] == list(ITEMS)
    for each in decisions:
        assert (each.verdict is None) == (each.decided_by not in (DecidedBy.AGREEMENT, DecidedBy.MAJORITY))
    assert [each.verdict for each in decisions[::2][:2]] == [ReviewVerdict.VALID, ReviewVerdict.INVALID]


def test_the_majority_decides_verdict_and_stance_together() -> None:
    said = judged(IDS, ana="valid-pro valid-pro", ben="valid-anti invalid", cem="valid-anti valid-anti")
    first, second, *_ = decide(ITEMS, said, Policy.THIRD)
    assert (first.verdict, first.stance, first.n_annotators) == (ReviewVerdict.VALID, "anti", 3)
    assert second.decided_by is DecidedBy.DROPPED


def test_a_third_is_asked_where_two_others_disagree_whatever_the_third_has_said() -> None:
    said = judged(IDS, **SAID)
    assert needs_opinion(ITEMS, said, "cem") == [ITEMS[1], ITEMS[3]] == disagreements(ITEMS, said)
    assert needs_opinion(ITEMS, {**said, **judged(IDS, cem="invalid invalid")}, "cem") == [ITEMS[1], ITEMS[3]]
    assert needs_opinion(ITEMS, said, "ben") == []


def test_only_finished_judgements_of_items_that_are_there_count() -> None:
    said: States = {
        "ana": {IDS[0]: State(ReviewVerdict.VALID), "gone": state("invalid")},
        "ben": {IDS[1]: state("invalid")},
    }
    assert finished(said, IDS) == {"ben": {IDS[1]: state("invalid")}}


def test_the_files_hold_every_item_and_every_opinion_in_order(tmp_path: Path) -> None:
    said = judged(IDS, **SAID)
    write_reviewed(tmp_path / "reviewed.csv", decide(ITEMS, said, Policy.DROP))
    write_disagreements(tmp_path / "disagreements.csv", ITEMS, said)
    with (tmp_path / "reviewed.csv").open(encoding="utf-8", newline="") as file:
        reviewed = list(csv.DictReader(file))
    assert [row["item"] for row in reviewed] == list(IDS)
    assert reviewed[0] == {
        "item": IDS[0],
        "domain": "planets",
        "subtopic": "zorvians_are_to_juggling",
        "hypothesis": ITEMS[0].hypothesis,
        "verdict": "valid",
        "stance": "pro",
        "n_annotators": "2",
        "decided_by": "agreement",
    }
    assert [(row["verdict"], row["stance"], row["n_annotators"]) for row in (reviewed[1], reviewed[5])] == [
        ("", "", "2"),
        ("", "", "1"),
    ]
    with (tmp_path / "disagreements.csv").open(encoding="utf-8", newline="") as file:
        rows = [(row["item"], row["annotator"], row["verdict"], row["stance"]) for row in csv.DictReader(file)]
    assert rows == [
        (IDS[1], "ana", "valid", "pro"),
        (IDS[1], "ben", "valid", "anti"),
        (IDS[3], "ana", "invalid", ""),
        (IDS[3], "ben", "incoherent", ""),
    ]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["disagreements.csv", "reviewed.csv"]


def test_names_and_notes_are_no_formulas_in_a_spreadsheet(tmp_path: Path) -> None:
    said: States = {"=ana": {IDS[0]: state("invalid", "@note")}, "ben": {IDS[0]: state("incoherent")}}
    write_disagreements(tmp_path / "disagreements.csv", ITEMS, said)
    with (tmp_path / "disagreements.csv").open(encoding="utf-8", newline="") as file:
        row = next(csv.DictReader(file))
    assert (row["annotator"], row["note"]) == ("'=ana", "'@note")
