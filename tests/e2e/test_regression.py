"""Two real checkpoints against each other, both ways; what the report lists is what the pair tables show."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from bbnli_audit.frontends.cli.main import main
from tests.e2e.runs import run_pytest, write_one_subtopic
from tests.shared_data import shared_path

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Audit each of two checkpoints against the other; the second time from stored predictions."""
    folder = tmp_path_factory.mktemp("reports")
    write_one_subtopic(folder / "data")
    models = {name: shared_path("models", f"{name}-nli") for name in ("tiny", "minilm")}

    def audit(name: str, report: str, *args: str) -> Path:
        given = [
            f"--model={models[name]}",
            f"--bbnli-data={folder / 'data'}",
            f"--bbnli-store={folder / 'store.sqlite'}",
        ]
        done = run_pytest(*given, f"--bbnli-report={folder / report}", *args)
        assert (folder / report / "report.html").is_file(), done.stdout
        return folder / report

    first = audit("tiny", "first")
    minilm = audit("minilm", "minilm", f"--bbnli-baseline={first}")
    return {"first": first, "minilm": minilm, "tiny": audit("tiny", "tiny", f"--bbnli-baseline={minilm}")}


def counted(folder: Path) -> dict[str, dict[str, int]]:
    """Count from the labels alone how many samples of each pair add to which cause."""
    found = {}
    for pair in pq.read_table(folder / "pairs.parquet").to_pylist():
        labels = (pair["pro_label"], pair["anti_label"])
        n_wrong = sum(label != "neutral" for label in labels)
        if labels[0] == labels[1]:
            cause = "brittleness_rate"
        elif labels[0] == "entailment" or labels[1] == "contradiction":
            cause = "pro_rate"
        else:
            cause = "anti_rate"
        found[pair["pair_id"]] = {cause: n_wrong}
    return found


def added(causes: dict[str, int], regression: dict[str, Any]) -> int:
    """Return how many samples of a pair add to a measure."""
    if regression["measure"] == "lean":
        return causes.get("pro_rate", 0) - causes.get("anti_rate", 0)
    return causes.get(regression["measure"], 0)


@pytest.mark.parametrize(("baseline", "candidate"), [("first", "minilm"), ("minilm", "tiny")])
def test_flipped_pairs_agree_with_a_diff_of_the_pair_tables(
    reports: dict[str, Path], baseline: str, candidate: str
) -> None:
    before, after = counted(reports[baseline]), counted(reports[candidate])
    assert before.keys() == after.keys()
    comparison = json.loads((reports[candidate] / "result.json").read_text())["comparison"]
    assert comparison["n_shared"] == len(before) == 290
    assert comparison["n_tests"] == 12  # four measures of the suite, the domain and the subtopic
    n_changed = 0
    for regression in comparison["regressions"]:
        growth = {pair_id: added(after[pair_id], regression) - added(before[pair_id], regression) for pair_id in before}
        if regression["path"].count("/") == 2:
            assert ids(regression["flipped"]) == {pair_id for pair_id, n in growth.items() if n > 0}
            assert ids(regression["fixed"]) == {pair_id for pair_id, n in growth.items() if n < 0}
        assert regression["increase"]["value"] == pytest.approx(sum(growth.values()) / (2 * len(growth)))
        n_changed += len(regression["flipped"])
    assert n_changed > 0


def test_the_two_directions_mirror_each_other(reports: dict[str, Path]) -> None:
    there, back = (
        json.loads((reports[name] / "result.json").read_text())["comparison"]["regressions"]
        for name in ("minilm", "tiny")
    )
    for one, other in zip(there, back, strict=True):
        assert one["increase"]["value"] == -other["increase"]["value"]
        assert ids(one["flipped"]) == ids(other["fixed"])


def ids(changes: list[dict[str, Any]]) -> set[str]:
    return {change["pair_id"] for change in changes}


def test_a_report_made_again_from_its_files_is_the_same(reports: dict[str, Path], tmp_path: Path) -> None:
    assert main(["report", str(reports["minilm"]), "--output", str(tmp_path)]) == 0
    for name in ("report.html", "summary.md", "model_card.md"):
        assert (tmp_path / name).read_bytes() == (reports["minilm"] / name).read_bytes(), name


def test_compare_says_the_same_as_the_run(reports: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(reports["first"]), str(reports["minilm"]), "--json"]) in (0, 1)
    compared = json.loads(capsys.readouterr().out)
    told = json.loads((reports["minilm"] / "result.json").read_text())["comparison"]
    assert compared["regressions"] == told["regressions"]
