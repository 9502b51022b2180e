"""Measure how often the rule for *her* and *his* is wrong, on real sentences and without annotations.

Where English has two forms, the use is known: *him* is an object and *his* (before a noun) a determiner. Each is
replaced by *her*, and the rule must find the use again; likewise *their* and *theirs*, replaced by *his*. The lists of
the rule were made on one half of the training sentences (`tuned`); the other half, and the two evaluation files, of
which no sentence was looked at, give the figure (`held out`).

    python -m benchmarks.her_rule [FOLDER]      # FOLDER with the NLI data; default: nli of the shared folder
"""

import gzip
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from math import sqrt
from pathlib import Path
from typing import NamedTuple

from bbnli_audit.workbench.augment.uses import Use, find_use
from tests.shared_data import SHARED

FILES = ("train", "snli_test_half", "mnli_matched_dev_half")
HELD_OUT, TUNED = "held out", "tuned"
HER = frozenset({Use.DETERMINER, Use.OBJECT})
HIS = frozenset({Use.DETERMINER, Use.INDEPENDENT})
OBJECTS = ("him", "them", "me", "us")
DETERMINERS = ("his", "their", "my", "our")
INDEPENDENT = ("hers", "theirs", "ours", "yours")
PRONOUN = re.compile(rf"\b(?:{'|'.join((*OBJECTS, *DETERMINERS, *INDEPENDENT))})\b(?!['’-]\w)", re.IGNORECASE)
# A determiner never ends a clause, so a *his* that does stands alone. Others may too; they count as errors.
ENDS_CLAUSE = re.compile(r"\s*(?:[.?!;:,)]|$)")


class Case(NamedTuple):
    """A pronoun of a sentence: its kind, and whether each rule that may meet it was right."""

    source: str
    half: str
    kind: str
    form: str
    is_right: bool


def read_sentences(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Give each distinct sentence with its source and half. Texts of a premise and its hypotheses share a half."""
    seen = set()
    for name in FILES:
        with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                is_train = name == "train"
                half = HELD_OUT if not is_train or sha256(row["premise"].encode()).digest()[0] & 1 else TUNED
                for text in (row["premise"], row["hypothesis"]):
                    if text not in seen:
                        seen.add(text)
                        yield row["source"] if is_train else name, half, text


def find_cases(source: str, half: str, text: str) -> Iterator[Case]:
    for found in PRONOUN.finditer(text):
        word = found[0].lower()
        if found[0] == "US":
            continue
        if word == "his" and ENDS_CLAUSE.match(text, found.end()):
            word = "his (alone)"
        kind = "object" if word in OBJECTS else "determiner" if word in DETERMINERS else "independent"
        for form, uses in (("her", HER), ("his", HIS)):
            if Use(kind) in uses:
                written = form.upper() if found[0].isupper() else form
                changed = text[: found.start()] + written + text[found.end() :]
                use = find_use(changed, found.start(), found.start() + len(form), uses).use
                yield Case(source, half, word, form, use is Use(kind))


def interval(n_wrong: int, n: int, z: float = 1.96) -> tuple[float, float]:
    """Give Wilson's interval of a share."""
    share = n_wrong / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return centre - half, centre + half


def print_table(title: str, cases: list[Case], groups: dict[str, list[str]] | None = None) -> None:
    """Print errors by group of kinds, or by source if no groups are given."""
    print(f"\n{title}\n\n| | held out: wrong | of | error rate | 95 % | tuned: error rate |\n|---|--:|--:|--:|---|--:|")
    n: Counter[tuple[str, str]] = Counter()
    wrong: Counter[tuple[str, str]] = Counter()
    for case in cases:
        rows = [case.source] if groups is None else [row for row, kinds in groups.items() if case.kind in kinds]
        for row in rows:
            n[row, case.half] += 1
            wrong[row, case.half] += not case.is_right
    for row in groups or sorted({row for row, _ in n}):
        total, errors = n[row, HELD_OUT], wrong[row, HELD_OUT]
        if total:
            low, high = interval(errors, total)
            tuned = f"{wrong[row, TUNED] / n[row, TUNED]:.2%}" if n[row, TUNED] else "–"
            print(f"| {row} | {errors} | {total:,} | {errors / total:.2%} | {low:.2%} to {high:.2%} | {tuned} |")


def main(folder: Path) -> None:
    cases = [case for sentence in read_sentences(folder) for case in find_cases(*sentence)]
    her = [case for case in cases if case.form == "her"]
    his = [case for case in cases if case.form == "his"]
    print_table(
        "*her*, put for:",
        her,
        {
            "him, his": ["him", "his"],
            "his (determiner)": ["his"],
            "him": ["him"],
            "them, me, us": ["them", "me", "us"],
            "their, my, our": ["their", "my", "our"],
        },
    )
    print_table("*her* put for him and his, by source:", [case for case in her if case.kind in ("him", "his")])
    print_table(
        "*his*, put for:",
        his,
        {
            "his (determiner)": ["his"],
            "their, my, our": ["their", "my", "our"],
            "his (alone, at the end of a clause)": ["his (alone)"],
            "hers, theirs, ours, yours": [*INDEPENDENT],
        },
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else SHARED / "data" / "nli")
