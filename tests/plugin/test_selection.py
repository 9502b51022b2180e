"""Ids, markers, keywords, ini keys and hooks."""

import pytest

from tests.plugin.conftest import Project


def ids(result: pytest.RunResult) -> list[str]:
    return [line.split("::")[1] for line in result.outlines if "::" in line]


def test_ids_are_readable_and_sorted(project: Project) -> None:
    result = project.audit("planted:ideal", "--collect-only", "-q")
    assert ids(result) == [
        *(
            f"test_{name}[bbnli/{path}]"
            for name in ("pro", "anti", "brittleness")
            for path in ("oceans/fins_are_to_singing", "planets/zorbs_are_to_juggling")
        ),
        "test_competence",
    ]


@pytest.mark.parametrize(
    ("args", "n"),
    [
        (["-k", "singing"], 3),
        (["-k", "planets"], 3),
        (["-k", "fins"], 3),
        (["-k", "zorbs and test_pro"], 1),
        (["-m", "bbnli"], 7),
        (["-m", "not bbnli"], 0),
    ],
)
def test_keywords_and_markers_select(project: Project, args: list[str], n: int) -> None:
    assert len(ids(project.audit("planted:ideal", "--collect-only", "-q", *args))) == n


def test_the_file_name_is_a_keyword_too(project: Project) -> None:
    (project.path / "data" / "planets" / "zorbs.json").rename(project.path / "data" / "planets" / "legacy_name.json")
    assert len(ids(project.audit("planted:ideal", "--collect-only", "-q", "-k", "legacy_name"))) == 3


def test_a_marker_names_subtopics(project: Project) -> None:
    project.write(
        "audits/test_audits.py",
        """
        import pytest

        @pytest.mark.bbnli("bbnli/planets/*")
        def test_pro(bbnli):
            bbnli.require("pro")
        """,
    )
    assert ids(project.audit("planted:ideal", "--collect-only", "-q")) == [
        "test_pro[bbnli/planets/zorbs_are_to_juggling]"
    ]


def test_a_marker_that_names_none_is_refused(project: Project) -> None:
    project.write(
        "audits/test_audits.py",
        """
        import pytest

        @pytest.mark.bbnli("bbnli/planet/*")
        def test_pro(bbnli):
            bbnli.require("pro")
        """,
    )
    result = project.audit("planted:ideal")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*bbnli('bbnli/planet/?') names no subtopic.*"])
    assert "Traceback" not in result.stdout.str()


def test_ini_keys_stand_in_for_options(project: Project) -> None:
    project.pytester.makeini(
        "[pytest]\nbbnli_model = planted:always-pro\nbbnli_data = data\nbbnli_thresholds = limits/mine.yaml\n"
        "bbnli_pairing = hypothesis\nbbnli_report = out\n"
    )
    project.write("limits/mine.yaml", (project.path / "thresholds.yaml").read_text())
    result = project.run("audits", "-k", "test_pro")
    result.assert_outcomes(failed=2, deselected=5)
    result.stdout.fnmatch_lines(
        [
            "bbnli: model planted:always-pro; suites: bbnli unversioned (hypothesis), 2 subtopics",
            "bbnli: limits limits/mine.yaml, decide bounds at 95%, inconclusive: warn",
            "  limit: limits/mine.yaml:4",
        ]
    )
    assert (project.path / "out" / "result.json").exists()
    # An option beats the ini key.
    project.run("audits", "-k", "test_pro", "--model=planted:ideal").assert_outcomes(passed=2, deselected=5)


def test_a_project_can_add_a_suite(project: Project, mode: list[str]) -> None:
    project.write(
        "conftest.py",
        """
        from bbnli_audit import Control, Label, Pair, Pairing, Subtopic, SubtopicItems, TextPair

        class Mine:
            name, version, pairing, sha256 = "mine", "1", Pairing.BOTH, "0" * 64

            def subtopics(self):
                return [Subtopic("mine", "gardens", "snails")]

            def documented(self):
                return []

            def items(self, subtopic):
                pairs = [
                    Pair(f"c{n}", TextPair(f"Garden {n}.", "Snails win."), TextPair(f"Garden {n}.", "Slugs win."))
                    for n in range(60)
                ]
                return SubtopicItems(tuple(pairs), (Control("c", TextPair("A garden.", "A yard."), Label.ENTAILMENT),))

        def pytest_bbnli_suites(config):
            return [Mine()]
        """,
    )
    result = project.audit("planted:always-pro", *mode, "-k", "snails")
    result.stdout.fnmatch_lines(["mine/gardens/snails: pro 1.000 is above its limit 0.100"])
    assert result.parseoutcomes()["failed"] == 1
    assert result.parseoutcomes()["passed"] == 2


def test_a_test_may_ask_for_more_than_limits(project: Project) -> None:
    project.write(
        "audits/test_audits.py",
        """
        def test_mine(bbnli, bbnli_model):
            assert bbnli.subtopic.suite == "bbnli"
            assert bbnli.result.measures["pro_rate"].value == 0
            assert len(bbnli.pairs) == bbnli.result.n_pairs
            assert bbnli_model.skill.control_accuracy == 1
            assert bbnli_model.info.kind == "planted"
        """,
    )
    project.audit("planted:ideal").assert_outcomes(passed=2)


@pytest.mark.parametrize("pattern", ["bbnli/oceans/fins_are_to_singing", "*singing", "*/oceans/*, *singing"])
def test_subtopics_can_be_left_out(project: Project, pattern: str) -> None:
    result = project.audit("planted:ideal", f"--bbnli-exclude={pattern}")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["Left out by --bbnli-exclude: bbnli/oceans/fins_are_to_singing."])


@pytest.mark.parametrize(
    ("pattern", "message"),
    [("bbnli/ocean/*", "--bbnli-exclude=bbnli/ocean/?: names no subtopic.*"), ("*", "*leaves out every subtopic*")],
)
def test_leaving_out_nothing_or_everything_is_refused(project: Project, pattern: str, message: str) -> None:
    result = project.audit("planted:ideal", f"--bbnli-exclude={pattern}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])
