"""What an augmentation did: counts, as a JSON document and as a few lines. It holds terms, and no text of the data."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from bbnli_audit.workbench.augment.lexicon import Lexicon
from bbnli_audit.workbench.augment.swap import Found, Left

FORMAT = 1
N_SHOWN = 8


@dataclass(slots=True)
class Tally:
    """Counts of rows and of terms. Terms are those of the rows that were copied."""

    n_read: int = 0
    n_copied: int = 0
    n_nothing_found: int = 0
    n_no_occupation: int = 0
    n_missing_text: int = 0
    n_both_sides: int = 0
    n_with_left: int = 0
    from_side: Counter[str] = field(default_factory=Counter)
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
    """Give the document that `--report` writes; docs/augment.md has its keys."""
    n_originals = 0 if settings["swapped_only"] else tally.n_read
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
            "written": n_originals + tally.n_copied,
            "copied": tally.n_copied,
            "copied_from": {
                **{side: tally.from_side[side] for side in lexicon.sides},
                "both": tally.n_both_sides,
            },
            "copied_with_terms_left": tally.n_with_left,
            "nothing_to_swap": tally.n_nothing_found,
            "no_occupation": tally.n_no_occupation,
            "missing_text": tally.n_missing_text,
        },
        "swapped": _swapped(tally),
        "decided": _decided(tally),
        "left": {
            "kept": _left(tally, is_kept=True),
            "capitalised": _left(tally, is_kept=False),
        },
    }


def _swapped(tally: Tally) -> list[dict[str, Any]]:
    counts: Counter[tuple[str, str]] = Counter()
    for found, n in tally.found.items():
        counts[found.term, found.became] += n
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [{"term": term, "became": became, "n": n} for (term, became), n in ordered]


def _decided(tally: Tally) -> list[dict[str, Any]]:
    decided = sorted((found, n) for found, n in tally.found.items() if found.rule is not None)
    return [{"term": found.term, "became": found.became, "rule": found.rule, "n": n} for found, n in decided]


def _left(tally: Tally, *, is_kept: bool) -> dict[str, int]:
    counts = {left.term: n for left, n in tally.left.items() if left.is_kept is is_kept}
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def tell(report: dict[str, Any]) -> Iterator[str]:
    """Give the report as a few lines."""
    rows = report["rows"]
    yield f"read      {rows['read']:>11,} rows"
    yield f"copied    {rows['copied']:>11,} rows with terms swapped: {_list(rows['copied_from'])}"
    left = {
        "nothing to swap": rows["nothing_to_swap"],
        "no occupation": rows["no_occupation"],
        "a text missing": rows["missing_text"],
    }
    yield f"not copied{sum(left.values()):>11,} rows: {_list({why: n for why, n in left.items() if n}) or 'none'}"
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
        f"lexicon keeps, {names:,} taken for a name by their capital"
    )


def _list(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {n:,}" for name, n in counts.items())
