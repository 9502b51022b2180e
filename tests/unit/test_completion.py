"""`bbnli-audit completion`: the script loads, and the TAB key offers commands, options, choices and files."""

import subprocess
from pathlib import Path

import pytest

from bbnli_audit.frontends.cli.completion import SHELLS
from bbnli_audit.frontends.cli.main import COMMANDS, main


@pytest.fixture
def script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert main(["completion", "bash"]) == 0
    path = tmp_path / "completion.bash"
    path.write_text(capsys.readouterr().out)
    return path


def complete(script: Path, line: str) -> set[str]:
    """Ask bash what it would offer for the last word of a line."""
    words = " ".join(f"'{word}'" for word in line.split(" "))
    code = (
        f"source '{script}'; COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 )); "
        '_shtab_bbnli_audit bbnli-audit "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"; '
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", code], cwd=script.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_names_every_command(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    assert main(["completion", shell]) == 0
    out = capsys.readouterr().out
    assert out.endswith("\n")
    for name in COMMANDS:
        assert name in out


def test_bash_takes_the_script(script: Path) -> None:
    subprocess.run(["bash", "-n", script], check=True)


def test_bash_offers_commands_options_and_choices(script: Path) -> None:
    assert complete(script, "bbnli-audit ") >= set(COMMANDS)
    assert complete(script, "bbnli-audit comp") == {"compare", "completion"}
    assert complete(script, "bbnli-audit suites ") >= {"list", "show", "check", "texts"}
    assert complete(script, "bbnli-audit calibrate --m") == {"--margin"}
    assert complete(script, "bbnli-audit init --ci ") == {"github", "gitlab", "none"}
    assert complete(script, "bbnli-audit completion ") >= set(SHELLS)


def test_bash_offers_files_and_folders_where_paths_are_wanted(script: Path) -> None:
    (script.parent / "folder").mkdir()
    (script.parent / "file.yaml").touch()
    assert complete(script, "bbnli-audit selftest --thresholds f") == {"folder", "file.yaml"}
    assert complete(script, "bbnli-audit selftest --data f") == {"folder"}
    assert complete(script, "bbnli-audit calibrate f") == {"folder", "file.yaml"}
    assert complete(script, "bbnli-audit init f") == {"folder"}


def test_another_shell(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["completion", "dosh"])
    assert ended.value.code == 4
    assert "invalid choice: 'dosh'" in capsys.readouterr().err
