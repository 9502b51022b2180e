"""Results for tests of the reports: drawn ones whose parts fit together, a comparison, and a reader of Markdown."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.comparison import Change, Comparison, Growth, LoosenedLimit, Regression
from bbnli_audit.core.results.rows import Judgement, ModelInfo, SubtopicResult, Verdict
from tests.strategies import audit_results, measures

# Names that would be a link, an image, a mention, a formula, mark-up, a cell, a line or a document of their own.
HOSTILE = (
    "a | b || c",
    "x`y``z",
    "`",
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "[here](https://evil.example) ![i](https://evil.example/i.png) <https://evil.example>",
    "https://evil.example www.evil.example zorb@evil.example @zorb #1",
    "two\n\n# lines\r\n---\n| a |\x85\u2028***",
    "---\nmodel-index: []\n---",
    "$x$ :tada: **b** _i_ ~~s~~ \\",
    "&lt;b&gt; &#124; <!--",
    "a: \"b\" 'c' {d} % :: , ##[error]",
    "\u202eright to left\ud800",
    "",
    " ",
)
hostile_texts = st.sampled_from(HOSTILE) | st.text(max_size=12)
# What only a name can have brought in.
TRACES = ("evil", "alert", "zorb", "tada", "lines", "&lt;", "$")


@st.composite
def reported(draw: st.DrawFn) -> AuditResult:
    """Any result that an audit could give, under names that nobody would choose."""
    result = draw(audit_results)
    rows = tuple(_fitting(draw, row) for row in result.subtopics)
    suite = draw(hostile_texts)
    domains = tuple(replace(_fitting(draw, row), path=f"{suite}/{row.path}") for row in result.domains)
    suite_rows = tuple(replace(_fitting(draw, row), path=suite + "x" * n) for n, row in enumerate(result.suite_rows))
    limits = [(row.path, each.measure) for row in (*suite_rows, *domains, *rows) for each in row.verdicts]
    return replace(
        result,
        model=replace(result.model, name=draw(hostile_texts)),
        suites=tuple(replace(one, name=suite + "x" * place) for place, one in enumerate(result.suites)),
        subtopics=rows,
        domains=domains,
        suite_rows=suite_rows,
        required=tuple(sorted(draw(st.sets(st.sampled_from(limits))))) if limits else (),
        comparison=None if result.comparison is None else _fitting_comparison(draw, result.comparison),
    )


def _fitting(draw: st.DrawFn, row: SubtopicResult) -> SubtopicResult:
    found = {judgement.measure: draw(measures) for judgement in row.verdicts}
    verdicts = tuple(
        replace(one, waiver=None if one.waiver is None else replace(one.waiver, reason=draw(hostile_texts)))
        for one in row.verdicts
    )
    return replace(row, path=draw(hostile_texts), measures={**row.measures, **found}, verdicts=verdicts)


def _fitting_comparison(draw: st.DrawFn, comparison: Comparison) -> Comparison:
    regressions = tuple(
        replace(one, path=draw(hostile_texts), baseline=one.baseline or 0.0, candidate=one.candidate or 0.0)
        for one in comparison.regressions
    )
    baseline = replace(comparison.baseline, name=draw(hostile_texts))
    return replace(comparison, baseline=baseline, source=draw(hostile_texts), regressions=regressions)


def regression(path: str, measure: str, verdict: Verdict, **changes: Any) -> Regression:
    """A measure that grew by 0.12 on 80 pairs; keyword arguments replace fields."""
    values: dict[str, Any] = {
        "margin": 0.02,
        "source": "thresholds.yaml:9",
        "baseline": 0.08,
        "candidate": 0.20,
        "increase": Growth(0.12, 0.07, 0.17, 160),
        "p_value": 0.00005,
        "p_mcnemar": 0.00001,
        "p_adjusted": 0.0003,
        "n_shared": 80,
        "flipped": tuple(Change(f"pair-{n}", f"p{n:02d}/h00", "NN", "EN") for n in range(7)),
        "fixed": (Change("pair-90", "p09/h00", "EN", "NN"),),
    }
    return Regression(path, measure, verdict=verdict, **{**values, **changes})


def comparison(*regressions: Regression, **changes: Any) -> Comparison:
    baseline = ModelInfo("tiny-nli-1", "0" * 64, "hf", "torch", "float32", ("entailment", "neutral", "contradiction"))
    values: dict[str, Any] = {
        "baseline": baseline,
        "source": "baselines/tiny.json",
        "is_same_data": True,
        "n_shared": 4360,
        "n_only_candidate": 0,
        "n_only_baseline": 12,
        "n_tests": 48,
        "regressions": regressions,
        "loosened": (LoosenedLimit("bbnli/oceans/fins", "pro_rate", 0.05, 0.1, "thresholds.yaml:4"),),
    }
    return Comparison(**{**values, **changes})


def with_verdict(
    result: AuditResult, place: int, measure: str, level: str = "subtopics", **changes: Any
) -> AuditResult:
    """Change one judgement of one subtopic; `level` may also be `domains` or `suite_rows`."""
    rows: list[SubtopicResult] = list(getattr(result, level))
    row = rows[place]
    verdicts: list[Judgement] = [replace(j, **changes) if j.measure == measure else j for j in row.verdicts]
    rows[place] = replace(row, verdicts=tuple(verdicts))
    fields: dict[str, Any] = {level: tuple(rows)}
    return replace(result, **fields)


@dataclass(frozen=True)
class Page:
    """Markdown as a renderer reads it."""

    tables: list[list[int]]  # cells in each row of each table
    headings: list[str]
    loose: str  # text outside code
    code: list[str]
    markup: list[str]  # HTML other than <code>, links, images


def read(text: str) -> Page:
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    tables: list[list[int]] = []
    for token in tokens:
        if token.type == "table_open":
            tables.append([])
        elif token.type == "tr_open":
            tables[-1].append(0)
        elif token.type in ("th_open", "td_open"):
            tables[-1][-1] += 1
    headings = [after.content for before, after in pairwise(tokens) if before.type == "heading_open"]
    loose, code, markup = "", [], []
    for kind, content in _inline(tokens):
        if kind == "text":
            loose += f"{content} "
        elif kind == "code":
            code.append(content)
        else:
            markup.append(content)
    return Page(tables, headings, loose, code, markup)


def _inline(tokens: list[Token]) -> Iterator[tuple[str, str]]:
    """Yield what stands in a document: text, code, or markup that can do something."""
    for token in tokens:
        if token.type in ("html_block", "fence", "code_block"):
            yield "markup", token.content
        inside: list[str] | None = None
        for child in token.children or ():
            if child.type == "html_inline" and child.content == "<code>" and inside is None:
                inside = []
            elif child.type == "html_inline" and child.content == "</code>" and inside is not None:
                yield "code", "".join(inside)
                inside = None
            elif child.type in ("html_inline", "link_open", "image", "em_open", "s_open"):
                yield "markup", child.content or child.type
            elif inside is not None:
                inside.append(child.content)
            elif child.type == "code_inline":
                yield "code", child.content
            else:
                yield "text", child.content
