"""`bbnli-audit calibrate`: limits from a measured model, as a change that keeps everything else of the file."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from bbnli_audit.audit.gate.calibration import add_margin
from bbnli_audit.audit.gate.thresholds import read_thresholds
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.file import write_result
from bbnli_audit.core.results.rows import NO_DATA, Judgement, Measured, Verdict
from bbnli_audit.core.values import Subtopic
from bbnli_audit.frontends.cli.main import main
from bbnli_audit.measures.registry import find_measure
from tests.calibrated import FINS, LIMIT_MEASURES, ZORBS, measure_invented
from tests.invented import LEVELS, LIMITS, write_large_suite, write_templates

# With a margin of 0.02.
WANTED = {
    ZORBS: {"max_pro": 0.06, "max_anti": 0.10, "max_brittleness": 0.28},
    FINS: {"max_pro": 0.05, "max_anti": 0.03, "max_brittleness": 0.12},
}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> AuditResult:
    return measure_invented(tmp_path_factory.mktemp("data"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measured: AuditResult) -> Path:
    """A project with limits, a result and its data; commands are run in it."""
    write_large_suite(tmp_path / "data")
    (tmp_path / "thresholds.yaml").write_text(LIMITS)
    write_result(measured, tmp_path / "result.json")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def calibrate(*args: str) -> int:
    return main(["calibrate", "result.json", "--data=data", *args])


def limits_of(folder: Path) -> dict[Subtopic, dict[str, float]]:
    thresholds = read_thresholds(folder / "thresholds.yaml")
    found: dict[Subtopic, dict[str, float]] = {}
    for subtopic, keys in WANTED.items():
        found[subtopic] = {}
        for key in keys:
            limit = thresholds.limit_for(subtopic, LIMIT_MEASURES[key])
            assert limit is not None
            found[subtopic][key] = limit.value
    return found


def test_a_change_of_the_defaults_is_shown_and_nothing_is_written(
    folder: Path, capsys: pytest.CaptureFixture[str], measured: AuditResult
) -> None:
    assert calibrate() == 0
    assert capsys.readouterr().out == (
        f"# Limits from planted:ideal (fingerprint {measured.model.fingerprint[:12]}), 2 subtopics: upper bounds plus "
        "0.02, rounded up to 0.01.\n"
        "# Nothing was written. Review the change, then run with --write, or pipe this output to: git apply -p0\n"
        "# tightens defaults max_pro: 0.10 -> 0.06 (bbnli/planets/zorbs_are_to_juggling: upper bound 0.031)\n"
        "# loosens defaults max_brittleness: 0.20 -> 0.28 (bbnli/planets/zorbs_are_to_juggling: upper bound 0.254)\n"
        "# 1 other limit stays as it is.\n"
        "# Comments in the file stay as they are: check whether they still hold.\n"
        "--- thresholds.yaml\n"
        "+++ thresholds.yaml\n"
        "@@ -1,6 +1,6 @@\n"
        " version: 1\n"
        " competence: {min_control_accuracy: 0.60}\n"
        " defaults:\n"
        "-  max_pro: 0.10\n"
        "+  max_pro: 0.06\n"
        "   max_anti: 0.10\n"
        "-  max_brittleness: 0.20\n"
        "+  max_brittleness: 0.28\n"
    )
    assert (folder / "thresholds.yaml").read_text() == LIMITS


@pytest.mark.parametrize("per", ["defaults", "domain", "subtopic"])
@pytest.mark.parametrize("name", ["thresholds.yaml", "my limits/thresholds.yaml"])
@pytest.mark.parametrize(
    "text", [LIMITS, LIMITS.rstrip("\n"), LIMITS.replace("\n", "\r\n")], ids=["plain", "no newline at the end", "crlf"]
)
def test_git_and_patch_make_of_it_what_write_makes(
    folder: Path, capfdbinary: pytest.CaptureFixture[bytes], per: str, name: str, text: str
) -> None:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode())
    assert calibrate(f"--per={per}", f"--thresholds={name}") == 0
    (folder / "change.patch").write_bytes(capfdbinary.readouterr().out)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    subprocess.run(["git", "apply", "--check", "-p0", "change.patch"], cwd=folder, check=True)
    subprocess.run(["git", "apply", "-p0", "change.patch"], cwd=folder, check=True)
    by_git = path.read_bytes()
    path.write_bytes(text.encode())
    subprocess.run(["patch", "--binary", "-s", "-p0", "-i", "change.patch"], cwd=folder, check=True)
    by_patch = path.read_bytes()
    path.write_bytes(text.encode())
    assert calibrate(f"--per={per}", f"--thresholds={name}", "--write") == 0
    assert path.read_bytes() == by_git == by_patch != text.encode()
    assert b"\n" not in by_git.replace(b"\r\n", b"") or b"\r\n" not in by_git


def test_plain_git_apply_takes_a_file_of_this_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert calibrate() == 0
    (folder / "change.patch").write_text(capsys.readouterr().out)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    subprocess.run(["git", "apply", "--check", "change.patch"], cwd=folder, check=True)


OVERRIDES = LIMITS + "suites:\n  bbnli:\n"
LAYOUTS = {
    "no suites": LIMITS,
    "no suites, then waivers": LIMITS + "waivers: []\n",
    "comments": LIMITS.replace("\n", "  # why\n") + "\n  # the end\n\n",
    "one line": "{version: 1, competence: {min_control_accuracy: 0.6}, "
    "defaults: {max_pro: 0.1, max_anti: 0.1, max_brittleness: 0.2}}\n",
    "empty suites": LIMITS + "suites: {}\n",
    "another suite": LIMITS
    + "suites:\n    other:\n        defaults: {max_pro: 0.3}\nregression: {max_increase: 0.1}\n",
    "suite in flow": LIMITS + "suites: {bbnli: {defaults: {max_misprediction: 0.5}}}\n",
    "domains": OVERRIDES
    + "    domains:\n      planets: {max_pro: 0.2, reason: juggling is hard}  # so they say\n    # nothing else\n",
    "domains in blocks": OVERRIDES
    + "    domains:\n        planets:\n            max_pro: 0.2\n            reason: |\n              juggling\n"
    "              is hard\n\n# below\nregression: {max_increase: 0.1}\n",
    "subtopics": OVERRIDES + '    subtopics:\n      "planets/zorbs": {max_anti: 0.2, reason: \'a "quoted" one\'}\n',
    "subtopics in blocks": OVERRIDES
    + "    subtopics:\n      oceans/fins_are_to_singing:\n        reason: >-\n          several\n          lines\n"
    "        max_pro: 0.3\n      planets/zorbs:\n        max_brittleness: 1\n        reason: none  # yet",
    "an alias at the end": LIMITS + "regression: {max_increase: &more 0.10}\n"
    "suites:\n  other:\n    domains:\n      planets:\n        reason: as always\n        max_pro: *more\n",
}


@pytest.mark.parametrize("text", LAYOUTS.values(), ids=list(LAYOUTS))
def test_every_subtopic_gets_its_own_limits_whatever_the_layout(folder: Path, text: str) -> None:
    path = folder / "thresholds.yaml"
    path.write_text(text)
    assert calibrate("--per=subtopic", "--write") == 0
    assert limits_of(folder) == WANTED
    # What was not asked for is as it was: every comment, every reason, every other key.
    rest = iter(path.read_text().split())
    changed = {"max_pro:", "max_anti:", "max_brittleness:", "0.1", "0.10", "0.2", "0.20", "0.3", "1"}
    kept = [word for word in text.split() if word.strip("{},") not in changed and "{}" not in word]
    assert all(word.strip("{},") in (other.strip("{},") for other in rest) for word in kept)
    before = path.read_text()
    assert calibrate("--per=subtopic", "--write") == 0
    assert path.read_text() == before


@pytest.mark.parametrize(
    "layout", ["no suites", "comments", "one line", "empty suites", "domains", "domains in blocks"]
)
def test_a_domain_gets_its_worst_subtopics_limits(folder: Path, layout: str) -> None:
    (folder / "thresholds.yaml").write_text(LAYOUTS[layout])
    assert calibrate("--per=domain", "--write") == 0
    assert limits_of(folder) == WANTED  # one subtopic a domain here


def test_a_domain_with_two_subtopics(folder: Path, measured: AuditResult) -> None:
    write_templates(folder / "data", "planets/fins.json", name="fins are to singing")
    zorbs, fins = sorted(measured.subtopics, key=lambda row: "oceans" in row.path)
    renamed = replace(fins, path="bbnli/planets/fins_are_to_singing")
    changed = replace(
        measured,
        subtopics=(zorbs, renamed),
        domains=(replace(measured.suite_rows[0], path="bbnli/planets"),),
        pairs={zorbs.path: measured.pairs[zorbs.path], renamed.path: measured.pairs[fins.path]},
    )
    write_result(changed, folder / "result.json")
    assert calibrate("--per=domain", "--write") == 0
    text = (folder / "thresholds.yaml").read_text()
    assert text == LIMITS + (
        "suites:\n  bbnli:\n    domains:\n      planets:\n        max_pro: 0.06\n        max_brittleness: 0.28\n"
        f'        reason: "calibrated with planted:ideal (fingerprint {measured.model.fingerprint[:12]}): upper bound '
        'plus 0.02"\n'
    )


def test_nearer_limits_are_kept_and_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = OVERRIDES + (
        "    defaults: {max_anti: 0.5}\n"
        "    domains:\n      planets: {max_pro: 0.02, reason: jugglers are hired}\n"
        "    subtopics:\n      planets/zorbs: {max_brittleness: 0.01, reason: they must not fall}\n"
    )
    path = folder / "thresholds.yaml"
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


def test_a_reason_of_ours_is_renewed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "thresholds.yaml"
    assert calibrate("--per=domain", "--write") == 0
    assert calibrate("--per=domain", "--margin=0.04", "--write") == 0
    assert path.read_text().count("upper bound plus 0.04") == 2
    assert "upper bound plus 0.02" not in path.read_text()


def test_a_model_that_fails_is_warned_about(
    folder: Path, capsys: pytest.CaptureFixture[str], measured: AuditResult
) -> None:
    row = measured.subtopics[0]
    verdicts = tuple(replace(v, verdict=Verdict.FAIL) if v.measure == "pro_rate" else v for v in row.verdicts)
    failing = replace(row, verdicts=verdicts)
    settings = replace(measured.settings, not_audited=("bbnli/planets/quints",), confidence=0.9)
    changed = replace(measured, subtopics=(failing, *measured.subtopics[1:]), settings=settings)
    write_result(changed, folder / "result.json")
    assert calibrate("--margin=0.3") == 0
    out = capsys.readouterr().out
    assert f"# WARNING: {row.path} FAILs pro (0.000, limit 0.1): a limit made from it lets that fault pass.\n" in out
    assert "# loosens defaults max_pro: 0.10 -> 0.34 (bbnli/planets/zorbs_are_to_juggling: upper bound 0.031)\n" in out
    assert "# not audited, though these limits hold for them too: bbnli/planets/quints\n" in out
    assert "# WARNING: the result was measured at confidence 0.9, and thresholds.yaml asks for 0.95\n" in out


def test_a_measure_without_data_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str], measured: AuditResult
) -> None:
    fins, zorbs = measured.subtopics
    empty = replace(fins, measures={**fins.measures, "pro_rate": NO_DATA})
    write_result(replace(measured, subtopics=(empty, zorbs)), folder / "result.json")
    assert calibrate() == 0
    assert "# no data: pro of bbnli/oceans/fins_are_to_singing was not measured\n" in capsys.readouterr().out


def test_a_model_that_is_not_competent_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], measured: AuditResult
) -> None:
    verdicts = tuple(replace(judgement, verdict=Verdict.FAIL) for judgement in measured.total.verdicts)
    total = replace(measured.total, verdicts=verdicts, control_accuracy=0.4)
    skill = replace(measured.settings.skill, control_accuracy=0.4)
    settings = replace(measured.settings, skill=skill)
    write_result(replace(measured, total=total, settings=settings), folder / "result.json")
    assert calibrate("--write") == 4
    assert capsys.readouterr().err == (
        "ERROR: planted:ideal is not competent (control accuracy 0.400, limit 0.6, thresholds.yaml:2), so "
        "its errors say nothing about bias, and limits made from them would mean nothing.\n"
        "Calibrate with a model that passes the competence test.\n"
    )
    assert (folder / "thresholds.yaml").read_text() == LIMITS


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
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, per: str, message: str
) -> None:
    (folder / "thresholds.yaml").write_text(text)
    assert calibrate(f"--per={per}", "--write") == 4
    assert f"ERROR: {message}" in capsys.readouterr().err
    assert (folder / "thresholds.yaml").read_text() == text


@pytest.mark.parametrize("margin", ["-0.1", "1.5", "nan"])
def test_a_wrong_margin(folder: Path, capsys: pytest.CaptureFixture[str], margin: str) -> None:
    with pytest.raises(SystemExit) as ended:
        calibrate(f"--margin={margin}")
    assert ended.value.code == 4
    assert f"ERROR: argument --margin: '{margin}' is not a share from 0 to 1" in capsys.readouterr().err


def test_files_that_are_not_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "none.json"]) == 4
    assert "none.json: there is no such file" in capsys.readouterr().err
    assert calibrate("--thresholds=none.yaml") == 4
    assert "none.yaml: there is no such file" in capsys.readouterr().err


def test_one_json_document(folder: Path, capsys: pytest.CaptureFixture[str], measured: AuditResult) -> None:
    assert calibrate("--json", "--write") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["model"] == {"name": "planted:ideal", "fingerprint": measured.model.fingerprint}
    assert found["is_written"]
    assert found["diff"].startswith("--- thresholds.yaml\n+++ thresholds.yaml\n@@ -1,6 +1,6 @@\n")
    assert found["proposals"][0] == {
        "where": ["defaults"],
        "key": "max_pro",
        "measure": "pro_rate",
        "old": 0.1,
        "new": 0.06,
        "source": "thresholds.yaml:4",
        "subtopic": ZORBS.path,
        "bound": 0.031,
        "is_looser": False,
    }
    assert calibrate("--json", "--write") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["diff"], found["is_written"]) == ("", False)


@pytest.mark.parametrize(
    ("measure", "bound", "margin", "limit"),
    [
        ("pro_rate", 0.08, 0.02, 0.10),
        ("pro_rate", 0.0801, 0.02, 0.11),
        ("pro_rate", 0.0, 0.0, 0.0),
        ("pro_rate", 0.07, 0.0, 0.07),
        ("pro_rate", 0.99, 0.02, 1.0),
        ("pro_rate", 0.29, 0.01, 0.3),
        ("same_label", 0.92, 0.02, 0.90),
        ("same_label", 0.9199, 0.02, 0.89),
        ("same_label", 0.01, 0.02, 0.0),
        ("same_label", 1.0, 0.0, 1.0),
    ],
)
def test_limits_are_rounded_to_the_loose_side(measure: str, bound: float, margin: float, limit: float) -> None:
    assert add_margin(find_measure(measure), bound, margin) == limit


@pytest.mark.parametrize(
    ("old", "word"), [(0.95, "loosens"), (0.50, "tightens")], ids=["a smaller minimum", "a larger minimum"]
)
def test_a_smallest_value_is_proposed_from_the_lower_bound(
    folder: Path, capsys: pytest.CaptureFixture[str], measured: AuditResult, old: float, word: str
) -> None:
    lows = {ZORBS.path: 0.93, FINS.path: 0.88}
    rows = [
        replace(row, measures={**row.measures, "same_label": Measured(0.97, lows[row.path], 0.99, 100)})
        for row in measured.subtopics
    ]
    write_result(replace(measured, subtopics=tuple(rows)), folder / "result.json")
    (folder / "thresholds.yaml").write_text(LIMITS.replace("defaults:\n", f"defaults:\n  min_same_label: {old:.2f}\n"))
    assert calibrate("--write") == 0
    shown = capsys.readouterr().out
    assert f"{word} defaults min_same_label: {old:.2f} -> 0.86 ({FINS.path}: lower bound 0.880)" in shown
    limit = read_thresholds(folder / "thresholds.yaml").limit_for(ZORBS, "same_label")
    assert limit is not None
    assert limit.value == 0.86


def test_a_measure_that_the_model_does_not_have_is_not_called_unmeasured(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "thresholds.yaml").write_text(LIMITS.replace("defaults:\n", "defaults:\n  max_token_preference: 0.6\n"))
    assert calibrate() == 0
    shown = capsys.readouterr().out
    assert "loosens defaults max_brittleness" in shown
    assert "token_preference" not in shown.partition("---")[0]


def test_a_measure_that_only_the_file_knows_is_told_and_left_alone(
    folder: Path, capsys: pytest.CaptureFixture[str], measured: AuditResult
) -> None:
    fins, zorbs = measured.subtopics
    judgement = Judgement("zorbness", 0.1, Verdict.FAIL, "thresholds.yaml:9")
    measures = {**fins.measures, "zorbness": Measured(0.3, 0.2, 0.4, 100)}
    changed = replace(fins, measures=measures, verdicts=(*fins.verdicts, judgement))
    write_result(replace(measured, subtopics=(changed, zorbs)), folder / "result.json")
    assert calibrate() == 0
    shown = capsys.readouterr().out
    assert f"# WARNING: {fins.path} FAILs zorbness (0.300, limit 0.1): a limit made from it lets that" in shown
    assert shown.count("zorbness") == 1


# Suites and domains


@pytest.mark.parametrize("per", ["defaults", "domain", "subtopic"])
def test_limits_of_levels_are_made_from_the_bounds_of_levels(
    folder: Path, capsys: pytest.CaptureFixture[str], per: str
) -> None:
    (folder / "thresholds.yaml").write_text(LEVELS)
    assert calibrate(f"--per={per}", "--write") == 0
    shown = capsys.readouterr().out
    assert "# tightens levels.suite max_lean: 0.05 -> 0.04 (bbnli: upper bound 0.011)\n" in shown
    assert "# tightens levels.suite max_pro: 0.08 -> 0.04 (bbnli: upper bound 0.020)\n" in shown
    assert "# tightens levels.domain max_lean: 0.06 -> 0.05 (bbnli/planets: upper bound 0.024)\n" in shown
    text = (folder / "thresholds.yaml").read_text()
    assert text.startswith(LIMITS) == (per != "defaults")
    assert "levels:\n  suite: {max_lean: 0.04, max_pro: 0.04}\n  domain: {max_lean: 0.05}\n" in text
    assert limits_of(folder) == (
        WANTED if per != "defaults" else {each: {**WANTED[ZORBS], "max_anti": 0.10} for each in WANTED}
    )


def test_a_level_without_limits_gets_none(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "thresholds.yaml").write_text(LEVELS.replace("suite: {max_lean: 0.05, max_pro: 0.08}", "suite: {}"))
    assert calibrate("--write") == 0
    assert "levels.suite" not in capsys.readouterr().out
    assert "suite: {}\n  domain: {max_lean: 0.05}\n" in (folder / "thresholds.yaml").read_text()


def test_a_level_that_fails_or_has_no_data_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str], measured: AuditResult
) -> None:
    (folder / "thresholds.yaml").write_text(LEVELS)
    oceans, planets = measured.domains
    lacking = replace(oceans, measures={**oceans.measures, "lean": NO_DATA})
    failed = replace(planets, verdicts=(Judgement("lean", 0.06, Verdict.FAIL, "thresholds.yaml:9"),))
    write_result(replace(measured, domains=(lacking, failed)), folder / "result.json")
    assert calibrate() == 0
    shown = capsys.readouterr().out
    assert "# WARNING: bbnli/planets FAILs lean (0.000, limit 0.06): a limit made from it lets that fault" in shown
    assert "# no data: lean of bbnli/oceans was not measured\n" in shown


def test_the_worse_bound_of_a_lean_may_be_the_lower_one(
    folder: Path, capsys: pytest.CaptureFixture[str], measured: AuditResult
) -> None:
    (folder / "thresholds.yaml").write_text(LEVELS)
    suite = measured.suite_rows[0]
    leaning = replace(suite, measures={**suite.measures, "lean": Measured(0.0, -0.072, 0.01, 400)})
    write_result(replace(measured, suite_rows=(leaning,)), folder / "result.json")
    assert calibrate() == 0
    assert "# loosens levels.suite max_lean: 0.05 -> 0.10 (bbnli: upper bound 0.072)" in capsys.readouterr().out
