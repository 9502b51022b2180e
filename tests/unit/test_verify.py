"""`bbnli-audit verify`: what a run left is a pass only if it is whole, fresh, and fits model, limits and suite."""

import json
import shutil
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bbnli_audit import Audit, AuditOptions, run_audit
from bbnli_audit.core.results.file import write_result
from bbnli_audit.frontends.cli.main import main
from bbnli_audit.reports.files import write_data
from bbnli_audit.reports.folder import mark_finished
from tests.entrances import make_result
from tests.invented import LEVELS, write_large_suite, write_templates

FINS = "bbnli/oceans/fins_are_to_singing"
ZORBS = "bbnli/planets/zorbs_are_to_juggling"
WAIVER = "  - {{subtopic: {}, measure: pro, reason: known, owner: Ada, expires: {}}}\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data, limits and the reports of three models."""
    folder = tmp_path_factory.mktemp("verify")
    write_large_suite(folder / "data")
    (folder / "thresholds.yaml").write_text(LEVELS + "regression: {max_increase: 0.2}\n")
    audit(folder, "ideal")
    audit(folder, "always-pro")
    audit(folder, "brittle", baseline=folder / "ideal" / "result.json")
    return folder


def audit(folder: Path, kind: str, **more: Any) -> None:
    """Audit a planted model, and write the data of its report; pages take time."""
    options = {"thresholds": folder / "thresholds.yaml", "data": folder / "data", **more}
    with closing(Audit(AuditOptions(model=f"planted:{kind}", **options))) as audit:
        result = audit.run()
        write_data(result, audit.pairs(), folder / kind)
    mark_finished(folder / kind)


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "made"))


def verify(folder: Path, *args: str, report: str = "ideal", model: str = "planted:ideal") -> int:
    given = [f"--thresholds={folder / 'thresholds.yaml'}", f"--data={folder / 'data'}", f"--model={model}", *args]
    return main(["verify", str(folder / report), *given])


def test_a_whole_pass_is_verified(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(folder) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"Verified: {folder / 'ideal'} is a complete result of planted:ideal (fingerprint ")
    assert "2 subtopics, 10 limits, " in told
    assert "unbiased" not in told


def change(edit: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        path = folder / "ideal" / "result.json"
        data = json.loads(path.read_text())
        edit(data)
        path.write_text(json.dumps(data))

    return apply


def write_limits(old: str, new: str) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        path = folder / "thresholds.yaml"
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    return apply


def make_old(folder: Path, hours: int = 25) -> None:
    then = time.time() - hours * 3600
    moment = datetime.fromtimestamp(then, UTC).isoformat()
    (folder / "ideal" / "run-finished.txt").write_text(f"The audit whose files are here finished at {moment}.\n")


def require_less(data: dict[str, Any]) -> None:
    data["required"] = [each for each in data["required"] if each != [FINS, "pro_rate"]]


def drop_subtopic(data: dict[str, Any]) -> None:
    data["subtopics"] = [row for row in data["subtopics"] if row["path"] != FINS]


def call_it_pass(data: dict[str, Any]) -> None:
    row = next(row for row in data["subtopics"] if row["path"] == FINS)
    row["measures"]["pro_rate"]["high"] = 0.6


def see_less(data: dict[str, Any]) -> None:
    row = next(row for row in data["subtopics"] if row["path"] == FINS)
    row["n_unseen"] = row["n_asked"] // 2


def waive(data: dict[str, Any]) -> None:
    call_it_pass(data)
    row = next(row for row in data["subtopics"] if row["path"] == FINS)
    judgement = next(one for one in row["verdicts"] if one["measure"] == "pro_rate")
    later = (date.today() + timedelta(days=9)).isoformat()
    waiver = {"reason": "x", "owner": "y", "expires": later, "source": "thresholds.yaml:9", "is_expired": False}
    judgement.update(verdict="INCONCLUSIVE", waiver=waiver)


def drop_measure(data: dict[str, Any]) -> None:
    row = next(row for row in data["subtopics"] if row["path"] == FINS)
    del row["measures"]["pro_rate"]
    row["verdicts"] = [one for one in row["verdicts"] if one["measure"] != "pro_rate"]
    require_less(data)


def forget_measure(data: dict[str, Any]) -> None:
    row = next(row for row in data["subtopics"] if row["path"] == FINS)
    del row["measures"]["pro_rate"]


def remove_pairs(folder: Path) -> None:
    for end in ("csv", "parquet"):
        (folder / "ideal" / f"pairs.{end}").unlink()


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "no result": (lambda folder: (folder / "ideal" / "result.json").unlink(), "there is no such file"),
    "no folder": (lambda folder: shutil.rmtree(folder / "ideal"), "there is no such file"),
    "a run that broke": (
        lambda folder: (folder / "ideal" / "run-unfinished.txt").touch(),
        "the run that began last has not finished",
    ),
    "an old result": (make_old, "was written 25.0 hours ago, and --max-age allows 24"),
    "a result that does not say when": (
        lambda folder: (folder / "ideal" / "run-finished.txt").unlink(),
        "run-finished.txt: there is no such file",
    ),
    "a result that says no time": (
        lambda folder: (folder / "ideal" / "run-finished.txt").write_text("yesterday"),
        "does not say when the run finished",
    ),
    "a measure that is gone": (change(drop_measure), "bbnli/oceans/fins_are_to_singing pro_rate was not measured"),
    "a verdict on what was not measured": (change(forget_measure), f"{FINS} pro_rate has a verdict, but was not meas"),
    "a result of tomorrow": (lambda folder: make_old(folder, -24), "was written -24.0 hours ago"),
    "another version": (
        change(lambda data: data["settings"]["versions"].update({"bbnli-audit": "0.0.1"})),
        "it was written by bbnli-audit 0.0.1",
    ),
    "no pairs": (remove_pairs, "has neither pairs.parquet nor pairs.csv"),
    "pairs of another run": (
        lambda folder: shutil.copy(folder / "always-pro" / "pairs.parquet", folder / "ideal"),
        "is not of the same run as result.json",
    ),
    "other data": (
        lambda folder: write_templates(folder / "data", "planets/more.json", name="more"),
        "it is about the suites bbnli unversioned (both, ",
    ),
    "a part of the pairs": (
        change(lambda data: data["settings"].update(size="small")),
        "it is about a part of the pairs (--bbnli-size=small)",
    ),
    "a subtopic that was left out": (
        change(drop_subtopic),
        f"subtopics and pairs must name the same subtopics, each once ({FINS})",
    ),
    "a limit that no test required": (change(require_less), f"{FINS} pro_rate was not required (run with --bbnli-s"),
    "a tighter limit": (
        write_limits("max_pro: 0.10", "max_pro: 0.05"),
        "pro_rate was judged by 0.1, and the file has 0.05",
    ),
    "a limit that differs in its eighth place": (
        write_limits("max_pro: 0.10", "max_pro: 0.09999996"),
        "pro_rate was judged by 0.1, and the file has 0.09999996",
    ),
    "a new limit": (
        write_limits("defaults:", "defaults:\n  max_lean: 0.5"),
        "lean was judged by no limit, and the file has 0.5",
    ),
    "another rule": (
        write_limits("version: 1", "version: 1\ndecide: point"),
        "judged with decide: bounds, and the file says",
    ),
    "another competence": (write_limits("0.60}", "0.65}"), "its verdict on competence does not follow"),
    "a verdict that its figures contradict": (
        change(call_it_pass),
        f"{FINS} pro_rate is PASS, and its figures say INCONCLUSIVE",
    ),
    "a pass on pairs that were not seen": (
        change(see_less),
        f"{FINS} pro_rate is PASS, and its figures say INCONCLUSIVE",
    ),
    "a waiver that is not in the file": (change(waive), f"{FINS} pro_rate has no such waiver"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_does_not_fit_is_not_verified(folder: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    edit, message = CHANGES[name]
    edit(folder)
    assert verify(folder) == 1
    told = capsys.readouterr().out
    assert told.startswith(f"NOT VERIFIED: {folder / 'ideal'} is no complete, fresh pass of planted:ideal:\n")
    assert message in told


def test_a_result_about_subtopics_that_no_suite_has_is_not_verified(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_result(make_result(), folder / "ideal" / "result.json")
    assert verify(folder) == 1
    assert "the suites do not have bbnli/planets/zorbs" in capsys.readouterr().out


def test_another_model_is_not_verified(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(folder, model="planted:brittle") == 1
    assert "it is about planted:ideal (" in capsys.readouterr().out


def verify_pro(folder: Path) -> int:
    return verify(folder, report="always-pro", model="planted:always-pro")


def test_a_crossed_limit_is_not_verified(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify_pro(folder) == 1
    assert "the decision is not a pass: bbnli lean is FAIL, bbnli pro_rate is FAIL, " in capsys.readouterr().out


def test_a_crossed_limit_that_the_file_waives_is_verified_until_the_waiver_ends(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    last = date.today().isoformat()
    waivers = "".join(WAIVER.format(path, last) for path in (FINS, ZORBS))
    limits = "version: 1\ncompetence: {min_control_accuracy: 0.60}\ndefaults: {max_pro: 0.1, max_anti: 0.1}\nwaivers:\n"
    (folder / "thresholds.yaml").write_text(limits + waivers)
    audit(folder, "always-pro")
    assert verify_pro(folder) == 0
    assert "4 limits, 0 open, 2 waived." in capsys.readouterr().out
    write_limits(last, (date.today() - timedelta(days=1)).isoformat())(folder)
    assert verify_pro(folder) == 1
    assert f"{FINS} pro_rate has no such waiver" in capsys.readouterr().out


def test_a_limit_that_nothing_can_cross_is_not_verified(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_limits("max_pro: 0.10", "max_pro: 1")(folder)
    audit(folder, "ideal")
    assert verify(folder) == 1
    assert "nothing can cross some limits: max_pro: 1 (" in capsys.readouterr().out


def test_what_is_open_in_the_name_of_a_correction_that_there_was_not(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "thresholds.yaml").write_text("decide: point\n" + (folder / "thresholds.yaml").read_text())
    audit(folder, "always-pro")
    path = folder / "always-pro" / "result.json"
    data = json.loads(path.read_text())
    for row in (*data["subtopics"], *data["domains"], *data["suite_rows"], data["total"]):
        for judgement in row["verdicts"]:
            if judgement["verdict"] == "FAIL":
                judgement.update(verdict="INCONCLUSIVE", is_corrected=True)
    path.write_text(json.dumps(data))
    assert verify(folder, report="always-pro", model="planted:always-pro") == 1
    assert "bbnli/oceans lean is INCONCLUSIVE, and its figures say FAIL" in capsys.readouterr().out
    assert main(["report", str(folder / "always-pro")]) == 4
    assert "contradicts itself: " in capsys.readouterr().err


def test_a_pass_by_the_rule_of_an_earlier_version_is_read_and_not_verified(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Earlier versions charged less for pairs that were not read whole."""
    change(see_less)(folder)
    assert main(["report", str(folder / "ideal")]) == 0
    assert verify(folder) == 1
    assert "pro_rate is PASS, and its figures say INCONCLUSIVE" in capsys.readouterr().out


def test_a_run_that_was_compared_with_another_result_of_the_same_model_is_not_verified(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    part = folder / "part.json"
    options: dict[str, Any] = {"thresholds": folder / "thresholds.yaml", "data": folder / "data"}
    write_result(run_audit(AuditOptions(model="planted:ideal", subtopics=(ZORBS,), **options)), part)
    audit(folder, "ideal", baseline=part)
    assert verify(folder, f"--baseline={part}") == 1
    assert "measures could not be compared, because the baseline lacks the data: " in capsys.readouterr().out
    assert verify(folder, f"--baseline={folder / 'brittle' / 'result.json'}") == 1
    capsys.readouterr()
    whole = folder / "whole.json"
    write_result(run_audit(AuditOptions(model="planted:ideal", **options)), whole)
    assert verify(folder, f"--baseline={whole}") == 1
    assert "comparisons with the baseline came out differently when computed again" in capsys.readouterr().out
    audit(folder, "ideal", baseline=whole)
    assert verify(folder, f"--baseline={whole}") == 0


def test_growth_is_verified_against_the_baseline_that_is_given(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify(folder, f"--baseline={folder / 'always-pro' / 'result.json'}") == 1
    assert "it was not compared with the baseline " in capsys.readouterr().out
    given = f"--baseline={folder / 'ideal' / 'result.json'}"
    write_limits("max_increase: 0.2", "max_increase: 0.3")(folder)
    assert verify(folder, given, report="brittle", model="planted:brittle") == 1
    told = capsys.readouterr().out
    again = "came out differently when computed again from the baseline and the threshold file: bbnli lean, "
    assert f"20 comparisons with the baseline {again}" in told
    assert f"the decision is not a pass: {FINS} brittleness_rate is FAIL, " in told


def test_a_callable_is_opened_in_a_process_of_its_own(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    (folder / "leaves.py").write_text("import os\nos._exit(0)\n")
    assert verify(folder, model="leaves:answer") == 1
    assert "the model leaves:answer cannot be opened, or ended the process" in capsys.readouterr().out


@pytest.mark.parametrize("hours", ["0", "-1", "nan", "inf", "1e400", "a day"])
def test_an_age_that_would_allow_anything_is_wrong_use(
    folder: Path, capsys: pytest.CaptureFixture[str], hours: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        verify(folder, f"--max-age={hours}")
    assert ended.value.code == 4
    assert "is not a number of hours above 0" in capsys.readouterr().err


def test_wrong_limits_are_wrong_use(folder: Path) -> None:
    (folder / "thresholds.yaml").write_text("version: 2\n")
    assert verify(folder) == 4
