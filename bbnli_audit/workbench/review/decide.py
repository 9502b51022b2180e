"""Measures how far annotators agree, decides items, and writes the tables of decisions and disagreements.

At least two annotators must have judged an item. If they disagree, the policy `drop` drops the item. With `third`, the
item waits for a third judgement. Then the majority decides, and without a majority the item is dropped.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from pathlib import Path

from bbnli_audit.core.tables import guard_formula
from bbnli_audit.measures.statistics.kappa import cohens_kappa
from bbnli_audit.workbench.review.items import ReviewItem
from bbnli_audit.workbench.review.states import ReviewVerdict, Stance, State, States
from bbnli_audit.workbench.workspace import Counts, count_by_subtopic, write_rows

OVERALL = "all"
BY_VERDICT, BY_STANCE = "verdict", "verdict and stance"
_IDENTITY = ("item", "domain", "subtopic", "hypothesis")
_ENOUGH = 2  # annotators who must have judged an item
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement of two annotators on the items that both have judged. None means that kappa is undefined."""

    first: str
    second: str
    scope: str  # a subtopic, or `OVERALL`
    over: str  # what is compared: `BY_VERDICT` or `BY_STANCE`
    n_items: int
    n_alike: int
    kappa: float | None
    kappa_interval: tuple[float, float] | None = None

    @property
    def share(self) -> float | None:
        return self.n_alike / self.n_items if self.n_items else None


def agreements(items: Iterable[ReviewItem], judged: States) -> list[Agreement]:
    """Compare every two annotators, over all items and per subtopic. `judged` has finished judgements only."""
    items = list(items)
    scopes = {OVERALL: items}
    for item in sorted(items, key=lambda item: item.path):
        scopes.setdefault(item.path, []).append(item)
    found = []
    for first, second in combinations(sorted(judged), 2):
        for scope, of_scope in scopes.items():
            both = [item for item in of_scope if item.id in judged[first] and item.id in judged[second]]
            if both or scope == OVERALL:
                found += [_compare(first, second, scope, over, both, judged) for over in (BY_VERDICT, BY_STANCE)]
    return found


def _compare(first: str, second: str, scope: str, over: str, items: Sequence[ReviewItem], judged: States) -> Agreement:
    ours, theirs = ([_label(judged[name][item.id], over) for item in items] for name in (first, second))
    n_alike = sum(one == other for one, other in zip(ours, theirs, strict=True))
    kappa = cohens_kappa(Counter(zip(ours, theirs, strict=True)))[1]
    interval = None if kappa is None else _bound_kappa(ours, theirs, items)
    return Agreement(first, second, scope, over, len(items), n_alike, kappa, interval)


def _label(state: State, over: str) -> str:
    return state.label if over == BY_STANCE else str(state.verdict)


def _bound_kappa(ours: Sequence[str], theirs: Sequence[str], items: Sequence[ReviewItem]) -> tuple[float, float] | None:
    """Return the interval of kappa. It allows for the dependence between hypotheses of one template."""
    from bbnli_audit.measures.statistics.association import kappa_interval  # here, so that the commands start fast
    from bbnli_audit.measures.statistics.design import Design

    # A slash in a cluster's name means two crossed factors. Only items of a suite have two factors. In the templates of
    # other items, a slash has no meaning.
    clusters = [item.template if item.is_of_suite else item.template.replace("/", " ") for item in items]
    numbers = {label: number for number, label in enumerate(sorted({*ours, *theirs}))}
    first, second = ([numbers[label] for label in labels] for labels in (ours, theirs))
    return kappa_interval(first, second, Design.of(clusters, [item.path for item in items]), CONFIDENCE)


def disagreements(items: Iterable[ReviewItem], judged: States) -> list[ReviewItem]:
    return [item for item in items if len({state.label for state in opinions(item.id, judged).values()}) > 1]


def opinions(item: str, judged: States) -> dict[str, State]:
    """Return what each annotator says about an item."""
    return {annotator: of_annotator[item] for annotator, of_annotator in judged.items() if item in of_annotator}


class Policy(StrEnum):
    DROP = "drop"
    THIRD = "third"


class DecidedBy(StrEnum):
    """How an item was decided. Agreement and majority give a verdict. `OPEN` and `UNJUDGED` are not final."""

    AGREEMENT = "agreement"
    MAJORITY = "majority"
    DROPPED = "dropped"  # annotators disagree, and nobody else is asked
    OPEN = "open"  # annotators disagree, and a third opinion will decide
    UNJUDGED = "unjudged"  # fewer than two annotators have judged the item


@dataclass(frozen=True, slots=True)
class Decision:
    item: ReviewItem
    verdict: ReviewVerdict | None
    stance: Stance | None
    n_annotators: int
    decided_by: DecidedBy


def decide(items: Iterable[ReviewItem], judged: States, policy: Policy) -> list[Decision]:
    """Decide each item, in the order given. `judged` has finished judgements only."""
    return [_decide(item, list(opinions(item.id, judged).values()), policy) for item in items]


def needs_opinion(items: Iterable[ReviewItem], judged: States, annotator: str) -> list[ReviewItem]:
    """List the items on which the other annotators disagree, even if this annotator has judged them."""
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
    write_rows(path, (*_IDENTITY, "verdict", "stance", "n_annotators", "decided_by"), rows)


def write_disagreements(path: Path, items: Iterable[ReviewItem], judged: States) -> None:
    """Write one row for each opinion on an item that annotators judge differently."""
    rows = (
        (*_identity(item), guard_formula(annotator), state.verdict, state.stance or "", guard_formula(state.note))
        for item in disagreements(items, judged)
        for annotator, state in opinions(item.id, judged).items()
    )
    write_rows(path, (*_IDENTITY, "annotator", "verdict", "stance", "note"), rows)


def _identity(item: ReviewItem) -> tuple[str, str, str, str]:
    return item.id, item.domain, item.subtopic, item.hypothesis


def write_judged(path: Path, items: Iterable[ReviewItem], judged: States) -> dict[str, list[int]]:
    """Write how a suite's items were judged, and whether each item can stay in the suite.

    An item can stay if at least two annotators have judged it, and all of them gave the verdict that the suite expects.
    Return two numbers for each subtopic: the items that at least two annotators have judged, and the items that can
    stay.
    """
    counts: dict[str, list[int]] = {}
    rows = []
    for item in items:
        said = list(opinions(item.id, judged).values())
        is_judged = len(said) >= _ENOUGH
        is_kept = is_judged and all(state.verdict == item.expected for state in said)
        counted = counts.setdefault(item.path, [0, 0])
        counted[0] += is_judged
        counted[1] += is_kept
        groups = {"first": item.group1, "second": item.group2}
        stances = ";".join(groups.get(stance, stance) for stance in (state.stance or "" for state in said))
        verdicts = ";".join(str(state.verdict) for state in said)
        known = (item.id, item.domain, item.subtopic, item.template, item.expected)
        rows.append((*known, len(said), verdicts, stances, "yes" if is_kept else "no"))
    of_judgements = ("n_annotators", "verdicts", "stereotype_of", "is_kept")
    write_rows(path, ("item", "domain", "subtopic", "template", "expected", *of_judgements), rows)
    return counts


def count(decisions: Iterable[Decision]) -> Counts:
    verdicts = (ReviewVerdict.VALID, ReviewVerdict.INVALID, ReviewVerdict.INCOHERENT)
    counted: dict[str, list[str]] = {
        str(name): [] for name in ("items", *verdicts, Stance.PRO, Stance.ANTI, "undecided")
    }
    for each in decisions:
        for name in ("items", each.verdict or "undecided", *filter(None, [each.stance])):
            counted[name].append(each.item.path)
    return count_by_subtopic(counted)
