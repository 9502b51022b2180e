"""Turns opinions into agreement figures, one decision per item, and the files that later steps read.

Under `drop`, an item counts only if at least two annotators judged it and all of them agree. Under `third`, if two
disagree, another annotator's opinion makes a majority.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations
from pathlib import Path

from bbnli_audit.core.tables import write_csv
from bbnli_audit.measures.statistics.kappa import cohens_kappa
from bbnli_audit.workbench.review.items import ReviewItem
from bbnli_audit.workbench.review.states import ReviewVerdict, Stance, State, States
from bbnli_audit.workbench.workspace import Counts, count_by_subtopic, writing

OVERALL = "all"
BY_VERDICT, BY_STANCE = "verdict", "verdict and stance"
_IDENTITY = ("item", "domain", "subtopic", "hypothesis")
_ENOUGH = 2
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement of two annotators on the items that both have judged. None stands for undefined."""

    first: str
    second: str
    scope: str  # a subtopic, or `OVERALL`
    over: str
    n_items: int
    n_alike: int
    kappa: float | None
    kappa_interval: tuple[float, float] | None = None

    @property
    def share(self) -> float | None:
        return self.n_alike / self.n_items if self.n_items else None


def agreements(items: Iterable[ReviewItem], judged: States) -> list[Agreement]:
    """Compare every two annotators: first over all the items, then per subtopic.

    `judged` contains finished judgements only (`states.finished`).
    """
    items = list(items)
    by_id = {item.id: item for item in items}
    scopes = {OVERALL: [item.id for item in items]}
    for item in sorted(items, key=lambda item: item.path):
        scopes.setdefault(item.path, []).append(item.id)
    found = []
    for first, second in combinations(sorted(judged), 2):
        for scope, ids in scopes.items():
            both = [id_ for id_ in ids if id_ in judged[first] and id_ in judged[second]]
            pairs = [(judged[first][id_], judged[second][id_]) for id_ in both]
            if pairs or scope == OVERALL:
                compared = [_compare(first, second, scope, over, pairs) for over in (BY_VERDICT, BY_STANCE)]
                found += [_bound(each, pairs, [by_id[id_] for id_ in both]) for each in compared]
    return found


def disagreements(items: Iterable[ReviewItem], judged: States) -> list[ReviewItem]:
    return [item for item in items if len({state.label for state in opinions(item.id, judged).values()}) > 1]


def opinions(item: str, judged: States) -> dict[str, State]:
    return {annotator: of_annotator[item] for annotator, of_annotator in judged.items() if item in of_annotator}


def _label(state: State, over: str) -> str:
    return state.label if over == BY_STANCE else str(state.verdict)


def _cluster(item: ReviewItem) -> str:
    """Name the templates of an item: hypotheses of one template are not independent."""
    return item.template if item.is_of_suite else item.template.replace("/", " ")


def _bound(agreement: Agreement, pairs: Sequence[tuple[State, State]], items: Sequence[ReviewItem]) -> Agreement:
    """Add the interval of kappa, which allows for items that share templates."""
    from bbnli_audit.measures.statistics.association import kappa_interval  # the commands must start fast
    from bbnli_audit.measures.statistics.design import Design

    said = [[_label(state, agreement.over) for state in states] for states in zip(*pairs, strict=True)]
    if agreement.kappa is None or len(said) != 2:
        return agreement
    numbers = {label: number for number, label in enumerate(sorted({*said[0], *said[1]}))}
    first, second = ([numbers[label] for label in of_annotator] for of_annotator in said)
    design = Design.of(list(map(_cluster, items)), [item.path for item in items])
    return replace(agreement, kappa_interval=kappa_interval(first, second, design, CONFIDENCE))


def _compare(first: str, second: str, scope: str, over: str, pairs: Sequence[tuple[State, State]]) -> Agreement:
    counts = Counter((_label(ours, over), _label(theirs, over)) for ours, theirs in pairs)
    n_alike = sum(n for (ours, theirs), n in counts.items() if ours == theirs)
    return Agreement(first, second, scope, over, len(pairs), n_alike, cohens_kappa(counts)[1])


class Policy(StrEnum):
    DROP = "drop"
    THIRD = "third"


class DecidedBy(StrEnum):
    """How an item was decided. Only the first two ways give a verdict; the last two are not final."""

    AGREEMENT = "agreement"
    MAJORITY = "majority"
    DROPPED = "dropped"  # annotators disagree, and no other opinion is wanted
    OPEN = "open"  # annotators disagree, and a third opinion is to decide
    UNJUDGED = "unjudged"  # fewer than two have judged it


@dataclass(frozen=True, slots=True)
class Decision:
    item: ReviewItem
    verdict: ReviewVerdict | None
    stance: Stance | None
    n_annotators: int
    decided_by: DecidedBy


def decide(items: Iterable[ReviewItem], judged: States, policy: Policy) -> list[Decision]:
    """Decide each item, in the order given. `judged` contains finished judgements only."""
    return [_decide(item, list(opinions(item.id, judged).values()), policy) for item in items]


def needs_opinion(items: Iterable[ReviewItem], judged: States, annotator: str) -> list[ReviewItem]:
    """List the items on which the others disagree, even those that this annotator has judged since."""
    return disagreements(items, {name: found for name, found in judged.items() if name != annotator})


def _decide(item: ReviewItem, said: Sequence[State], policy: Policy) -> Decision:
    n = len(said)
    if n < _ENOUGH:
        return Decision(item, None, None, n, DecidedBy.UNJUDGED)
    (label, n_most), *rest = Counter(state.label for state in said).most_common()
    winner = next(state for state in said if state.label == label)
    if not rest:
        return Decision(item, winner.verdict, winner.stance, n, DecidedBy.AGREEMENT)
    if policy is Policy.THIRD and n == _ENOUGH:
        return Decision(item, None, None, n, DecidedBy.OPEN)
    if policy is Policy.THIRD and 2 * n_most > n:
        return Decision(item, winner.verdict, winner.stance, n, DecidedBy.MAJORITY)
    return Decision(item, None, None, n, DecidedBy.DROPPED)


def write_reviewed(path: Path, decisions: Iterable[Decision]) -> None:
    """Write one row per item. Without a decision, the verdict is empty."""
    rows = (
        (*_identity(each.item), each.verdict or "", each.stance or "", each.n_annotators, each.decided_by)
        for each in decisions
    )
    with writing(path) as file:
        write_csv(file, (*_IDENTITY, "verdict", "stance", "n_annotators", "decided_by"), rows)


def write_disagreements(path: Path, items: Iterable[ReviewItem], judged: States) -> None:
    """Write one row for each opinion on an item that annotators judge differently."""
    rows = (
        (*_identity(item), annotator, state.verdict, state.stance or "", state.note)
        for item in disagreements(items, judged)
        for annotator, state in opinions(item.id, judged).items()
    )
    with writing(path) as file:
        write_csv(file, (*_IDENTITY, "annotator", "verdict", "stance", "note"), rows)


def _identity(item: ReviewItem) -> tuple[str, str, str, str]:
    return item.id, item.domain, item.subtopic, item.hypothesis


def count(decisions: Iterable[Decision]) -> Counts:
    verdicts = (ReviewVerdict.VALID, ReviewVerdict.INVALID, ReviewVerdict.INCOHERENT)
    stances = (Stance.PRO, Stance.ANTI)
    counted = {str(name): Counter[str]() for name in ("items", *verdicts, *stances, "undecided")}
    for each in decisions:
        for name in ("items", each.verdict or "undecided", *([each.stance] if each.stance else [])):
            counted[name][each.item.path] += 1
    return count_by_subtopic(counted)
