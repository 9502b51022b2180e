"""Step 6, `counterfactual`: every sample that people found valid gets the same sample with the groups exchanged.

Groups are exchanged in the hypothesis alone; the premise stays. Which side a hypothesis is on is what people said.
"""

from collections.abc import Iterator, Mapping, Sequence

from bbnli_audit.core.values import Pair, TextPair
from bbnli_audit.workbench.extend.table import Found, NewPair, Reviewed

VALID, PRO, ANTI = "valid", "pro", "anti"
_VERDICTS = (VALID, "invalid", "incoherent", "")
_STANCES = (PRO, ANTI)
_OPPOSITE = {PRO: ANTI, ANTI: PRO}
_COUNTED = ("valid_samples", "pairs", "samples", "same_pair", "no_group", "contradicting")

Key = tuple[str, str, str]  # domain, subtopic, hypothesis


def make_pairs(found: Sequence[Found], reviewed: Sequence[Reviewed]) -> tuple[list[NewPair], dict[str, dict[str, int]]]:
    """Give each pair once, and count what became of the valid samples.

    A sample and its counterfactual may both have been found: they are one pair. Where people put both on the same
    side, found only one of them valid or did not agree on one, it is not sure what the pair says, and it is not kept.
    """
    said: dict[Key, str] = {
        (row.domain, row.subtopic, row.hypothesis): row.stance if row.verdict == VALID else row.verdict
        for row in reviewed
    }
    counts: dict[str, dict[str, int]] = {}
    pairs: dict[tuple[str, str, str, str], NewPair] = {}
    for row in found:
        path = f"{row.domain}/{row.subtopic}"
        counted = counts.setdefault(path, dict.fromkeys(_COUNTED, 0))
        stance = said.get((row.domain, row.subtopic, row.hypothesis))
        if stance not in _OPPOSITE:
            continue
        counted["valid_samples"] += 1
        if row.hypothesis == row.counterpart:
            counted["no_group"] += 1
        elif said.get((row.domain, row.subtopic, row.counterpart), _OPPOSITE[stance]) != _OPPOSITE[stance]:
            counted["contradicting"] += 1
        else:
            sides = (row.hypothesis, row.counterpart) if stance == PRO else (row.counterpart, row.hypothesis)
            key = (path, row.premise, *sides)
            if key in pairs:
                counted["same_pair"] += 1
                pairs[key] = _also_found(pairs[key], row)
            else:
                pairs[key] = _pair(row, *sides)
    for path, n in _per_subtopic(pairs):
        counts[path] |= {"pairs": n, "samples": 2 * n}
    return list(pairs.values()), counts


def find_fault(row: Reviewed) -> str | None:
    """Say what is wrong with a row that people may have changed."""
    if row.verdict not in _VERDICTS:
        return f"verdict is {row.verdict!r:.20}; expected {', '.join(_VERDICTS[:3])}, or nothing for no decision."
    if row.stance not in (_STANCES if row.verdict == VALID else ("",)):
        return f"stance is {row.stance!r:.20}; expected pro or anti for what is valid, and nothing for what is not."
    return None


def _pair(row: Found, pro: str, anti: str) -> NewPair:
    pair = Pair(row.cluster, TextPair(row.premise, pro), TextPair(row.premise, anti))
    found_by = ";".join(sorted(row.found_by))
    return NewPair(
        row.domain, row.subtopic, pair.id, row.cluster, row.premise, pro, anti, row.strategy, row.word, found_by
    )


def _also_found(pair: NewPair, row: Found) -> NewPair:
    return pair._replace(found_by=";".join(sorted({*pair.found_by.split(";"), *row.found_by})))


def _per_subtopic(pairs: Mapping[tuple[str, str, str, str], NewPair]) -> Iterator[tuple[str, int]]:
    paths = [key[0] for key in pairs]
    yield from ((path, paths.count(path)) for path in dict.fromkeys(paths))


def count_reviewed(reviewed: Sequence[Reviewed]) -> dict[str, dict[str, int]]:
    """Count the valid hypotheses."""
    counts: dict[str, dict[str, int]] = {}
    for row in reviewed:
        found = counts.setdefault(f"{row.domain}/{row.subtopic}", {VALID: 0})
        found[VALID] += row.verdict == VALID
    return counts


def count_pairs(
    found: Sequence[Found], reviewed: Sequence[Reviewed], pairs: Sequence[NewPair]
) -> dict[str, dict[str, int]]:
    """Count what became of the valid samples, with the pairs that are there."""
    _, counts = make_pairs(found, reviewed)
    for counted in counts.values():
        counted |= {"pairs": 0, "samples": 0}
    for pair in pairs:
        counted = counts.setdefault(f"{pair.domain}/{pair.subtopic}", dict.fromkeys(_COUNTED, 0))
        counted["pairs"] += 1
        counted["samples"] += 2
    return counts
