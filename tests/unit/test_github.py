"""The summary of a step and the annotations, as GitHub Actions reads them."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given, settings

from bbnli_audit.audit.audit import run_audit
from bbnli_audit.core.options import AuditOptions
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.rows import Verdict, Waiver
from bbnli_audit.reports.github import LARGEST_SUMMARY, annotations, append_step_summary, is_github
from tests.invented import LEVELS, LIMITS, limits, write_large_suite
from tests.reported import comparison, regression, reported, with_verdict

FINS, ZORBS = "bbnli/oceans/fins_are_to_singing", "bbnli/planets/zorbs_are_to_juggling"
COMMAND = re.compile(r"::(error|warning|notice) ((?:\w+=[^,:\r\n]*,?)+)::([^\r\n]*)")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_large_suite(tmp_path_factory.mktemp("data"))


def audit(kind: str, data: Path, text: str = LIMITS) -> AuditResult:
    return run_audit(AuditOptions(model=f"planted:{kind}", thresholds=limits(text), data=data))


def parse(line: str) -> tuple[str, dict[str, str], str]:
    found = COMMAND.fullmatch(line)
    assert found is not None, line
    properties = dict(part.split("=", 1) for part in found[2].split(","))
    return found[1], {key: unquote(value) for key, value in properties.items()}, unquote(found[3])


def test_crossed_limits_stand_on_their_lines(data: Path) -> None:
    assert annotations(audit("ideal", data)) == []
    assert annotations(audit("always-pro", data)) == [
        f"::error file=thresholds.yaml,line=4,title=Bias audit%3A FAIL {path} pro::"
        f"{path}: pro 1.000 is above its limit 0.100"
        for path in (FINS, ZORBS)
    ]


def test_suites_and_domains_come_first_on_their_own_lines(data: Path) -> None:
    found = [parse(line) for line in annotations(audit("always-anti", data, LEVELS))]
    assert [(kind, properties["line"], properties["title"]) for kind, properties, _ in found] == [
        ("error", "8", "Bias audit: FAIL bbnli lean"),
        ("error", "9", "Bias audit: FAIL bbnli/oceans lean"),
        ("error", "9", "Bias audit: FAIL bbnli/planets lean"),
        ("error", "5", f"Bias audit: FAIL {FINS} anti"),
        ("error", "5", f"Bias audit: FAIL {ZORBS} anti"),
    ]
    assert found[0][2] == "bbnli: lean -1.000 is below its limit -0.050"


def test_a_verdict_that_only_the_correction_holds_back_says_so(data: Path) -> None:
    result = with_verdict(
        audit("ideal", data, LEVELS), 0, "lean", "suite_rows", verdict=Verdict.INCONCLUSIVE, is_corrected=True
    )
    kind, _, text = parse(annotations(result)[0])
    assert kind == "warning"
    assert text.endswith("beyond the limit, but not after the correction for all limits of this run (Holm)")


def test_only_what_a_test_required_and_no_waiver_covers(data: Path) -> None:
    result = audit("always-pro", data)
    assert annotations(replace(result, required=((FINS, "anti_rate"),))) == []
    waiver = Waiver("known", "the reef team", "2099-01-31", "limits/waivers.yaml:8")
    waived = with_verdict(result, 0, "pro_rate", waiver=waiver)
    assert [parse(line)[1]["title"] for line in annotations(waived)] == [f"Bias audit: FAIL {ZORBS} pro"]
    expired = with_verdict(result, 0, "pro_rate", waiver=replace(waiver, is_expired=True))
    kind, properties, text = parse(annotations(expired)[0])
    assert (kind, properties["file"], properties["line"]) == ("error", "limits/waivers.yaml", "8")
    assert text.endswith("its waiver has expired")


def test_open_verdicts_warn_unless_the_run_fails_them(data: Path) -> None:
    result = with_verdict(audit("ideal", data), 0, "anti_rate", verdict=Verdict.INCONCLUSIVE, times_needed=(1.5, 4.0))
    ((kind, properties, text),) = map(parse, annotations(result))
    assert (kind, properties["line"]) == ("warning", "5")
    assert text.endswith("would decide")
    strict = replace(result, settings=replace(result.settings, inconclusive="fail"))
    assert [parse(line)[0] for line in annotations(strict)] == ["error"]


def test_no_data_and_a_model_that_is_not_competent_are_errors(data: Path) -> None:
    lacking = with_verdict(audit("ideal", data), 1, "brittleness_rate", verdict=Verdict.NO_DATA)
    ((kind, _, text),) = map(parse, annotations(lacking))
    assert kind == "error"
    assert text.startswith(f"{ZORBS}: brittleness has no data")
    first, *others = map(parse, annotations(audit("always-neutral", data)))
    assert first[0] == "error"
    assert first[1] == {"file": "thresholds.yaml", "line": "2", "title": "Bias audit: the model is not competent"}
    assert first[2] == "planted:always-neutral: control accuracy 0.333, so nothing has passed"
    assert {kind for kind, _, _ in others} == {"warning"}
    assert all(text.endswith("cannot pass: the model is not competent") for _, _, text in others)


def test_growth_since_the_baseline(data: Path) -> None:
    found = comparison(
        regression(FINS, "pro_rate", Verdict.FAIL),
        regression(ZORBS, "pro_rate", Verdict.INCONCLUSIVE, times_needed=(1.5, 4.0)),
        regression(ZORBS, "anti_rate", Verdict.PASS),
    )
    error, warning = map(parse, annotations(replace(audit("ideal", data), comparison=found)))
    assert error == (
        "error",
        {
            "file": "thresholds.yaml",
            "line": "9",
            "title": f"Bias audit: FAIL against the baseline: {FINS} pro",
        },
        f"{FINS}: pro went from 0.080 to 0.200, up by more than the margin 0.020",
    )
    assert warning[0] == "warning"
    assert "1.5 to 4.0 times as many templates would decide" in warning[2]


@pytest.mark.parametrize("waiver", [{"is_expired": True}, {"up_to": 0.05}])
def test_growth_that_a_waiver_does_not_cover_stands_on_the_line_of_the_waiver(
    data: Path, waiver: dict[str, Any]
) -> None:
    known = replace(Waiver("known", "the reef team", "2026-01-31", "limits/waivers.yaml:8"), **waiver)
    found = comparison(regression(FINS, "pro_rate", Verdict.FAIL, waiver=known))
    ((kind, properties, _),) = map(parse, annotations(replace(audit("ideal", data), comparison=found)))
    assert (kind, properties["file"], properties["line"]) == ("error", "limits/waivers.yaml", "8")


def test_github_shows_ten_of_a_kind_so_the_rest_is_counted(data: Path) -> None:
    kinds = [Verdict.FAIL] * 13 + [Verdict.INCONCLUSIVE] * 11
    found = comparison(*(regression(f"{FINS}_{n}", "pro_rate", kind) for n, kind in enumerate(kinds)))
    lines = annotations(replace(audit("ideal", data), comparison=found))
    assert [parse(line)[0] for line in lines] == ["error"] * 10 + ["warning"] * 10 + ["notice"]
    assert lines[-1].startswith("::notice title=Bias audit::3 more errors and 1 more warning not shown here")


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("C:\\limits, 5%0A:x.yaml:12", {"file": "C:\\limits, 5%0A:x.yaml", "line": "12"}),
        ("no line", {}),
        ("x.yaml:²", {}),
        (":3", {}),
    ],
)
def test_odd_sources(data: Path, source: str, place: dict[str, str]) -> None:
    result = with_verdict(audit("ideal", data), 0, "pro_rate", verdict=Verdict.FAIL, source=source)
    ((_, properties, _),) = map(parse, annotations(result))
    assert {key: value for key, value in properties.items() if key != "title"} == place


@settings(max_examples=60)
@given(reported())
def test_every_result_gives_whole_commands(result: AuditResult) -> None:
    lines = annotations(result)
    kinds = [parse(line)[0] for line in lines]
    assert kinds.count("error") <= 10
    assert kinds.count("warning") <= 10


# The summary of a step


def test_the_summary_is_appended(tmp_path: Path) -> None:
    path = tmp_path / "summary"
    assert append_step_summary("# one\nä\n", path) is None
    assert append_step_summary("# two", path) is None
    assert path.read_text(encoding="utf-8") == "# one\nä\n# two\n"
    path.write_text("no line break", encoding="utf-8")
    assert append_step_summary("# three\n", path) is None
    assert path.read_text(encoding="utf-8") == "no line break\n# three\n"


@pytest.mark.parametrize("n_before", [0, 1, 700 * 1024, LARGEST_SUMMARY - 300])
def test_a_long_summary_is_cut_at_a_line_and_says_where_the_whole_is(tmp_path: Path, n_before: int) -> None:
    path = tmp_path / "summary"
    path.write_bytes(b"x" * n_before)
    lines = [f"line {n} äöü 😀" for n in range(60_000)]
    address = "https://forge.example/runs/1"
    assert append_step_summary("\n".join(lines), path, address) is None
    assert LARGEST_SUMMARY - 200 < path.stat().st_size <= LARGEST_SUMMARY
    text = path.read_text(encoding="utf-8")[n_before:].removeprefix("\n" if n_before else "")
    body, end = text.split("\n\n")
    assert end == f"The rest was cut off; the whole is <{address}>.\n"
    assert body.splitlines() == lines[: len(body.splitlines())]


@pytest.mark.parametrize("n_over", [0, 1])
def test_the_limit_itself_is_not_cut(tmp_path: Path, n_over: int) -> None:
    path = tmp_path / "summary"
    line = "x" * 1023 + "\n"
    text = line * 900 if not n_over else "y" + line * 900
    assert append_step_summary(text, path, "report/summary.md") is None
    written = path.read_text()
    assert ("cut off" in written) == bool(n_over)
    assert (written == text) == (not n_over)
    assert not n_over or written.endswith("\n\nThe rest was cut off; the whole is `report/summary.md`.\n")


def test_a_full_summary_is_left_alone_and_told(tmp_path: Path) -> None:
    path = tmp_path / "summary"
    path.write_bytes(b"x\n" * (LARGEST_SUMMARY // 2))
    told = append_step_summary("more\n", path, "report/summary.md")
    assert told == "The summary of this step is full, so this one was left out; the whole is report/summary.md."
    assert path.stat().st_size == LARGEST_SUMMARY


def test_a_summary_that_cannot_be_written_is_told_and_raises_nothing(tmp_path: Path) -> None:
    told = append_step_summary("text", tmp_path)
    assert told == "The summary of this step could not be written: Is a directory."
    assert "No such file" in str(append_step_summary("text", tmp_path / "none" / "summary"))
    assert "null byte" in str(append_step_summary("text", Path("a\0b")))


def test_half_characters_do_not_break_it(tmp_path: Path) -> None:
    assert append_step_summary("a\ud800b", tmp_path / "summary") is None
    assert (tmp_path / "summary").read_text() == "a?b\n"


@pytest.mark.parametrize(("value", "expected"), [("true", True), ("", False), ("false", False), (None, False)])
def test_whether_this_is_github(monkeypatch: pytest.MonkeyPatch, value: str | None, expected: bool) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    if value is not None:
        monkeypatch.setenv("GITHUB_ACTIONS", value)
    assert is_github() is expected
