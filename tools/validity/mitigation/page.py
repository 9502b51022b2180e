"""Writes docs/mitigation.md from the folders of the models. No figure is written by hand."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from bbnli_audit.core.words import figure as number
from bbnli_audit.reports.markdown import figures, signed_figures, table
from tools.validity.carry_out import ROOT
from tools.validity.mitigation.figures import (
    ACCURACY,
    OF_BBNLI,
    OF_OCCUPATIONS,
    Figure,
    Showing,
    find_finished,
    find_pairs,
)
from tools.validity.mitigation.plan import Arm, Candidate, Corpus, full_plan
from tools.validity.plan import shared_folder

PAGE = ROOT / "docs" / "mitigation.md"
FIGURES = (*OF_OCCUPATIONS, *OF_BBNLI, ACCURACY)
_INTRODUCTION = Path(__file__).with_name("introduction.md")
_PAPER = {"BERT": "less bias", "RoBERTa": "slightly less", "BART": "slightly less"}  # what it found, in words
_FACTS = ("model", "fine-tuned on", "seed")
Pair = tuple[Showing, Showing]


def write_page(build: Path, page: Path = PAGE) -> Path:
    """Write the page from what is done so far."""
    plan = full_plan()
    found = find_finished(plan, build)
    pairs = find_pairs(found)
    sections = [
        _INTRODUCTION.read_text(encoding="utf-8").rstrip(),
        *_answers(pairs),
        *_differences(pairs),
        *_showings(found),
        *_paper(found, pairs),
        _missing(plan, [each.candidate for each in found]),
    ]
    page.write_text("\n\n".join(sections) + "\n", encoding="utf-8")
    return page


def _answers(pairs: Sequence[Pair]) -> Iterator[str]:
    yield "## What it found"
    yield (
        "What the copies of `augment` change, a word for each seed. *Better* and *worse*: the 95 % interval of the "
        "difference lies on one side of 0, and the value came nearer to its best (S and accuracy 1, B 0.5, all others "
        "0), or went away from it. *Open*: the interval has 0 in it, so a loss may be as large as its bound. Intervals "
        "are not corrected for their number. The two arms are compared with each other. What the fine-tuning itself "
        "did, compared with the base, is in the tables below."
    )
    groups = dict.fromkeys((one.candidate.base, one.candidate.corpus) for one, _ in pairs)
    rows = [
        [f"`{base}`", str(corpus), *(", ".join(_judge(figure, pairs, base, corpus)) for figure in FIGURES)]
        for base, corpus in groups
    ]
    yield (
        table(["model", "corpus", *(figure.title for figure in FIGURES)], rows, n_left=2 + len(FIGURES))
        if rows
        else ("Nothing yet.")
    )
    for corpus in Corpus:
        chosen = [pair for pair in pairs if pair[0].candidate.corpus is corpus]
        if chosen:
            yield _tell(corpus, chosen)


def _judge(figure: Figure, pairs: Sequence[Pair], base: str, corpus: Corpus | None) -> list[str]:
    chosen = [pair for pair in pairs if (pair[0].candidate.base, pair[0].candidate.corpus) == (base, corpus)]
    return [figure.judge(*pair) for pair in chosen]


def _tell(corpus: Corpus, pairs: Sequence[Pair]) -> str:
    """Count the words of the table above over bases and seeds."""
    told = []
    for name, chosen in (
        ("S, ΔP and B", OF_OCCUPATIONS),
        ("lean and pro", [each for each in OF_BBNLI if not each.title.startswith("brittleness")]),
        ("brittleness", [each for each in OF_BBNLI if each.title.startswith("brittleness")]),
        ("accuracy", [ACCURACY]),
    ):
        words = [figure.judge(*pair) for pair in pairs for figure in chosen]
        counts = ", ".join(f"{words.count(word)} {word}" for word in ("better", "worse", "open"))
        told.append(f"{name}: {counts} (of {len(words)})")
    return f"**Corpus `{corpus}`**, all bases and seeds. {'; '.join(told)}."


def _differences(pairs: Sequence[Pair]) -> Iterator[str]:
    yield "## With copies less without, on the same items"
    yield (
        "Each difference is paired: `lean`, pro and brittleness as the comparison with a baseline finds them "
        "(`increase`), the others with the same statistics on the values of pairs. In brackets the 95 % interval. "
        "In **bold**, it does not hold 0."
    )
    for chosen in (OF_OCCUPATIONS, OF_BBNLI, (ACCURACY,)):
        rows = [[*_facts(one), *(_difference(figure, one, other) for figure in chosen)] for one, other in pairs]
        yield table([*_FACTS, *(figure.title for figure in chosen)], rows, n_left=3) if rows else "Nothing yet."


def _difference(figure: Figure, one: Showing, other: Showing) -> str:
    told = signed_figures(figure.compare(one, other)).replace("-", "−")
    return told if figure.judge(one, other) == "open" else f"**{told}**"


def _facts(showing: Showing) -> list[str]:
    candidate = showing.candidate
    corpus, seed = ("–", "–") if candidate.corpus is None else (candidate.corpus.value, str(candidate.seed))
    return [f"`{candidate.base}`", corpus, seed]


def _showings(found: Sequence[Showing]) -> Iterator[str]:
    yield "## What each model showed"
    ordered = sorted(found, key=_order)
    for told, chosen in (
        ("On `occupations`: 5,472 pairs.", OF_OCCUPATIONS),
        ("On `bbnli`, domain `gender` (small), and on held-out wordings of the planted stereotype.", OF_BBNLI),
    ):
        yield told
        rows = [
            [*_facts(each), each.candidate.arm.value, *(figures(one.read(each)) for one in chosen)] for each in ordered
        ]
        yield table([*_FACTS, "arm", *(figure.title for figure in chosen)], rows, n_left=4) if rows else "Nothing yet."
    yield "Accuracy on plain pairs whose premises are in no corpus, and what was read in how many steps."
    rows = [[*_facts(each), each.candidate.arm.value, figures(ACCURACY.read(each)), *_read(each)] for each in ordered]
    titles = [*_FACTS, "arm", "accuracy", "rows read", "of them copies", "steps"]
    yield table(titles, rows, n_left=4) if rows else "Nothing yet."


def _read(showing: Showing) -> list[str]:
    facts = showing.facts
    if "training" not in facts:
        return ["–", "–", "–"]
    return [f"{n:,}" for n in (facts["n_rows"], facts["n_copies"], facts["training"]["steps"])]


def _order(showing: Showing) -> tuple[str, str, int, int]:
    candidate = showing.candidate
    return candidate.base, candidate.corpus or "", candidate.seed, list(Arm).index(candidate.arm)


def _paper(found: Sequence[Showing], pairs: Sequence[Pair]) -> Iterator[str]:
    yield "## Beside the paper"
    yield (
        "Sharma, Dey and Sinha (2021) fine-tuned on MultiNLI with copies of the rows that name an occupation. Of their "
        "models, the figures are those without copies (in domain, Table 3). What the copies changed is told in words, "
        "because we have no copy of those figures. Ours are means over seeds."
    )
    rows = [*_paper_rows(), *_our_rows(found, pairs)]
    yield table(["model", "fine-tuned on", "S", "ΔP", "B", "with copies: S", "ΔP", "B", "accuracy"], rows, n_left=2)


def _paper_rows() -> Iterator[list[str]]:
    path = shared_folder() / "data" / "sharma_gender_nli" / "EXPECTED.json"
    tables = json.loads(path.read_text(encoding="utf-8"))["tables"] if path.exists() else {}
    for model, told in _PAPER.items():
        published = tables.get("MNLI(I)", {}).get(model, {}).get("published", {})
        before = [number(published[key] / 100 if key in published else None) for key in ("S", "dP", "B")]
        yield [f"{model} (paper)", "MultiNLI", *before, told, told, told, "no loss"]


def _our_rows(found: Sequence[Showing], pairs: Sequence[Pair]) -> Iterator[list[str]]:
    for base in dict.fromkeys(each.candidate.base for each in found):
        for corpus in Corpus:
            chosen = [pair for pair in pairs if (pair[0].candidate.base, pair[0].candidate.corpus) == (base, corpus)]
            if chosen:
                before = [number(_mean(figure, [one for one, _ in chosen])) for figure in OF_OCCUPATIONS]
                after = [number(_mean(figure, [other for _, other in chosen])) for figure in OF_OCCUPATIONS]
                change = ", ".join(_difference(ACCURACY, *pair).partition(" ")[0].strip("*") for pair in chosen)
                yield [f"`{base}`", corpus.value, *before, *after, change]


def _mean(figure: Figure, showings: Sequence[Showing]) -> float | None:
    values = [value for each in showings if (value := figure.read(each).value) is not None]
    return sum(values) / len(values) if values else None


def _missing(plan: Sequence[Candidate], done: Sequence[Candidate]) -> str:
    missing = [each for each in plan if each not in done]
    if not missing:
        return "## What is missing\n\nNothing: all models of the plan are done."
    names = ", ".join(f"`{each.name}`" for each in missing)
    told = "`python -m tools.validity.mitigation --full` does the rest, and goes on where it stopped."
    return f"## What is missing\n\n{told} Not done: {names}."
