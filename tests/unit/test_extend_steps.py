"""The workbench from end to end on invented groups: a release that loads, and the same one after any interruption."""

import csv
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from bbnli_audit.frontends.cli.main import main
from bbnli_audit.suites.bbnli import Bbnli
from bbnli_audit.suites.bbnli_next import BbnliNext
from bbnli_audit.workbench.extend.release import COLUMNS as STATISTICS
from bbnli_audit.workbench.review.exchange import COLUMNS
from tests.invented import write_large_suite, write_templates
from tests.tiny_language_model import save_lm
from tests.workbench_models import hasty

pytestmark = pytest.mark.slow

HASTY, CAREFUL, GULLIBLE = (f"tests.workbench_models:{name}" for name in ("hasty", "careful", "gullible"))


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A suite of invented groups and a masked language model."""
    folder = tmp_path_factory.mktemp("given")
    write_large_suite(folder / "data", n_premises=6)
    save_lm(folder / "lm", "bert")
    return folder


def extend(step: str, work: Path, *args: str) -> int:
    return main(["extend", step, str(work), *args])


def judge(work: Path, annotators: tuple[str, ...] = ("ana", "ben")) -> Path:
    """Judge as people might: every third hypothesis is incoherent; one that names Zorbs or Fins first is pro."""
    with (work / "items.csv").open(encoding="utf-8", newline="") as file:
        items = list(csv.DictReader(file))
    path = work.parent / f"{work.name}.judgements.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for at, item in enumerate(items):
            first = min(("Zorbs", "Quints", "Fins", "Gills"), key=lambda group: item["hypothesis"].find(group) % 999)
            stance = "pro" if first in ("Zorbs", "Fins") else "anti"
            said = ("incoherent", "") if at % 3 == 2 else ("valid", stance)
            for name in annotators:
                writer.writerow((item["item"], name, *said, "", "2026-01-01T00:00:00.000000Z"))
    return path


def run_all(given: Path, work: Path, subtopics: str = "*", sample: int = 999) -> Path:
    """Run every step in order; those that were done before say so."""
    chosen = [] if subtopics == "*" else [f"--subtopics={subtopics}"]
    drawn = [] if sample == 999 else [f"--sample={sample}"]
    assert extend("mask", work, f"--data={given / 'data'}", *chosen) == 0
    assert extend("expand", work) == 0
    assert extend("fill", work, f"--model={given / 'lm'}", "--top=4", "--device=cpu") == 0
    assert extend("filter", work, f"--model={HASTY}", f"--model={CAREFUL}", f"--held-out={GULLIBLE}", *drawn) == 0
    assert main(["extend", "annotations", "import", str(work), str(judge(work))]) == 0
    assert extend("agree", work) == 0
    assert extend("counterfactual", work) == 0
    assert extend("release", work, "--version=1.0.0") == 0
    return work / "release"


def exchange_groups(text: str) -> str:
    other = {"Zorbs": "Quints", "Quints": "Zorbs", "Fins": "Gills", "Gills": "Fins"}
    return re.sub("|".join(other), lambda match: other[match[0]], text)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def released(given: Path) -> Path:
    return run_all(given, given / "work")


def test_the_release_is_a_suite_with_its_controls(released: Path) -> None:
    suite = BbnliNext(released)
    assert suite.version == "1.0.0"
    assert [subtopic.local_path for subtopic in suite.subtopics()] == [
        "oceans/fins_are_to_singing",
        "planets/zorbs_are_to_juggling",
    ]
    for subtopic in suite.subtopics():
        items = suite.items(subtopic)
        assert items.controls
        assert len(items.usable) == len(items.pairs)
        for pair in items.usable:
            assert pair.pro.premise == pair.anti.premise
            assert exchange_groups(pair.pro.hypothesis) == pair.anti.hypothesis != pair.pro.hypothesis


def test_statistics_add_up_and_agree_with_the_tables(released: Path) -> None:
    with (released / "statistics.csv").open(encoding="utf-8", newline="") as file:
        rows = {row.pop("subtopic"): {key: int(value) for key, value in row.items()} for row in csv.DictReader(file)}
    subtopics = [name for name in rows if "/" in name]
    for name in [column for _, column, _ in STATISTICS]:
        assert rows["all"][name] == sum(rows[path][name] for path in subtopics)
        assert rows["planets"][name] == sum(rows[path][name] for path in subtopics if path.startswith("planets/"))
    work = released.parent
    for file_name, column in (
        ("masked.csv", "masked_templates"),
        ("expanded.csv", "masked_samples"),
        ("filtered.csv", "kept_samples"),
        ("items.csv", "hypotheses_to_judge"),
        ("pairs.csv", "pairs"),
    ):
        with (work / file_name).open(encoding="utf-8", newline="") as file:
            assert rows["all"][column] == sum(1 for _ in csv.DictReader(file))
    assert rows["all"]["samples"] == 2 * rows["all"]["pairs"] > 0


def test_models_before_and_after(released: Path) -> None:
    models = {model["name"]: model for model in json.loads((released / "release.json").read_text())["models"]}
    assert models[CAREFUL]["accuracy_after"] == 1
    assert models[HASTY]["accuracy_after"] < models[HASTY]["accuracy_before"] < 1
    assert [name for name, model in models.items() if model["is_held_out"]] == [GULLIBLE]


def test_some_subtopics_and_a_sample_for_people(given: Path, tmp_path: Path, released: Path) -> None:
    folder = run_all(given, tmp_path / "work", "planets/*", sample=6)
    with (tmp_path / "work" / "items.csv").open(encoding="utf-8", newline="") as file:
        drawn = {item["item"] for item in csv.DictReader(file)}
    with (released.parent / "items.csv").open(encoding="utf-8", newline="") as file:
        assert drawn < {item["item"] for item in csv.DictReader(file)}
    assert len(drawn) == 6
    assert [subtopic.name for subtopic in BbnliNext(folder).subtopics()] == ["zorbs_are_to_juggling"]
    assert [line.split(",")[0] for line in (folder / "statistics.csv").read_text().splitlines()] == [
        *("subtopic", "planets/zorbs_are_to_juggling", "planets", "all")
    ]
    assert "6 hypotheses at most" in (folder / "DATASHEET.md").read_text()
    # Before and after are of the same subtopics.
    suite = Bbnli(given / "data")
    (zorbs,) = [each for each in suite.subtopics() if each.domain == "planets"]
    texts = [text for pair in suite.items(zorbs).usable for text in (pair.pro, pair.anti)]
    models = {model["name"]: model for model in json.loads((folder / "release.json").read_text())["models"]}
    n_neutral = sum(max(range(3), key=lambda at: row[at]) == 1 for row in hasty(texts))
    assert models[HASTY]["accuracy_before"] == pytest.approx(n_neutral / len(texts))


@pytest.mark.parametrize(
    ("step", "args", "message"),
    [
        ("mask", ["--subtopics=planet/*"], "--subtopics=planet/*: names no subtopic of the suite."),
        ("mask", ["--subtopics=,"], "--subtopics=,: names no subtopic. Give paths or patterns, such as gender/*, or"),
        ("mask", ["--subtopics="], "--subtopics=: names no subtopic. Give paths or patterns, such as gender/*, or"),
        ("filter", ["--model=demo", "--sample=0"], "--sample=0: expected a number from 1."),
    ],
)
def test_wrong_choices(
    given: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], step: str, args: list[str], message: str
) -> None:
    data = [f"--data={given / 'data'}"] if step == "mask" else []
    assert extend(step, tmp_path / "work", *data, *args) == 4
    assert message in capsys.readouterr().err


def test_nothing_in_the_release_names_the_machine_or_the_hour(given: Path, released: Path) -> None:
    for name, content in contents(released).items():
        assert str(given).encode() not in content, name
        assert b"seconds" not in content, name
    sheet = contents(released)["DATASHEET.md"].decode()
    assert "Held out, to see what\n   transfers: tests.workbench_models:gullible" in sheet
    assert "5. 2 annotators judged each distinct hypothesis" in sheet
    assert b'"ana"' not in contents(released)["release.json"]


def test_status_of_a_folder_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert extend("status", tmp_path / "nowhere") == 4
    assert "nowhere: there is no such folder, so no step is done. The first is: bbnli-audit" in capsys.readouterr().err


def test_a_step_that_is_done_says_so_and_status_tells_all(
    given: Path, released: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(released)
    run_all(given, released.parent)
    out = capsys.readouterr().out
    assert out.count("(Already done with the same inputs, so the step was not repeated.)") == 6
    assert contents(released) == before
    assert extend("status", released.parent) == 0
    told = capsys.readouterr().out
    assert "not done" not in told
    *_, counterfactual, release = told.splitlines()
    assert re.fullmatch(
        r"counterfactual: valid samples \d+, pairs \d+, samples \d+, same pair \d+, no group \d+, contradicting \d+ .*",
        counterfactual,
    )
    assert re.fullmatch(r"release: pairs \d+, samples \d+ .*", release)
    assert "juggl" not in out + told.replace("zorbs_are_to_juggling", "")  # no sentence


class Broken(BaseException):
    """Ends a command as nothing that it expects would."""


def test_broken_off_at_every_file_it_gives_the_same_release(
    given: Path, released: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupt the run once at every file that is put in place, and start it again."""
    broken: set[str] = set()
    replace: Any = os.replace

    def break_once(source: str, target: Path) -> Any:
        name = Path(target).name
        if name not in broken:
            broken.add(name)
            raise Broken
        return replace(source, target)

    work = tmp_path / "work"
    monkeypatch.setattr(os, "replace", break_once)
    for _ in range(60):
        try:
            run_all(given, work)
        except Broken:
            continue
        break
    else:
        pytest.fail("it does not come to an end")
    assert {"masked.csv", "filled.csv", "items.csv", "pairs.csv", "bbnli_next.csv", "release.manifest.json"} <= broken
    assert contents(work / "release") == contents(released)


def copy(released: Path, tmp_path: Path) -> Path:
    return shutil.copytree(released.parent, tmp_path / "work")


def strike_out(path: Path, n_rows: int) -> None:
    """Remove the last rows of a table, as people do."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows[:-n_rows])


def statistics(work: Path) -> dict[str, int]:
    with (work / "release" / "statistics.csv").open(encoding="utf-8", newline="") as file:
        rows = {row.pop("subtopic"): row for row in csv.DictReader(file)}
    return {name: int(value) for name, value in rows["all"].items()}


def test_what_people_strike_out_is_not_counted(released: Path, tmp_path: Path) -> None:
    work = copy(released, tmp_path)
    before = statistics(work)
    strike_out(work / "pairs.csv", 3)
    assert extend("release", work, "--version=1.0.0") == 0
    after = statistics(work)
    assert (before["pairs"] - after["pairs"], before["samples"] - after["samples"]) == (3, 6)
    about = (work / "release" / "DATASHEET.md").read_text()
    assert f"{after['pairs']} pairs, {after['samples']} samples" in about


def test_a_template_that_people_strike_out_is_gone_from_the_rest(given: Path, released: Path, tmp_path: Path) -> None:
    work = copy(released, tmp_path)
    before = statistics(work)
    strike_out(work / "masked.csv", 1)
    run_all(given, work)
    assert statistics(work)["masked_templates"] == before["masked_templates"] - 1
    assert "changed by hand between steps: masked.csv" in (work / "release" / "DATASHEET.md").read_text()


def test_steps_that_do_not_belong_together_are_not_released(
    given: Path, released: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work = copy(released, tmp_path)
    assert extend("fill", work, f"--model={given / 'lm'}", "--top=2", "--device=cpu") == 0
    assert extend("release", work, "--version=1.0.0") == 4
    assert "filled.csv: has changed since the step 'filter' was done. Repeat that step" in capsys.readouterr().err
    assert extend("filter", work, f"--model={HASTY}", f"--held-out={GULLIBLE}") == 0
    assert extend("counterfactual", work) == 4
    assert "items.csv: has changed since the step 'agree' was done" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["bbnli_next.csv", "controls.csv", "release.json", "DATASHEET.md", "statistics.md"])
def test_a_release_that_is_not_whole_is_made_again(released: Path, tmp_path: Path, name: str) -> None:
    work = copy(released, tmp_path)
    (work / "release" / name).unlink()
    assert extend("release", work, "--version=1.0.0") == 0
    assert contents(work / "release") == contents(released)


def test_a_datasheet_that_people_completed_stays(
    released: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work = copy(released, tmp_path)
    (work / "release" / "DATASHEET.md").write_text("completed by people")
    assert extend("release", work, "--version=1.0.1") == 0
    assert (work / "release" / "DATASHEET.md").read_text() == "completed by people"
    assert "next 1.0.1" in (work / "release" / "DATASHEET.new.md").read_text()
    assert "DATASHEET.md was edited by people and stays" in capsys.readouterr().out


def test_a_pair_that_stands_twice_is_not_released(
    released: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work = copy(released, tmp_path)
    lines = (work / "pairs.csv").read_text().splitlines(keepends=True)
    (work / "pairs.csv").write_text("".join((*lines, lines[-1])))
    assert extend("release", work, "--version=1.0.0") == 4
    assert "the pair has a second pro sample" in capsys.readouterr().err


def test_another_format_holds_the_same(released: Path, tmp_path: Path) -> None:
    work = copy(released, tmp_path)
    assert extend("release", work, "--version=1.0.0", "--format=jsonl") == 0
    names = {path.name for path in (work / "release").iterdir()}
    assert {"bbnli_next.jsonl", "controls.jsonl"} <= names
    assert not {"bbnli_next.csv", "controls.csv"} & names
    ours, theirs = (BbnliNext(folder) for folder in (work / "release", released))
    assert [ours.items(one) for one in ours.subtopics()] == [theirs.items(one) for one in theirs.subtopics()]


@pytest.mark.parametrize(
    ("step", "args", "message"),
    [
        ("mask", ["--strategies=verbs"], "--strategies=verbs: there is no 'verbs'. Did you mean 'verb'?"),
        ("expand", ["--premises=0"], "--premises=0: expected a number from 1"),
        ("fill", ["--model=nowhere"], "--model=nowhere: there is no such folder"),
        ("filter", [f"--model={HASTY}", f"--held-out={HASTY}"], "are the same model"),
        ("filter", ["--model=tests.workbench_models:useless"], "Its errors mean nothing"),
        ("release", ["--version= "], "--version: is empty"),
    ],
)
def test_wrong_use(
    released: Path, capsys: pytest.CaptureFixture[str], step: str, args: list[str], message: str
) -> None:
    assert extend(step, released.parent, *args) == 4
    assert message in capsys.readouterr().err


def test_a_suite_that_is_gone_is_told(given: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(given / "data", tmp_path / "data")
    assert extend("mask", tmp_path / "work", f"--data={tmp_path / 'data'}") == 0
    shutil.rmtree(tmp_path / "data")
    assert extend("expand", tmp_path / "work") == 4
    assert "data: the suite that is extended is no longer there" in capsys.readouterr().err


def test_a_suite_without_controls_says_so(tmp_path: Path, given: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_templates(tmp_path / "data", test_hypothesis=[])
    work = tmp_path / "work"
    assert extend("mask", work, f"--data={tmp_path / 'data'}") == 0
    assert extend("expand", work) == 0
    assert extend("fill", work, f"--model={given / 'lm'}", "--top=1", "--device=cpu") == 0
    assert extend("filter", work, f"--model={HASTY}") == 0
    assert re.search(r"hasty: found \d+; no controls", capsys.readouterr().out)


def test_a_suite_that_changed_is_told(
    given: Path, released: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(given / "data", tmp_path / "data")
    assert extend("mask", tmp_path / "work", f"--data={tmp_path / 'data'}") == 0
    path = next((tmp_path / "data").glob("*/*.json"))
    path.write_text(path.read_text().replace("red", "blue"))
    assert extend("expand", tmp_path / "work") == 4
    assert "has changed since its templates were masked" in capsys.readouterr().err
