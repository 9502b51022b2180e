"""A fault at any file operation of an audit, its reports and the commands: our own error, or the right result."""

import atexit
import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bbnli_audit import AuditOptions, run_audit
from bbnli_audit.core.errors import AuditError
from bbnli_audit.core.results.file import dump, write_result
from bbnli_audit.frontends.cli.main import main
from tests.entrances import SAMPLES, make_result
from tests.invented import LIMITS, limits, write_templates

OPERATIONS = {"open", "os.mkdir", "os.rename", "os.remove", "os.chmod", "os.scandir", "os.listdir", "sqlite3.connect"}
codes = st.sampled_from([errno.ENOSPC, errno.EACCES, errno.EIO, errno.EROFS, errno.ENAMETOOLONG])


@dataclass
class Faults:
    """Counts the operations on files below a folder, and lets one of them fail."""

    folder: str = ""
    fails_at: int = 0
    code: int = errno.EIO
    n_seen: int = 0

    def __call__(self, event: str, args: tuple[object, ...]) -> None:
        if not self.folder or event not in OPERATIONS or not args:
            return
        path = args[0]
        if not isinstance(path, str | os.PathLike) or not os.fspath(path).startswith(self.folder):
            return
        self.n_seen += 1
        if self.n_seen == self.fails_at:
            raise OSError(self.code, os.strerror(self.code), os.fspath(path))

    @contextmanager
    def on(self, folder: Path, fails_at: int = 0, code: int = errno.EIO) -> Iterator[None]:
        self.folder, self.fails_at, self.code, self.n_seen = str(folder), fails_at, code, 0
        try:
            yield
        finally:
            self.folder = ""


FAULTS = Faults()
sys.addaudithook(FAULTS)  # there is no way to remove one; it is asleep without a folder


def prepare(folder: Path) -> None:
    write_templates(folder / "data")
    (folder / "thresholds.yaml").write_text(LIMITS, encoding="utf-8")
    (folder / "in.csv").write_text("premise,hypothesis\nHe juggles.,She walks.\n", encoding="utf-8")
    (folder / "bbnli_next.csv").write_text(SAMPLES, encoding="utf-8")
    write_result(make_result(), folder / "result.json")
    shutil.copytree(audited(), folder / "audited")


@cache
def audited() -> Path:
    """Return a folder with the whole report of an audit."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    write_templates(folder / "data")
    options = AuditOptions(model="planted:ideal", thresholds=limits(), data=folder / "data", report=folder / "report")
    run_audit(options)
    return folder / "report"


def audit(folder: Path) -> object:
    options = AuditOptions(
        model="planted:always-pro",
        thresholds=limits(),
        data=folder / "data",
        report=folder / "report",
        store=folder / "kept" / "predictions.sqlite",
        save_baseline=folder / "baseline.json",
    )
    return dump(run_audit(options))


def command(*arguments: str) -> Callable[[Path], object]:
    def run(folder: Path) -> object:
        return main([argument.replace("DIR", str(folder)) for argument in arguments])

    run.__name__ = "_".join(arguments[:2]).replace("/", "_")
    return run


WORK = (
    audit,
    command("init", "DIR/new"),
    command("suites", "list", "bbnli", "--data", "DIR/data"),
    command("suites", "texts", "bbnli", "--data", "DIR/data", "--output", "DIR/texts.csv"),
    command("suites", "list", "bbnli-next", "--data", "DIR/bbnli_next.csv"),
    command("compare", "DIR/result.json", "DIR/result.json", "--thresholds", "DIR/thresholds.yaml", "--max-increase=1"),
    command("augment", "DIR/in.csv", "DIR/out.csv"),
    command("history", "DIR/result.json", "DIR/result.json", "--output", "DIR/pages"),
    command("calibrate", "DIR/result.json", "--thresholds", "DIR/thresholds.yaml"),
    command("correlate", "DIR/result.json", "DIR/result.json", "DIR/result.json", "--measures", "pro,anti"),
    command("report", "DIR/audited", "--output", "DIR/again"),
    command("verify", "DIR/audited", "--model=planted:ideal", "--data=DIR/data", "--thresholds=DIR/thresholds.yaml"),
)


@pytest.mark.parametrize("work", WORK, ids=lambda work: work.__name__)
@given(st.data())
@settings(max_examples=20)
def test_a_fault_at_any_file_operation(work: Callable[[Path], object], data: st.DataObject) -> None:
    expected, n_operations = run_quietly(work)
    fails_at, code = data.draw(st.integers(1, n_operations)), data.draw(codes)
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        found: object
        with FAULTS.on(Path(folder), fails_at, code):
            try:
                found = work(Path(folder))
            except AuditError as exc:
                found = str(exc)
        assert found in (expected, 4) or (isinstance(found, str) and found.strip())


@cache
def run_quietly(work: Callable[[Path], object]) -> tuple[object, int]:
    """Return the result of a run without faults, and how many operations it takes."""
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        with FAULTS.on(Path(folder)):
            result = work(Path(folder))
    assert FAULTS.n_seen, "nothing was watched"
    return result, FAULTS.n_seen


def test_a_full_device(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    for arguments in (["suites", "list"], ["schema", "thresholds"]):
        with Path("/dev/full").open("w") as full, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", full)
            patch.setattr(sys, "__stdout__", full)
            assert main(arguments) == 4
        assert capsys.readouterr().err == "ERROR: The output cannot be written: No space left on device.\n"
