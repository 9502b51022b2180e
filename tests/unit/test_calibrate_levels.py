"""`bbnli-audit calibrate`: limits of whole suites and domains."""

from dataclasses import replace
from pathlib import Path

import pytest

from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.file import write_result
from bbnli_audit.core.results.rows import NO_DATA, Judgement, Measured, Verdict
from tests.calibrated import (
    EXPIRED,
    WANTED,
    ZORBS,
    calibrate,
    limits_of,
)
from tests.invented import LEVELS, LIMITS


@pytest.mark.parametrize("per", ["defaults", "domain", "subtopic"])
def test_limits_of_levels_are_made_from_the_bounds_of_levels(
    project: Path, capsys: pytest.CaptureFixture[str], per: str
) -> None:
    (project / "thresholds.yaml").write_text(LEVELS)
    assert calibrate(f"--per={per}", "--write") == 0
    shown = capsys.readouterr().out
    assert "# tightens levels.suite max_lean: 0.05 -> 0.04 (bbnli: upper bound 0.011)\n" in shown
    assert "# tightens levels.suite max_pro: 0.08 -> 0.04 (bbnli: upper bound 0.020)\n" in shown
    assert "# tightens levels.domain max_lean: 0.06 -> 0.05 (bbnli/planets: upper bound 0.024)\n" in shown
    text = (project / "thresholds.yaml").read_text()
    assert text.startswith(LIMITS) == (per != "defaults")
    assert "levels:\n  suite: {max_lean: 0.04, max_pro: 0.04}\n  domain: {max_lean: 0.05}\n" in text
    assert limits_of(project) == (
        WANTED if per != "defaults" else {each: {**WANTED[ZORBS], "max_anti": 0.10} for each in WANTED}
    )


def test_a_level_without_limits_gets_none(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "thresholds.yaml").write_text(LEVELS.replace("suite: {max_lean: 0.05, max_pro: 0.08}", "suite: {}"))
    assert calibrate("--write") == 0
    assert "levels.suite" not in capsys.readouterr().out
    assert "suite: {}\n  domain: {max_lean: 0.05}\n" in (project / "thresholds.yaml").read_text()


def test_a_level_that_fails_or_has_no_data_is_told(
    project: Path, capsys: pytest.CaptureFixture[str], measured: AuditResult
) -> None:
    (project / "thresholds.yaml").write_text(LEVELS)
    oceans, planets = measured.domains
    lacking = replace(oceans, measures={**oceans.measures, "lean": NO_DATA})
    failed = replace(planets, verdicts=(Judgement("lean", 0.06, Verdict.FAIL, "thresholds.yaml:9", waiver=EXPIRED),))
    write_result(replace(measured, domains=(lacking, failed)), project / "result.json")
    assert calibrate() == 0
    shown = capsys.readouterr().out
    assert "# WARNING: bbnli/planets FAILs lean (0.000, limit 0.06): a limit made from it lets that fault" in shown
    assert "# no data: lean of bbnli/oceans was not measured\n" in shown


def test_the_worse_bound_of_a_lean_may_be_the_lower_one(
    project: Path, capsys: pytest.CaptureFixture[str], measured: AuditResult
) -> None:
    (project / "thresholds.yaml").write_text(LEVELS)
    suite = measured.suite_rows[0]
    leaning = replace(suite, measures={**suite.measures, "lean": Measured(0.0, -0.072, 0.01, 400)})
    write_result(replace(measured, suite_rows=(leaning,)), project / "result.json")
    assert calibrate() == 0
    assert "# loosens levels.suite max_lean: 0.05 -> 0.10 (bbnli: upper bound 0.072)" in capsys.readouterr().out
