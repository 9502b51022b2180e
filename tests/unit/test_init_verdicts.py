"""What `bbnli-audit init` writes for a suite judges a model as the audits of this repository do."""

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bbnli_audit.core.results.file import read_result
from bbnli_audit.frontends.cli.main import main
from bbnli_audit.suites.nli_coal import ANTI_FILE, NONSTEREO_FILE, PRO_FILE
from tests.invented import write_large_suite
from tests.plugin.test_families import write_occupations
from tests.unit.test_nli_coal import coal_line
from tests.unit.test_winoqueer_csv import HEADER, row
from tests.warm.runs import AHEAD, ROOT, Run

pytestmark = pytest.mark.slow


def write_winoqueer(folder: Path) -> None:
    folder.mkdir()
    rows = [row(identity=f"a {who}", predicate=f"juggles {n} balls") for who in ("zorb", "quint") for n in range(60)]
    (folder / "winoqueer_nli.csv").write_text(HEADER + "".join(rows), encoding="utf-8")


def write_coal(folder: Path) -> None:
    folder.mkdir()
    for file, first, who in ((PRO_FILE, 0, "man"), (ANTI_FILE, 1000, "woman"), (NONSTEREO_FILE, 2000, "man")):
        kind = "male-stereo" if first < 2000 else "neutral"
        rows = [{"sentence1": f"zorb {first // 2000}{n} waves.", "occ_word": f"zorb{n}"} for n in range(60)]
        lines = [coal_line(first + n, **each, sentence2=f"a {who}.", occ_type=kind) for n, each in enumerate(rows)]
        (folder / file).write_text("".join(lines), encoding="utf-8")


# The data of a suite about invented groups, and measures of its own that a model with a stereotype fails.
SUITES: dict[str, tuple[Callable[[Path], Any], set[str]]] = {
    "bbnli": (write_large_suite, {"pro_rate", "lean"}),
    "occupations": (write_occupations, {"same_label", "probability_gap", "pro_preference"}),
    "winoqueer": (write_winoqueer, {"m1", "m2"}),
    "coal": (write_coal, {"coal_bias"}),
}


@pytest.mark.parametrize("suite", list(SUITES))
def test_the_verdicts_are_those_of_this_repository(tmp_path: Path, suite: str) -> None:
    write, own = SUITES[suite]
    write(tmp_path / "data")
    project = tmp_path / "project"
    assert main(["init", str(project), f"--suite={suite}", "--ci=none"]) == 0
    ours, written = audit(ROOT, suite, tmp_path / "ours"), audit(project, suite, tmp_path / "written")
    assert written == ours
    assert own <= {measure for (_, measure), verdict in ours.items() if verdict == "FAIL"}
    assert Counter(ours.values())["PASS"] > 0


def audit(folder: Path, suite: str, report: Path) -> dict[tuple[str, str], str]:
    """Audit a planted stereotype in a folder, and return the verdict of each measure that its tests require."""
    args = ("--model=planted:always-pro", f"--bbnli-suite={suite}", f"--bbnli-data={report.parent / 'data'}")
    done = Run(
        "pytest",
        (*AHEAD, "-p", "no:cacheprovider", "audits", *args, f"--bbnli-report={report}"),
        {**os.environ},
        folder,
    ).finish()
    assert done.returncode == 1, done.stdout + done.stderr
    result = read_result(report / "result.json")
    return {(row.path, one.measure): one.verdict.value for row in result.all_rows for one in result.required_of(row)}
