"""Stored probabilities of a model are judged as the model itself is."""

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bbnli_audit.core.values import Label, TextPair
from bbnli_audit.frontends.cli.main import main
from bbnli_audit.models.planted import PlantedPredictor
from bbnli_audit.suites.bbnli import Bbnli
from tests.plugin.conftest import Project


def write_predictions(project: Project, kind: str, name: str) -> None:
    """Do as a user does: have the texts written, and add the columns."""
    texts = project.path / "texts.csv"
    texts.unlink(missing_ok=True)
    assert main(["suites", "texts", "--data", str(project.path / "data"), "--output", str(texts)]) == 0
    with texts.open(encoding="utf-8", newline="") as file:
        found = [TextPair(**record) for record in csv.DictReader(file)]
    probabilities = PlantedPredictor(kind, [Bbnli(project.path / "data")]).predict(found).probabilities
    rows = [
        {**text._asdict(), **dict(zip(map(str, Label), values, strict=True))}
        for text, values in zip(found, probabilities.tolist(), strict=True)
    ]
    path = project.path / name
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)


def audit(project: Project, model: str, *args: str) -> tuple[dict[str, int], dict[str, Any], str]:
    folder = Path(project.path, "out")
    outcomes = project.audit(model, f"--bbnli-report={folder}", *args).parseoutcomes()
    return outcomes, json.loads((folder / "result.json").read_text()), (folder / "pairs.csv").read_text()


@pytest.mark.parametrize(
    ("kind", "name", "args"),
    [
        ("random", "stored.csv", []),
        ("random", "stored.jsonl", ["-n2"]),
        ("random", "stored.parquet", []),
        ("always-pro", "stored.csv", []),
        ("ideal", "stored.parquet", ["-n2"]),
    ],
)
def test_a_stored_model_gives_the_figures_of_the_model_itself(
    project: Project, kind: str, name: str, args: list[str]
) -> None:
    write_predictions(project, kind, name)
    outcomes, result, pairs = audit(project, f"predictions:{name}", *args)
    assert result["model"]["name"] == f"predictions:{name}"
    assert result["model"]["kind"] == "recorded"
    expected_outcomes, expected, expected_pairs = audit(project, f"planted:{kind}")
    assert outcomes == expected_outcomes
    assert [row["counts"] for row in result["subtopics"]] == [row["counts"] for row in expected["subtopics"]]
    assert {**result, "model": None} == {**expected, "model": None}
    assert pairs == expected_pairs


def test_missing_texts_are_an_error_that_quotes_none(project: Project) -> None:
    write_predictions(project, "ideal", "stored.csv")
    path = project.path / "stored.csv"
    kept = [line for line in path.read_text().splitlines(keepends=True) if "Singing" not in line]
    path.write_text("".join(kept))
    result = project.audit("predictions:stored.csv", "-vv", "-l")
    result.assert_outcomes(passed=4, errors=3)
    result.stdout.fnmatch_lines(["predictions:stored.csv: 80 of 160 texts that are needed are not in the file.*"])
    assert "Singing" not in result.stdout.str()


def test_a_bad_value_is_told_in_full_once_with_its_line(project: Project) -> None:
    project.write("stored.csv", "premise,hypothesis,entailment,neutral,contradiction\na,b,3,2,1\n")
    result = project.audit("predictions:stored.csv")
    result.assert_outcomes(errors=7)
    result.stdout.fnmatch_lines(["stored.csv:2: entailment is 3; a probability is never above 1. Apply softmax first."])


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--model=predictions:none.csv"], "ERROR: --model=predictions:none.csv: there is no such file."),
        (
            ["--model=predictions:thresholds.yaml"],
            "the file's name ends in '.yaml'. Stored probabilities are read from",
        ),
        (["--model=predictions:a.csv", "--bbnli-labels=e"], "--bbnli-labels=e: 'e' is not a label."),
        (
            ["--model=predictions:a.csv", "--bbnli-labels=entailment,not_entailment"],
            "--bbnli-labels=entailment,not_entailment: is not used with --model=predictions:a.csv",
        ),
    ],
)
def test_what_can_be_seen_at_start_is_a_usage_error(project: Project, args: list[str], message: str) -> None:
    project.write("a.csv", "")
    result = project.run("audits", "--bbnli-data=data", *args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in result.stderr.str()
