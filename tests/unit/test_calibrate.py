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
from bbnli_audit.core.results.rows import Measured
from bbnli_audit.measures.registry import find_measure
from tests.calibrated import (
    FINS,
    OVERRIDES,
    WANTED,
    ZORBS,
    calibrate,
    limits_of,
)
from tests.invented import LIMITS, write_templates


def test_a_change_of_the_defaults_is_shown_and_nothing_is_written(
    project: Path, capsys: pytest.CaptureFixture[str], measured: AuditResult
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
    assert (project / "thresholds.yaml").read_text() == LIMITS


@pytest.mark.parametrize("per", ["defaults", "domain", "subtopic"])
@pytest.mark.parametrize("name", ["thresholds.yaml", "my limits/thresholds.yaml"])
@pytest.mark.parametrize(
    "text", [LIMITS, LIMITS.rstrip("\n"), LIMITS.replace("\n", "\r\n")], ids=["plain", "no newline at the end", "crlf"]
)
def test_git_and_patch_make_of_it_what_write_makes(
    project: Path, capfdbinary: pytest.CaptureFixture[bytes], per: str, name: str, text: str
) -> None:
    path = project / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode())
    assert calibrate(f"--per={per}", f"--thresholds={name}") == 0
    (project / "change.patch").write_bytes(capfdbinary.readouterr().out)
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    subprocess.run(["git", "apply", "--check", "-p0", "change.patch"], cwd=project, check=True)
    subprocess.run(["git", "apply", "-p0", "change.patch"], cwd=project, check=True)
    by_git = path.read_bytes()
    path.write_bytes(text.encode())
    subprocess.run(["patch", "--binary", "-s", "-p0", "-i", "change.patch"], cwd=project, check=True)
    by_patch = path.read_bytes()
    path.write_bytes(text.encode())
    assert calibrate(f"--per={per}", f"--thresholds={name}", "--write") == 0
    assert path.read_bytes() == by_git == by_patch != text.encode()
    assert b"\n" not in by_git.replace(b"\r\n", b"") or b"\r\n" not in by_git


def test_plain_git_apply_takes_a_file_of_this_folder(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert calibrate() == 0
    (project / "change.patch").write_text(capsys.readouterr().out)
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    subprocess.run(["git", "apply", "--check", "change.patch"], cwd=project, check=True)


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
def test_every_subtopic_gets_its_own_limits_whatever_the_layout(project: Path, text: str) -> None:
    path = project / "thresholds.yaml"
    path.write_text(text)
    assert calibrate("--per=subtopic", "--write") == 0
    assert limits_of(project) == WANTED
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
def test_a_domain_gets_its_worst_subtopics_limits(project: Path, layout: str) -> None:
    (project / "thresholds.yaml").write_text(LAYOUTS[layout])
    assert calibrate("--per=domain", "--write") == 0
    assert limits_of(project) == WANTED  # one subtopic a domain here


def test_a_domain_with_two_subtopics(project: Path, measured: AuditResult) -> None:
    write_templates(project / "data", "planets/fins.json", name="fins are to singing")
    zorbs, fins = sorted(measured.subtopics, key=lambda row: "oceans" in row.path)
    renamed = replace(fins, path="bbnli/planets/fins_are_to_singing")
    changed = replace(
        measured,
        subtopics=(zorbs, renamed),
        domains=(replace(measured.suite_rows[0], path="bbnli/planets"),),
        pairs={zorbs.path: measured.pairs[zorbs.path], renamed.path: measured.pairs[fins.path]},
    )
    write_result(changed, project / "result.json")
    assert calibrate("--per=domain", "--write") == 0
    text = (project / "thresholds.yaml").read_text()
    assert text == LIMITS + (
        "suites:\n  bbnli:\n    domains:\n      planets:\n        max_pro: 0.06\n        max_brittleness: 0.28\n"
        f'        reason: "calibrated with planted:ideal (fingerprint {measured.model.fingerprint[:12]}): upper bound '
        'plus 0.02"\n'
    )


def test_a_reason_of_ours_is_renewed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = project / "thresholds.yaml"
    assert calibrate("--per=domain", "--write") == 0
    assert calibrate("--per=domain", "--margin=0.04", "--write") == 0
    assert path.read_text().count("upper bound plus 0.04") == 2
    assert "upper bound plus 0.02" not in path.read_text()


def test_one_json_document(project: Path, capsys: pytest.CaptureFixture[str], measured: AuditResult) -> None:
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
    project: Path, capsys: pytest.CaptureFixture[str], measured: AuditResult, old: float, word: str
) -> None:
    lows = {ZORBS.path: 0.93, FINS.path: 0.88}
    rows = [
        replace(row, measures={**row.measures, "same_label": Measured(0.97, lows[row.path], 0.99, 100)})
        for row in measured.subtopics
    ]
    write_result(replace(measured, subtopics=tuple(rows)), project / "result.json")
    (project / "thresholds.yaml").write_text(LIMITS.replace("defaults:\n", f"defaults:\n  min_same_label: {old:.2f}\n"))
    assert calibrate("--write") == 0
    shown = capsys.readouterr().out
    assert f"{word} defaults min_same_label: {old:.2f} -> 0.86 ({FINS.path}: lower bound 0.880)" in shown
    limit = read_thresholds(project / "thresholds.yaml").limit_for(ZORBS, "same_label")
    assert limit is not None
    assert limit.value == 0.86
