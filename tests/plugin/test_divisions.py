"""A suite in another division, held to the limits of the suite."""

import json

import pytest

from tests.invented import LIMITS
from tests.plugin.conftest import Project

OWN = """\
suites:
  winoqueer:
    defaults: {max_m7: 0.30, max_m8: 0.40}
    domains: {pansexual: {max_m8: 0.25, reason: tried out}}
    subtopics: {pansexual/all: {max_m8: 0.60, reason: for the whole suite}}
"""
AUDITS = """
import pytest

@pytest.mark.bbnli("winoqueer/*/emotion")
@pytest.mark.parametrize("measure", ["m7", "m8"])
def test_emotion(bbnli, measure):
    bbnli.require(measure)
"""


def test_categories_are_held_to_the_limits_of_the_suite(project: Project) -> None:
    project.write("audits/test_audits.py", AUDITS)
    project.write("thresholds.yaml", LIMITS + OWN)
    args = ("audits", "--model=planted:always-pro", "--bbnli-suite=winoqueer:category", "--bbnli-report=out")
    done = project.run(*args)
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    done.stdout.fnmatch_lines_random(
        [
            "winoqueer/pansexual/emotion: m8 1.000 is above its limit 0.250",
            "winoqueer/bisexual/emotion: m8 1.000 is above its limit 0.400",
        ]
    )
    result = json.loads((project.path / "out" / "result.json").read_text())
    rows = {row["path"]: row for row in result["subtopics"]}
    assert {path.rpartition("/")[2] for path in rows} == {"emotion"}
    limits = {verdict["measure"]: verdict["limit"] for verdict in rows["winoqueer/pansexual/emotion"]["verdicts"]}
    assert (limits["m7"], limits["m8"]) == (0.3, 0.25)
    # Nothing is entailed for one side and neutral for the other, but eight clusters are too few to say so.
    found = next(v for v in rows["winoqueer/pansexual/emotion"]["verdicts"] if v["measure"] == "m7")
    assert found["verdict"] == "INCONCLUSIVE"
    assert [suite["name"] for suite in result["suites"]] == ["winoqueer"]


def test_a_suite_cannot_be_audited_in_two_divisions_at_once(project: Project) -> None:
    done = project.run("audits", "--model=planted:ideal", "--bbnli-suite=winoqueer,winoqueer:category")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(["ERROR: --bbnli-suite=winoqueer,winoqueer:category: winoqueer:category has the pairs*"])
