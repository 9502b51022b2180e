"""`bbnli-audit compare` and `report`: from files alone, without a model."""

import json
from pathlib import Path

import pytest

from bbnli_audit.audit.audit import run_audit
from bbnli_audit.core.options import AuditOptions
from bbnli_audit.core.results.file import read_result
from bbnli_audit.frontends.cli.main import main
from bbnli_audit.reports.files import read_pairs
from tests.invented import limits, write_large_suite

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Report folders of planted models on invented data."""
    base = tmp_path_factory.mktemp("reports")
    data = write_large_suite(base / "data")
    found = {kind: base / kind for kind in ("ideal", "always-pro", "always-neutral")}
    for kind, folder in found.items():
        run_audit(AuditOptions(model=f"planted:{kind}", thresholds=limits(), data=data, report=folder))
    return found


def test_a_table_with_the_worst_first(folders: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    given = [str(folders["ideal"]), str(folders["always-pro"] / "result.json"), "--max-increase", "0.02"]
    assert main(["compare", *given]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Candidate planted:always-pro"
    # The suite first: in 200 pairs of 20 premises and 20 hypotheses the lower bound is higher than in 80 of 10 and 8.
    assert lines[2].split() == ["FAIL", "bbnli", "lean", "0.000", "1.000", "+1.000", "+0.839", "+1.121", "0.0001", "-",
                                "-"]  # fmt: skip
    assert [
        "FAIL", "bbnli/oceans/fins_are_to_singing", "pro", "0.000", "1.000", "+1.000", "+0.862", "+1.000",
        "0.0005", "80", "0",
    ] in [line.split() for line in lines]  # fmt: skip
    assert [line.split()[1].count("/") for line in lines[2:12]] == [0, 0, 1, 1, 1, 1, 2, 2, 2, 2]
    assert "10 more measures did not change." in lines
    assert any("Against the baseline planted:ideal" in line and "200 shared pairs" in line for line in lines)


def test_a_model_compared_with_itself_has_not_grown(
    folders: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(folders["ideal"]), str(folders["ideal"]), "--max-increase", "0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "nothing can have grown" in line] == lines[-1:]


def test_the_other_way_round_nothing_is_worse(folders: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    # 10 premises and 8 hypotheses show that nothing grew by more than 0.069.
    given = [str(folders["always-pro"]), str(folders["ideal"]), "--max-increase", "0.07", "--json"]
    assert main(["compare", *given]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {one["verdict"] for one in document["regressions"]} == {"PASS"}
    fixed = dict.fromkeys(("lean", "pro_rate", "anti_rate", "brittleness_rate"), 0)
    for one in document["regressions"]:
        fixed[one["measure"]] += len(one["fixed"])
    assert fixed == {"lean": 200, "pro_rate": 200, "anti_rate": 0, "brittleness_rate": 0}


def test_a_page(folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    given = [str(folders["ideal"]), str(folders["always-pro"]), "--max-increase", "0.02", "--html", str(page)]
    assert main(["compare", *given]) == 1
    text = page.read_text(encoding="utf-8")
    assert "planted:always-pro" in text
    assert "planted:ideal" in text
    assert "Singing comes easily" not in text
    assert main(["compare", *given]) == 1, "a page of ours is replaced"
    page.write_text("theirs")
    assert main(["compare", *given]) == 4
    assert "is there already, and is not the page of a comparison" in capsys.readouterr().err
    assert page.read_text() == "theirs"


@pytest.mark.parametrize(
    ("baseline", "candidate", "more", "message"),
    [
        ("always-neutral", "ideal", ["--max-increase=0.02"], "planted:always-neutral was not competent"),
        ("ideal", "always-pro", [], "thresholds.yaml: there is no such file, so the margin is not known"),
        ("nothing", "ideal", ["--max-increase=0.02"], "nothing: there is no such file"),
        (
            "ideal",
            "always-pro",
            ["--max-increase=0.02", "--html=no/such/page.html"],
            "--html=no/such/page.html: cannot",
        ),
    ],
)
def test_what_is_refused(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    baseline: str, candidate: str, more: list[str], message: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    given = [str(folders.get(name, Path(name))) for name in (baseline, candidate)]
    assert main(["compare", *given, *more]) == 4
    error = capsys.readouterr().err
    assert error.startswith("ERROR: ")
    assert message in error


@pytest.mark.parametrize("margin", ["2", "much"])
def test_a_margin_that_is_not_a_share(
    folders: dict[str, Path], capsys: pytest.CaptureFixture[str], margin: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["compare", str(folders["ideal"]), str(folders["always-pro"]), f"--max-increase={margin}"])
    assert ended.value.code == 4
    assert f"ERROR: argument --max-increase: '{margin}' is not a share from 0 to 1" in capsys.readouterr().err


def test_the_margin_may_come_from_a_threshold_file(
    folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "limits.yaml"
    file.write_text("version: 1\ncompetence: {min_control_accuracy: 0.6}\ndefaults: {max_pro: 0.1}\n")
    given = ["compare", str(folders["ideal"]), str(folders["always-pro"]), "--thresholds", str(file), "--json"]
    assert main(given) == 4
    assert "has no margin for growth" in capsys.readouterr().err
    file.write_text(f"{file.read_text()}regression: {{max_increase: 1.0}}\n")
    assert main(given) == 0
    assert json.loads(capsys.readouterr().out)["regressions"][0]["margin"] == 1.0


@pytest.mark.parametrize("without", [None, "pairs.parquet"], ids=["from parquet", "from csv"])
def test_reports_made_again_are_the_same(folders: dict[str, Path], tmp_path: Path, without: str | None) -> None:
    folder = tmp_path / "copy"
    folder.mkdir()
    for name in ("result.json", "pairs.parquet", "pairs.csv"):
        if name != without:
            (folder / name).write_bytes((folders["always-pro"] / name).read_bytes())
    assert main(["report", str(folder)]) == 0
    for name in ("report.html", "summary.md", "model_card.md"):
        assert (folder / name).read_bytes() == (folders["always-pro"] / name).read_bytes(), name


def test_reports_are_not_written_over_the_files_of_others(
    folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "summary.md").write_text("theirs")
    assert main(["report", str(folders["ideal"]), "--output", str(tmp_path)]) == 4
    assert "holds a summary.md that no audit wrote" in capsys.readouterr().err
    assert [path.read_text() for path in tmp_path.iterdir()] == ["theirs"]


def test_pairs_are_read_back_unchanged(folders: dict[str, Path], tmp_path: Path) -> None:
    result = read_result(folders["always-pro"])
    whole = read_pairs(result, folders["always-pro"])
    (tmp_path / "pairs.csv").write_bytes((folders["always-pro"] / "pairs.csv").read_bytes())
    again = read_pairs(result, tmp_path)
    assert whole.frame.equals(again.frame)
    assert whole.reading is again.reading


def test_pairs_of_another_run_are_refused(
    folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "result.json").write_bytes((folders["ideal"] / "result.json").read_bytes())
    assert main(["report", str(tmp_path)]) == 4
    assert "has neither pairs.parquet nor pairs.csv" in capsys.readouterr().err
    (tmp_path / "pairs.csv").write_bytes((folders["always-pro"] / "pairs.csv").read_bytes())
    assert main(["report", str(tmp_path)]) == 4
    assert "is not of the same run as result.json beside it" in capsys.readouterr().err
    (tmp_path / "pairs.parquet").write_text("no parquet")
    assert main(["report", str(tmp_path)]) == 4
    assert "pairs.parquet: is not valid Parquet: ArrowInvalid" in capsys.readouterr().err
