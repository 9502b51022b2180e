"""Options that say how a model is computed and where predictions are kept: what is refused, what is shown."""

import json
import sqlite3

import pytest

from tests.plugin.conftest import Project


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--bbnli-dtype=fp23", "--bbnli-dtype=fp23: there is no such number type. Did you mean 'fp32'?"),
        ("--bbnli-backend=tensorflow", "--bbnli-backend=tensorflow: there is no such backend. Known: onnx, torch."),
        ("--bbnli-engine=rays", "--bbnli-engine=rays: there is no such engine. Did you mean 'ray'?"),
        ("--bbnli-ray-address=1.2.3.4:5", "--bbnli-ray-address=1.2.3.4:5: is used with --bbnli-engine=ray only."),
        ("--bbnli-max-disagreement=0.1", "--bbnli-max-disagreement=0.1: there is nothing to check on the exact path."),
        ("--bbnli-max-disagreement=", "--bbnli-max-disagreement is empty"),
        (
            "--bbnli-dtype=bf16 --bbnli-backend=onnx",
            "--bbnli-backend=onnx with --bbnli-dtype=bf16: torch computes",
        ),
        ("--bbnli-dtype=int8 --bbnli-max-disagreement=2", "expected a share between 0 and 1, such as 0.01."),
        ("--bbnli-dtype=int8 --bbnli-max-disagreement=few", "--bbnli-max-disagreement=few: expected a share"),
        ("--bbnli-store=data", "data: is a folder. Give a file, as in "),
        (
            "--bbnli-store=thresholds.yaml",
            "thresholds.yaml: is not a prediction store, so nothing is written to it. Give another",
        ),
        ("--bbnli-store=new.sqlite --bbnli-no-store", "--bbnli-no-store exclude each other. Leave one out."),
        ("--bbnli-device=abacus", "--bbnli-device=abacus: there is no such device."),
    ],
)
def test_a_wrong_value_is_a_usage_error(project: Project, option: str, message: str) -> None:
    result = project.audit("demo", *option.split())
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: *{message.replace('[', '[[]')}*"])


def test_options_of_checkpoints_do_not_apply_to_other_models(project: Project) -> None:
    result = project.audit("planted:ideal", "--bbnli-dtype=int8")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --model=planted:ideal: is not a checkpoint; --bbnli-dtype,*"])


def test_what_a_planted_model_says_is_not_kept(project: Project, mode: list[str]) -> None:
    """Its fingerprint does not stand for the suites it was planted with."""
    first = project.audit("planted:ideal", "--bbnli-store=store", *mode)
    again = project.audit("planted:ideal", "--bbnli-store=store", *mode)
    for result in (first, again):
        assert result.ret == pytest.ExitCode.OK
        result.stdout.fnmatch_lines(["Predictions: * texts, 0 stored*, * predicted."])
    assert not (project.path / "store").exists()


CALLABLE = """
from pathlib import Path

def count(texts):
    with Path("calls").open("a") as calls:
        calls.write("x" * len(texts))
    return [[0.05, 0.9, 0.05]] * len(texts)
"""


def test_every_text_is_asked_for_once_in_a_run(project: Project, mode: list[str]) -> None:
    project.write("counting.py", CALLABLE)
    result = project.audit("counting:count", *mode)
    n_asked = len((project.path / "calls").read_text())
    result.stdout.fnmatch_lines([f"Predictions: {n_asked:,} texts, 0 stored*, {n_asked:,} predicted."])


def test_the_cache_folder_keeps_the_store_of_a_checkpoint(project: Project) -> None:
    args = ["audits", "--model=demo", "--bbnli-data=data", "--bbnli-report=out"]
    first = project.run_in_a_process(*args)
    first.stdout.fnmatch_lines(["Predictions: * texts, 0 stored*"])
    store = project.path / ".pytest_cache" / "d" / "bbnli" / "predictions.sqlite"
    connection = sqlite3.connect(store)
    n_kept = connection.execute("SELECT count(*) FROM predictions").fetchone()[0]
    connection.close()
    result = json.loads((project.path / "out" / "result.json").read_text())
    project.write("thresholds.yaml", (project.path / "thresholds.yaml").read_text() + "# changed\n")
    again = project.run_in_a_process(*args)
    again.stdout.fnmatch_lines(
        [f"Predictions: {n_kept:,} texts, {n_kept:,} stored ({store.relative_to(project.path)}), 0 predicted."]
    )
    assert json.loads((project.path / "out" / "result.json").read_text()) == result


def test_a_batch_that_breaks_costs_the_tests_that_need_it(project: Project) -> None:
    project.write(
        "fragile.py",
        """
        def answer(texts):
            if any("workshop" in text.hypothesis + text.premise for text in texts) and len(texts) > 1:
                raise ValueError("cannot")
            return [[0.05, 0.9, 0.05]] * len(texts)
        """,
    )
    result = project.audit("fragile:answer")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "INTERNALERROR" not in result.stdout.str()
    result.stdout.fnmatch_lines(["*fragile:answer broke on *ValueError at fragile.py:*"])
