"""Reports what an augmentation did: counts as a JSON document and as a few lines, without any text of the data."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from bbnli_audit.workbench.augment.lexicon import Lexicon
from bbnli_audit.workbench.augment.swap import Found, Left

FORMAT = 1
N_SHOWN = 8
NOT_COPIED = {  # why a row was not copied: the key in the report, and the words in the summary
    "nothing_to_swap": "nothing to swap",
    "no_occupation": "no occupation",
    "missing_text": "a text missing",
}


@dataclass(slots=True)
class Tally:
    """Counts of rows, and of the terms in the rows that were copied."""

    n_read: int = 0
    n_copied: int = 0
    n_both_sides: int = 0  # copied rows in which terms of both sides were swapped
    n_with_left: int = 0  # copied rows in which some terms stayed
    not_copied: Counter[str] = field(default_factory=Counter)
    from_side: Counter[str] = field(default_factory=Counter)  # copied rows with swapped terms of one side only
    found: Counter[Found] = field(default_factory=Counter)
    left: Counter[Left] = field(default_factory=Counter)

    def add_copies(self, copies: Sequence[tuple[list[Found], list[Left]]]) -> None:
        self.n_copied += len(copies)
        self.found.update(chain.from_iterable(found for found, _ in copies))
        self.left.update(chain.from_iterable(left for _, left in copies))
        self.n_with_left += sum(bool(left) for _, left in copies)
        for found, _ in copies:
            side = found[0].side
            if len(found) > 1 and any(one.side != side for one in found):
                self.n_both_sides += 1
            else:
                self.from_side[side] += 1


def make_report(tally: Tally, lexicon: Lexicon, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the document that `--report` writes; docs/augment.md explains its keys."""
    swapped: Counter[tuple[str, str]] = Counter()
    for found, n in tally.found.items():
        swapped[found.term, found.became] += n
    decided = sorted((found, n) for found, n in tally.found.items() if found.rule is not None)
    return {
        "format": FORMAT,
        "settings": settings,
        "lexicon": {
            "name": lexicon.name,
            "version": lexicon.version,
            "sha256": lexicon.sha256,
            "sides": list(lexicon.sides),
        },
        "rows": {
            "read": tally.n_read,
            "written": tally.n_copied + (0 if settings["swapped_only"] else tally.n_read),
            "copied": tally.n_copied,
            "copied_from": {**{side: tally.from_side[side] for side in lexicon.sides}, "both": tally.n_both_sides},
            "copied_with_terms_left": tally.n_with_left,
            **{why: tally.not_copied[why] for why in NOT_COPIED},
        },
        "swapped": [{"term": term, "became": became, "n": n} for (term, became), n in _most_first(swapped)],
        "decided": [{"term": one.term, "became": one.became, "rule": one.rule, "n": n} for one, n in decided],
        "left": {
            name: dict(_most_first({left.term: n for left, n in tally.left.items() if left.is_kept is is_kept}))
            for name, is_kept in (("kept", True), ("capitalised", False))
        },
    }


def _most_first(counts: Mapping[Any, int]) -> list[tuple[Any, int]]:
    return sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))


def tell(report: dict[str, Any]) -> Iterator[str]:
    rows = report["rows"]
    yield f"read      {rows['read']:>11,} rows"
    yield f"copied    {rows['copied']:>11,} rows with terms swapped: {_list(rows['copied_from'])}"
    left = {title: rows[why] for why, title in NOT_COPIED.items() if rows[why]}
    yield f"not copied{sum(left.values()):>11,} rows: {_list(left) or 'none'}"
    yield f"written   {rows['written']:>11,} rows"
    swapped = report["swapped"]
    if swapped:
        shown = ", ".join(f"{one['term']} → {one['became']} {one['n']:,}" for one in swapped[:N_SHOWN])
        more = f", and {len(swapped) - N_SHOWN} more" if len(swapped) > N_SHOWN else ""
        yield f"swapped   {sum(one['n'] for one in swapped):>11,} terms: {shown}{more}"
    if report["decided"]:
        rules: Counter[str] = Counter()
        for one in report["decided"]:
            rules[one["rule"]] += one["n"]
        yield f"decided   {rules.total():>11,} pronouns by rule: {_list(dict(rules.most_common()))}"
    kept, names = (sum(report["left"][why].values()) for why in ("kept", "capitalised"))
    yield (
        f"left      {kept + names:>11,} terms in {rows['copied_with_terms_left']:,} of the copies: {kept:,} that the "
        f"lexicon keeps, {names:,} taken for a name because of their capital"
    )


def _list(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {n:,}" for name, n in counts.items())
