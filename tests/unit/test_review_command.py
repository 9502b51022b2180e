"""`extend review`, `annotations` and `agree` as commands: what they print, write and refuse."""

import csv
import os
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from bbnli_audit.core.errors import AuditError
from bbnli_audit.workbench.review.judgements import Given, Judgements
from tests.review_workspace import make_items, parse, run, serving, state, write_items

ITEMS = make_items(6)
LABELS = {
    "ana": ["valid-pro", "valid-anti", "invalid", "incoherent", "valid-pro", "invalid"],
    "ben": ["valid-pro", "valid-anti", "invalid", "invalid", "valid-anti", "invalid"],
}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    write_items(tmp_path / "work", ITEMS)
    return tmp_path / "work"


def judge(work: Path, **said: list[str]) -> None:
    with Judgements(work / "review.sqlite") as judgements:
        judgements.take(
            Given(name, item.id, state(label))
            for name, labels in said.items()
            for item, label in zip(ITEMS, labels, strict=False)
        )


def reviewed(work: Path) -> list[tuple[str, str, str]]:
    with (work / "reviewed.csv").open(encoding="utf-8", newline="") as file:
        return [(row["verdict"], row["stance"], row["decided_by"]) for row in csv.DictReader(file)]


def test_agree_prints_numbers_and_no_sentence_and_writes_the_files(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judge(work, **LABELS)
    assert run(["agree", str(work), "--per-subtopic"]) == 0
    out = capsys.readouterr().out
    lines = [line.split() for line in out.splitlines()]
    lines = [line[: line.index("to") - 1] if "to" in line and line[0] == "ana" else line for line in lines]  # no bounds
    # By hand: alike 5 and 4 of 6. Verdicts by chance (3 * 3 + 2 * 3 + 1 * 0) / 36 = 15 / 36; (30 - 15) / (36 - 15).
    assert ["ana", "/", "ben", "all", "verdict", "6", "83.3%", "0.714"] in lines
    # With stances by chance (2 * 1 + 1 * 2 + 2 * 3 + 1 * 0) / 36 = 10 / 36; (24 - 10) / (36 - 10).
    assert ["ana", "/", "ben", "all", "verdict", "and", "stance", "6", "66.7%", "0.538"] in lines
    assert ["ana", "/", "ben", "planets/zorvians_are_to_juggling", "verdict", "3", "100.0%", "1.000"] in lines
    assert f"Annotators disagree on 2 items: {work / 'disagreements.csv'}" in out
    assert "Decided (policy drop): 2 invalid, 1 valid (anti), 1 valid (pro)" in out
    assert not any(word in out for item in ITEMS for word in (item.hypothesis, item.word))
    assert reviewed(work) == [
        ("valid", "pro", "agreement"),
        ("valid", "anti", "agreement"),
        ("invalid", "", "agreement"),
        ("", "", "dropped"),
        ("", "", "dropped"),
        ("invalid", "", "agreement"),
    ]


def test_the_same_judgements_give_the_same_bytes(work: Path) -> None:
    judge(work, **LABELS)
    run(["agree", str(work)])
    first = (work / "reviewed.csv").read_bytes(), (work / "disagreements.csv").read_bytes()
    (work / "review.sqlite").unlink()
    judge(work, ben=LABELS["ben"])
    judge(work, ana=LABELS["ana"])
    run(["agree", str(work)])
    assert ((work / "reviewed.csv").read_bytes(), (work / "disagreements.csv").read_bytes()) == first


def test_unjudged_items_keep_the_decisions_from_being_written(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judge(work, ana=LABELS["ana"], ben=LABELS["ben"][:4])
    assert run(["agree", str(work)]) == 1
    assert "reviewed.csv was not written. 2 items need two judgements" in capsys.readouterr().out
    assert not (work / "reviewed.csv").exists()
    assert run(["agree", str(work), "--allow-unfinished"]) == 0
    assert [decided for _, _, decided in reviewed(work)].count("unjudged") == 2


def test_open_items_wait_for_a_third_opinion(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judge(work, **LABELS)
    assert run(["agree", str(work), "--policy", "third"]) == 1
    assert "2 items need a third opinion (extend review --disagreements)" in capsys.readouterr().out
    with serving(work, "cem", options=["--disagreements"]) as running:
        assert "0 of 2 judged" in running.output
    with Judgements(work / "review.sqlite") as judgements:
        judgements.take(Given("cem", ITEMS[n].id, state(label)) for n, label in ((3, "incoherent"), (4, "valid-anti")))
    assert run(["agree", str(work), "--policy", "third"]) == 0
    assert reviewed(work)[3:5] == [("incoherent", "", "majority"), ("valid", "anti", "majority")]


def test_nobody_is_asked_for_a_third_opinion_where_others_agree(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judge(work, ana=LABELS["ana"])
    assert run(["review", str(work), "--annotator", "cem", "--disagreements"]) == 0
    assert "There is nothing for cem to judge" in capsys.readouterr().out


def test_agree_before_anyone_judged_says_so(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["agree", str(work)]) == 1
    out = capsys.readouterr().out
    assert "Agreement needs two annotators" in out
    assert "6 items need two judgements" in out


def test_judgements_of_items_that_are_gone_are_told_and_not_counted(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judge(work, **LABELS)
    run(["agree", str(work)])
    write_items(work, ITEMS[:3])
    capsys.readouterr()
    assert run(["agree", str(work)]) == 0
    out = capsys.readouterr().out
    assert "items.csv has changed since judging began. Judgements of 3 items no longer there are kept" in out
    assert "3 items. ana: 3 judged; ben: 3 judged" in out


@pytest.mark.parametrize("kind", ["csv", "label-studio"])
def test_export_and_import_carry_judgements_to_another_folder(
    work: Path, tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    judge(work, **LABELS)
    file = str(tmp_path / "judgements")
    assert run(["annotations", "export", str(work), file, "--format", kind]) == 0
    assert ": 12 judgements" in capsys.readouterr().out
    write_items(tmp_path / "other", ITEMS)
    for expected in ("Added: 12 judgements. There already: 0.", "Added: 0 judgements. There already: 12."):
        assert run(["annotations", "import", str(tmp_path / "other"), file, "--format", kind]) == 0
        assert expected in capsys.readouterr().out
    with Judgements(work / "review.sqlite") as ours, Judgements(tmp_path / "other" / "review.sqlite") as theirs:
        assert ours.states() == theirs.states()


def test_items_and_interface_for_label_studio_hold_no_judgement(
    work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judge(work, **LABELS)
    tasks, interface = tmp_path / "tasks.json", tmp_path / "interface.xml"
    options = ["--format", "label-studio", "--items-only", "--config", str(interface)]
    assert run(["annotations", "export", str(work), str(tasks), *options]) == 0
    assert "0 judgements of 6 items" in capsys.readouterr().out
    assert "ana" not in tasks.read_text(encoding="utf-8")
    assert '<Choices name="verdict"' in interface.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["review", "WORK", "--annotator", "ana", "--annotator", " ana"], "--annotator ana: is given twice"),
        (["review", "WORK", "--annotator", "\t"], "a name has 1 to 64 printable characters"),
        (["review", "WORK", "--annotator", "ana", "--break-minutes", "-1"], "--break-minutes and --break-judgements"),
        (["review", "WORK", "--annotator", "ana", "--break-minutes", "nan"], "--break-minutes and --break-judgements"),
        (
            ["review", "WORK", "--annotator", "ana", "--port", "99999"],
            "--port 99999: cannot be used: a port is a number from 1",
        ),
        (["review", "NOWHERE", "--annotator", "ana"], "items.csv: there is no such file"),
        (["annotations", "export", "WORK", "NOWHERE/file.csv"], "file.csv: cannot be written: No such file"),
        (["annotations", "export", "WORK", "WORK/items.csv"], "items.csv: already exists, and no file is overwritten"),
        (
            ["annotations", "export", "WORK", "f", "--format", "label-studio", "--config", "WORK/items.csv"],
            "items.csv: already exists, and no file is overwritten",
        ),
        (["annotations", "export", "WORK", "f", "--items-only"], "--items-only and --config need --format label"),
        (["annotations", "import", "WORK", "f", "--name", "3=ana"], "--name needs --format label-studio"),
        (
            ["annotations", "import", "WORK", "f", "--format", "label-studio", "--name", "ana"],
            "--name ana: expected USER=NAME",
        ),
        (["annotations", "import", "WORK", "NOWHERE"], "there is no such file"),
    ],
)
def test_wrong_use_is_told(work: Path, tmp_path: Path, arguments: list[str], message: str) -> None:
    places = {"WORK": str(work), "NOWHERE": str(tmp_path / "nowhere"), "f": str(tmp_path / "f")}
    given = [
        places.get(each, each.replace("NOWHERE", places["NOWHERE"]).replace("WORK/", f"{work}/")) for each in arguments
    ]
    with pytest.raises(AuditError, match=message):
        run(given)


def test_a_port_that_is_taken_is_told(work: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(AuditError, match=f"--port {port}: cannot be used: .*Leave out --port"):
            run(["review", str(work), "--annotator", "ana", "--port", str(port)])


def test_a_foreign_file_in_the_place_of_the_judgements_is_told(work: Path) -> None:
    with sqlite3.connect(work / "review.sqlite") as connection:
        connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    with pytest.raises(AuditError, match=r"review.sqlite: is not a file of judgements"):
        run(["agree", str(work)])


def test_an_annotator_is_required(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(["review", "WORK"])
    assert ended.value.code == 4
    assert "--annotator" in capsys.readouterr().err


_WITHOUT = """
import sys
sys.modules["uvicorn"] = None
from tests.review_workspace import run
try:
    run(["review", sys.argv[1], "--annotator", "ana"])
except Exception as exc:
    print(type(exc).__name__, exc)
"""


def test_without_its_packages_the_review_says_what_to_install(work: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT, str(work)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert (
        done.stdout.strip()
        == 'OptionError The review page needs the package uvicorn: pip install "bbnli-audit[review]"'
    )
    assert not (work / "review.sqlite").exists()
