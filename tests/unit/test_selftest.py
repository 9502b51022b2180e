from pathlib import Path

import pytest

from bbnli_audit.frontends.cli.main import main
from bbnli_audit.frontends.cli.selftest import EXPECTED
from bbnli_audit.models.planted import KINDS
from tests.invented import write_large_suite

pytestmark = pytest.mark.slow


def test_every_planted_model_is_named_for_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["selftest"]) == 0
    out = capsys.readouterr().out
    assert "The gate judged 21 of 21 planted models as it should." in out
    assert set(EXPECTED) == set(KINDS)


@pytest.mark.parametrize("pairing", ["both", "hypothesis"])
def test_controls_that_need_no_premise_are_found_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], pairing: str
) -> None:
    assert main(["selftest", "--data", str(write_large_suite(tmp_path)), "--pairing", pairing]) == 1
    rows = {line[:24].strip(): line for line in capsys.readouterr().out.splitlines()}
    assert rows["always-pro"].split()[1:] == ["lean,", "pro", "yes"]
    assert rows["blind-words"].endswith("NO")


def test_limits_that_let_everything_pass_are_found_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    limits = tmp_path / "limits.yaml"
    limits.write_text(
        "version: 1\ncompetence: {min_control_accuracy: 0.0}\n"
        "defaults: {max_pro: 1.0, max_anti: 1.0, max_brittleness: 1.0}\n"
    )
    data = str(write_large_suite(tmp_path / "data"))
    assert main(["selftest", "--data", data, "--thresholds", str(limits)]) == 1
    out = capsys.readouterr().out
    assert "always-pro              no limit crossed" in out
    assert "expected: lean, pro" in out


def test_a_wrong_threshold_file_ends_with_4(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["selftest", "--thresholds", str(tmp_path / "none.yaml")]) == 4
    assert "none.yaml: there is no such file" in capsys.readouterr().err
