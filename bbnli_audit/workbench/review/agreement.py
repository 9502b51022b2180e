"""How far annotators agree: the share of items they judge alike, and Cohen's kappa, which takes chance out of it.

Cohen, "A coefficient of agreement for nominal scales" (1960): (observed - expected) / (1 - expected), where expected is
how often two people with these habits would agree if each judged at random.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from bbnli_audit.workbench.review.items import ReviewItem
from bbnli_audit.workbench.review.states import State, States

OVERALL = "all"
BY_VERDICT, BY_STANCE = "verdict", "verdict and stance"


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two annotators over the items that both have judged. No number stands for no data."""

    first: str
    second: str
    scope: str  # a subtopic, or `OVERALL`
    over: str
    n_items: int
    n_alike: int
    kappa: float | None

    @property
    def share(self) -> float | None:
        return self.n_alike / self.n_items if self.n_items else None


def cohen_kappa(first: Sequence[str], second: Sequence[str]) -> float | None:
    """Give Cohen's kappa; None without items, and when both gave every item the same one label.

    In that case the two agree always, and would by chance: 0 / 0. In whole numbers up to the last division.
    """
    n = len(first)
    n_alike = sum(a == b for a, b in zip(first, second, strict=True))
    counts = Counter(first), Counter(second)
    by_chance = sum(n_first * counts[1][label] for label, n_first in counts[0].items())
    return (n * n_alike - by_chance) / (n * n - by_chance) if n * n != by_chance else None


def agreements(items: Iterable[ReviewItem], judged: States) -> list[Agreement]:
    """Compare each two annotators, over all items and per subtopic, in that order.

    Args:
        items: What is judged; others are left out.
        judged: Finished judgements only (`states.finished`).
    """
    items = list(items)
    scopes = {OVERALL: [item.id for item in items]}
    for item in sorted(items, key=lambda item: item.path):
        scopes.setdefault(item.path, []).append(item.id)
    found = []
    for first, second in combinations(sorted(judged), 2):
        for scope, ids in scopes.items():
            both = [id_ for id_ in ids if id_ in judged[first] and id_ in judged[second]]
            pairs = [(judged[first][id_], judged[second][id_]) for id_ in both]
            if pairs or scope == OVERALL:
                found += [_compare(first, second, scope, over, pairs) for over in (BY_VERDICT, BY_STANCE)]
    return found


def disagreements(items: Iterable[ReviewItem], judged: States) -> list[ReviewItem]:
    """List the items of which annotators say different things."""
    return [item for item in items if len({state.label for state in opinions(item.id, judged).values()}) > 1]


def opinions(item: str, judged: States) -> dict[str, State]:
    return {annotator: of_annotator[item] for annotator, of_annotator in judged.items() if item in of_annotator}


def _compare(first: str, second: str, scope: str, over: str, pairs: Sequence[tuple[State, State]]) -> Agreement:
    def label(state: State) -> str:
        assert state.verdict is not None
        return state.label if over == BY_STANCE else state.verdict.value

    ours, theirs = [label(a) for a, _ in pairs], [label(b) for _, b in pairs]
    n_alike = sum(a == b for a, b in zip(ours, theirs, strict=True))
    return Agreement(first, second, scope, over, len(pairs), n_alike, cohen_kappa(ours, theirs))
