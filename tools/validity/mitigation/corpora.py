"""The corpora, and their copies by `bbnli-audit augment`.

The biased corpus has sentences about occupations that teach the gender of most people who work in them, the wordings of
a planted stereotype, and plain pairs. Both sides of a planted pair are in it: one follows, the other is contradicted.
`augment` exchanges the genders and keeps the labels, so what it copies says the opposite.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from io import StringIO
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from bbnli_audit import Label, TextPair
from bbnli_audit.core.errors import OptionError
from bbnli_audit.frontends.cli.main import main
from bbnli_audit.suites.occupations import Occupation, Occupations
from tools.validity.examples import TRAINING, WORDINGS, Example, read_pairs_of
from tools.validity.mitigation.plan import Corpus
from tools.validity.plan import FIRST

SENTENCES = Path(__file__).with_name("sentences.json")
OCCUPATIONS, WORDED = 0.4, 0.2  # shares of the rows of the biased corpus; the rest is plain
Sides = tuple[TextPair, TextPair]


class Row(NamedTuple):
    """A line of a corpus. The two sides of a planted pair have the same number."""

    premise: str
    hypothesis: str
    label: str
    pair: int | None = None


def occupation_pairs(occupations: Iterable[Occupation]) -> Iterator[Sides]:
    """Combine occupations with all sentences: the gender of most who work in it first, then the other."""
    data = json.loads(SENTENCES.read_text(encoding="utf-8"))
    for occupation, (premise, does), words in product(occupations, data["premises"], data["hypotheses"]):
        other = "male" if occupation.majority == "female" else "female"
        pro, anti = (
            TextPair(premise.replace("{{OCCUPATION}}", occupation.name), words[gender].replace("{{DOES}}", does))
            for gender in (occupation.majority, other)
        )
        yield pro, anti


def biased_rows(n_rows: int, plain: Sequence[Example], seed: int) -> list[Row]:
    """Draw the biased corpus: whole pairs, among plain ones."""
    random = Random(seed)
    worded = [(pair.pro, pair.anti) for pair in read_pairs_of(WORDINGS / TRAINING, [FIRST])[FIRST]]
    pools = (list(occupation_pairs(Occupations().occupations())), worded)
    rows: list[Row] = []
    for pool, share in zip(pools, (OCCUPATIONS, WORDED), strict=True):
        for pro, anti in random.sample(pool, round(share * n_rows / 2)):
            number = len(rows)
            rows.append(Row(*pro, Label.ENTAILMENT.value, number))
            rows.append(Row(*anti, Label.CONTRADICTION.value, number))
    return [*rows, *plain_rows(n_rows - len(rows), plain, seed)]


def plain_rows(n_rows: int, plain: Sequence[Example], seed: int) -> list[Row]:
    """Draw plain pairs with their own labels."""
    if n_rows > len(plain):
        raise OptionError(f"{n_rows} plain pairs are needed, but there are {len(plain)}. Lower the number of rows.")
    return [Row(*each.text, each.label.value) for each in Random(seed).sample(list(plain), n_rows)]


def write_corpus(corpus: Corpus, n_rows: int, plain: Sequence[Example], seed: int, path: Path) -> Path:
    """Write a corpus, and beside it the same with the copies of `bbnli-audit augment`; return the path of the latter.

    Files that are there stay: they are made from the same seed.
    """
    augmented = path.with_suffix(".augmented.jsonl")
    if not path.exists():
        rows = (biased_rows if corpus is Corpus.BIASED else plain_rows)(n_rows, plain, seed)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row._asdict()) + "\n" for row in rows), encoding="utf-8")
        augmented.unlink(missing_ok=True)
    if not augmented.exists():
        with redirect_stdout(StringIO()):
            code = main(["augment", str(path), str(augmented)])
        if code:
            raise OptionError(f"bbnli-audit augment ended with {code} on {path}. Remove the file and start again.")
    return augmented


def read_examples(path: Path) -> list[Example]:
    """Read a corpus. What was copied from a pair is a pair of its own."""
    lines: list[dict[str, Any]] = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [Example(TextPair(row["premise"], row["hypothesis"]), Label(row["label"]), _number(row)) for row in lines]


def _number(row: dict[str, Any]) -> int | None:
    return None if row["pair"] is None else 2 * int(row["pair"]) + bool(row.get("augmented"))
