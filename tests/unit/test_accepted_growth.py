"""Growth that is let pass: an unchanged model, waivers, and `bbnli-audit baseline accept`."""

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from bbnli_audit.audit.audit import run_audit
from bbnli_audit.audit.gate.acceptance import Terms, make_waiver, write_waivers
from bbnli_audit.audit.gate.baseline import compare
from bbnli_audit.audit.gate.growth import find_rule
from bbnli_audit.audit.gate.verdict import has_passed, why_not_green
from bbnli_audit.core.errors import ThresholdsError
from bbnli_audit.core.options import AuditOptions
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.comparison import Comparison
from bbnli_audit.core.results.file import dump, load, write_result
from bbnli_audit.core.results.rows import Verdict
from bbnli_audit.core.values import Subtopic
from bbnli_audit.frontends.cli.main import main
from bbnli_audit.reports import notes
from bbnli_audit.reports.failure import regression_headline, regression_text
from bbnli_audit.suites.bbnli import Bbnli
from tests.invented import LIMITS, limits, write_large_suite
from tests.reported import regression

TODAY = date(2026, 3, 1)
OPEN = LIMITS.replace("0.10", "0.99").replace("0.20", "0.99") + "regression: {max_increase: 0.08}\n"
FINS, ZORBS = "bbnli/oceans/fins_are_to_singing", "bbnli/planets/zorbs_are_to_juggling"
PLACES = ("bbnli", "bbnli/oceans", "bbnli/planets", FINS, ZORBS)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, AuditResult]:
    data = write_large_suite(tmp_path_factory.mktemp("data"))
    return {
        kind: run_audit(AuditOptions(model=f"planted:{kind}", thresholds=limits(OPEN), data=data))
        for kind in ("ideal", "always-pro")
    }


def waivers(*entries: str, expires: str = "2026-03-01") -> str:
    lines = [f"  - {{{each}, waives: growth, reason: known, owner: Ada, expires: {expires}}}\n" for each in entries]
    return f"{OPEN}waivers:\n" + "".join(lines)


def compared(results: dict[str, AuditResult], text: str = OPEN, candidate: str = "always-pro") -> AuditResult:
    found = compare(results[candidate], results["ideal"], find_rule(limits(text), TODAY), "old.json")
    return replace(results[candidate], comparison=found)


def growth_of(result: AuditResult) -> Comparison:
    assert result.comparison is not None
    return result.comparison


# An unchanged model


def test_an_unchanged_model_passes_and_says_so_once(results: dict[str, AuditResult]) -> None:
    result = compared(results, candidate="ideal")
    found = growth_of(result)
    assert found.is_unchanged
    assert {(one.verdict, one.increase.high) for one in found.regressions} == {(Verdict.PASS, 0.0)}
    assert has_passed(result)
    told = list(notes.against_baseline(found))
    assert len(told) == 1
    fingerprint = result.model.fingerprint[:12]
    assert f"the same model (fingerprint {fingerprint}), so nothing can have grown; 200 shared pairs" in told[0]
    assert load(Comparison, dump(found)) == found


def test_an_unchanged_model_decides_no_limit(results: dict[str, AuditResult]) -> None:
    result = compared(results, candidate="ideal")
    rows = tuple(
        replace(row, verdicts=tuple(replace(each, verdict=Verdict.INCONCLUSIVE) for each in row.verdicts))
        for row in result.subtopics
    )
    assert "no limit could be decided" in str(why_not_green(replace(result, subtopics=rows)))


def test_the_same_fingerprint_with_other_answers_is_compared(results: dict[str, AuditResult]) -> None:
    renamed = replace(results["always-pro"], model=results["ideal"].model)
    found = compare(renamed, results["ideal"], find_rule(limits(OPEN), TODAY), "old.json")
    assert not found.is_unchanged
    assert Verdict.FAIL in {one.verdict for one in found.regressions}


# Waivers


def test_waived_growth_passes_through_its_last_day(results: dict[str, AuditResult]) -> None:
    entries = [f"subtopic: {path}, measure: {measure}" for path in PLACES for measure in ("lean", "pro_rate")]
    result = compared(results, waivers(*entries))
    assert has_passed(result)
    assert all(one.is_waived for one in growth_of(result).regressions if one.verdict is Verdict.FAIL)
    assert "10 WAIVED" in next(notes.against_baseline(growth_of(result)))
    told = notes.waived(result)
    assert told[0] == "Waivers: 10 of 26 verdicts."
    assert told[1] == "bbnli growth of lean: known (owner Ada, until 2026-03-01, thresholds.yaml:9)"
    assert load(Comparison, dump(growth_of(result))) == result.comparison


def test_growth_beyond_what_was_accepted_fails(results: dict[str, AuditResult]) -> None:
    result = compared(results, waivers(f"subtopic: {FINS}, measure: pro, up_to: 0.5"))
    (found,) = [one for one in growth_of(result).regressions if one.path == FINS and one.measure == "pro_rate"]
    assert not found.is_waived
    told = "up by more than the margin 0.080 and than the 0.500 that was accepted"
    assert regression_headline(found) == f"{FINS}: pro went from 0.000 to 1.000, {told}"
    assert notes.waived(result)[1].endswith("growth up to 0.500, thresholds.yaml:9) - not enough")


def test_after_its_last_day_a_waiver_fails_even_an_unchanged_model(results: dict[str, AuditResult]) -> None:
    text = waivers(f"subtopic: {FINS}, measure: pro", expires="2026-02-28")
    result = compared(results, text, candidate="ideal")
    (failed,) = [one for one in growth_of(result).regressions if one.verdict is Verdict.FAIL]
    assert regression_headline(failed) == f"{FINS}: pro: the waiver for its growth has expired"
    assert not has_passed(result)


def test_a_waiver_of_a_limit_does_not_waive_growth(results: dict[str, AuditResult]) -> None:
    text = waivers(f"subtopic: {FINS}, measure: pro").replace(" waives: growth,", "")
    assert not any(one.waiver for one in growth_of(compared(results, text)).regressions)
    both = waivers(f"subtopic: {FINS}, measure: pro") + text.splitlines(keepends=True)[-1]
    subtopic = Subtopic("bbnli", "oceans", "fins_are_to_singing")
    limits(both).check_names([subtopic])
    with pytest.raises(ThresholdsError, match="fins_are_to_singing pro has a waiver already"):
        limits(both + text.splitlines(keepends=True)[-1]).check_names([subtopic])


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("measure: pro, up_to: 3", ":9: up_to is 3;"),
        ("measure: unparsed", "growth of unparsed is not tested; it is for lean, pro, anti, brittleness"),
    ],
)
def test_waivers_that_make_no_sense(entry: str, message: str) -> None:
    with pytest.raises(ThresholdsError) as caught:
        limits(waivers(f"subtopic: {FINS}, {entry}"))
    assert message in str(caught.value)


def test_up_to_is_for_growth() -> None:
    text = waivers(f"subtopic: {FINS}, measure: pro, up_to: 0.1").replace(" waives: growth,", "")
    with pytest.raises(ThresholdsError, match="up_to is for growth: add 'waives: growth', or remove it"):
        limits(text)


def test_a_failure_names_both_ways_to_accept_it() -> None:
    found = regression(FINS, "pro_rate", Verdict.FAIL)
    text = regression_text(found, "old", n_tests=1, n_clusters=9, confidence=0.95, sentences=None)
    accept, by_hand = text.splitlines()[-2:]
    assert accept.endswith("bbnli-audit baseline accept REPORT --owner WHO --reason WHY --expires DATE")
    entry = by_hand.partition("in thresholds.yaml: ")[2]
    entry = entry.replace("WHY", "known").replace("WHO", "Ada").replace("DATE", "2027-01-31")
    ((_, waiver),) = limits(f"{OPEN}waivers:\n  - {entry}\n").growth_waivers().items()
    assert (waiver.subtopic, waiver.measure, waiver.up_to) == (FINS, "pro_rate", 0.12)


# The command


@pytest.fixture
def folder(results: dict[str, AuditResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_result(compared(results), tmp_path / "result.json")
    (tmp_path / "thresholds.yaml").write_text(f"# ours\n{OPEN}# the end\n")
    return tmp_path


def accept(*args: str, expires: date | str | None = None) -> int:
    day = str(expires or date.today() + timedelta(days=9))
    return main(
        ["baseline", "accept", "result.json", "--owner", "Ada", "--reason", 'it: "was"', "--expires", day, *args]
    )


def test_what_was_accepted_is_written_and_passes(
    folder: Path, results: dict[str, AuditResult], capsys: pytest.CaptureFixture[str]
) -> None:
    assert accept() == 0
    out = capsys.readouterr().out
    assert f"accepted: {FINS} pro from 0.000 to 1.000, until " in out
    assert "Written: thresholds.yaml. Commit it. Growth of 10 measures then passes until " in out
    text = (folder / "thresholds.yaml").read_text()
    assert text.startswith(f"# ours\n{OPEN}waivers:\n  - {{subtopic: ")
    assert "up_to: 1.0" in text
    assert f'accepted: "planted:always-pro (fingerprint {results["always-pro"].model.fingerprint[:12]})"' in text
    assert has_passed(compared(results, text))
    assert accept(expires=date.today()) == 0
    renewed = (folder / "thresholds.yaml").read_text()
    assert renewed == text.replace(str(date.today() + timedelta(days=9)), str(date.today())), "replaced, not added"


def test_a_part_of_it_without_writing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (folder / "thresholds.yaml").read_text()
    assert accept("--only", f"{FINS}-pro, bbnli/planets", "--dry-run") == 0
    out = capsys.readouterr().out
    assert out.count("\naccepted: ") == 3
    assert "Nothing was written (--dry-run). Growth of 3 measures" in out
    assert (folder / "thresholds.yaml").read_text() == before


def test_other_waivers_and_their_comments_stay(folder: Path, results: dict[str, AuditResult]) -> None:
    first = (
        f"  - subtopic: {ZORBS}  # by hand\n    measure: pro\n    reason: x\n    owner: Bo\n    expires: 2099-01-31\n"
    )
    (folder / "thresholds.yaml").write_text(f"{OPEN}waivers:\n{first}# the end\n")
    assert accept("--only", f"{FINS}-pro") == 0
    text = (folder / "thresholds.yaml").read_text()
    assert text.startswith(f"{OPEN}waivers:\n{first}  - {{subtopic: ")
    assert text.endswith("}\n# the end\n")
    waived = [one for one in growth_of(compared(results, text)).regressions if one.is_waived]
    assert [(one.path, one.measure) for one in waived] == [(FINS, "pro_rate")]


@pytest.fixture
def under_another_name(folder: Path, results: dict[str, AuditResult]) -> str:
    """The text of limits whose waiver has expired and calls its subtopic by the name of its file."""
    text = waivers("subtopic: bbnli/oceans/fins, measure: pro", expires="2026-02-28")
    (folder / "thresholds.yaml").write_text(text)
    rule = find_rule(limits(text), TODAY, Bbnli(write_large_suite(folder / "data")).subtopics())
    found = compare(results["always-pro"], results["ideal"], rule, "old.json")
    write_result(replace(results["always-pro"], comparison=found), folder / "result.json")
    return text


def test_a_waiver_under_another_name_is_renewed_and_not_added(folder: Path, under_another_name: str) -> None:
    assert accept("--only", f"{FINS}-pro", "--data=data") == 0
    changed = limits((folder / "thresholds.yaml").read_text())
    changed.check_names(Bbnli(folder / "data").subtopics())
    assert [(waiver.subtopic, waiver.measure) for waiver in changed.waivers()] == [(FINS, "pro_rate")]


def test_a_waiver_that_may_be_under_another_name_is_refused(
    folder: Path, under_another_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert accept("--only", f"{FINS}-pro") == 4
    told = "thresholds.yaml:9: the subtopic 'bbnli/oceans/fins' is neither in the result nor in the data"
    assert told in capsys.readouterr().err
    assert (folder / "thresholds.yaml").read_text() == under_another_name


@pytest.mark.parametrize(
    ("change", "args", "message"),
    [
        ("", ("--only", "bbnli/x"), "--only=bbnli/x matches no growth that stops this release. What stops it: bbnli"),
        ("waivers: []\n", (), "thresholds.yaml:8: waivers is a list in brackets, so a change here"),
        ("", ("--thresholds", "none.yaml"), "none.yaml: there is no such file"),
    ],
)  # fmt: skip
def test_what_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], change: str, args: tuple[str, ...], message: str
) -> None:
    (folder / "thresholds.yaml").write_text(OPEN + change)
    assert accept(*args) == 4
    assert message in capsys.readouterr().err
    assert (folder / "thresholds.yaml").read_text() == OPEN + change


@pytest.mark.parametrize(
    ("given", "message"), [("2020-01-01", "is in the past, so the waiver would never hold"), ("soon", "is not a date")]
)
def test_days_that_are_refused(folder: Path, capsys: pytest.CaptureFixture[str], given: str, message: str) -> None:
    with pytest.raises(SystemExit):
        accept(expires=given)
    assert message in capsys.readouterr().err


def test_without_a_comparison_or_without_growth(
    folder: Path, results: dict[str, AuditResult], capsys: pytest.CaptureFixture[str]
) -> None:
    write_result(results["ideal"], folder / "result.json")
    assert accept() == 4
    assert "planted:ideal was not compared with a baseline, so no growth is known" in capsys.readouterr().err
    write_result(compared(results, candidate="ideal"), folder / "result.json")
    assert accept() == 0
    assert "Nothing to accept: no growth since the baseline stops planted:ideal." in capsys.readouterr().out


@pytest.mark.parametrize("text", [OPEN.rstrip("\n"), OPEN.replace("\n", "\r\n")])
def test_other_line_ends_are_read_back(text: str) -> None:
    waiver = make_waiver(regression(FINS, "pro_rate", Verdict.FAIL), Terms("Ada", "é\n'", TODAY), "x")
    changed = write_waivers(text, [waiver], limits(text))
    assert changed.startswith(text)
    assert limits(changed).waivers()[0].reason == "é\n'"
