"""Whole audits of real checkpoints, as a user runs them."""

import shutil
from pathlib import Path

import pytest

from tests.e2e.runs import read_report, read_usage, run_pytest, write_one_subtopic
from tests.shared_data import shared_path
from tests.tiny_checkpoint import edit_config, save_checkpoint

pytestmark = pytest.mark.e2e


def test_all_sixteen_subtopics_alike_in_plain_selected_and_parallel_runs(tmp_path: Path) -> None:
    model, data = shared_path("models", "tiny-nli"), shared_path("data", "bbnli")
    given = [f"--model={model}", "--bbnli-data", str(data)]
    plain = run_pytest(*given, "--bbnli-report", str(tmp_path / "plain"))
    assert plain.returncode == pytest.ExitCode.TESTS_FAILED, plain.stdout
    whole, pairs = read_report(tmp_path / "plain")
    assert len(whole["subtopics"]) == 16
    assert whole["total"]["n_pairs"] == 1138 - 47
    assert whole["total"]["n_identical"] == 47
    assert (
        "Left out of the measures: 47 pairs that are the same on both sides, as the model reads them; 0 duplicates."
        in plain.stdout
    )

    parallel = run_pytest(*given, f"--bbnli-report={tmp_path / 'parallel'}", "-n", "2")
    assert parallel.returncode == plain.returncode
    n_texts, _, n_predicted = read_usage(parallel.stdout)
    assert n_texts == n_predicted  # nothing twice, though every worker proves the model
    assert read_report(tmp_path / "parallel") == (whole, pairs)

    run_pytest(*given, f"--bbnli-report={tmp_path / 'part'}", "-k", "programmer")
    part, some_pairs = read_report(tmp_path / "part")
    (row,), (same,) = part["subtopics"], [each for each in whole["subtopics"] if "programmer" in each["path"]]
    assert (row["outcomes"], row["counts"], row["n_clusters"]) == (same["outcomes"], same["counts"], same["n_clusters"])
    # Other subtopics tell how much templates differ, so alone an interval may be narrower, never wider.
    for name, found in same["measures"].items():
        assert row["measures"][name]["value"] == found["value"]
        assert row["measures"][name]["low"] >= found["low"] - 1e-12
        assert row["measures"][name]["high"] <= found["high"] + 1e-12
    assert some_pairs == [pairs[0], *(line for line in pairs if ",man_is_to_programmer," in line)]
    assert part["total"]["verdicts"] == whole["total"]["verdicts"]


@pytest.mark.parametrize("has_published_data", [False, True])
def test_a_checkpoint_with_permuted_labels_is_refused_with_the_right_order(
    tmp_path: Path, has_published_data: bool
) -> None:
    """The order of the labels is judged on the probe alone: the hard controls of the published files say nothing."""
    folder = tmp_path / "swapped"
    shutil.copytree(shared_path("models", "tiny-nli"), folder, copy_function=shutil.copyfile)
    edit_config(folder, id2label={"0": "contradiction", "1": "neutral", "2": "entailment"}, label2id=None)
    own = shared_path("data", "bbnli") if has_published_data else write_one_subtopic(tmp_path / "data")
    data = f"--bbnli-data={own}"
    refused = run_pytest(f"--model={folder}", data, "-k", "programmer")
    assert refused.returncode == pytest.ExitCode.TESTS_FAILED
    assert "says its outputs are contradiction,neutral,entailment" in refused.stdout
    assert "--bbnli-labels=entailment,neutral,contradiction" in refused.stdout
    assert " errors" in refused.stdout.splitlines()[-1]
    if has_published_data:
        return
    mended = run_pytest(f"--model={folder}", data, "--bbnli-labels=entailment,neutral,contradiction")
    assert "bbnli/gender/man_is_to_programmer" in mended.stdout
    assert "error" not in mended.stdout.splitlines()[-1]


def test_a_two_label_head_says_what_it_cannot_measure(tmp_path: Path) -> None:
    folder = save_checkpoint(tmp_path / "two", ("entailment", "not_entailment"), max_length=128)
    data = f"--bbnli-data={write_one_subtopic(tmp_path / 'data')}"
    done = run_pytest(f"--model={folder}", data)
    # Random weights: not competent, and never green.
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "The model has two labels: it cannot answer contradiction" in done.stdout


def test_long_premises_are_counted_in_the_report(tmp_path: Path) -> None:
    folder = save_checkpoint(tmp_path / "short", max_length=16)
    data = f"--bbnli-data={write_one_subtopic(tmp_path / 'data')}"
    done = run_pytest(f"--model={folder}", data, f"--bbnli-report={tmp_path / 'out'}")
    result, _ = read_report(tmp_path / "out")
    assert result["total"]["n_truncated"] > 0
    assert f"Cut off: {result['total']['n_truncated']} of" in done.stdout


def test_a_corrupt_checkpoint_is_an_error_and_never_green(tmp_path: Path) -> None:
    folder = save_checkpoint(tmp_path / "cut")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:500])
    data = f"--bbnli-data={write_one_subtopic(tmp_path / 'data')}"
    done = run_pytest(f"--model={folder}", data)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "its weights cannot be loaded" in done.stdout
    assert "8 errors" in done.stdout  # five of the subtopic and the model, three of its levels
    assert "Traceback" not in done.stdout
