"""`bbnli-audit suites texts` writes what a model elsewhere must predict."""

import csv
import json
from pathlib import Path

import pytest

from bbnli_audit.core.values import TEMPLATE_PAIRINGS, Pairing, TextPair
from bbnli_audit.frontends.cli.main import main
from bbnli_audit.frontends.cli.suites import needed_texts
from bbnli_audit.suites.bbnli import Bbnli
from bbnli_audit.suites.probe import probe_items
from tests.invented import template_data, write_templates
from tests.recorded_files import (
    lines,
)


@pytest.mark.parametrize("pairing", TEMPLATE_PAIRINGS)
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", None])
def test_the_command_writes_every_text_once_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str | None, pairing: Pairing
) -> None:
    identical = ["Everybody juggles.", 1, 2]  # on a premise without groups
    write_templates(
        tmp_path / "data",
        bias_hypothesis_stereotypical=[*template_data()["bias_hypothesis_stereotypical"], identical],
    )
    path = tmp_path / f"texts{suffix}"
    args = ["suites", "texts", "bbnli", "--data", str(tmp_path / "data"), "--pairing", pairing.value]
    assert main([*args, *(["--output", str(path)] if suffix else [])]) == 0
    out = capsys.readouterr().out
    content = path.read_text(encoding="utf-8") if suffix else out
    if suffix == ".jsonl":
        records = [json.loads(line) for line in content.splitlines()]
    else:
        records = list(csv.DictReader(content.splitlines()))
    found = [TextPair(**record) for record in records]
    suite = Bbnli(tmp_path / "data", pairing)
    items = suite.items(suite.subtopics()[0])
    assert items.n_identical > 0
    expected = {control.text for control in (*probe_items(), *items.controls)}
    expected |= {pair.pro for pair in items.usable} | {pair.anti for pair in items.usable}
    assert set(found) == expected
    assert found == sorted(expected) == needed_texts(suite)
    if suffix:
        assert out == (
            f"Written to {path}: {len(expected)} texts. Add the columns entailment, neutral, contradiction, then: "
            f"pytest --model=predictions:{path}\n"
        )


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("texts.parquet", "texts.parquet: the name must end in .csv or .jsonl."),
        (
            "there.csv",
            "there.csv: is there already and may hold probabilities by now. Remove it, or choose another name.",
        ),
        ("nowhere/texts.csv", "texts.csv: cannot be written: No such file or directory."),
    ],
)
def test_an_output_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], output: str, message: str
) -> None:
    write_templates(tmp_path / "data")
    lines(tmp_path / "there.csv", "dear to somebody")
    args = ["suites", "texts", "--data", str(tmp_path / "data"), "--output", str(tmp_path / output)]
    assert main(args) == 4
    err = capsys.readouterr().err
    assert err.startswith("ERROR: --output=")
    assert err.endswith(f"{message}\n")
    assert (tmp_path / "there.csv").read_text() == "dear to somebody\n"
