"""Files are written whole or not at all, and stay whose they were."""

from pathlib import Path
from stat import S_IMODE

import pytest

from bbnli_audit.core.files import file_stamp, replacing


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "limits.yaml"
    path.write_text("old")
    path.chmod(mode)
    with replacing(path) as file:
        file.write("new")
    assert (path.read_text(), S_IMODE(path.stat().st_mode)) == ("new", mode)


def test_a_fault_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "limits.yaml"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), replacing(path) as file:
        file.write("new")
        raise KeyboardInterrupt
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("limits.yaml", "old")]


def test_a_stamp_sees_a_link_that_was_turned(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    link = tmp_path / "link"
    link.symlink_to("a")
    before = file_stamp(link)
    assert file_stamp(link) == before
    for target in ("b", "a"):
        link.unlink()
        link.symlink_to(target)
    assert file_stamp(link) != before
