"""The rules for files of quads: sound data has no finding, and each rule finds its planted fault."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bbnli_audit.suites.bbnli import OWN_DATA
from bbnli_audit.suites.check_quads import check_quads, mean_shared_words, mtld
from bbnli_audit.suites.quad_file import QuadFile, read_quad_file

pytestmark = pytest.mark.slow
SOUND = sorted(OWN_DATA.glob("*/*.json"))[:2]  # two of our own files, which the rules are made for

Change = Callable[[dict[str, Any]], object]


def findings(tmp_path: Path, change: Change, published: tuple[str, ...] = ()) -> list[str]:
    """Check two sound files, the first of them changed."""
    files: dict[Path, QuadFile] = {}
    for n, path in enumerate(SOUND):
        data = json.loads(path.read_text(encoding="utf-8"))
        if n == 0:
            change(data)
        copy = tmp_path / path.name
        copy.write_text(json.dumps(data), encoding="utf-8")
        files[copy] = read_quad_file(copy)
    return [str(finding) for finding in check_quads(files, published)]


def keep(key: str, n: int) -> Change:
    return lambda data: data.update({key: data[key][:n]})


def _few_premises(data: dict[str, Any]) -> None:
    scenes = [each["id"] for each in data["premises"] if each["kind"] == "scene"][8:]
    data["premises"] = [each for each in data["premises"] if each["id"] not in scenes]
    for hypothesis in data["hypotheses"]:
        hypothesis["premises"] = [each for each in hypothesis["premises"] if each not in scenes] or ["a1"]


def _crowd(data: dict[str, Any]) -> None:
    for hypothesis in data["hypotheses"]:
        hypothesis["premises"] = ["a1"]


def _compare(data: dict[str, Any]) -> None:
    for n, hypothesis in enumerate(data["hypotheses"][:60]):
        hypothesis.update(about="both", form="comparative", text=f"{{{{GROUP1}}}} beat {{{{GROUP2}}}} at game {n}.")


def _repeat_words(data: dict[str, Any]) -> None:
    for premise in data["premises"]:
        group = " {{GROUP1}} came" if premise["kind"] == "disparity" else ""
        premise["text"] = f"On the long grey road to the old mill by the river{group} number {premise['id']}."


def _keep_the_order(data: dict[str, Any]) -> None:
    premises = {each["id"]: each for each in data["premises"]}
    for control in data["controls"]:
        first = re.findall("GROUP[12]", premises[control["follows_from"]]["text"])[0]
        control["text"] = f"{{{{{first}}}}} are in it, says {control['id']}."


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (keep("sources", 1), "has 1 sources; a verdict needs 2 or more"),
        (keep("hypotheses", 80), "has 80 hypotheses; a verdict needs 90 or more"),
        (keep("controls", 10), "has 60 controls; a verdict needs 96 or more"),
        (_few_premises, "has 8 scenes; a verdict needs 12 or more"),
        (_crowd, "a1: is in 100.0% of the pairs, more than 6%"),
        (_crowd, "a2: meets no hypothesis"),
        (_compare, "hypotheses name both groups, more than a third"),
        (lambda data: data["hypotheses"][0].update(about="both"), "is said to be about both, and names GROUP"),
        (lambda data: data["premises"][2].update(text="A short one."), "has 3 words; premises have 10 to 45"),
        (_keep_the_order, "controls: in 20 of 20 facts the first group is also the first in the premise"),
        (_repeat_words, "of their content words on average, more than 0.2"),
        (_repeat_words, "the premises have a lexical variety (MTLD) of"),
        (
            lambda data: data["hypotheses"][1].update(text=data["hypotheses"][0]["text"]),
            "says nearly the same as",
        ),
        (lambda data: data["premises"][3].update(text="An moon " * 6), "reads 'An moon'; it needs a"),
    ],
)
def test_each_rule_finds_its_fault(tmp_path: Path, change: Change, message: str) -> None:
    assert [found for found in findings(tmp_path, change) if message in found]


def test_a_published_template_is_recognised(tmp_path: Path) -> None:
    text = "On the red moon many {{GROUP1}} gather to watch the juggling of {{GROUP2}} at dawn."
    found = findings(tmp_path, lambda data: data["premises"][0].update(text=text), (text,))
    assert [each for each in found if "with a published template" in each and ": a1: " in each]


def test_a_sentence_of_two_files_is_found(tmp_path: Path) -> None:
    other = json.loads(SOUND[1].read_text(encoding="utf-8"))["premises"][2]["text"]
    found = findings(tmp_path, lambda data: data["premises"][2].update(text=other))
    assert len([each for each in found if f"is in {SOUND[0].name} as well" in each]) == 1


def test_variety_and_shared_words() -> None:
    assert mtld(["the", "cat"] * 40) < 5
    assert mtld([f"word{n}" for n in range(80)]) == float("inf")
    assert mean_shared_words(["the red moon", "a red sun", "the sea"]) == pytest.approx((1 / 3 + 0 + 0) / 3)
