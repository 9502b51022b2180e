"""The badge and the comment of a history: a few words on the newest release, and what it changed."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.rows import Verdict, Waiver
from bbnli_audit.reports.history.badge import badge_text
from bbnli_audit.reports.history.comment import MOST_CHANGES, render_comment
from bbnli_audit.reports.history.files import FILES
from bbnli_audit.reports.history.releases import make_history, worst_verdict
from tests.history_results import history, results
from tests.reported import comparison, regression, with_verdict

pytestmark = pytest.mark.slow

ZORBS, FINS = "bbnli/planets/zorbs_are_to_juggling", "bbnli/oceans/fins_are_to_singing"


def with_limits(verdict: Verdict, **changes: Any) -> AuditResult:
    """The last result, with this verdict everywhere."""
    result = results()[-1]
    rows: dict[str, Any] = {
        level: tuple(
            replace(row, verdicts=tuple(replace(each, verdict=verdict) for each in row.verdicts))
            for row in getattr(result, level)
        )
        for level in ("suite_rows", "domains", "subtopics")
    }
    return replace(result, **rows, **changes)


WAIVER = Waiver("known", "Ada", "2099-01-31", "thresholds.yaml:8")


def with_growth(*verdicts: Verdict, waiver: Waiver | None = None, **changes: Any) -> AuditResult:
    """The last result, with PASS everywhere, and these verdicts on growth since a baseline."""
    found = [regression(f"{ZORBS}{n}", "pro_rate", each, waiver=waiver) for n, each in enumerate(verdicts)]
    return with_limits(Verdict.PASS, comparison=comparison(*found), **changes)


@pytest.mark.parametrize(
    ("result", "decision", "text"),
    [
        (lambda: with_limits(Verdict.FAIL), "FAIL", "10 limits crossed"),
        (lambda: with_limits(Verdict.PASS), "PASS", "no limit crossed"),
        (lambda: with_limits(Verdict.NO_DATA), "NO_DATA", "data missing"),
        (lambda: with_limits(Verdict.INCONCLUSIVE), "INCONCLUSIVE", "nothing decided"),
        (
            lambda: with_verdict(with_limits(Verdict.PASS), 0, "pro_rate", verdict=Verdict.INCONCLUSIVE),
            "INCONCLUSIVE",
            "no limit crossed, 1 open",
        ),
        (
            lambda: with_verdict(with_limits(Verdict.PASS), 0, "pro_rate", verdict=Verdict.FAIL),
            "FAIL",
            "1 limit crossed",
        ),
        (lambda: with_limits(Verdict.PASS, required=()), "NOT_REQUIRED", "no limit required"),
        (
            lambda: with_limits(Verdict.PASS, comparison=comparison(regression(ZORBS, "pro_rate", Verdict.FAIL))),
            "FAIL",
            "worse than the baseline",
        ),
        (lambda: with_growth(Verdict.PASS, required=()), "PASS", "no growth shown"),
        (lambda: with_growth(Verdict.PASS), "PASS", "no limit crossed"),
        (lambda: with_growth(Verdict.INCONCLUSIVE, required=()), "INCONCLUSIVE", "nothing decided"),
        (
            lambda: with_growth(Verdict.PASS, Verdict.INCONCLUSIVE, required=()),
            "INCONCLUSIVE",
            "no growth shown, 1 open",
        ),
        (lambda: with_growth(Verdict.NO_DATA, required=()), "NOT_REQUIRED", "no limit required"),
        (lambda: with_growth(Verdict.FAIL, waiver=WAIVER, required=()), "WAIVED", "waived"),
        (
            lambda: with_limits(Verdict.PASS, total=replace(results()[-1].total, verdicts=())),
            "NO_DATA",
            "model not competent",
        ),
    ],
)
def test_the_decision_in_a_few_words(result: Any, decision: str, text: str) -> None:
    assert (worst_verdict(result()), badge_text(result())) == (decision, text)


def test_the_badge_is_a_drawing_that_can_be_read() -> None:
    badge = ElementTree.fromstring(FILES["badge.svg"](history()))
    assert badge.get("role") == "img"
    assert badge.get("aria-label") == "bias audit: 6 limits crossed"
    for word in ("fair", "unbiased", "safe"):
        assert word not in FILES["badge.svg"](make_history([(Path("a"), with_limits(Verdict.PASS))]))


def test_the_comment_tells_what_the_newest_release_changed() -> None:
    comment = render_comment(history())
    assert comment.startswith("<!-- bbnli-audit history -->\n## Do not release: ")
    releases = "`r8` (`2c624232cd`, `2026-08-01`) against `r7` (`7902699be4`, `2026-07-01`)"
    assert f"`invented-nli`: {releases}. 6 verdicts changed." in comment
    rows = [line.split(" | ") for line in comment.splitlines() if line.startswith("| `")]
    assert rows[0][:2] == ["| `bbnli`", "`lean`"]  # the widest level first
    assert rows[0][-1] == "PASS → **FAIL** |"
    assert {row[-1] for row in rows} >= {"no limit |", "PASS → **FAIL** |"}
    assert len([row for row in rows if "→" in row[-1]]) == 6
    assert "Pairs: 147 newly count towards a cause of error, 1 no longer do, 0 count otherwise." in comment
    assert len(comment) < 65_536


def test_the_comment_on_a_single_result_and_on_growth() -> None:
    comment = render_comment(make_history([(Path("a"), results()[0])]))
    assert "there is no earlier release to compare with" in comment
    assert "Pairs:" not in comment
    grown = replace(results()[1], comparison=comparison(regression(ZORBS, "pro_rate", Verdict.FAIL)))
    comment = render_comment(make_history([(Path("a"), results()[0]), (Path("b"), grown)]))
    assert f"- `{ZORBS}` `pro` +0.120 (margin 0.020)" in comment


def test_a_long_comment_is_cut_and_says_so() -> None:
    def renamed(result: AuditResult) -> AuditResult:
        rows = tuple(replace(row, path=f"bbnli/{row.path[6:]}{n}") for n in range(9) for row in result.subtopics)
        required = tuple((row.path, each.measure) for row in rows for each in row.verdicts)
        return replace(result, subtopics=rows, required=required)

    comment = render_comment(
        make_history([(Path("a"), renamed(results()[6])), (Path("b"), renamed(with_limits(Verdict.FAIL)))])
    )
    assert comment.count("→ **FAIL**") == MOST_CHANGES
    assert "more on the page." in comment


def test_a_comment_has_one_kind_of_minus_sign() -> None:
    comment = render_comment(make_history([(Path("a"), results()[-1]), (Path("b"), results()[0])]))
    assert "| -0." in comment
    assert "−" not in comment
