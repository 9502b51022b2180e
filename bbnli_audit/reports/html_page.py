"""report.html and comparison.html: one self-contained file each, that fetches nothing and shows no sentence unasked."""

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.comparison import Regression
from bbnli_audit.reports.charts import NARROW, WIDE, Row, draw_causes, draw_increases
from bbnli_audit.reports.occupation_chart import occupation_chart
from bbnli_audit.reports.page_data import (
    LETTERS,
    Section,
    chart_rows,
    increase_rows,
    measure_name,
    ordered_regressions,
    outcome_of,
    payload,
    sections,
    to_inert_json,
)
from bbnli_audit.reports.page_overview import model_facts, overview, short_name
from bbnli_audit.reports.regression import regression_headline
from bbnli_audit.reports.second import agreement_notes, prompt_notes

if TYPE_CHECKING:
    import pandas as pd
    from jinja2 import Environment

ASSETS = Path(__file__).parent / "assets"
LABELS = {"E": "entailment", "N": "neutral", "C": "contradiction"}
_SYMBOLS = {"FAIL": "✕", "NO_DATA": "∅", "WAIVED": "~", "INCONCLUSIVE": "?", "PASS": "✓", "NOT_REQUIRED": "·"}


def render_page(result: AuditResult, pairs: "pd.DataFrame") -> str:
    """Give the page a reviewer reads. The same input gives the same bytes.

    Args:
        result: What was found.
        pairs: All pairs with their texts, in the columns of `metrics.frame.COLUMNS`.
    """
    from markupsafe import Markup

    shown = sections(result, pairs)
    return _render(
        "page.html.jinja",
        result,
        script=_asset("page.js"),
        data=to_inert_json(payload(result, pairs, shown)),
        overview=overview(result),
        sections=shown,
        measures=_column_names(shown),
        causes=_charts(chart_rows(result)),
        occupations=Markup(occupation_chart(result)),  # noqa: S704 - escaped where it is drawn
        anchors={section.row.path: section.anchor for section in shown},
    )


def render_comparison(result: AuditResult) -> str:
    """Give a page with the comparison alone: names, numbers and pair ids, no sentences and no script."""
    return _render("comparison.html.jinja", result, script="", anchors={}, facts=model_facts(result))


def _render(template: str, result: AuditResult, *, script: str, **values: Any) -> str:
    from markupsafe import Markup

    marked = {name: Markup(value) for name, value in {"css": _asset("page.css"), "script": script}.items()}  # noqa: S704
    if "data" in values:
        values["data"] = Markup(values["data"])  # noqa: S704 - escaped by to_inert_json
    page = (
        _environment()
        .get_template(template)
        .render(
            result=result,
            policy=_policy(script),
            regressions=ordered_regressions(result),
            increases=_increase_charts(result),
            confidence=result.settings.get("confidence"),
            **marked,
            **values,
        )
    )
    # A name may hold half of a character pair, which no file can.
    return page.encode("utf-8", "replace").decode("utf-8")


def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(ASSETS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals.update(labels=LABELS, letters=LETTERS, symbols=_SYMBOLS, outcome_of=outcome_of)
    environment.globals.update(measure_name=measure_name, short_name=short_name, regression_line=_regression_line)
    environment.globals.update(agreement_notes=agreement_notes, prompt_notes=prompt_notes)
    environment.filters.update(rate=_rate, signed=_signed, p=_p_value, words=_words)
    return environment


def _policy(script: str) -> str:
    """Allow nothing from outside, and of scripts only the one that is ours."""
    allowed = f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" if script else "'none'"
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {allowed}; "
        "base-uri 'none'; form-action 'none'"
    )


def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def _column_names(shown: Sequence[Section]) -> list[str]:
    return list(dict.fromkeys(cell.name for section in shown for cell in section.cells))


def _charts(rows: Sequence[Row]) -> dict[str, Any]:
    from markupsafe import Markup

    worst = next((row for row in rows if row.shares), None)
    shares = ", ".join(f"{cause} {share:.3f}" for cause, share in worst.shares.items()) if worst else ""
    example = f" First is {worst.name}: {shares}." if worst else ""
    return {
        "wide": Markup(draw_causes(rows, WIDE)),  # noqa: S704 - escaped by the drawing
        "narrow": Markup(draw_causes(rows, NARROW)),  # noqa: S704
        "label": "Chart: mispredicted samples by cause, and each cause with its interval and limit, for "
        f"{len(rows)} subtopics, worst first.{example} The table below has all numbers.",
    }


def _increase_charts(result: AuditResult) -> dict[str, Any] | None:
    from markupsafe import Markup

    rows = increase_rows(result)
    panels = list(dict.fromkeys(measure_name(regression.measure) for regression in ordered_regressions(result)))
    order = [name for name in ("pro", "anti", "brittleness") if name in panels]
    panels = [*order, *(name for name in panels if name not in order)]
    if not panels:
        return None
    return {
        "wide": Markup(draw_increases(rows, panels, WIDE)),  # noqa: S704
        "narrow": Markup(draw_increases(rows, panels, NARROW)),  # noqa: S704
        "label": f"Chart: growth of {', '.join(panels)} since the baseline with bounds and margin, for "
        f"{len(rows)} subtopics, worst first. The table below has all numbers.",
    }


def _regression_line(regression: Regression) -> str:
    return regression_headline(regression).removeprefix(f"{regression.path}: ")


def _rate(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.3f}".replace("-", "−")


def _p_value(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _words(verdict: str) -> str:
    return verdict.replace("_", " ")
