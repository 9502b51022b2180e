"""Expands templates to the rows of the published BBNLI set, which the papers count."""

from dataclasses import dataclass
from itertools import product
from typing import Literal

from bbnli_audit.core.values import Label, Side
from bbnli_audit.suites.template_file import TemplateFile, bindings, render, with_groups


@dataclass(frozen=True, slots=True)
class Row:
    """A published row: one rendered sample."""

    side: Side
    premise_index: int
    premise: str
    hypothesis: str
    question: str
    expected: Label
    is_control: bool


def expand_rows(file: TemplateFile, distinct: Literal["rows", "texts"] = "texts") -> list[Row]:
    """Return the rows of a subtopic.

    "rows" counts two rows that differ only in their question twice, as the papers' denominators do; "texts" counts what
    an NLI model sees, once.
    """
    rows: dict[tuple[object, ...], Row] = {}
    for premise_index, premise in enumerate(file.premises):
        for is_control, hypotheses in ((True, file.controls), (False, file.hypotheses)):
            for hypothesis in hypotheses:
                used = (premise, hypothesis.template, hypothesis.question)
                for side, words in product(Side, bindings(file, *used)):
                    binding = with_groups(file, side, words)
                    row = Row(
                        side,
                        premise_index,
                        render(premise, binding),
                        render(hypothesis.template, binding),
                        render(hypothesis.question, binding) if distinct == "rows" else "",
                        hypothesis.expected,
                        is_control,
                    )
                    rows.setdefault((side, premise_index, row.premise, row.hypothesis, row.question, is_control), row)
    return list(rows.values())
