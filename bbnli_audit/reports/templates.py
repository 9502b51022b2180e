"""Renders the templates of the pages, the Markdown files and the badge. All of them escape names from outside."""

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bbnli_audit.core.outcomes import outcome_of
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.values import level_of
from bbnli_audit.core.words import counted, figure, with_minus
from bbnli_audit.measures.registry import find_measure
from bbnli_audit.reports import markdown, notes, papers, second
from bbnli_audit.reports.failure import headline, regression_headline
from bbnli_audit.reports.shown import (
    counted_shared,
    growth_verdict,
    measure_name,
    measure_verdict,
    row_growth,
    row_verdict,
    short_path,
)

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

ASSETS = Path(__file__).parent / "assets"
_SYMBOLS = {"FAIL": "✕", "NO_DATA": "∅", "WAIVED": "~", "INCONCLUSIVE": "?", "PASS": "✓", "NOT_REQUIRED": "·"}


def read_asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def render(template: str, result: AuditResult, **values: Any) -> str:
    confidence = f"{result.settings.confidence:.0%}"
    text = _environment().get_template(template).render(result=result, confidence=confidence, **values)
    # A name may contain a lone surrogate, which cannot be written to a file.
    return text.encode("utf-8", "replace").decode("utf-8")


@cache  # templates are compiled once
def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=FileSystemLoader(ASSETS),
        autoescape=select_autoescape(["html.jinja", "svg.jinja"]),  # in Markdown, the filter `code` escapes names
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals.update(markdown=markdown, notes=notes, papers=papers, second=second, symbols=_SYMBOLS)
    environment.globals.update(find_measure=find_measure, measure_name=measure_name, short_path=short_path)
    environment.globals.update(headline=headline, regression_headline=regression_headline, level_of=level_of)
    environment.globals.update(measure_verdict=measure_verdict, growth_verdict=growth_verdict, row_growth=row_growth)
    environment.globals.update(outcome_of=outcome_of, row_verdict=row_verdict, counted_shared=counted_shared)
    environment.filters.update(rate=_rate, signed=markdown.signed, minus=with_minus, p=_p_value)
    environment.filters.update(counted=counted, code=markdown.code)
    environment.filters.update(bullets=markdown.bullets, describe_suite=markdown.describe_suite, unbroken=unbroken)
    return environment


def unbroken(text: str) -> "Markup":
    """Return a text as HTML in which the name of an option, such as --reason, is never broken over two lines."""
    from markupsafe import Markup

    option = Markup('<span class="option">{}</span>')
    parts = re.split(r"(--[a-z][a-z-]*)", with_minus(text))  # every second part is an option
    return Markup("").join(option.format(part) if place % 2 else part for place, part in enumerate(parts))


def _rate(value: float | None) -> str:
    return with_minus(figure(value))


def _p_value(value: float) -> str:
    return "< 0.001" if value < 0.001 else figure(value)
