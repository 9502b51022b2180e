"""Step 6, `counterfactual`: pairs each valid sample with its counterfactual, which has the groups exchanged.

Groups are exchanged in the hypothesis only; the premise stays. People decided which side a hypothesis is on.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from bbnli_audit.core.values import Pair, TextPair
from bbnli_audit.workbench.extend.table import Found, NewPair, Reviewed, path_of
from bbnli_audit.workbench.review.states import ReviewVerdict, Stance
from bbnli_audit.workbench.workspace import Counts, count_by_subtopic

_VERDICTS = (ReviewVerdict.VALID, ReviewVerdict.INVALID, ReviewVerdict.INCOHERENT, "")
_OPPOSITE: Mapping[str, str] = {Stance.PRO: Stance.ANTI, Stance.ANTI: Stance.PRO}
_COUNTED = ("valid_samples", "pairs", "samples", "same_pair", "no_group", "contradicting")


def make_pairs(
    found: Sequence[Found], reviewed: Sequence[Reviewed], kept: Sequence[NewPair] | None = None
) -> tuple[list[NewPair], Counts]:
    """Return each pair once, and counts of what became of the valid samples.

    If both a sample and its counterfactual were found, they make one pair. If both hypotheses of a pair are in
    `reviewed`, people must have called both valid and put them on opposite sides. Otherwise the pair is dropped.

    `kept` has the pairs that people have not removed. If it is given, the counts of pairs and samples come from `kept`.
    """
    valid = ReviewVerdict.VALID
    said = {(path_of(row), row.hypothesis): row.stance if row.verdict == valid else row.verdict for row in reviewed}
    pairs: dict[tuple[str, str, str, str], tuple[Found, set[str]]] = {}  # first row, and models that found the pair
    events: dict[str, Counter[str]] = {name: Counter() for name in _COUNTED}  # by name and subtopic path
    for row in found:
        path = path_of(row)
        stance = said.get((path, row.hypothesis), "")
        is_valid = stance in _OPPOSITE
        events["valid_samples"][path] += is_valid
        if not is_valid:
            continue
        if row.hypothesis == row.counterpart:
            events["no_group"][path] += 1
        elif said.get((path, row.counterpart), _OPPOSITE[stance]) != _OPPOSITE[stance]:
            events["contradicting"][path] += 1
        else:
            sides = (row.hypothesis, row.counterpart) if stance == Stance.PRO else (row.counterpart, row.hypothesis)
            key = (path, row.premise, *sides)
            events["same_pair"][path] += key in pairs
            pairs.setdefault(key, (row, set()))[1].update(row.found_by)
    made = [_pair(row, pro, anti, found_by) for (_, _, pro, anti), (row, found_by) in pairs.items()]
    for pair in made if kept is None else kept:
        events["pairs"][path_of(pair)] += 1
        events["samples"][path_of(pair)] += 2
    return made, count_by_subtopic(events)


def find_fault(row: Reviewed) -> str | None:
    if row.verdict not in _VERDICTS:
        return f"verdict is {row.verdict!r:.20}; expected {', '.join(_VERDICTS[:3])}, or nothing if undecided."
    if row.stance not in (_OPPOSITE if row.verdict == ReviewVerdict.VALID else ("",)):
        return f"stance is {row.stance!r:.20}; expected pro or anti if valid, otherwise nothing."
    return None


def _pair(row: Found, pro: str, anti: str, found_by: Iterable[str]) -> NewPair:
    name = Pair(row.cluster, TextPair(row.premise, pro), TextPair(row.premise, anti)).id
    source = (row.domain, row.subtopic, name, row.cluster, row.premise)
    return NewPair(*source, pro, anti, row.strategy, row.word, ";".join(sorted(found_by)))
