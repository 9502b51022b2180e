"""Our own benchmark: the sixteen documented subtopics, and no sentence of the published files."""

import re
from collections.abc import Iterator

import pytest

from bbnli_audit.suites.bbnli import Bbnli
from bbnli_audit.suites.template_file import PLACEHOLDER, TemplateFile
from tests.shared_data import shared_path

pytestmark = pytest.mark.gold


def templates(file: TemplateFile) -> Iterator[str]:
    yield from file.premises
    for hypothesis in (*file.controls, *file.hypotheses):
        yield hypothesis.template
        if hypothesis.question:
            yield hypothesis.question


def words(template: str) -> list[str]:
    return re.findall(r"[\w']+", PLACEHOLDER.sub("GROUP", template).lower())


def five_grams(template: str) -> set[tuple[str, ...]]:
    found = words(template)
    return {tuple(found[start : start + 5]) for start in range(len(found) - 4)}


def test_no_template_is_published_and_none_shares_half_of_its_five_grams() -> None:
    published = [text for file in Bbnli(shared_path("data", "bbnli")).files() for text in templates(file)]
    whole = {" ".join(words(text)) for text in published}
    grams = set().union(*(five_grams(text) for text in published))
    n_compared = 0
    for file in Bbnli().files():
        for text in templates(file):
            n_compared += 1
            assert " ".join(words(text)) not in whole, text
            mine = five_grams(text)
            assert len(mine & grams) <= len(mine) / 2, text
    assert n_compared > 500
