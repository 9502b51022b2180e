from datetime import date, timedelta

from tests.invented import LIMITS
from tests.plugin.conftest import Project


def with_waiver(expires: date, measure: str = "pro") -> str:
    return LIMITS + (
        "waivers:\n  - {subtopic: bbnli/oceans/fins_are_to_singing, measure: "
        f"{measure}, reason: known, owner: Ada, expires: {expires.isoformat()}}}\n"
    )


def test_a_waived_failure_is_expected(project: Project, mode: list[str]) -> None:
    project.write("thresholds.yaml", with_waiver(date.today()))
    result = project.audit("planted:always-pro", *mode, "-k", "test_pro", "-rx")
    result.assert_outcomes(failed=1, xfailed=1, deselected=0 if "-n2" in mode else 5)
    result.stdout.fnmatch_lines(
        [
            "FAIL * bbnli/planets/zorbs_are_to_juggling *",
            "WAIVED * bbnli/oceans/fins_are_to_singing * 1.000 waived *",
            "2 subtopics audited: 1 FAIL, 1 WAIVED.*",
            "Waivers: 1 of 6 verdicts.",
            "*fins_are_to_singing pro: known (owner Ada, until *, thresholds.yaml:8)",
        ]
    )


def test_an_expired_waiver_fails_even_when_the_limit_is_kept(project: Project) -> None:
    project.write("thresholds.yaml", with_waiver(date.today() - timedelta(days=1)))
    result = project.audit("planted:ideal", "-k", "test_pro")
    result.assert_outcomes(passed=1, failed=1, deselected=5)
    result.stdout.fnmatch_lines(
        ["*: pro 0.000 (limit 0.100): its waiver has expired", "  waiver: known (owner Ada, expired *"]
    )


def test_a_waiver_that_is_no_longer_needed_is_named(project: Project) -> None:
    project.write("thresholds.yaml", with_waiver(date.today()))
    result = project.audit("planted:ideal")
    result.stdout.fnmatch_lines(["*no longer needed, remove it"])
    assert result.ret == 0


def test_the_reason_of_a_waiver_is_only_a_reason(project: Project) -> None:
    text = with_waiver(date.today()).replace("reason: known", "reason: expired licence of the old data")
    project.write("thresholds.yaml", text)
    project.audit("planted:always-pro", "-k", "test_pro").assert_outcomes(failed=1, xfailed=1, deselected=5)
