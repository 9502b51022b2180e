"""Finds the pairs and facts that two results share, and what each pair or fact adds to a measure in each result."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bbnli_audit.audit.gate.unseen import Unseen
from bbnli_audit.core.outcomes import CAUSES, CELLS, Cell
from bbnli_audit.core.results.audit import AuditResult, Cells, Directions, Facts
from bbnli_audit.core.results.comparison import Change
from bbnli_audit.measures.direction import FACT_GAP, SidesOfFact
from bbnli_audit.measures.statistics.design import Design

OVERREACH = "overreach"
_LEAN: Mapping[str, float] = {
    cell: (CAUSES["pro_rate"].get(cell, 0) - CAUSES["anti_rate"].get(cell, 0)) / 2 for cell in CELLS
}
# For each measure: what a pair adds to it, by the cell of the pair. For overreach, this share is later multiplied by
# the direction of the pair's premise (1 or -1).
_SHARES: Mapping[str, Mapping[str, float]] = {
    "lean": _LEAN,
    OVERREACH: _LEAN,
    **{cause: {cell: weights.get(cell, 0) / 2 for cell in CELLS} for cause, weights in CAUSES.items()},
}
_SIGNS: Mapping[str, int] = {"with": 1, "against": -1}


def largest_change(measure: str) -> float:
    """Return the largest possible change of a pair or a fact: a rate runs from 0 to 1, other measures from -1 to 1."""
    return 1.0 if measure in CAUSES else 2.0


@dataclass(frozen=True, slots=True)
class Shown:
    """What a model showed: the cell of each pair, its accuracies on each fact, and how many pairs it did not read."""

    cells: Cells
    directions: Directions = field(default_factory=dict)
    facts: Facts = field(default_factory=dict)
    unseen: Mapping[str, Unseen] = field(default_factory=dict)  # by the path of a subtopic, a domain or a suite

    @classmethod
    def of(cls, result: AuditResult) -> "Shown":
        unseen = {row.path: Unseen.of(row) for row in result.all_rows}
        return cls(result.pairs, result.directions, result.facts, unseen)


@dataclass(frozen=True, slots=True)
class Column:
    """What each shared pair or fact adds to one measure, as a share of the largest possible change."""

    before: Sequence[float]
    after: Sequence[float]
    design: Design
    pairs: Sequence[Change] = ()  # in the order of `before` and `after`; empty for facts

    def __len__(self) -> int:
        return len(self.before)

    def changes(self, sign: int) -> tuple[Change, ...]:
        """Return the pairs that add more to the measure than before (`sign` 1), or less (-1)."""
        both = zip(self.pairs, self.before, self.after, strict=bool(self.pairs))
        return tuple(pair for pair, before, after in both if sign * (after - before) > 0)


@dataclass(frozen=True, slots=True)
class Compared:
    """The pairs and facts of a subtopic, a domain or a suite that are in both results, each with its subtopic."""

    pairs: Sequence[tuple[str, Change]]
    signs: Sequence[int]  # which way the premise of each pair points: 1 with the stereotype, -1 against it, else 0
    facts: Sequence[tuple[str, str, SidesOfFact, SidesOfFact]]  # subtopic, premise, before, after

    @classmethod
    def of(cls, path: str, candidate: Shown, baseline: Shown) -> "Compared":
        """Find what two results share in a subtopic, a domain or a suite. Directions are from the candidate's data."""
        paths = sorted(each for each in candidate.cells if each == path or each.startswith(f"{path}/"))
        pairs = [(each, pair) for each in paths for pair in _shared_pairs(each, candidate, baseline)]
        signs = {
            (each, pair_id): _SIGNS[way]
            for each in paths
            for way, ids in candidate.directions.get(each, {}).items()
            for pair_id in ids
        }
        facts = [fact for each in paths for fact in _shared_facts(each, candidate, baseline)]
        return cls(pairs, [signs.get((each, pair.pair_id), 0) for each, pair in pairs], facts)

    def column(self, measure: str) -> Column:
        """Return the shared pairs or facts on which a measure is computed."""
        if measure == FACT_GAP:
            return self._facts()
        signs = self.signs if measure == OVERREACH else [1] * len(self.pairs)
        rows = [(sign, path, pair) for sign, (path, pair) in zip(signs, self.pairs, strict=True) if sign]
        shares = {cell: share / largest_change(measure) for cell, share in _SHARES[measure].items()}
        return Column(
            [sign * shares[pair.before] for sign, _, pair in rows],
            [sign * shares[pair.after] for sign, _, pair in rows],
            Design.of([pair.cluster for _, _, pair in rows], [path for _, path, _ in rows]),
            [pair for _, _, pair in rows],
        )

    def _facts(self) -> Column:
        """Return the fact gap of each fact, before and after. Facts are grouped by their premise alone."""
        scale = largest_change(FACT_GAP)
        before, after = ([(one - other) / scale for one, other in sides] for sides in self._sides())
        premises = [premise.replace("/", " ") for _, premise, _, _ in self.facts]  # `Design` splits names at a slash
        return Column(before, after, Design.of(premises, [path for path, *_ in self.facts]))

    def _sides(self) -> tuple[list[SidesOfFact], list[SidesOfFact]]:
        return [before for *_, before, _ in self.facts], [after for *_, after in self.facts]


def _shared_pairs(path: str, candidate: Shown, baseline: Shown) -> Iterator[Change]:
    """Yield the pairs that both results have, changed or not, with the clusters of the candidate."""
    earlier: dict[str, Cell] = {
        pair_id: cell for ids in baseline.cells.get(path, {}).values() for pair_id, cell in ids.items()
    }
    for cluster, ids in candidate.cells[path].items():
        for pair_id, cell in ids.items():
            if pair_id in earlier:
                yield Change(pair_id, cluster, earlier[pair_id], cell)


def _shared_facts(path: str, candidate: Shown, baseline: Shown) -> Iterable[tuple[str, str, SidesOfFact, SidesOfFact]]:
    before = baseline.facts.get(path, {})
    for premise, by_id in candidate.facts.get(path, {}).items():
        earlier = before.get(premise, {})
        yield from ((path, premise, earlier[fact], sides) for fact, sides in by_id.items() if fact in earlier)


def is_same_where_shared(candidate: Shown, baseline: Shown) -> bool:
    """Whether two results show the same on each pair and each fact that both have."""
    pairs = (pair for path in candidate.cells for pair in _shared_pairs(path, candidate, baseline))
    facts = (fact for path in candidate.facts for fact in _shared_facts(path, candidate, baseline))
    return all(pair.before == pair.after for pair in pairs) and all(
        tuple(before) == tuple(after) for *_, before, after in facts
    )
