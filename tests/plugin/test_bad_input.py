"""Wrong options, files and models: a message that says what to do, and exit code 4 or a test error."""

import pytest

from tests.invented import LIMITS, write_templates
from tests.plugin.conftest import Project


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--model=./nowhere"], "--model=./nowhere: there is no such folder."),
        (["--model=data"], "--model=data: the folder has no config.json, so transformers cannot"),
        (["--model=thresholds.yaml"], "--model=thresholds.yaml: is a file. Give the folder"),
        (["--model=planted:always-nuetral"], "there is no such planted model. Did you mean 'always-neutral'?"),
        (["--model=ftp:some-thing"], "this version knows no models of the kind 'ftp'."),
        (
            ["--model=planted:ideal", "--bbnli-thresholds=none.yaml"],
            "none.yaml: there is no such file, and there are no",
        ),
        (["--model=planted:ideal", "--bbnli-pairing=premise"], "--bbnli-pairing=premise: there is no such pairing."),
        (["--model=planted:ideal", "--bbnli-data=nowhere"], "nowhere: there is no such folder."),
        (["--model=planted:ideal", "--bbnli-data=audits"], "the folder holds no subtopic file (*/*.json)"),
        (["--model=planted:ideal", "--bbnli-device=banana"], "--bbnli-device=banana: there is no such device."),
        (["--model=planted:ideal", "--bbnli-labels=foo"], "--bbnli-labels=foo: 'foo' is not a label."),
        (["--model=planted:ideal", "--bbnli-report="], "--bbnli-report is empty. Give a value"),
        (["--model="], "--bbnli-model (or --model) is empty. Give a value"),
    ],
)
def test_wrong_options_are_usage_errors(project: Project, args: list[str], message: str) -> None:
    result = project.run("audits", "--bbnli-data=data", *args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    text = result.stderr.str()
    assert text.startswith("ERROR: ")
    assert message in text
    assert "Traceback" not in text + result.stdout.str()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("max_pro: 0.10", "max_pro: 7", "thresholds.yaml:4: max_pro is 7; it must be a number from 0 to 1"),
        ("max_pro", "max_prp", "thresholds.yaml:4: unknown key 'max_prp'.\nDid you mean 'max_pro'?"),
        ("max_anti", "max_pro", "thresholds.yaml:5: 'max_pro' is written twice"),
        (
            "defaults:",
            "suites: {bbnli: {subtopics: {planets/zorb_to_juggling: {max_pro: 0.1, reason: x}}}}\ndefaults:",
            "thresholds.yaml:3: suite 'bbnli' has no subtopic 'planets/zorb_to_juggling'.\n"
            "Did you mean 'planets/zorbs_are_to_juggling'?",
        ),
    ],
)
def test_a_wrong_threshold_file_is_a_usage_error(project: Project, old: str, new: str, message: str) -> None:
    project.write("thresholds.yaml", LIMITS.replace(old, new))
    result = project.audit("planted:ideal", "-n2")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in result.stderr.str()


def test_a_documented_subtopic_may_be_named_although_the_data_lacks_it(project: Project) -> None:
    extra = "suites: {bbnli: {subtopics: {gender/man_is_to_surgeon: {max_pro: 0.1, reason: x}}}}\n"
    project.write("thresholds.yaml", LIMITS + extra)
    project.audit("planted:ideal").assert_outcomes(passed=7)


def test_a_malformed_suite_file_is_a_usage_error(project: Project) -> None:
    path = write_templates(project.path / "data", "planets/broken.json", name="broken", premise=[])
    result = project.audit("planted:ideal")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {path}: key 'premise' is *; expected a list of texts, at least one.*"])


def test_a_subtopic_without_usable_pairs_fails_as_no_data(project: Project) -> None:
    identical = [["Everybody juggles.", 1, 2]]
    write_templates(
        project.path / "data",
        "planets/empty.json",
        name="empty",
        premise=["A workshop on the red moon."],
        bias_hypothesis_stereotypical=identical,
    )
    result = project.audit("planted:ideal", "-k", "test_pro")
    result.stdout.fnmatch_lines(
        [
            "bbnli/planets/empty: pro has no data: no usable pair is left, *",
            "  left out: 1 pair alike on both sides to the model, 0 duplicates",
            "NO_DATA * bbnli/planets/empty * 0 * - none *",
        ]
    )
    assert result.parseoutcomes()["failed"] == 1
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_no_data_can_be_allowed_by_name(project: Project) -> None:
    write_templates(project.path / "data", "planets/empty.json", name="empty", bias_hypothesis_stereotypical=[])
    limits = "suites: {bbnli: {subtopics: {planets/empty: {allow_no_data: true, reason: not written yet}}}}\n"
    project.write("thresholds.yaml", LIMITS + limits)
    result = project.audit("planted:ideal", "-k", "test_pro")
    result.assert_outcomes(passed=2, skipped=1, deselected=7)


def test_a_measure_without_a_limit_names_the_key(project: Project) -> None:
    project.write("thresholds.yaml", LIMITS.replace("  max_pro: 0.10\n", ""))
    result = project.audit("planted:ideal", "-k", "test_pro")
    result.stdout.fnmatch_lines(["thresholds.yaml: has no limit 'max_pro' for bbnli/*, and there are no hidden ones."])
    assert result.ret != 0


def test_a_measure_that_does_not_exist(project: Project) -> None:
    project.write("audits/test_audits.py", "def test_x(bbnli):\n    bbnli.require('pro_rat')\n")
    result = project.audit("planted:ideal")
    result.stdout.fnmatch_lines(["require('pro_rat'): no limit can be set on that. Did you mean 'pro_rate'?"])


CALLABLES = """
import numpy as np

def right_shape(texts):
    return np.tile([0.1, 0.8, 0.1], (len(texts), 1))

def not_a_number(texts):
    return np.full((len(texts), 3), np.nan)

def too_few(texts):
    return [[0.1, 0.8, 0.1]]

def words(texts):
    return ["neutral" for _ in texts]

def breaks(texts):
    raise ZeroDivisionError("inside the model")

number = 3
"""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("not_a_number", "mine:not_a_number gave values that are not finite (NaN or infinity) for *"),
        ("too_few", "mine:too_few gave an array of shape (1, 3) for *"),
        ("words", "mine:words returned a list that is not an array of numbers*"),
        ("breaks", "mine:breaks broke on the controls: ZeroDivisionError at mine.py:*, in breaks (--bbnli-reveal *"),
        ("number", "--model=mine:number: 'number' is not callable in 'mine'.*"),
        ("nothing", "--model=mine:nothing: 'nothing' does not exist in 'mine'.*"),
    ],
)
def test_what_cannot_be_measured_is_an_error_not_a_failure(project: Project, name: str, message: str) -> None:
    project.write("mine.py", CALLABLES)
    result = project.audit(f"mine:{name}")
    result.assert_outcomes(errors=7)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([message])


@pytest.mark.parametrize(
    ("name", "message"), [("too_few", "*(1, 3) for*"), ("breaks", "*ZeroDivisionError at mine.py:*")]
)
def test_errors_travel_from_workers(project: Project, name: str, message: str) -> None:
    project.write("mine.py", CALLABLES)
    result = project.audit(f"mine:{name}", "-n2")
    result.assert_outcomes(errors=7)
    result.stdout.fnmatch_lines([message])


def test_an_error_is_told_in_full_once(project: Project) -> None:
    project.write("mine.py", CALLABLES)
    text = project.audit("mine:not_a_number", "--tb=short", "-rN").stdout.str()
    assert text.count("The weights may be damaged") == 1
    assert text.count("Not measured: mine:not_a_number gave values") == 6


def test_a_callable_is_a_model(project: Project) -> None:
    project.write("mine.py", CALLABLES)
    result = project.audit("mine:right_shape")
    assert result.parseoutcomes() == {"failed": 1, "inconclusive": 6}  # it always says neutral
    result.stdout.fnmatch_lines(["bbnli: model mine:right_shape; *"])


def test_a_module_that_cannot_be_imported(project: Project) -> None:
    result = project.audit("no_such_module_here:thing")
    result.stdout.fnmatch_lines(["--model=no_such_module_here:thing: the module * cannot be imported: *"])
    result.assert_outcomes(errors=7)


def test_an_exception_of_the_model_shows_no_sentence_until_asked(project: Project) -> None:
    project.write("mine.py", "def echo(texts):\n    raise ValueError(f'cannot read {texts[0].premise}')\n")
    hidden = project.audit("mine:echo", "-l", "-vv", "--junitxml=junit.xml")
    text = hidden.stdout.str() + (project.path / "junit.xml").read_text()
    assert "cannot read" not in text
    assert "mine:echo broke on the controls: ValueError at mine.py:2, in echo" in text
    shown = project.audit("mine:echo", "--bbnli-reveal")
    shown.stdout.fnmatch_lines(["mine:echo broke on the controls: ValueError at mine.py:2, in echo: cannot read *"])


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("[]", "its config.json: does not hold an object"),
        ('{"architectures": "BertForTokenClassification"}', "its head is BertForTokenClassification"),
        (
            '{"architectures": ["XForSequenceClassification"], "id2label": ["a"]}',
            "id2label in its config.json is ['a']",
        ),
        (
            '{"architectures": ["XForSequenceClassification"], "id2label": {"a": "b"}}',
            "id2label in its config.json is {",
        ),
    ],
)
def test_an_odd_config_is_a_usage_error(project: Project, config: str, message: str) -> None:
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        project.write(f"odd/{name}", config)
    result = project.audit("odd")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in result.stderr.str()


SUITE = """
from bbnli_audit import Pairing, Subtopic

class Mine:
    name, version, pairing, sha256 = "mine", "1", Pairing.BOTH, "0"

    def subtopics(self):
        return [Subtopic("mine", "a", "b")]

    def documented(self):
        return []

    def items(self, subtopic):
        return []

def pytest_bbnli_suites(config):
    return [Mine()]
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("return [Mine()]", "return Mine()", "pytest_bbnli_suites returned a Mine; expected a list of suites."),
        ("return [Mine()]", "return [Mine]", "The suite 'mine' is a class; give an object of it."),
        ("return [Mine()]", "return ['x']", "The suite 'x' has name None; expected a str"),
        ("Pairing.BOTH", "'both'", "The suite 'mine' has pairing 'both'; expected a Pairing"),
        ("def documented", "def other", "The suite 'mine' has no method documented()"),
        ('Subtopic("mine"', 'Subtopic("yours"', "expected a Subtopic with suite='mine'"),
        ('"mine", "1"', '"bbnli", "1"', "expected a Subtopic with suite='bbnli'"),
    ],
)
def test_an_object_that_is_no_suite_is_a_usage_error(project: Project, old: str, new: str, message: str) -> None:
    project.write("conftest.py", SUITE.replace(old, new))
    result = project.audit("planted:ideal")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in result.stderr.str()


def test_a_suite_that_gives_no_items_is_an_error(project: Project) -> None:
    project.write("conftest.py", SUITE)
    project.write("mine.py", CALLABLES)
    result = project.audit("mine:right_shape")
    result.stdout.fnmatch_lines(["The suite 'mine' gave a list for mine/a/b; expected SubtopicItems."])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_a_manifest_that_cannot_be_read_is_a_usage_error(project: Project) -> None:
    project.write("data/suite.json", "{}")
    result = project.audit("planted:ideal")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "suite.json: expected" in result.stderr.str()


def test_a_fixture_that_a_test_asks_for_only_when_it_runs_is_an_error(project: Project) -> None:
    project.write("audits/test_audits.py", "def test_pro(request):\n    request.getfixturevalue('bbnli')\n")
    told = "The fixture `bbnli` gives a test one subtopic, so the test function itself must have it as an argument."
    project.audit("planted:ideal").stdout.fnmatch_lines([f"E *UsageError: {told}"])
