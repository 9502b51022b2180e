"""`bbnli-audit calibrate`: what it says beside the limits, and what it refuses."""

from dataclasses import replace
from pathlib import Path

import pytest

from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.file import write_result
from bbnli_audit.core.results.rows import NO_DATA, Judgement, Measured, Verdict
from bbnli_audit.frontends.cli.main import main
from tests.calibrated import EXPIRED, OVERRIDES, calibrate, judged_anew, with_measures
from tests.invented import LIMITS


def test_nearer_limits_are_kept_and_said(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = OVERRIDES + (
        "    defaults: {max_anti: 0.5}\n"
        "    domains:\n      planets: {max_pro: 0.02, reason: jugglers are hired}\n"
        "    subtopics:\n      planets/zorbs: {max_brittleness: 0.01, reason: they must not fall}\n"
    )
    path = project / "thresholds.yaml"
    path.write_text(text)
    assert calibrate("--write") == 0
    out = capsys.readouterr().out
    assert "# kept max_pro: 0.02 of bbnli/planets/zorbs_are_to_juggling (thresholds.yaml:11), a nearer limit; " in out
    assert "# kept max_brittleness: 0.01 of bbnli/planets/zorbs_are_to_juggling (thresholds.yaml:13), a nearer" in out
    # Those that the defaults hold for are calibrated, in the place that holds for them.
    assert path.read_text() == text.replace("max_pro: 0.10", "max_pro: 0.05").replace(
        "max_brittleness: 0.20", "max_brittleness: 0.12"
    ).replace("max_anti: 0.5", "max_anti: 0.10")
    assert calibrate("--per=domain", "--write") == 0
    out = capsys.readouterr().out
    assert "kept max_brittleness: 0.01" in out
    assert "# loosens suites.bbnli.domains.planets max_pro: 0.02 -> 0.06" in out
    assert "# kept the reason of suites.bbnli.domains.planets: check whether it still holds" in out
    assert "planets: {max_pro: 0.06, reason: jugglers are hired}" in path.read_text()


def test_a_model_that_fails_is_warned_about(
    project: Path, capsys: pytest.CaptureFixture[str], measured: AuditResult
) -> None:
    row = measured.subtopics[0]
    verdicts = tuple(
        replace(v, verdict=Verdict.FAIL, waiver=EXPIRED) if v.measure == "pro_rate" else v for v in row.verdicts
    )
    failing = replace(row, verdicts=verdicts)
    settings = replace(measured.settings, not_audited=("bbnli/planets/quints",), confidence=0.9)
    changed = replace(measured, subtopics=(failing, *measured.subtopics[1:]), settings=settings)
    write_result(changed, project / "result.json")
    assert calibrate("--margin=0.3") == 0
    out = capsys.readouterr().out
    assert f"# WARNING: {row.path} FAILs pro (0.000, limit 0.1): a limit made from it lets that fault pass.\n" in out
    assert "# loosens defaults max_pro: 0.10 -> 0.34 (bbnli/planets/zorbs_are_to_juggling: upper bound 0.031)\n" in out
    assert "# not audited, though these limits hold for them too: bbnli/planets/quints\n" in out
    assert "# WARNING: the result was measured at confidence 0.9, and thresholds.yaml asks for 0.95\n" in out


def test_a_result_that_contradicts_itself_is_refused(
    project: Path, capsys: pytest.CaptureFixture[str], measured: AuditResult
) -> None:
    fins, zorbs = measured.subtopics
    verdicts = tuple(replace(each, verdict=Verdict.FAIL) for each in fins.verdicts)
    write_result(replace(measured, subtopics=(replace(fins, verdicts=verdicts), zorbs)), project / "result.json")
    assert calibrate("--write") == 4
    told = f"result.json: contradicts itself: {fins.path} pro_rate is FAIL, and its figures say PASS."
    assert told in capsys.readouterr().err
    assert (project / "thresholds.yaml").read_text() == LIMITS


def test_a_measure_without_data_is_said(
    project: Path, capsys: pytest.CaptureFixture[str], measured: AuditResult
) -> None:
    fins, zorbs = measured.subtopics
    empty = with_measures(fins, {"pro_rate": NO_DATA})
    write_result(replace(measured, subtopics=(empty, zorbs)), project / "result.json")
    assert calibrate() == 0
    assert "# no data: pro of bbnli/oceans/fins_are_to_singing was not measured\n" in capsys.readouterr().out


def test_a_model_that_is_not_competent_is_refused(
    project: Path, capsys: pytest.CaptureFixture[str], measured: AuditResult
) -> None:
    verdicts = tuple(replace(judgement, verdict=Verdict.FAIL) for judgement in measured.total.verdicts)
    total = replace(measured.total, verdicts=verdicts, control_accuracy=0.4)
    skill = replace(measured.settings.skill, control_accuracy=0.4)
    settings = replace(measured.settings, skill=skill)
    rows = tuple(judged_anew(row, is_competent=False) for row in measured.subtopics)
    write_result(replace(measured, total=total, settings=settings, subtopics=rows), project / "result.json")
    assert calibrate("--write") == 4
    assert capsys.readouterr().err == (
        "ERROR: planted:ideal is not competent (control accuracy 0.400, limit 0.6, thresholds.yaml:2), so "
        "its errors say nothing about bias, and limits made from them would mean nothing.\n"
        "Calibrate with a model that passes the competence test.\n"
    )
    assert (project / "thresholds.yaml").read_text() == LIMITS


@pytest.mark.parametrize(
    ("text", "per", "message"),
    [
        (
            LIMITS.replace("max_pro: 0.10", "max_pro: &a 0.10").replace("max_anti: 0.10", "max_anti: *a"),
            "defaults",
            "thresholds.yaml:4: max_pro has an anchor, a tag or several lines, so a change here is not safe",
        ),
        (
            LIMITS.replace("{min_control_accuracy: 0.60}", "{min_control_accuracy: &a 0.60}").replace(
                "max_pro: 0.10", "max_pro: *a"
            ),
            "defaults",
            "thresholds.yaml:4: max_pro is an alias of a value elsewhere in the file, so a change here is not safe",
        ),
        (
            OVERRIDES + "    domains:\n      oceans: &a {max_pro: 0.3, reason: deep}\n      planets: *a\n",
            "domain",
            "thresholds.yaml:11: planets is an alias of a value elsewhere in the file, so a change here is not safe",
        ),
        (
            OVERRIDES + "    domains:\n      oceans: &a {max_pro: 0.3, reason: deep}\n      reefs: *a\n",
            "domain",
            "thresholds.yaml: suites.bbnli.domains.oceans cannot be changed without changing other places",
        ),
        (
            OVERRIDES + "    subtopics:\n      planets/zorbz: {max_pro: 0.3, reason: near}\n",
            "defaults",
            "thresholds.yaml:10: the subtopic 'planets/zorbz' is neither in the result nor in the data, so it may be "
            "another name of one that was measured. Pass the audited data with --data=DIR, or fix the name.",
        ),
    ],
)
def test_what_must_be_changed_by_hand(
    project: Path, capsys: pytest.CaptureFixture[str], text: str, per: str, message: str
) -> None:
    (project / "thresholds.yaml").write_text(text)
    assert calibrate(f"--per={per}", "--write") == 4
    assert f"ERROR: {message}" in capsys.readouterr().err
    assert (project / "thresholds.yaml").read_text() == text


@pytest.mark.parametrize("margin", ["-0.1", "1.5", "nan"])
def test_a_wrong_margin(project: Path, capsys: pytest.CaptureFixture[str], margin: str) -> None:
    with pytest.raises(SystemExit) as ended:
        calibrate(f"--margin={margin}")
    assert ended.value.code == 4
    assert f"ERROR: argument --margin: '{margin}' is not a share from 0 to 1" in capsys.readouterr().err


def test_files_that_are_not_there(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "none.json"]) == 4
    assert "none.json: there is no such file" in capsys.readouterr().err
    assert calibrate("--thresholds=none.yaml") == 4
    assert "none.yaml: there is no such file" in capsys.readouterr().err


def test_a_measure_that_the_model_does_not_have_is_not_called_unmeasured(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "thresholds.yaml").write_text(LIMITS.replace("defaults:\n", "defaults:\n  max_token_preference: 0.6\n"))
    assert calibrate() == 0
    shown = capsys.readouterr().out
    assert "loosens defaults max_brittleness" in shown
    assert "token_preference" not in shown.partition("---")[0]


def test_a_measure_that_only_the_file_knows_is_told_and_left_alone(
    project: Path, capsys: pytest.CaptureFixture[str], measured: AuditResult
) -> None:
    fins, zorbs = measured.subtopics
    judgement = Judgement("zorbness", 0.1, Verdict.FAIL, "thresholds.yaml:9")
    measures = {**fins.measures, "zorbness": Measured(0.3, 0.2, 0.4, 100)}
    changed = replace(fins, measures=measures, verdicts=(*fins.verdicts, judgement))
    write_result(replace(measured, subtopics=(changed, zorbs)), project / "result.json")
    assert calibrate() == 0
    shown = capsys.readouterr().out
    assert f"# WARNING: {fins.path} FAILs zorbness (0.300, limit 0.1): a limit made from it lets that" in shown
    assert shown.count("zorbness") == 1
