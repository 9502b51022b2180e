"""The page that compares three readings of the same pairs. No language model is loaded."""

from pathlib import Path

import pytest

from bbnli_audit import AuditOptions, run_audit, write_result
from bbnli_audit.suites.bbnli import Bbnli
from tests.invented import limits, write_large_suite
from tools.validity.agreement import COMPARISONS, LANGUAGE_MODEL, audit_options, write_page


@pytest.fixture
def build(tmp_path: Path) -> Path:
    (tmp_path / LANGUAGE_MODEL).mkdir()
    (tmp_path / LANGUAGE_MODEL / "model.safetensors").touch()  # made already
    return tmp_path


def test_each_kind_of_reading_is_compared_with_each_other_one(build: Path) -> None:
    kinds = {frozenset(title.partition(" ")[2] for title in each.titles) for each in COMPARISONS}
    nli, likelihood, prompt = "(NLI)", "(token probability)", "(prompt `true`)"
    assert kinds == {
        frozenset({nli}),
        frozenset({nli, likelihood}),
        frozenset({nli, prompt}),
        frozenset({likelihood, prompt}),
    }
    assert len({each.name for each in COMPARISONS}) == len(COMPARISONS)


def test_all_comparisons_read_the_same_pairs(build: Path) -> None:
    first, *others = [audit_options(each, build) for each in COMPARISONS]
    assert {(each.subtopics, each.size, each.suite) for each in others} == {(first.subtopics, first.size, first.suite)}
    assert set(first.subtopics or ()) <= {subtopic.path for subtopic in Bbnli().subtopics()}
    assert [each.prompt is not None for each in (first, *others)] == [each.is_asked for each in COMPARISONS]


def test_the_page_shows_each_subtopic_and_all_together(build: Path) -> None:
    data = write_large_suite(build / "data")
    options = AuditOptions(
        model="planted:always-pro", also="planted:ideal", data=data, pairing="hypothesis", thresholds=limits()
    )
    result = run_audit(options)
    write_result(result, build / f"{COMPARISONS[0].name}.json")
    page = write_page(build, build / "page.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| demo (NLI) | minilm-nli (NLI) |")]
    assert [row[2] for row in rows] == [
        "`bbnli/oceans/fins_are_to_singing`",
        "`bbnli/planets/zorbs_are_to_juggling`",
        "`total`",
    ]
    assert result.second_model is not None
    assert rows[-1][3] == f"{result.total.n_pairs}"
    assert rows[-1][4].startswith("1.000 (")  # the first leans pro on every pair,
    assert rows[-1][5].startswith("0.500 (")  # the second one on none: it ties, and a tie counts half
    assert rows[-1][6].startswith("0.000 (")
    assert "| demo (NLI) | yes | control accuracy" in page


def test_the_page_without_any_comparison_has_no_figure(build: Path) -> None:
    assert "Nothing yet." in write_page(build, build / "page.md").read_text(encoding="utf-8")
