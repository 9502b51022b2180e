"""Writes docs/mitigation.md from the records. No figure is written by hand."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from bbnli_audit.core.words import figure as number
from bbnli_audit.core.words import with_minus
from bbnli_audit.reports.markdown import figures, signed_figures, table
from tools.validity.carry_out import ROOT
from tools.validity.mitigation.figures import ACCURACY, FIGURES, OF_BBNLI, OF_OCCUPATIONS, Figure
from tools.validity.mitigation.plan import Arm, Candidate, Corpus, full_plan
from tools.validity.mitigation.records import RECORDS, Record, Shown, read_records
from tools.validity.plan import shared_folder

PAGE = ROOT / "docs" / "mitigation.md"
_INTRODUCTION = Path(__file__).with_name("introduction.md")
_PAPER = {"BERT": "less bias", "RoBERTa": "slightly less", "BART": "slightly less"}  # what it found, in words
_FACTS = ("model", "fine-tuned on", "seed")


def write_page(records: Path = RECORDS, page: Path = PAGE) -> Path:
    """Write the page from what is on record."""
    plan = full_plan()
    kept = read_records(plan, records)
    trials, found = [each for each in kept if each.differences], [model for each in kept for model in each.models]
    sections = [
        _INTRODUCTION.read_text(encoding="utf-8").rstrip(),
        *_answers(trials),
        *_differences(trials),
        *_showings(found),
        *_paper(trials),
        _missing(plan, [each.candidate for each in found]),
    ]
    page.write_text("\n\n".join(sections) + "\n", encoding="utf-8")
    return page


def _answers(trials: Sequence[Record]) -> Iterator[str]:
    yield "## What it found"
    yield (
        "What the copies of `augment` change, a word for each seed. *Better* and *worse*: the 95 % interval of the "
        "difference lies on one side of 0, and the value came nearer to its best (S and accuracy 1, B 0.5, all others "
        "0), or went away from it. *Open*: the interval has 0 in it, so a loss may be as large as its bound. Intervals "
        "are not corrected for their number. The two arms are compared with each other. What the fine-tuning itself "
        "did, compared with the base, is in the tables below."
    )
    rows = [
        [f"`{base}`", str(corpus), *(", ".join(each.judge(figure) for each in chosen) for figure in FIGURES)]
        for (base, corpus), chosen in _groups(trials)
    ]
    titles = ["model", "corpus", *(figure.title for figure in FIGURES)]
    yield table(titles, rows, n_left=len(titles)) if rows else "Nothing yet."
    for corpus in Corpus:
        chosen = [each for each in trials if each.of.corpus is corpus]
        if chosen:
            yield _tell(corpus, chosen)


def _groups(trials: Sequence[Record]) -> Iterator[tuple[tuple[str, Corpus | None], list[Record]]]:
    """Group trials by base and corpus."""
    for group in dict.fromkeys((each.of.base, each.of.corpus) for each in trials):
        yield group, [each for each in trials if (each.of.base, each.of.corpus) == group]


def _tell(corpus: Corpus, trials: Sequence[Record]) -> str:
    """Count the words of the table above over bases and seeds."""
    told = []
    for name, chosen in (
        ("S, ΔP and B", OF_OCCUPATIONS),
        ("lean and pro", [each for each in OF_BBNLI if not each.title.startswith("brittleness")]),
        ("brittleness", [each for each in OF_BBNLI if each.title.startswith("brittleness")]),
        ("accuracy", [ACCURACY]),
    ):
        words = [trial.judge(figure) for trial in trials for figure in chosen]
        counts = ", ".join(f"{words.count(word)} {word}" for word in ("better", "worse", "open"))
        told.append(f"{name}: {counts} (of {len(words)})")
    return f"**Corpus `{corpus}`**, all bases and seeds. {'; '.join(told)}."


def _differences(trials: Sequence[Record]) -> Iterator[str]:
    yield "## With copies less without, on the same items"
    yield (
        "Each difference is paired: `lean`, pro and brittleness as the comparison with a baseline finds them "
        "(`increase`), the others with the same statistics on the values of pairs. In brackets the 95 % interval. "
        "In **bold**, it does not hold 0."
    )
    for chosen in (OF_OCCUPATIONS, OF_BBNLI, (ACCURACY,)):
        rows = [[*_facts(each.of), *(_difference(figure, each) for figure in chosen)] for each in trials]
        yield table([*_FACTS, *(figure.title for figure in chosen)], rows, n_left=3) if rows else "Nothing yet."


def _difference(figure: Figure, trial: Record) -> str:
    told = with_minus(signed_figures(trial.differences[figure.title]))
    return told if trial.judge(figure) == "open" else f"**{told}**"


def _facts(candidate: Candidate) -> list[str]:
    corpus, seed = ("–", "–") if candidate.corpus is None else (candidate.corpus.value, str(candidate.seed))
    return [f"`{candidate.base}`", corpus, seed]


def _showings(found: Sequence[Shown]) -> Iterator[str]:
    yield "## What each model showed"
    ordered = sorted(found, key=lambda each: _order(each.candidate))
    for told, chosen in (
        ("On `occupations`: 5,472 pairs.", OF_OCCUPATIONS),
        ("On `bbnli`, domain `gender` (small), and on held-out wordings of the planted stereotype.", OF_BBNLI),
    ):
        yield told
        rows = [[*_named(each), *(figures(each.figures[one.title]) for one in chosen)] for each in ordered]
        yield table([*_FACTS, "arm", *(figure.title for figure in chosen)], rows, n_left=4) if rows else "Nothing yet."
    yield "Accuracy on plain pairs whose premises are in no corpus, and what was read in how many steps."
    rows = [[*_named(each), figures(each.figures[ACCURACY.title]), *_read(each)] for each in ordered]
    titles = [*_FACTS, "arm", "accuracy", "rows read", "of them copies", "steps"]
    yield table(titles, rows, n_left=4) if rows else "Nothing yet."


def _named(shown: Shown) -> list[str]:
    return [*_facts(shown.candidate), shown.candidate.arm.value]


def _read(shown: Shown) -> list[str]:
    return [f"{shown.read[name]:,}" if shown.read else "–" for name in ("rows", "copies", "steps")]


def _order(candidate: Candidate) -> tuple[str, str, int, int]:
    return candidate.base, candidate.corpus or "", candidate.seed, list(Arm).index(candidate.arm)


def _paper(trials: Sequence[Record]) -> Iterator[str]:
    yield "## Beside the paper"
    yield (
        "Sharma, Dey and Sinha (2021) fine-tuned on MultiNLI with copies of the rows that name an occupation. Of their "
        "models, the figures are those without copies (in domain, Table 3). What the copies changed is told in words, "
        "because we have no copy of those figures. Ours are means over seeds."
    )
    rows = [*_paper_rows(), *_our_rows(trials)]
    yield table(["model", "fine-tuned on", "S", "ΔP", "B", "with copies: S", "ΔP", "B", "accuracy"], rows, n_left=2)


def _paper_rows() -> Iterator[list[str]]:
    path = shared_folder() / "data" / "sharma_gender_nli" / "EXPECTED.json"
    tables = json.loads(path.read_text(encoding="utf-8"))["tables"] if path.exists() else {}
    for model, told in _PAPER.items():
        published = tables.get("MNLI(I)", {}).get(model, {}).get("published", {})
        before = [number(published[key] / 100 if key in published else None) for key in ("S", "dP", "B")]
        yield [f"{model} (paper)", "MultiNLI", *before, told, told, told, "no loss"]


def _our_rows(trials: Sequence[Record]) -> Iterator[list[str]]:
    for (base, corpus), chosen in _groups(trials):
        arms = zip(*(each.models for each in chosen), strict=True)
        before, after = ([number(_mean(figure, arm)) for figure in OF_OCCUPATIONS] for arm in arms)
        change = ", ".join(_difference(ACCURACY, each).partition(" ")[0].strip("*") for each in chosen)
        yield [f"`{base}`", str(corpus), *before, *after, change]


def _mean(figure: Figure, models: Sequence[Shown]) -> float | None:
    values = [value for each in models if (value := each.figures[figure.title].value) is not None]
    return sum(values) / len(values) if values else None


def _missing(plan: Sequence[Candidate], done: Sequence[Candidate]) -> str:
    missing = [each for each in plan if each not in done]
    if not missing:
        return "## What is missing\n\nNothing: all models of the plan are done."
    names = ", ".join(f"`{each.name}`" for each in missing)
    told = "`python -m tools.validity.mitigation --full` does the rest, and goes on where it stopped."
    return f"## What is missing\n\n{told} Not done: {names}."
