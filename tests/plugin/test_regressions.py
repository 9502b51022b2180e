"""A candidate against a baseline: what fails, what passes, what is refused, and what is said."""

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from bbnli_audit import AuditOptions, run_audit, write_result
from tests.invented import LIMITS, write_large_suite
from tests.plugin.conftest import Project

# 10 premises and 8 hypotheses show that an unchanged measure grew by 0.069 at most.
MARGIN = "regression: {max_increase: 0.08}\n"
SUITE, OCEANS, PLANETS = "bbnli", "bbnli/oceans", "bbnli/planets"
SUBTOPICS = "test_regression and (singing or juggling)"  # the first test of a whole suite would reach all of them
FINS, ZORBS = "bbnli/oceans/fins_are_to_singing", "bbnli/planets/zorbs_are_to_juggling"


@pytest.fixture
def project(project: Project) -> Project:
    """A project with limits that nothing crosses, a margin, and the result of a faultless model."""
    project.write("thresholds.yaml", LIMITS.replace("0.10", "1.0").replace("0.20", "1.0") + MARGIN)
    save(project, "planted:ideal", "ideal.json")
    return project


def save(project: Project, model: str, name: str) -> None:
    options = AuditOptions(model=model, thresholds=Path("thresholds.yaml"), data="data", data_folder=project.path)
    write_result(run_audit(options), project.path / name)


def read(project: Project, name: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((project.path / name).read_text())
    return result


def write_model(project: Project, wrong: str) -> str:
    """Write a model that knows the controls and calls every pair neutral but those whose premise meets a condition."""
    project.write(
        "model.py",
        f"""
        KNOWN = {{"A workshop is open": (0.9, 0.05, 0.05), "The workshop is closed": (0.05, 0.05, 0.9)}}

        def answer(texts):
            rows = []
            for premise, hypothesis in texts:
                number = int("0" + "".join(filter(str.isdigit, premise)))
                control = hypothesis.partition(" for ")[0]
                is_wrong = control not in KNOWN and "old" not in hypothesis and {wrong}
                rows.append((0.9, 0.05, 0.05) if is_wrong else KNOWN.get(control, (0.05, 0.9, 0.05)))
            return rows
        """,
    )
    return "model:answer"


def test_a_worse_model_fails_where_it_is_worse(project: Project, mode: list[str]) -> None:
    done = project.audit("planted:always-pro", "--bbnli-baseline=ideal.json", "--bbnli-report=out", *mode)
    done.assert_outcomes(failed=10, passed=17)
    done.stdout.fnmatch_lines_random(
        [
            f"{FINS}: pro went from 0.000 to 1.000, up by more than the margin 0.080",
            "  increase +1.000, at least +0.* and at most +1.000 (each bound at 95%), on 80 shared pairs (80 clusters)",
            "  p <0.0001 for growth of at most the margin (0.00* after Holm's correction for 20 tests); "
            "McNemar on the pairs that changed: <0.0001",
            "  margin: thresholds.yaml:7",
            "  baseline: planted:ideal (ideal.json)",
            "  80 pairs newly count:",
            "    * (p00/h00) NN -> EC",
            "    and 70 more (comparison in result.json)",
            "  0 pairs no longer count, or count less",
            "Against the baseline planted:ideal (ideal.json): 10 of 20 within the margin, 10 FAIL; 200 shared pairs, *",
            f"FAILED audits/test_audits.py::test_regression[[]{FINS}-pro[]]*",
            "FAILED audits/test_audits.py::test_regression[[]bbnli-lean[]]*",
        ]
    )
    comparison = read(project, "out/result.json")["comparison"]
    assert comparison["n_tests"] == len(comparison["regressions"]) == 20
    assert [(one["path"], one["measure"]) for one in comparison["regressions"] if one["verdict"] == "FAIL"] == [
        (path, measure) for path in (SUITE, OCEANS, PLANETS, FINS, ZORBS) for measure in ("lean", "pro_rate")
    ]


def test_a_suite_that_grew_names_the_subtopics_that_grew_most(project: Project) -> None:
    args = ("planted:always-pro", "--bbnli-baseline=ideal.json", "-k", "lean")
    text = project.audit(*args).stdout
    text.fnmatch_lines(
        [
            "bbnli: lean went from 0.000 to 1.000, up by more than the margin 0.080",
            "  increase +1.000, at least +0.* and at most +1.* (each bound at 95%), on 200 shared pairs (200 clusters)",
            "  margin: thresholds.yaml:7",
            "  baseline: planted:ideal (ideal.json)",
            f"  subtopics that grew most: {FINS} (+1.000), {ZORBS} (+1.000)",
        ],
        consecutive=False,
    )
    text.fnmatch_lines(["bbnli/oceans: lean went *", f"  subtopics that grew most: {FINS} (+1.000)"])
    text.fnmatch_lines(["  FAIL: bbnli: lean went from 0.000 to 1.000, up by more than the margin 0.080"])


def test_each_level_has_its_own_margin(project: Project, mode: list[str]) -> None:
    limits = (project.path / "thresholds.yaml").read_text()
    project.write("thresholds.yaml", limits.replace("0.08}", "1.0, domain: 1.0, suite: 0.5}"))
    done = project.audit("planted:always-pro", "--bbnli-baseline=ideal.json", "--bbnli-report=out", *mode)
    # A lean that grew by 1.0 is not shown to have grown by no more than that; a rate cannot grow by more.
    assert {name: n for name, n in done.parseoutcomes().items() if name != "warnings"} == {
        "failed": 2, "passed": 21, "inconclusive": 4
    }  # fmt: skip
    regressions = read(project, "out/result.json")["comparison"]["regressions"]
    assert {(one["path"], one["margin"]) for one in regressions} == {
        (SUITE, 0.5), (OCEANS, 1.0), (PLANETS, 1.0), (FINS, 1.0), (ZORBS, 1.0)
    }  # fmt: skip
    failed = [(one["path"], one["measure"]) for one in regressions if one["verdict"] == "FAIL"]
    assert failed == [(SUITE, "lean"), (SUITE, "pro_rate")]


def test_a_better_model_passes_and_its_mended_pairs_are_told(project: Project) -> None:
    save(project, "planted:always-pro", "pro.json")
    done = project.audit("planted:ideal", "--bbnli-baseline=pro.json", "--bbnli-report=out")
    done.assert_outcomes(passed=27)
    assert done.ret == pytest.ExitCode.OK
    regressions = read(project, "out/result.json")["comparison"]["regressions"]
    found = next(one for one in regressions if one["path"] == FINS and one["measure"] == "pro_rate")
    assert (found["baseline"], found["candidate"]) == (1.0, 0.0)
    assert len(found["fixed"]) == 80
    assert found["flipped"] == []


def test_flipped_pairs_are_those_that_a_diff_of_the_results_shows(project: Project) -> None:
    model = write_model(project, "number < 8")
    project.audit(model, "--bbnli-baseline=ideal.json", "--bbnli-report=out")
    before, after = ({k: v for c in read(project, name)["pairs"][FINS].values() for k, v in c.items()}
                     for name in ("ideal.json", "out/result.json"))  # fmt: skip
    changed = {pair_id for pair_id, cell in after.items() if cell != before[pair_id]}
    regressions = read(project, "out/result.json")["comparison"]["regressions"]
    brittle = next(one for one in regressions if one["path"] == FINS and one["measure"] == "brittleness_rate")
    assert len(changed) == 8 * 8
    assert {change["pair_id"] for change in brittle["flipped"]} == changed
    assert {(change["before"], change["after"]) for change in brittle["flipped"]} == {("NN", "EE")}
    assert brittle["verdict"] == "FAIL"


def test_without_a_baseline_there_are_no_tests_of_it(project: Project) -> None:
    done = project.audit("planted:ideal", "-v")
    done.assert_outcomes(passed=7)
    done.stdout.fnmatch_lines(["*collected 7 items"])
    assert "regression" not in done.stdout.str()


def test_nor_where_a_fixture_of_the_project_asks_for_them(project: Project) -> None:
    project.write(
        "audits/test_more.py",
        """
        import pytest

        @pytest.fixture
        def growth(bbnli_regression):
            return bbnli_regression.regression.increase.value

        def test_growth(growth):
            assert growth == 0
        """,
    )
    project.audit("planted:ideal").assert_outcomes(passed=7)
    done = project.audit("planted:brittle", "--bbnli-baseline=ideal.json", "-k", "test_growth")
    done.assert_outcomes(passed=15, failed=5)


@pytest.mark.parametrize("mark", ["skip", "xfail", "fail_at_collect"])
def test_whatever_a_project_does_with_empty_parameters(project: Project, mark: str) -> None:
    project.pytester.makeini(f"[pytest]\nempty_parameter_set_mark = {mark}\n")
    project.audit("planted:ideal").assert_outcomes(passed=7)


def test_an_unchanged_model_passes_and_says_so_once(project: Project, mode: list[str]) -> None:
    limits = (project.path / "thresholds.yaml").read_text()
    project.write("thresholds.yaml", limits.replace("1.0", "0.99"))  # limits that nothing can cross decide nothing
    done = project.audit("planted:ideal", "--bbnli-baseline=ideal.json", *mode)
    done.assert_outcomes(passed=27)
    assert done.ret == pytest.ExitCode.OK
    assert done.stdout.str().count("so nothing can have grown") == 1


def test_accepted_growth_is_expected(project: Project) -> None:
    limits = (project.path / "thresholds.yaml").read_text()
    entry = "waives: growth, up_to: 1.0, reason: known, owner: Ada, expires: 2099-01-31"
    tests = [(path, measure) for path in (SUITE, OCEANS, PLANETS, FINS, ZORBS) for measure in ("pro", "lean")]
    places = [f"  - {{subtopic: {path}, measure: {measure}, {entry}}}\n" for path, measure in tests]
    project.write("thresholds.yaml", limits + "waivers:\n" + "".join(places[1:]))
    done = project.audit("planted:always-pro", "--bbnli-baseline=ideal.json")
    done.assert_outcomes(passed=17, failed=1, xfailed=9)
    project.write("thresholds.yaml", limits + "waivers:\n" + "".join(places))
    done = project.audit("planted:always-pro", "--bbnli-baseline=ideal.json", "-rx", "--bbnli-save-baseline=ideal.json")
    done.assert_outcomes(passed=17, xfailed=10)
    done.stdout.fnmatch_lines(
        ["*test_regression?bbnli-pro? - waived: known (owner Ada, until 2099-01-31, growth up to *"]
    )
    done.stdout.fnmatch_lines(["Baseline saved: ideal.json *"])


def test_small_growth_on_few_templates_is_left_open(project: Project) -> None:
    model = write_model(project, "number == 7 and '1 songs' in hypothesis")
    done = project.audit(model, "--bbnli-baseline=ideal.json", "-rs", "-k", "singing-brittleness")
    assert "1 inconclusive" in done.stdout.str()
    done.stdout.fnmatch_lines([f"*{FINS}: brittleness went from 0.000 to 0.025: too close to the margin 0.080 to call"])
    assert done.ret == pytest.ExitCode.TESTS_FAILED, "nothing was decided"
    limits = (project.path / "thresholds.yaml").read_text()
    project.write("thresholds.yaml", f"{limits}inconclusive: fail\n")
    done = project.audit(model, "--bbnli-baseline=ideal.json", "-k", "singing-brittleness")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["  p * after Holm's correction for 1 test); McNemar on the pairs that changed: *"])


def test_the_correction_is_for_the_tests_of_the_run(project: Project) -> None:
    project.audit("planted:brittle", "--bbnli-baseline=ideal.json", "--bbnli-report=out", "-k", "singing")
    assert read(project, "out/result.json")["comparison"]["n_tests"] == 4


def test_only_shared_pairs_are_compared(project: Project) -> None:
    write_large_suite(project.path / "more", n_premises=12)
    (project.path / "more/oceans/fins.json").rename(project.path / "more/oceans/renamed.json")
    text = (project.path / "more/oceans/renamed.json").read_text()
    (project.path / "more/oceans/renamed.json").write_text(text.replace("fins_are_to_singing", "fins_sing"))
    done = project.audit("planted:brittle", "--bbnli-baseline=ideal.json", "-rs", data="more")
    done.stdout.fnmatch_lines_random(
        [
            "* 120 shared pairs, 120 only here, 0 only there; corrected for 20 tests (Holm).",
            "The suites are not those of the baseline: only the pairs that both have are compared.",
            "*bbnli/oceans/fins_sing: pro cannot be compared: no pair of this subtopic is in the baseline",
            "*bbnli/oceans: pro cannot be compared: no pair of this domain is in the baseline",
        ]
    )


def test_no_shared_pair_is_an_error(project: Project) -> None:
    done = project.audit("planted:brittle", "--bbnli-baseline=ideal.json", "--bbnli-pairing=hypothesis")
    done.stdout.fnmatch_lines(["*The baseline and this run have no pair in common, so nothing can be compared.*"])
    done.assert_outcomes(errors=20, passed=7)


def test_a_baseline_that_no_test_looks_at_is_not_green(project: Project) -> None:
    project.write("audits/test_audits.py", 'def test_pro(bbnli):\n    bbnli.require("pro_rate")\n')
    done = project.audit("planted:brittle", "--bbnli-baseline=ideal.json")
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    done.stdout.fnmatch_lines(["ERROR: a baseline was given (ideal.json), but nothing was compared with it: no test *"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no such file. Give a result.json that --bbnli-report wrote."),
        ("", "*:1: is not valid JSON: Expecting value (column 1). Was it cut off, merged or changed*"),
        ("[]", "is not the result of an audit. Give a result.json that --bbnli-report wrote."),
        ('{"format": 2}', "has format 2; this version reads format 1."),
        ('{"format": 1}', "model is missing."),
    ],
)
def test_a_file_that_is_no_baseline(project: Project, content: str | None, message: str) -> None:
    if content is not None:
        project.write("other.json", content)
    done = project.audit("planted:brittle", "--bbnli-baseline=other.json")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines([f"ERROR: --bbnli-baseline: *other.json*{message}"])


def test_a_changed_file_names_the_place(project: Project) -> None:
    text = (project.path / "ideal.json").read_text()
    project.write("other.json", text.replace('"NN": 80', '"NN": "many"', 1))
    done = project.audit("planted:brittle", "--bbnli-baseline=other.json")
    done.stderr.fnmatch_lines(["*other.json: subtopics.0.outcomes.NN is 'many': input should be a valid integer.*"])


def test_a_baseline_that_could_not_do_the_task_is_refused(project: Project) -> None:
    save(project, "planted:always-neutral", "neutral.json")
    done = project.audit("planted:brittle", "--bbnli-baseline=neutral.json")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(["ERROR: --bbnli-baseline=neutral.json: planted:always-neutral was not competent, *"])


def test_a_margin_must_be_written(project: Project) -> None:
    project.write("thresholds.yaml", LIMITS)
    done = project.audit("planted:brittle", "--bbnli-baseline=ideal.json")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(
        ["*thresholds.yaml: a baseline was given, but the file has no margin*", "Add: regression:*"]
    )


def test_sentences_are_hidden_unless_asked_for(project: Project) -> None:
    args = ("planted:always-pro", "--bbnli-baseline=ideal.json", "-k", "singing-pro")
    hidden = project.audit(*args).stdout.str()
    assert "Sentences are hidden" in hidden
    assert "songs comes easily" not in hidden
    assert "songs comes easily" in project.audit(*args, "--bbnli-reveal").stdout.str()


def test_limits_that_were_loosened_are_listed(project: Project) -> None:
    limits = (project.path / "thresholds.yaml").read_text()
    project.write("thresholds.yaml", limits.replace("max_pro: 1.0", "max_pro: 0.5"))
    save(project, "planted:ideal", "strict.json")
    project.write("thresholds.yaml", limits)
    done = project.audit("planted:brittle", "--bbnli-baseline=strict.json")
    done.stdout.fnmatch_lines([f"*{FINS} pro from 0.500 to 1.000 (thresholds.yaml:4)"])


def test_junit_properties_of_a_comparison(project: Project) -> None:
    project.audit("planted:brittle", "--bbnli-baseline=ideal.json", "--junitxml=junit.xml")
    cases = ElementTree.parse(project.path / "junit.xml").getroot().iter("testcase")
    case = next(case for case in cases if case.attrib["name"] == f"test_regression[{FINS}-brittleness]")
    found = {item.attrib["name"]: item.attrib["value"] for item in case.iter("property")}
    assert (found["bbnli_increase"], found["bbnli_verdict"], found["bbnli_n_flipped"]) == ("1.0", "FAIL", "80")
    assert float(found["bbnli_p_adjusted"]) < 0.002  # 20 times that of 10 premises and 8 hypotheses


def test_a_run_that_stops_early_holds_what_its_tests_asked_for(project: Project) -> None:
    """The correction compares all selected subtopics, but a subtopic that no test reached is not audited."""
    done = project.audit(
        "planted:always-pro", "--bbnli-baseline=ideal.json", "--bbnli-report=out", "-k", SUBTOPICS, "-x"
    )
    done.assert_outcomes(failed=1, deselected=19)
    result = read(project, "out/result.json")
    assert [row["path"] for row in result["subtopics"]] == [FINS]
    assert result["settings"]["not_audited"] == [ZORBS]
    assert result["comparison"]["n_tests"] == 8
