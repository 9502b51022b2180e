"""The audits of a soak: a small project about invented groups, and the ways to audit a model in it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.invented import write_large_suite

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ROOT = Path(__file__).parents[2]
NOBODY = 65534
LIMITS = """\
version: 1
decide: point
competence: {min_control_accuracy: 0.05}
defaults: {max_pro: 0.95, max_anti: 0.95, max_brittleness: 0.95, max_unparsed: 0.95}
"""
AUDITS = """\
import pytest

@pytest.mark.parametrize("measure", ["pro_rate", "anti_rate", "brittleness_rate"])
def test_measure(bbnli, measure):
    bbnli.require(measure)
"""
STORE, RESULT, UNFINISHED = "store.sqlite", "result.json", "run-unfinished.txt"


@dataclass(frozen=True)
class Case:
    """One way to audit; `needs` is the package without which it is left out."""

    name: str
    options: tuple[str, ...]
    needs: str | None = None
    is_served: bool = False

    @property
    def is_possible(self) -> bool:
        return self.needs is None or find_spec(self.needs) is not None


CASES = (
    Case("plain", ("--model=demo",)),
    Case("two workers", ("--model=demo", "-n", "2"), "xdist"),
    Case("onnx", ("--model=demo", "--bbnli-backend=onnx"), "onnxruntime"),
    Case("ray", ("--model=demo", "--bbnli-engine=ray"), "ray"),
    Case("served", ("--model=openai:served-model",), "openai", is_served=True),
)


@dataclass(frozen=True)
class Project:
    """A folder with a suite, limits and audits, that any user may write to."""

    folder: Path
    url: str  # of the served model
    python: str = sys.executable  # every user must be able to run it

    @classmethod
    def write(cls, folder: Path, url: str, python: str) -> Project:
        write_large_suite(folder / "suite", n_premises=4)
        (folder / "thresholds.yaml").write_text(LIMITS, encoding="utf-8")
        (folder / "test_audits.py").write_text(AUDITS, encoding="utf-8")
        (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        for each in (folder, *folder.rglob("*")):
            each.chmod(0o777 if each.is_dir() else 0o666)
        return cls(folder, url, python)

    def can_run_as(self, user: int) -> bool:
        """Whether a user can run our Python with the packages that audits need."""
        command = [self.python, "-c", "import pytest, torch, transformers"]
        how: Any = {"env": _environment(self.folder), "user": user, "group": user, "extra_groups": []}
        try:
            return subprocess.run(command, cwd=self.folder, capture_output=True, check=False, **how).returncode == 0
        except OSError:
            return False

    def start(
        self, case: Case, store: Path, report: Path, *, user: int | None, limit: Callable[[], None] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start an audit in a process group of its own; `limit` is called in it before anything else."""
        served = [f"--bbnli-base-url={self.url}"] if case.is_served else []
        args = [
            self.python,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "test_audits.py",
            *case.options,
            *served,
        ]
        args += [f"--bbnli-data={self.folder / 'suite'}", f"--bbnli-store={store}", f"--bbnli-report={report}"]
        with report.with_suffix(".log").open("wb") as log:
            return subprocess.Popen(
                args,
                cwd=self.folder,
                env=_environment(self.folder),
                stdout=log,
                stderr=subprocess.STDOUT,
                user=user,
                group=user,
                extra_groups=None if user is None else [],
                umask=0,
                preexec_fn=limit,
                start_new_session=True,
            )


def _environment(home: Path) -> Mapping[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "TMPDIR")}
    threads = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    return {
        **kept,
        **threads,
        "HOME": str(home),
        "PYTHONPATH": os.pathsep.join([str(ROOT), *_packages()]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _packages() -> list[str]:
    """Return where our packages are, for a Python that is not that of our environment."""
    return [path for path in sys.path if path.endswith("site-packages")]
