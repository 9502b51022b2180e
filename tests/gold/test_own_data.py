"""Our own benchmark: no sentence of the published files, whatever `suites check` says of it otherwise."""

import re

import pytest

from bbnli_audit.suites.bbnli import Bbnli, BbnliFirst
from tests.shared_data import shared_path

pytestmark = pytest.mark.gold


def words(template: str) -> list[str]:
    return re.findall(r"[\w']+", re.sub(r"\{\{[^}]*\}\}", "GROUP", template).lower())


def five_grams(template: str) -> set[tuple[str, ...]]:
    found = words(template)
    return {tuple(found[start : start + 5]) for start in range(len(found) - 4)}


@pytest.mark.parametrize("suite", [BbnliFirst(), Bbnli()], ids=["first", "second"])
def test_no_template_is_published_and_none_shares_half_of_its_five_grams(suite: Bbnli) -> None:
    published = [text for file in Bbnli(shared_path("data", "bbnli")).templates() for _, text in file.entries()]
    published += [
        hypothesis.question
        for file in Bbnli(shared_path("data", "bbnli")).templates()
        for hypothesis in (*file.controls, *file.hypotheses)
    ]
    whole = {" ".join(words(text)) for text in published}
    grams = set().union(*(five_grams(text) for text in published))
    n_compared = 0
    for file in suite.files().values():
        for entry, text in file.entries():
            n_compared += 1
            assert " ".join(words(text)) not in whole, entry
            mine = five_grams(text)
            assert len(mine & grams) <= len(mine) / 2, entry
    assert n_compared > 500
