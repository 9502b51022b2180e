"""From opinions to one decision an item, and the files that later steps read.

`drop`: an item counts only when at least two annotators judged it and all say the same. `third`: where two disagree, a
further annotator's opinion decides, by majority.
"""

import csv
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from io import StringIO
from pathlib import Path

from bbnli_audit.core.errors import WorkbenchError
from bbnli_audit.core.files import replacing
from bbnli_audit.workbench.review.agreement import disagreements, opinions
from bbnli_audit.workbench.review.items import ReviewItem
from bbnli_audit.workbench.review.states import ReviewVerdict, Stance, State, States

COLUMNS = ("item", "domain", "subtopic", "hypothesis", "verdict", "stance", "n_annotators", "decided_by")
DISAGREEMENT_COLUMNS = ("item", "domain", "subtopic", "hypothesis", "annotator", "verdict", "stance", "note")
_ENOUGH = 2


class Policy(StrEnum):
    DROP = "drop"
    THIRD = "third"


class DecidedBy(StrEnum):
    """How a decision came about. Only the first two are decisions for a verdict; the last two are not finished."""

    AGREEMENT = "agreement"
    MAJORITY = "majority"
    DROPPED = "dropped"  # annotators disagree, and no further opinion is asked for
    OPEN = "open"  # annotators disagree, and a third opinion is to decide
    UNJUDGED = "unjudged"  # fewer than two have judged it


@dataclass(frozen=True, slots=True)
class Decision:
    item: ReviewItem
    verdict: ReviewVerdict | None
    stance: Stance | None
    n_annotators: int
    decided_by: DecidedBy

    @property
    def is_kept(self) -> bool:
        return self.verdict is ReviewVerdict.VALID

    @property
    def is_finished(self) -> bool:
        return self.decided_by not in (DecidedBy.OPEN, DecidedBy.UNJUDGED)


def decide(items: Iterable[ReviewItem], judged: States, policy: Policy) -> list[Decision]:
    """Decide each item, in the order given. `judged` holds finished judgements only."""
    return [_decide(item, list(opinions(item.id, judged).values()), policy) for item in items]


def needs_opinion(items: Iterable[ReviewItem], judged: States, annotator: str) -> list[ReviewItem]:
    """List the items of which at least two others disagree, whether or not the annotator has judged them since."""
    others = {name: of_annotator for name, of_annotator in judged.items() if name != annotator}
    return disagreements(items, others)


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
    """Write one row an item. The verdict is empty where there is none."""
    write_table(
        path,
        COLUMNS,
        (
            (*_identity(each.item), each.verdict or "", each.stance or "", each.n_annotators, each.decided_by)
            for each in decisions
        ),
    )


def write_disagreements(path: Path, items: Iterable[ReviewItem], judged: States) -> None:
    """Write one row for each opinion on an item of which annotators disagree."""
    write_table(
        path,
        DISAGREEMENT_COLUMNS,
        (
            (*_identity(item), annotator, state.verdict, state.stance or "", state.note)
            for item in disagreements(items, judged)
            for annotator, state in opinions(item.id, judged).items()
        ),
    )


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    out = StringIO()
    # All in quotes: before Python 3.13, a carriage return alone does not make the writer quote a text.
    writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(columns)
    writer.writerows(rows)
    write_text(path, out.getvalue())


def write_text(path: Path, text: str) -> None:
    try:
        with replacing(path) as file:
            file.write(text)
    except OSError as exc:
        raise WorkbenchError(f"{path}: cannot be written: {exc.strerror}.") from exc


def _identity(item: ReviewItem) -> tuple[str, str, str, str]:
    return item.id, item.domain, item.subtopic, item.hypothesis


def count(decisions: Iterable[Decision]) -> dict[str, dict[str, int]]:
    """Count the items of each subtopic by what was decided."""
    counts: dict[str, dict[str, int]] = {}
    names = ("items", *ReviewVerdict, *Stance, "undecided")
    for decision in decisions:
        found = counts.setdefault(decision.item.path, dict.fromkeys(map(str, names), 0))
        found["items"] += 1
        found[str(decision.verdict or "undecided")] += 1
        if decision.stance is not None:
            found[str(decision.stance)] += 1
    return counts
