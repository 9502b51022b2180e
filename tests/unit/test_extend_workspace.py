"""The folder of the workbench: what is done, what is not done again, and what is never lost."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bbnli_audit.core.errors import WorkbenchError
from bbnli_audit.workbench.extend.table import Item, Reviewed, Word, read_table, write_table
from bbnli_audit.workbench.workspace import Made, Workspace

WORDS = ",".join(Word._fields)
COUNTS = {"planets/zorbs": {"masked_templates": 2}}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "work")


def maker(workspace: Workspace, file: str, text: str, calls: list[str]) -> Callable[[], Made]:
    def make() -> Made:
        calls.append(file)
        workspace.path(file).write_text(text)
        return Made(COUNTS)

    return make


def test_the_same_step_is_done_once(workspace: Workspace) -> None:
    calls: list[str] = []
    make = maker(workspace, "masked.csv", "a\n", calls)
    first, is_new = workspace.run("mask", {"a": (1, 2)}, make)
    again, is_new_again = workspace.run("mask", {"a": (1, 2)}, make)
    assert (is_new, is_new_again, calls) == (True, False, ["masked.csv"])
    assert first == again
    assert first.total("masked_templates") == 2


@pytest.mark.parametrize("change", ["settings", "inputs", "forced", "output is gone"])
def test_a_step_is_done_again_when_something_is_other(workspace: Workspace, change: str) -> None:
    calls: list[str] = []
    make = maker(workspace, "masked.csv", "a\n", calls)
    workspace.run("mask", {"a": 1}, make, inputs={"x": "1"})
    if change == "output is gone":
        workspace.path("masked.csv").unlink()
    settings, inputs = {"a": 2 if change == "settings" else 1}, {"x": "2" if change == "inputs" else "1"}
    again = Workspace(workspace.folder, is_again=change == "forced")
    _, is_new = again.run("mask", settings, make, inputs=inputs)
    assert (is_new, len(calls)) == (True, 2)


def test_a_changed_table_is_taken_told_and_never_written_over(workspace: Workspace) -> None:
    calls: list[str] = []
    make_masks = maker(workspace, "masked.csv", "a\n", calls)
    workspace.run("mask", {}, make_masks)
    workspace.path("masked.csv").write_text("changed by hand\n")
    done, is_new = workspace.run("expand", {}, maker(workspace, "expanded.csv", "b\n", calls))
    assert (done.edited, is_new) == (("masked.csv",), True)
    _, is_new = workspace.run("mask", {}, make_masks)
    assert not is_new
    with pytest.raises(WorkbenchError, match=r"masked\.csv: was changed after the step 'mask' wrote it"):
        workspace.run("mask", {"other": 1}, make_masks)
    assert workspace.path("masked.csv").read_text() == "changed by hand\n"
    Workspace(workspace.folder, is_again=True).run("mask", {"other": 1}, make_masks)
    assert workspace.path("masked.csv").read_text() == "a\n"


def test_a_table_that_no_step_wrote_is_not_written_over(workspace: Workspace) -> None:
    """A folder may be the user's own, and `masked.csv` his templates."""
    calls: list[str] = []
    workspace.folder.mkdir()
    table = workspace.path("masked.csv")
    table.write_text("mine\n")
    make = maker(workspace, "masked.csv", "a\n", calls)
    with pytest.raises(
        WorkbenchError, match=r"masked\.csv: is there, and no step wrote it; running the step 'mask' wo"
    ):
        workspace.run("mask", {}, make)
    assert (table.read_text(), calls) == ("mine\n", [])
    Workspace(workspace.folder, is_again=True).run("mask", {}, make)
    assert table.read_text() == "a\n"


def test_a_step_broken_off_with_other_settings_is_not_taken_for_the_earlier_one(
    workspace: Workspace,
) -> None:
    calls: list[str] = []
    make = maker(workspace, "masked.csv", "old\n", calls)
    workspace.run("mask", {"a": 1}, make)

    def broken() -> Made:
        workspace.path("masked.csv").write_text("new\n")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        workspace.run("mask", {"a": 2}, broken)
    with pytest.raises(WorkbenchError, match="the step 'mask' was interrupted"):
        workspace.need("mask")
    _, is_new = workspace.run("mask", {"a": 1}, make)
    assert (is_new, workspace.path("masked.csv").read_text()) == (True, "old\n")
    workspace.need("mask")


def test_a_step_that_was_done_with_other_tables_is_told(workspace: Workspace) -> None:
    workspace.run("mask", {}, maker(workspace, "masked.csv", "a\n", []))
    workspace.run("expand", {}, maker(workspace, "expanded.csv", "b\n", []))
    assert list(workspace.need_current(["mask", "expand"])) == ["mask", "expand"]
    workspace.path("masked.csv").write_text("c\n")
    with pytest.raises(WorkbenchError, match=r"masked\.csv: has changed since the step 'expand' was done"):
        workspace.need_current(["mask", "expand"])


def test_a_step_that_breaks_is_not_called_done(workspace: Workspace) -> None:
    def broken() -> Made:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        workspace.run("mask", {}, broken)
    assert workspace.manifest("mask") is None


def test_messages_name_the_step_that_is_missing(workspace: Workspace) -> None:
    workspace.folder.mkdir()
    with pytest.raises(
        WorkbenchError, match=r"masked\.csv: there is no such file\. First run: bbnli-audit extend mask"
    ):
        workspace.run("expand", {}, maker(workspace, "expanded.csv", "", []))
    with pytest.raises(WorkbenchError, match="the step 'filter' has not been done"):
        workspace.need("filter")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not valid JSON.* Remove it"),
        ("[]", "is not a manifest. Remove it"),
        (json.dumps({"format": 9}), "has format 9, not 1"),
        (json.dumps({"format": 1, "edited": []}), "is not a manifest. Remove it"),
        ("[" * 3000, "is nested too deeply.* Remove it"),
    ],
)
def test_a_manifest_that_is_none(workspace: Workspace, text: str, message: str) -> None:
    workspace.folder.mkdir()
    workspace.path("mask.manifest.json").write_text(text)
    with pytest.raises(WorkbenchError, match=message):
        workspace.manifest("mask")


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkbenchError, match="file: is a file"):
        Workspace(tmp_path / "file").run("mask", {}, lambda: Made({}))
    with pytest.raises(WorkbenchError, match="below: cannot be created"):
        Workspace(tmp_path / "file" / "below").run("mask", {}, lambda: Made({}))
    with pytest.raises(WorkbenchError, match="file: is a file"):
        Workspace(tmp_path / "file").need("mask")
    with pytest.raises(WorkbenchError, match=r"nowhere: there is no such folder\. First run: bbnli-audit extend mask"):
        Workspace(tmp_path / "nowhere").run("expand", {}, lambda: Made({}))
    assert not (tmp_path / "nowhere").exists()


def test_a_folder_in_the_place_of_a_table(workspace: Workspace) -> None:
    workspace.path("masked.csv").mkdir(parents=True)
    with pytest.raises(WorkbenchError, match=r"masked\.csv: cannot be read"):
        workspace.run("expand", {}, lambda: Made({}))


def test_tables_come_back_as_they_were(tmp_path: Path) -> None:
    rows = [Item("1", "d", "s", 'a "quoted", line', "t\nwith a break", "w\rand another", "é", 3)]
    write_table(tmp_path / "items.csv", Item, rows)
    assert read_table(tmp_path / "items.csv", Item) == rows
    assert b"\r\n" not in (tmp_path / "items.csv").read_bytes()


def test_columns_may_be_added_and_reordered(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("note,stance,verdict,hypothesis,subtopic,domain,item\nn,pro,valid,h,s,d,i\n")
    assert read_table(tmp_path / "a.csv", Reviewed) == [Reviewed("i", "d", "s", "h", "valid", "pro")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("domain,subtopic\n", r"a\.csv:1: has no column 'masked'"),
        (f"{WORDS},rank\n", r"a\.csv:1: has the column 'rank' twice"),
        (
            f"{WORDS}\nd,s,m,one,w,0.1\n",
            r"a\.csv:2: rank is 'one'; expected a number",
        ),
        (f"{WORDS}\nd,s\n", r"a\.csv:2: has 2 values for 6 columns"),
        (f'{WORDS}\n"d', r"a\.csv:\d: is not valid CSV"),
    ],
)
def test_tables_that_cannot_be_read(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(WorkbenchError, match=message):
        read_table(tmp_path / "a.csv", Word)
