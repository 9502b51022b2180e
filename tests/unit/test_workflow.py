"""The workflow and docs/ci.md: they parse, name options that exist, and paste nothing into a shell."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github" / "workflows" / "audit.yml"
DOCS = ROOT / "docs" / "ci.md"
ACTIONS = {"actions/checkout", "actions/setup-python", "actions/cache", "actions/upload-artifact"}


@pytest.fixture(scope="module")
def workflow() -> dict[str, Any]:
    loaded: dict[str | bool, Any] = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    return {"on" if key is True else str(key): value for key, value in loaded.items()}  # YAML 1.1 reads `on` as true


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def examples() -> Iterator[dict[str, Any]]:
    for text in re.findall(r"```yaml\n(.*?)```", DOCS.read_text(encoding="utf-8"), flags=re.DOTALL):
        yield yaml.safe_load(text)


def scripts(value: Any) -> Iterator[str]:
    """Find every shell script of a document: `run` of GitHub, `script` of GitLab."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("run", "script"):
                yield from [inner] if isinstance(inner, str) else inner
            else:
                yield from scripts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from scripts(inner)


@pytest.mark.parametrize("path", [WORKFLOW, DOCS], ids=lambda path: path.name)
def test_every_option_exists(path: Path, pytestconfig: pytest.Config) -> None:
    named = set(re.findall(r"--bbnli-[a-z-]*[a-z]", path.read_text(encoding="utf-8")))
    assert "--bbnli-report" in named
    unknown = {name for name in named if not hasattr(pytestconfig.option, name.removeprefix("--").replace("-", "_"))}
    assert unknown == set()


def test_ini_keys_exist(pytestconfig: pytest.Config) -> None:
    for text in re.findall(r"```ini\n(.*?)```", DOCS.read_text(encoding="utf-8"), flags=re.DOTALL):
        for key in re.findall(r"^(\w+) =", text, flags=re.MULTILINE):
            pytestconfig.getini(key)  # refuses keys that nobody has declared


def test_no_expression_stands_in_a_script(workflow: dict[str, Any]) -> None:
    found = [*scripts(workflow), *(script for example in examples() for script in scripts(example))]
    assert len(found) >= 6
    assert [script for script in found if "${{" in script] == []


def test_scripts_are_whole_and_use_only_what_they_are_given(workflow: dict[str, Any]) -> None:
    for step in steps(workflow):
        if "run" in step:
            shlex.split(step["run"], comments=True)
            assert set(re.findall(r"\$([A-Z_]+)", step["run"])) <= set(step["env"])
            assert "$MODEL " not in step["run"]


MODEL = "a b; touch $HOME `id` $(id) \"x\" '*'"


def run_step(workflow: dict[str, Any], name: str, folder: Path, **given: str) -> list[str]:
    """Run a step with programs that print their arguments."""
    for program in ("python", "bbnli-audit"):
        (folder / program).write_text('#!/bin/sh\nfor arg in "$@"; do echo "<$arg>"; done\n')
        (folder / program).chmod(0o755)
    step = next(step for step in steps(workflow) if step.get("name") == name)
    done = subprocess.run(
        ["/bin/sh", "-e", "-c", step["run"]],
        env={"PATH": f"{folder}:{os.environ['PATH']}", "MODEL": MODEL, "THRESHOLDS": "x y.yaml", **given},
        capture_output=True,
        text=True,
        check=True,
    )
    return [line[1:-1] for line in done.stdout.splitlines()]


@pytest.mark.skipif(os.name == "nt", reason="the runners of the workflow have a POSIX shell")
@pytest.mark.parametrize(
    ("baseline", "suite", "strict"), [("", "", "true"), ('old "one".json', "", "true"), ("", "a, b", "false")]
)
def test_values_reach_pytest_and_verify_as_they_are(
    workflow: dict[str, Any], tmp_path: Path, baseline: str, suite: str, strict: str
) -> None:
    given = {"BASELINE": baseline, "SUITE": suite}
    args = ["-m", "pytest", "audits", f"--bbnli-model={MODEL}", "--bbnli-thresholds=x y.yaml", "--bbnli-report=report"]
    args += ["--junitxml=report/junit.xml", *([f"--bbnli-suite={suite}"] if suite else [])]
    args += ["--bbnli-strict"] if strict == "true" else []
    args += [f"--bbnli-baseline={baseline}"] if baseline else []
    assert run_step(workflow, "Audit", tmp_path, TESTS="audits", STRICT=strict, **given) == args
    args = ["verify", "report", f"--model={MODEL}", "--thresholds=x y.yaml"]
    args += [*([f"--suite={suite}"] if suite else []), *([f"--baseline={baseline}"] if baseline else [])]
    assert run_step(workflow, "Verify", tmp_path, **given) == args


def test_it_reads_the_repository_and_no_more(workflow: dict[str, Any]) -> None:
    assert workflow["permissions"] == {"contents": "read"}
    assert all("permissions" not in job for job in workflow["jobs"].values())
    checkout = next(step for step in steps(workflow) if step.get("uses", "").startswith("actions/checkout"))
    assert checkout["with"] == {"persist-credentials": False}


def test_only_known_actions_of_a_fixed_major_version(workflow: dict[str, Any]) -> None:
    texts = f"{WORKFLOW.read_text(encoding='utf-8')}\n{DOCS.read_text(encoding='utf-8')}"
    used = re.findall(r"uses: (actions/\S+)", texts)
    assert len(used) >= 9
    for name in used:
        action, _, version = name.partition("@")
        assert "/".join(action.split("/")[:2]) in ACTIONS
        assert re.fullmatch(r"v\d+", version)
    assert all(step["uses"] in used for step in steps(workflow) if "uses" in step)


def test_the_report_and_the_predictions_are_kept_whatever_happens(workflow: dict[str, Any]) -> None:
    kept = [step for step in steps(workflow) if step.get("if") == "always()"]
    assert [step["uses"].partition("@")[0] for step in kept] == ["actions/cache/save", "actions/upload-artifact"]
    restored = next(step for step in steps(workflow) if "cache/restore" in step.get("uses", ""))
    assert restored["with"]["key"] == kept[0]["with"]["key"]
    assert restored["with"]["key"].startswith(restored["with"]["restore-keys"])
    assert restored["with"]["path"] == kept[0]["with"]["path"] == ".pytest_cache/d/bbnli"
    assert kept[1]["with"]["path"] == "report"


def test_both_ways_to_start_it_have_the_same_inputs_and_all_are_used_and_told(workflow: dict[str, Any]) -> None:
    called, by_hand = (set(workflow["on"][way]["inputs"]) for way in ("workflow_call", "workflow_dispatch"))
    assert called == by_hand
    text = WORKFLOW.read_text(encoding="utf-8")
    assert called == set(re.findall(r"inputs\.([a-z-]+)", text))
    told = set(re.findall(r"^\| `([a-z-]+)` \|", DOCS.read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert called == told


def test_examples_call_it_with_inputs_it_has(workflow: dict[str, Any]) -> None:
    calls = [
        job for example in examples() for job in example.get("jobs", {}).values() if "audit.yml" in str(job.get("uses"))
    ]
    assert calls
    for job in calls:
        assert set(job["with"]) <= set(workflow["on"]["workflow_call"]["inputs"])


def test_exit_codes_are_those_of_pytest() -> None:
    codes = re.findall(r"^\| (\d) \|", DOCS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert [int(code) for code in codes] == [code.value for code in pytest.ExitCode][: len(codes)] == list(range(6))
