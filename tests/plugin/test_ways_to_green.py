"""Every row of the table in docs/ci.md: what a run, a strict run and `verify` make of a way to end green."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

import pytest

from bbnli_audit import AuditOptions, run_audit, write_result
from bbnli_audit.frontends.cli.main import main
from tests.invented import LIMITS, limits, write_templates
from tests.plugin.conftest import Project

DOCS = Path(__file__).parents[2] / "docs" / "ci.md"
TITLE = "| way | run | strict | verify | what is said |"
FINS, ZORBS = "bbnli/oceans/fins", "bbnli/planets/zorbs"
POINT = LIMITS + "decide: point\nregression: {max_increase: 0.05}\n"
ONE_PRO = POINT.replace("max_pro: 0.10", "max_pro: 0.9")  # the model keeps this

# Wrong towards the stereotype about Fins, and right everywhere else.
MODEL = """
def answer(texts):
    known = {"There is a": (1, 0, 0), "The red mo": (0, 0, 1), "Most Fins ": (1, 0, 0)}
    return [known.get(hypothesis[:10], (0, 1, 0)) for _, hypothesis in texts]
"""
BREAKS = """
import model

def answer(texts):
    if any("Fins" in hypothesis for _, hypothesis in texts):
        raise KeyError
    return model.answer(texts)
"""
LEAVES = "import os\n\ndef answer(texts):\n    os._exit(0)\n"
PRO = "def test_pro(bbnli):\n    bbnli.require('pro_rate')\n"
CAUGHT = "def test_pro(bbnli):\n    try:\n        bbnli.require('pro_rate')\n    except AssertionError:\n        pass\n"
RAISES = """
import pytest

def test_pro(bbnli):
    with pytest.raises(AssertionError):
        bbnli.require("pro_rate")
"""
INTERRUPTED = """
def test_pro(bbnli):
    bbnli.require("pro_rate")
    if "zorbs" in bbnli.subtopic.path:
        raise KeyboardInterrupt
"""
MARKED = """
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.xfail)
"""
REPORTED = """
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    report = yield
    known = {name: getattr(report, name) for name in ("nodeid", "location", "keywords", "when")}
    return pytest.TestReport(**known, outcome="passed", longrepr=None)
"""
RESET = "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n"
RESET_LAST = """
import pytest

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session):
    yield
    session.exitstatus = 0
"""
ENDS_WITH_0 = "import pytest\n\ndef pytest_sessionfinish():\n    pytest.exit('enough', returncode=0)\n"
LEAVES_WITH_0 = "import sys\n\ndef pytest_sessionfinish():\n    sys.exit(0)\n"
MAIN_RETURNS_0 = """
import pytest

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_cmdline_main():
    yield
    return 0
"""
NO_CONFIGURE = "import pytest\n\ndef pytest_configure(config):\n    pytest.exit('no GPU here', returncode=0)\n"
NO_MAIN = "def pytest_cmdline_main(config):\n    return 0\n"
NO_IMPORT = "import sys\n\nsys.exit(0)\n"
RESET_TO_256 = RESET_LAST.replace("exitstatus = 0", "exitstatus = 256")
UNREGISTERS = """
def pytest_sessionstart(session):
    manager = session.config.pluginmanager
    for plugin in [each for each in manager.get_plugins() if type(each).__name__ == "AuditSession"]:
        manager.unregister(plugin)
"""
STOPS = "import pytest\n\ndef test_last():\n    pytest.exit('enough', returncode=0)\n"
OVERRIDES = """
import pytest

class Pleased:
    def require(self, measure):
        pass

@pytest.fixture
def bbnli(request):
    return Pleased() if "fins" in request.param else request.getfixturevalue("bbnli")
"""
OVERRIDES_AND_SWALLOWS = """
import pytest

class Pleased:
    def __init__(self, handle):
        self.handle = handle

    def require(self, measure):
        try:
            self.handle.require(measure)
        except AssertionError:
            pass

@pytest.fixture
def bbnli(bbnli):
    return Pleased(bbnli)
"""
SKIPS = """
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        if "fins" in item.name:
            item.add_marker(pytest.mark.skip)
"""
DROPS = (
    "def pytest_collection_modifyitems(items):\n    items[:] = [item for item in items if 'fins' not in item.name]\n"
)
STRICT_INI = "[pytest]\npythonpath = .\nbbnli_strict = true\n"
OWNER = "def pytest_addoption(parser):\n    parser.addoption('--model')\n"
IN_FIXTURE = """
import pytest

@pytest.fixture
def gate(bbnli):
    try:
        bbnli.require("pro_rate")
    except AssertionError:
        pytest.skip("later")

def test_pro(gate):
    pass
"""
IN_TEARDOWN = """
import pytest

@pytest.fixture
def gate(bbnli):
    yield
    with pytest.raises(AssertionError):
        bbnli.require("pro_rate")

def test_pro(gate):
    pass
"""


def waived_until(last: date) -> str:
    waiver = f"{{subtopic: {FINS}, measure: pro, reason: known, owner: Ada, expires: {last.isoformat()}}}"
    return f"{POINT}waivers: [{waiver}]\n"


@dataclass(frozen=True)
class Way:
    """A model that is wrong about Fins, if no other is named, and what is done so that it may pass."""

    args: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    model: str | None = "model:answer"
    addopts: str | None = None
    tests: tuple[str, ...] = ("audits",)
    needs_process: bool = False  # it ends the process, so it must have its own


FAILED = json.dumps({f"audits/test_audits.py::test_pro[{ZORBS}]": True})
OTHER_TESTS = {"tests/test_other.py": "def test_other():\n    pass\n"}
AUDITS = "audits/test_audits.py"
WAYS = {
    "no limit is crossed": Way(model="planted:ideal"),
    # A day more: midnight may pass between collecting and running. tests/unit/test_verify.py has the last day itself.
    "the crossed limit has a waiver": Way(files={"thresholds.yaml": waived_until(date.today() + timedelta(1))}),
    "the waiver has expired": Way(files={"thresholds.yaml": waived_until(date.today() - timedelta(1))}),
    "a limit is crossed": Way(),
    "crossed, and a conftest marks audits `xfail`": Way(files={"conftest.py": MARKED}),
    "crossed, and the test catches it": Way(files={AUDITS: CAUGHT}),
    "crossed, and the test expects it (`pytest.raises`)": Way(files={AUDITS: RAISES}, model="planted:always-pro"),
    "crossed in a fixture that skips": Way(files={AUDITS: IN_FIXTURE}),
    "crossed in a teardown that expects it": Way(files={AUDITS: IN_TEARDOWN}, model="planted:always-pro"),
    "crossed, and a hook changes the report": Way(files={"conftest.py": REPORTED}),
    "crossed, and a hook changes the exit code": Way(files={"conftest.py": RESET}),
    "an audit fails for a reason of its own, and a hook changes the exit code": Way(
        files={"conftest.py": RESET, AUDITS: PRO + "    assert not bbnli.result.n_pairs\n"}, model="planted:ideal"
    ),
    "a file cannot be collected, and a hook changes the exit code": Way(
        files={"conftest.py": RESET, "audits/test_b.py": "import nothing_of_that_name\n"},
        args=("--continue-on-collection-errors",),
        model="planted:ideal",
    ),
    "Ctrl-C in the last audit, and a hook changes the exit code": Way(
        files={"conftest.py": RESET, AUDITS: INTERRUPTED}, model="planted:ideal", needs_process=True
    ),
    "crossed, and a hook around all others changes the exit code": Way(files={"conftest.py": RESET_LAST}),
    "crossed, and a hook ends the run with 0 (`pytest.exit`)": Way(files={"conftest.py": ENDS_WITH_0}),
    "crossed, and a hook leaves with 0 (`sys.exit`)": Way(files={"conftest.py": LEAVES_WITH_0}, needs_process=True),
    "crossed, and a hook changes the exit code to 256, which the system takes for 0": Way(
        files={"conftest.py": RESET_TO_256}
    ),
    "crossed, and a hook around pytest's main function returns 0": Way(files={"conftest.py": MAIN_RETURNS_0}),
    "a conftest ends the run before it begins (`pytest.exit` in `pytest_configure`)": Way(
        files={"conftest.py": NO_CONFIGURE}
    ),
    "a conftest returns 0 in place of pytest's main function": Way(files={"conftest.py": NO_MAIN}),
    "a conftest leaves with 0 when it is imported": Way(files={"conftest.py": NO_IMPORT}, needs_process=True),
    "crossed, `xfail`, and a hook takes the plugin's session out": Way(files={"conftest.py": MARKED + UNREGISTERS}),
    "crossed, and the fixture `bbnli` is replaced by one that catches it": Way(
        files={"conftest.py": OVERRIDES_AND_SWALLOWS}
    ),
    "crossed, `xfail`, and `-p no:` with the name of a part of the plugin": Way(
        args=("-p", "no:bbnli_audit_session", "-p", "no:bbnli_audit_collection"), files={"conftest.py": MARKED}
    ),
    "the plugin is switched off (`-p no:bbnli_audit`)": Way(args=("-p", "no:bbnli_audit")),
    "growth beyond the margin, and `xfail`": Way(
        args=("--bbnli-baseline=ideal.json",),
        files={"conftest.py": MARKED, "thresholds.yaml": ONE_PRO},
    ),
    "a baseline, and nothing is compared with it": Way(
        args=("--bbnli-baseline=ideal.json", "-k", "not regression"), files={"thresholds.yaml": ONE_PRO}
    ),
    "an audit cannot measure, and `xfail`": Way(
        files={"conftest.py": MARKED, "breaks.py": BREAKS}, model="breaks:answer"
    ),
    "the model is not competent": Way(model="planted:always-neutral", args=("-k", "test_pro")),
    "no test requires a limit": Way(files={AUDITS: "def test_x(bbnli):\n    pass\n"}),
    "the crossed limit has no test (removed, `collect_ignore`)": Way(files={AUDITS: PRO}, model="planted:brittle"),
    "something ends the run before the rest of its audits": Way(files={"audits/test_a.py": STOPS, AUDITS: PRO}),
    "the subtopic has a skip mark": Way(files={"conftest.py": SKIPS}),
    "a hook drops its tests in silence": Way(files={"conftest.py": DROPS}),
    "the fixture `bbnli` is replaced by one that asks nothing": Way(files={"conftest.py": OVERRIDES}),
    "the subtopic is deselected (`-k`, `-m`, `--deselect`)": Way(args=("-k", "zorbs")),
    "only the last failures run (`--lf`)": Way(args=("--lf",), files={".pytest_cache/v/cache/lastfailed": FAILED}),
    "the subtopic is excluded (`--bbnli-exclude`)": Way(args=("--bbnli-exclude=bbnli/oceans/*",)),
    "only a part of the pairs is audited (`--bbnli-size=small`)": Way(
        args=("--bbnli-size=small",), model="planted:ideal"
    ),
    "a limit that nothing can cross (`max_pro: 1`)": Way(
        files={"thresholds.yaml": POINT.replace("max_pro: 0.10", "max_pro: 1")}
    ),
    "only limits that nothing can cross": Way(
        files={"thresholds.yaml": re.sub("(max_[a-z]+): 0.[12]0", r"\1: 1", POINT)}, args=("-k", "not regression")
    ),
    "only limits and a margin of growth that nothing can cross": Way(
        files={"thresholds.yaml": re.sub("(max_[a-z]+): 0.[012][05]", r"\1: 1", POINT)},
        args=("--bbnli-baseline=ideal.json",),
    ),
    "other limits through `PYTEST_ADDOPTS`": Way(
        files={"loose.yaml": ONE_PRO}, addopts="--bbnli-thresholds=loose.yaml"
    ),
    "the same in a file that `PYTEST_ADDOPTS` names (`@FILE`)": Way(
        files={"loose.yaml": ONE_PRO, "args.txt": "--bbnli-thresholds=loose.yaml\n"}, addopts="@args.txt"
    ),
    "`PYTEST_ADDOPTS` turns `bbnli_strict` of pytest's settings off": Way(
        files={"pytest.ini": STRICT_INI}, args=("-k", "zorbs"), addopts="-o bbnli_strict=false"
    ),
    "`PYTEST_ADDOPTS` names another file of settings than the one with `bbnli_strict`": Way(
        files={"pytest.ini": STRICT_INI, "other.ini": "[pytest]\npythonpath = .\n"},
        args=("-k", "zorbs"),
        addopts="-c other.ini",
    ),
    "`PYTEST_ADDOPTS` has pytest show its help": Way(addopts="-h"),
    "the same behind a letter of another plugin (`-dh`)": Way(addopts="-dh"),
    "pytest only shows something (`--fixtures`, `--markers`, `--cache-show`)": Way(args=("--fixtures",)),
    "pytest only shows its help or version": Way(args=("--help",)),
    "tests are only collected (`--collect-only`)": Way(args=("--collect-only",)),
    "fixtures are only planned (`--setup-plan`)": Way(args=("--setup-plan",)),
    "no model, and only audits": Way(model=None),
    "no model, and other tests too": Way(model=None, files=OTHER_TESTS, tests=("audits", "tests")),
    "another plugin has `--model`": Way(
        files={"conftest.py": OWNER, **OTHER_TESTS},
        args=("--model=model:answer",),
        model=None,
        tests=("audits", "tests"),
    ),
    "the model's code ends the process with 0": Way(
        files={"leaves.py": LEAVES}, model="leaves:answer", needs_process=True
    ),
    "the same when all is done (`atexit`)": Way(
        files={"model.py": f"{MODEL}\nimport atexit, os\natexit.register(os._exit, 0)\n"}, needs_process=True
    ),
}


def read_table() -> dict[str, tuple[list[int], str]]:
    lines = DOCS.read_text(encoding="utf-8").splitlines()
    start = lines.index(TITLE) + 2
    end = next(number for number in range(start, len(lines)) if not lines[number].startswith("|"))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[start:end]]
    return {way: ([int(code) for code in codes], said) for way, *codes, said in rows}


def test_the_table_has_a_row_for_each_way() -> None:
    assert list(read_table()) == list(WAYS)


def write_data(folder: Path) -> Path:
    """Write two small subtopics: with `decide: point` they decide."""
    write_templates(folder)
    fins = {"name": "fins", "domain": "oceans", "GROUP1": ["Fins"], "GROUP2": ["Gills"]}
    write_templates(folder, "oceans/fins.json", **fins)
    write_templates(folder, "planets/zorbs.json", name="zorbs")
    return folder


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("baseline")
    options = AuditOptions(model="planted:ideal", thresholds=limits(POINT), data=write_data(folder / "data"))
    write_result(run_audit(options), folder / "ideal.json")
    return folder / "ideal.json"


@pytest.fixture
def project(project: Project, baseline: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    write_data(project.path / "small")
    project.write("ideal.json", baseline.read_text())
    project.write("model.py", MODEL)
    # The pages of a report take seconds, and `verify` does not read them.
    monkeypatch.setattr("bbnli_audit.audit.outputs.write_reports", lambda *_: None)
    return project


def run(project: Project, way: Way, *args: str) -> tuple[int, str]:
    for name, text in {"thresholds.yaml": POINT, **way.files}.items():
        project.write(name, text)
    model = () if way.model is None else (f"--bbnli-model={way.model}", "--bbnli-data=small")
    given = (*way.tests, *model, *way.args, *args)
    if way.needs_process:
        ended = project.run_warm(*given)
        return ended.returncode, ended.stdout + ended.stderr
    done = project.run(*given)
    return int(done.ret), done.stdout.str() + done.stderr.str()


@pytest.mark.parametrize("name", WAYS)
def test_what_a_run_a_strict_run_and_verify_make_of_it(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    way, (expected, said) = WAYS[name], read_table()[name]
    monkeypatch.chdir(project.path)
    if way.addopts is not None:
        monkeypatch.setenv("PYTEST_ADDOPTS", way.addopts)
    reporting = () if "no:bbnli_audit" in way.args else ("--bbnli-report=out", "--bbnli-save-baseline=base.json")
    plain, shown = run(project, way, *reporting)
    strict, shown_strictly = run(project, way, "--bbnli-strict")
    given = [f"--model={way.model or 'model:answer'}", "--data=small", "--thresholds=thresholds.yaml"]
    given += [arg.replace("--bbnli-", "--") for arg in way.args if "baseline" in arg]
    verified = main(["verify", "out", *given])
    assert [plain, strict, verified] == expected
    for code, text in ((plain, shown), (strict, shown_strictly)):
        assert code == 0 or not re.search("^Release: ", text, re.MULTILINE), "the decision contradicts the exit code"
    told = shown + shown_strictly + capsys.readouterr().out
    assert all(part in told for part in said.split(" … "))
    if "\nFAIL " in shown:
        assert not (project.path / "base.json").exists()
