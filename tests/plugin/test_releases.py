"""The life of a model, release after release (tools/releases), with callables on invented groups."""

from collections.abc import Sequence
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from bbnli_audit.frontends.cli.main import main
from tests.invented import write_large_suite
from tests.plugin.conftest import QUICK
from tools.releases.story import CLI, Project

# Each release is right on controls, and wrong on a share of the pairs in a way of its own.
MODEL = """
from hashlib import sha256

E, N, C = (0.9, 0.05, 0.05), (0.05, 0.9, 0.05), (0.05, 0.05, 0.9)
KNOWN = {"A workshop is open": E, "The workshop is closed": C}
GROUPS = ("Zorbs", "Quints", "Fins", "Gills")


def draw(text):
    return sha256(text.encode()).digest()[0] / 256


def label(premise, hypothesis, wrong):
    control = hypothesis.partition(" for ")[0]
    if control in KNOWN or "years old" in hypothesis:
        return KNOWN.get(control, N)
    same = f"{premise} {hypothesis}"
    for group in GROUPS:
        same = same.replace(group, "They")
    return wrong(same, f"{premise} {hypothesis}", hypothesis)


def brittle(share):
    return lambda same, text, hypothesis: E if draw(same) < share else N


def noise(same, text, hypothesis):
    return (E, N, C)[int(3 * draw(text))]


def stereotype(same, text, hypothesis):
    if "juggle" not in hypothesis:
        return brittle(0.5)(same, text, hypothesis)
    return E if any(words in hypothesis for words in ("Most Zorbs", "for Zorbs")) else C


def r1(texts):
    return [label(*text, brittle(0.1)) for text in texts]


def r2(texts):
    return [label(*text, brittle(0.0)) for text in texts]


def r4(texts):
    return [label(*text, brittle(0.25)) for text in texts]


def r5(texts):
    return [label(*text, brittle(0.5)) for text in texts]


def r6(texts):
    return [label(*text, noise) for text in texts]


def r7(texts):
    return [label(*text, brittle(1.0)) for text in texts]


def r8(texts):
    return [label(*text, stereotype) for text in texts]
"""
MODELS = {name: f"model:{'r2' if name == 'r3' else name}" for name in ("r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8")}
LIMITS = {"max_brittleness: 0.20": "max_brittleness: 0.90", "max_brittleness: 0.05": "max_brittleness: 0.90"}


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    def command(module: str, args: Sequence[str], folder: Path) -> "CompletedProcess[str]":
        if module == CLI:
            with chdir(folder), redirect_stdout(StringIO()) as out:
                return CompletedProcess(args, main(list(args)), out.getvalue(), "")
        done = pytester.runpytest_inprocess(*args)
        return CompletedProcess(args, int(done.ret), done.stdout.str(), done.stderr.str())

    pytester.makeini(f"[pytest]\naddopts = {' '.join(QUICK)}\npythonpath = .\n")
    pytester.makepyfile(model=MODEL)
    data = write_large_suite(pytester.path / "data")
    project = Project(pytester.path, command, MODELS, [f"--bbnli-data={data}", "-q"])
    project.init("bbnli", LIMITS)
    return project


RELEASE = "Release: no limit was crossed on these pairs"
GREW = (
    "Do not release: brittleness grew since the baseline in the suite bbnli, in the domain bbnli/planets "
    "and in the subtopic bbnli/planets/zorbs_are_to_juggling"
)
WAIVED = f"{RELEASE}, and nothing grew beyond the margin without a waiver (waived: brittleness, 3 verdicts); 22 of 32 "
# Exit code and first line of each audit.
EXPECTED = {
    "r1": (0, f"{RELEASE}; 5 of 12 verdicts are open"),
    "r2": (0, f"{RELEASE}, and no growth beyond the margin was shown; 20 of 32 verdicts are open"),
    "r3": (0, f"{RELEASE}; this is the model of the baseline; 5 of 12 verdicts are open"),
    "r4": (1, GREW),
    "r4-waived": (0, f"{WAIVED}verdicts are open"),
    "r5": (1, GREW),
    "r5-accepted": (0, f"{WAIVED}verdicts are open"),
    "r6": (
        1,
        "Do not release: pro crosses its limit in the subtopic bbnli/oceans/fins_are_to_singing; "
        "pro grew since the baseline in the suite bbnli, in the domain bbnli/planets and in 2 subtopics; "
        "and 1 more reason",
    ),
    "r7": (
        1,
        "Do not release: brittleness crosses its limit in the suite bbnli; "
        "brittleness grew since the baseline in the suite bbnli, in 2 domains and in 2 subtopics",
    ),
    "r8": (
        1,
        "Do not release: lean crosses its limit in the suite bbnli, in the domain bbnli/planets and in the subtopic "
        "bbnli/planets/zorbs_are_to_juggling; pro crosses its limit in the subtopic "
        "bbnli/planets/zorbs_are_to_juggling; and 2 more reasons",
    ),
}


def test_release_after_release(project: Project) -> None:
    found = list(project.audits())
    assert {each.step.name: (each.code, each.line) for each in found} == EXPECTED
    assert all(each.page.exists() for each in found)
    better = "overall fewer samples are wrong than in the baseline: in the suite bbnli, 0.000 of the samples are wrong"
    assert better in found[1].output
    history = project.history()
    comment = (history / "comment.md").read_text(encoding="utf-8")
    # r3 is the model of r2, and all of them are releases of one model. The newest is compared with its baseline.
    assert "`r8` (`2026-08-15`) against `r5` (`2026-05-15`)" in comment
    assert comment.index("Grown by more than the margin") < comment.index("| suite, domain, subtopic |")
    assert "`bbnli/planets` `pro` +1.000 (margin 0.020)" in comment
    page = (history / "history.html").read_text(encoding="utf-8")
    assert page.count("FAIL: growth") == 3, "at the suite, a domain and a subtopic"
    assert "Models side by side" not in page, "all of them are releases of one model"
    assert ">grew<" in page
    assert ">grew (waived)<" in page
    assert {path.name for path in history.iterdir()} == {"badge.svg", "comment.md", "flips.csv", "history.html"}
