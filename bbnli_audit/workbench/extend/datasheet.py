"""The datasheet of a release: what is known is filled in, what only people know is left for them to write."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bbnli_audit.workbench.extend.statistics import Line

TEMPLATE = Path(__file__).parent / "assets" / "datasheet.md.jinja"


def write_datasheet(about: Mapping[str, Any], total: Line, tables: str) -> str:
    """Write it in Markdown, after the questions of Gebru et al., Datasheets for Datasets (2021)."""
    from jinja2 import Environment, StrictUndefined

    # Markdown for people who release a data set, from their own tables: nothing to escape.
    environment = Environment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)  # noqa: S701
    steps = about["steps"]
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        name=about["name"],
        version=about["version"],
        n_pairs=total.values[-2],
        n_samples=total.values[-1],
        **{step: steps[step]["settings"] for step in ("mask", "fill", "filter", "agree")},
        n_annotators=steps["agree"]["notes"]["n_annotators"],
        edited=sorted({file for step in steps.values() for file in step["edited"]}),
        tables=tables,
    )
