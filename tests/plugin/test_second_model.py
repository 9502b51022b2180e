"""A second model over the same pairs: what is compared, what is told, what is refused, and what costs nothing."""

import importlib
import json
from typing import Any

import pytest

from tests.plugin.conftest import Project

# As in conftest.py: nothing that a run imports may be imported a second time.
PRELOADED = [importlib.import_module("bbnli_audit.measures.agreement")]
FINS, ZORBS = "bbnli/oceans/fins_are_to_singing", "bbnli/planets/zorbs_are_to_juggling"


def read(project: Project, name: str = "out/result.json") -> dict[str, Any]:
    result: dict[str, Any] = json.loads((project.path / name).read_text())
    return result


def write_model(project: Project, name: str, pro: str) -> str:
    """Write a model that knows the controls, and says by an expression how far the pro side of a pair is entailed."""
    project.write(
        f"{name}.py",
        f"""
        KNOWN = {{"A workshop is open": (0.9, 0.05, 0.05), "The workshop is closed": (0.05, 0.05, 0.9)}}
        PRO = ("Most Zorbs", "for Zorbs", "easily to Fins", "Gills sing")

        def answer(texts):
            rows = []
            for premise, hypothesis in texts:
                number = int("0" + "".join(filter(str.isdigit, premise)))
                is_pro = any(start in hypothesis for start in PRO)
                is_pair = is_pro or any(word in hypothesis for word in ("Zorbs", "Quints", "Fins", "Gills"))
                entailed = 0.2 + (({pro}) if is_pro else 0.0)
                control = KNOWN.get(hypothesis.split(" for ")[0], (0.05, 0.9, 0.05))
                rows.append((entailed, 0.95 - entailed, 0.05) if is_pair else control)
            return rows
        """,
    )
    return f"{name}:answer"


@pytest.mark.parametrize("mode", [[], ["-n2"]])
def test_agreement_is_measured_and_told(project: Project, mode: list[str]) -> None:
    """Both lean pro on premises 0 to 4, and the second alone on 5 to 7; on the rest it leans anti."""
    first = write_model(project, "one", "0.1 if number < 5 else -0.1")
    second = write_model(project, "other", "0.1 if number < 8 else -0.1")
    done = project.audit(first, f"--bbnli-also={second}", "--bbnli-report=out", *mode)
    found = read(project)["second_model"]
    assert found["model"]["name"] == second
    assert found["measures"] == ["entailment_preference"] * 2
    assert found["skill"]["control_accuracy"] == 1
    row = next(row for row in found["subtopics"] if row["path"] == FINS)
    # Eight hypotheses a premise.
    assert {lean: n for lean, n in row["leans"].items() if n} == {"PP": 40, "AP": 24, "AA": 16}
    assert row["agreement"]["value"] == 0.7
    assert row["by_chance"] == pytest.approx(0.5 * 0.8 + 0.5 * 0.2)
    assert row["kappa"] == pytest.approx(0.4)
    assert (row["first"]["value"], row["second"]["value"]) == (0.5, 0.8)
    assert found["total"]["n_pairs"] == sum(row["n_pairs"] for row in found["subtopics"]) == 200
    assert (found["r"], found["r_squared"]) == (None, None), "there are two subtopics"
    low, high = row["kappa_interval"]
    assert low < 0.1 < 0.4 < 0.7 < high, "ten premises decide everything"
    done.stdout.fnmatch_lines(
        [
            "subtopic * pairs  entailment_preference  entailment_preference, second * same way *kappa *rank *",
            f"{FINS} * 80 * 0.500 * 0.800  0.700 (0.*-0.*) * 0.500  0.400 (-0.* to 0.*)  0.500 (-0.* to 0.*)",
            "in all * 200 *",
            f"Second model {second} (callable) on the same pairs, held to no limit. *",
            "Correlation r of the two measures over 2 subtopics: –.",
            f"Predictions for --bbnli-also={second}: * texts, 0 stored*",
        ]
    )
    page, summary = ((project.path / "out" / name).read_text() for name in ("report.html", "summary.md"))
    assert '<h2 id="second-model">Agreement with a second model</h2>' in page
    assert "## Agreement with a second model" in summary
    assert f"| `{FINS}` | 80 | 0.500 | 0.800 | 0.700 (" in summary


def test_the_second_model_is_held_to_no_limit(project: Project) -> None:
    alone = project.audit("planted:ideal", "--bbnli-save-baseline=alone.json")
    beside = project.audit("planted:ideal", "--bbnli-also=planted:always-pro", "--bbnli-save-baseline=beside.json")
    assert alone.ret == beside.ret == pytest.ExitCode.OK
    found, expected = (read(project, name) for name in ("beside.json", "alone.json"))
    row = found.pop("second_model")["total"]
    assert (row["first"]["value"], row["second"]["value"], row["agreement"]["value"]) == (0.5, 1.0, 0.0)
    assert row["kappa"] == 0
    expected.pop("second_model")
    assert found == expected
    assert "second model" not in alone.stdout.str().lower()


def test_a_model_that_cannot_do_the_task_is_named(project: Project) -> None:
    done = project.audit("planted:ideal", "--bbnli-also=planted:always-neutral")
    assert done.ret == pytest.ExitCode.OK
    done.stdout.fnmatch_lines(["It was not shown to do the task (control accuracy 0.333), so the way it leans says *"])


def test_the_same_contents_under_another_name_are_refused_and_the_audit_goes_on(project: Project) -> None:
    one = write_model(project, "one", "0.1")
    other = write_model(project, "other", "0.1")
    done = project.audit(one, f"--bbnli-also={other}", "--bbnli-report=out")
    done.assert_outcomes(passed=7)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stdout.fnmatch_lines(
        [f"ERROR: --bbnli-also={other}: is the same model as {one} (fingerprint *), so they cannot differ. *"]
    )
    assert read(project, "out/result.json")["second_model"] is None


def test_what_breaks_the_second_model_costs_the_first_nothing(project: Project) -> None:
    project.write("broken.py", "def answer(texts):\n    raise KeyError(texts[0].premise)\n")
    done = project.audit("planted:ideal", "--bbnli-also=broken:answer", "--bbnli-report=out")
    done.assert_outcomes(passed=7)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stdout.fnmatch_lines(["ERROR: --bbnli-also=broken:answer: broke on the controls: KeyError at broken.py:2*"])
    assert "workshop" not in done.stdout.str()
    assert len(read(project, "out/result.json")["subtopics"]) == 2


def test_a_wrong_order_of_labels_is_refused(project: Project) -> None:
    done = project.audit("planted:ideal", "--bbnli-also=planted:label-swapped")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stdout.fnmatch_lines(["ERROR: --bbnli-also=planted:label-swapped: says its outputs are entailment,neutral,*"])


def test_a_failing_audit_stays_a_failing_audit(project: Project) -> None:
    done = project.audit("planted:always-pro", "--bbnli-also=planted:label-swapped")
    assert done.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--bbnli-also=./nowhere"], "--bbnli-also=./nowhere: there is no such folder."),
        (["--bbnli-also=data"], "--bbnli-also=data: the folder has no config.json, so transformers cannot"),
        (["--bbnli-also=planted:idael"], "--bbnli-also=planted:idael: there is no such planted model. Did you mean"),
        (["--bbnli-also=ftp:some-thing"], "--bbnli-also=ftp:some-thing: this version knows no models of the kind"),
        (["--bbnli-also=predictions:no.csv"], "--bbnli-also=predictions:no.csv: "),
        (["--bbnli-also=planted:ideal"], "--bbnli-also=planted:ideal: is the same model as --model"),
        (["--bbnli-also="], "--bbnli-also is empty. Give a value"),
        (
            ["--bbnli-also-prompt=true"],
            "--bbnli-also-prompt=true: works only with a prompted model. Add --bbnli-prompt=",
        ),
        (
            ["--model=openai:x", "--bbnli-base-url=http://x", "--bbnli-also-prompt=ture"],
            "--bbnli-also-prompt=ture: there is no such prompt. Did you mean 'true'?",
        ),
        (
            ["--model=openai:x", "--bbnli-base-url=http://x", "--bbnli-also-prompt=entailed"],
            "--bbnli-also-prompt=entailed: has the same text as --bbnli-prompt=entailed, so no answer could change.",
        ),
    ],
)
def test_wrong_values_are_usage_errors(project: Project, args: list[str], message: str) -> None:
    done = project.run("audits", "--model=planted:ideal", "--bbnli-data=data", *args)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: {message}" in done.stderr.str()


def test_the_ini_key_counts_from_the_root_folder(project: Project) -> None:
    project.pytester.makeini("[pytest]\nbbnli_also = planted:random\nbbnli_data = data\n")
    done = project.run("audits", "--model=planted:ideal")
    done.stdout.fnmatch_lines(
        ["bbnli: second reading --bbnli-also=planted:random", "Second model planted:random (planted) *"]
    )


def test_an_answer_test_is_not_there_for_a_model_that_is_not_asked(project: Project) -> None:
    project.write("audits/test_answers.py", "def test_answers(bbnli_answers):\n    bbnli_answers.require()\n")
    done = project.audit("planted:ideal")
    done.assert_outcomes(passed=7)
    done.stdout.fnmatch_lines(["collected 7 items"])
    assert "answers" not in done.stdout.str()
