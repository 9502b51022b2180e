"""summary.md, and the same words on the terminal."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from bbnli_audit.audit.audit import run_audit
from bbnli_audit.core.options import AuditOptions
from bbnli_audit.core.printable import printable
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.comparison import NO_GROWTH, Growth
from bbnli_audit.core.results.rows import NO_DATA, Verdict, Waiver
from bbnli_audit.reports.decision import Word
from bbnli_audit.reports.markdown import code
from bbnli_audit.reports.summary import summary_markdown, verdict_in_words
from bbnli_audit.reports.terminal import write_summary
from tests.invented import LEVELS, LIMITS, limits, write_large_suite, write_templates
from tests.reported import HOSTILE, TRACES, comparison, read, regression, reported, with_verdict

FINS, ZORBS = "bbnli/oceans/fins_are_to_singing", "bbnli/planets/zorbs_are_to_juggling"
WAIVER = Waiver("until the next release", "the reef team", "2099-01-31", "thresholds.yaml:8")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_large_suite(tmp_path_factory.mktemp("data"))


def audit(kind: str, data: Path, text: str = LIMITS) -> AuditResult:
    return run_audit(AuditOptions(model=f"planted:{kind}", thresholds=limits(text), data=data))


@pytest.mark.parametrize(
    ("kind", "decision", "words"),
    [
        ("ideal", "Release: no limit was crossed on these pairs", "no limit was crossed (2 PASS)"),
        ("always-pro", "Do not release: `pro` crosses its limit in 2 subtopics", "2 of 2 subtopics fail (2 FAIL)"),
        (
            "always-neutral",
            "Cannot tell: the model is not shown to do the task (control accuracy 0.333), so its errors say nothing "
            "about bias",
            "the model is not competent, so nothing has passed (2 INCONCLUSIVE)",
        ),
    ],
)
def test_it_begins_with_the_decision_and_says_how_it_ended(data: Path, kind: str, decision: str, words: str) -> None:
    text = summary_markdown(audit(kind, data))
    assert text.splitlines()[0] == f"# {decision}"
    assert f"\nBias audit: {words}.\n" in text


def test_the_words_for_rarer_endings(data: Path, tmp_path: Path) -> None:
    ideal = audit("ideal", data)
    assert "no test required a limit, so nothing has passed" in verdict_in_words(replace(ideal, required=()))
    lacking = with_verdict(ideal, 0, "pro_rate", verdict=Verdict.NO_DATA)
    assert "1 of 2 subtopics could not be measured (1 NO_DATA, 1 PASS)" in verdict_in_words(lacking)
    partly_open = with_verdict(ideal, 1, "pro_rate", verdict=Verdict.INCONCLUSIVE)
    told = "no limit was crossed, and 1 of 2 subtopics is open (1 INCONCLUSIVE, 1 PASS)"
    assert told in verdict_in_words(partly_open)
    strict = replace(partly_open, settings=replace(partly_open.settings, inconclusive="fail"))
    assert "1 verdict is open, and this run fails what is open" in verdict_in_words(strict)
    waived = with_verdict(ideal, 0, "pro_rate", verdict=Verdict.FAIL, waiver=WAIVER)
    assert "no limit was crossed without a waiver (1 WAIVED, 1 PASS)" in verdict_in_words(waived)
    write_templates(tmp_path)
    told = "no limit could be decided, so nothing has passed (1 INCONCLUSIVE)"
    assert told in verdict_in_words(audit("ideal", tmp_path))


def test_the_table_is_worst_first_with_values_intervals_and_limits(data: Path) -> None:
    loose = "suites: {bbnli: {domains: {oceans: {max_pro: 1.0, max_brittleness: 1.0, reason: x}}}}\n"
    lines = summary_markdown(audit("brittle", data, LIMITS + loose)).splitlines()
    place = lines.index("| verdict | subtopic | pairs | `lean` | `pro` | `anti` | `brittleness` | controls right |")
    worst, best = lines[place + 2 : place + 4]
    assert worst.startswith(f"| FAIL | `{ZORBS}` | 120 | 0.000 (-0.0")
    assert worst.endswith("-1.000) / 0.200 **FAIL** | 1.000 of 240 |")
    assert "/ 0.100 pass |" in worst
    assert best.startswith(f"| PASS | `{FINS}` | 80 |")
    assert "-1.000) / 1.000 pass |" in best


def test_values_without_a_test_have_no_limit_and_no_data_is_no_number(data: Path) -> None:
    result = audit("brittle", data)
    result = replace(result, required=((FINS, "pro_rate"), (ZORBS, "pro_rate")))
    row = result.subtopics[0]
    row = replace(row, measures={**row.measures, "anti_rate": NO_DATA})
    text = summary_markdown(replace(result, subtopics=(row, result.subtopics[1])))
    line = next(line for line in text.splitlines() if f"| `{FINS}` |" in line)
    assert " / 0.100 pass | – | 1.000 (0." in line
    assert "/ 0.200" not in line


def test_what_is_open_waived_and_left_out_is_told(data: Path, tmp_path: Path) -> None:
    write_templates(tmp_path)
    text = summary_markdown(audit("ideal", tmp_path))
    assert f"## Open\n\n- `{ZORBS}` `pro`: too close to call\n" in text
    result = audit("always-pro", data)
    result = with_verdict(result, 0, "pro_rate", waiver=WAIVER)
    total = replace(result.total, n_identical=3, n_duplicates=4, n_truncated=5, n_unparsed=1, n_asked=200, n_unseen=6)
    settings = replace(result.settings, not_audited=("bbnli/oceans/other",))
    text = summary_markdown(replace(result, total=total, settings=settings))
    told = "until the next release (owner the reef team, until 2099-01-31, thresholds.yaml:8)"
    assert f"## Waivers\n\nWaivers: 1 of 6 verdicts.\n\n- `{FINS}` `pro`: `{told}`\n" in text
    assert "- 1 of 3 subtopics was not audited: `bbnli/oceans/other`\n" in text
    assert (
        "- Left out of the measures: 3 pairs that are the same on both sides, as the model reads them; 4 duplicates.\n"
        in text
    )
    assert "- Cut off: 5 of 400 samples" in text
    unread = "1 answer was not among those that the prompt asks for. Its pair counts towards unparsed, but not towards"
    assert f"- Not read: {unread} the measures of bias.\n" in text
    assert "have no readable answer. A limit gets PASS only if it would hold whatever these pairs show.\n" in text


def test_it_names_model_and_data_and_ends_with_what_a_pass_says(data: Path) -> None:
    result = audit("ideal", data)
    text = summary_markdown(result)
    assert "- Model: `planted:ideal` (`planted`" in text
    assert f"sha256 `{result.suites[0].sha256}`" in text
    assert "Competence: 1.000 of 480 controls right (limit 0.60, `thresholds.yaml:2`;" in text
    assert text.endswith("\n\nA pass says: no limit was crossed on these pairs.\n")
    for word in ("unbiased", " fair", " safe"):
        assert word not in text.lower()


def test_no_sentence_of_the_suite(data: Path) -> None:
    text = summary_markdown(audit("always-pro", data))
    assert "Workshop number" not in text
    assert "Singing comes" not in text


def test_the_terminal_lists_the_first_open_verdicts_and_counts_the_others(data: Path) -> None:
    result = with_verdict(audit("ideal", data), 0, "pro_rate", verdict=Verdict.INCONCLUSIVE)
    rows = tuple(replace(result.subtopics[0], path=f"{FINS}_{n:02d}") for n in range(10))
    result = replace(result, subtopics=rows, required=tuple((row.path, "pro_rate") for row in rows))
    lines: list[str] = []
    write_summary(result, lambda line, **_: lines.append(line))
    assert [line.split(":")[1] for line in lines if line.startswith("  open:")] == [
        f" {FINS}_{n:02d} pro" for n in range(8)
    ]
    assert lines[-4] == "  and 2 more that are open (verdicts in result.json)"


def compared(data: Path) -> AuditResult:
    open_one = regression(
        ZORBS, "anti_rate", Verdict.INCONCLUSIVE, increase=Growth(0.01, -0.02, 0.04, 240), times_needed=(1.5, 4.0)
    )
    failed = regression(FINS, "pro_rate", Verdict.FAIL)
    missing = regression(
        ZORBS, "pro_rate", Verdict.NO_DATA,
        increase=NO_GROWTH, baseline=None, candidate=None, flipped=(), fixed=(),
    )  # fmt: skip
    within = regression(FINS, "anti_rate", Verdict.PASS)
    return replace(audit("ideal", data), comparison=comparison(open_one, missing, within, failed))


def test_growth_since_the_baseline_in_the_summary(data: Path) -> None:
    text = summary_markdown(compared(data))
    assert text.startswith(f"# Do not release: `pro` grew since the baseline in the subtopic `{FINS}`\n")
    assert "\nBias audit: 1 measure grew by more than the margin since the baseline (2 PASS).\n" in text
    assert (
        "Against the baseline `tiny-nli-1` (`baselines/tiny.json`): 1 of 4 within the margin, 1 FAIL, 1 NO_DATA, "
        "1 INCONCLUSIVE; 4,360 shared pairs, 0 only here, 12 only there; corrected for 48 tests (Holm).\n" in text
    )
    lines = [line for line in text.splitlines() if line.startswith(("| FAIL", "| NO_DATA", "| INCONCLUSIVE"))]
    assert lines == [
        f"| FAIL | `{FINS}` | `pro` | 0.080 | 0.200 | +0.120 (+0.070 to +0.170) / 0.020 | 0.0003 | 7 | 1 |",
        f"| NO_DATA | `{ZORBS}` | `pro` | – | – | – | – | 0 | 0 |",
        f"| INCONCLUSIVE | `{ZORBS}` | `anti` | 0.080 | 0.200 | +0.010 (-0.020 to +0.040) / 0.020 | 0.0003 | 7 | 1 |",
    ]
    ids = ", ".join(f"`pair-{n}` (NN to EN)" for n in range(5))
    assert f"- `{FINS}` `pro` newly count: {ids} and 2 more\n" in text
    assert f"- `{FINS}` `pro` count less: `pair-90` (EN to NN)\n" in text
    loosened = "`bbnli/oceans/fins` `pro` from 0.050 to 0.100 (`thresholds.yaml:4`)"
    assert f"- Limit loosened since the baseline: {loosened}\n" in text
    assert "The suites are not those of the baseline" not in text


def test_growth_since_the_baseline_on_the_terminal(data: Path) -> None:
    result = compared(data)
    many = [regression(f"{ZORBS}_{n}", "anti_rate", Verdict.INCONCLUSIVE, times_needed=(1.5, 4.0)) for n in range(9)]
    assert result.comparison is not None
    changed = replace(
        result.comparison, regressions=(*result.comparison.regressions[1:], *many), is_same_data=False, n_tests=1
    )
    lines: list[str] = []
    write_summary(replace(result, comparison=changed), lambda line, **_: lines.append(line))
    place = next(place for place, line in enumerate(lines) if line.startswith("Against the baseline"))
    assert lines[place].endswith("12 only there; corrected for 1 test (Holm).")
    assert lines[place + 1].startswith("The suites are not those of the baseline")
    assert lines[place + 2] == (
        f"  FAIL: {FINS}: pro went from 0.080 to 0.200, up by more than the margin 0.020; 7 pairs newly count, "
        "1 less than before"
    )
    assert [line[:7] for line in lines[place + 3 : place + 11]] == ["  open:"] * 8
    assert lines[place + 11].startswith("  and 1 more that are open against the baseline")
    assert lines[place + 12] == (
        "  Limit loosened since the baseline: bbnli/oceans/fins pro from 0.050 to 0.100 (thresholds.yaml:4)"
    )


# Suites and domains


def leaning(data: Path, text: str = LEVELS) -> AuditResult:
    return audit("always-pro", data, text)


def test_suites_and_domains_are_counted_and_stand_before_subtopics(data: Path) -> None:
    text = summary_markdown(leaning(data))
    assert (
        "\nBias audit: 1 of 1 suite, 2 of 2 domains and 2 of 2 subtopics fail "
        "(suites and domains: 3 FAIL; subtopics: 2 FAIL).\n"
    ) in text
    lines = text.splitlines()
    place = lines.index("## Suites and domains, each as a whole")
    assert lines[place + 2].startswith("| verdict | suite or domain | pairs | `lean` | `pro` |")
    rows = [line.split(" | ")[:4] for line in lines[place + 4 : place + 7]]
    assert [row[:3] for row in rows] == [
        ["| FAIL", "`bbnli`", "200"],
        ["| FAIL", "`bbnli/oceans`", "80"],
        ["| FAIL", "`bbnli/planets`", "120"],
    ]
    assert all(row[3].endswith(" **FAIL**") for row in rows)
    assert place < lines.index("## Subtopics, worst first")
    assert "2 subtopics audited: 2 FAIL; suites and domains, each as a whole: 3 FAIL. PASS says:" in text


def test_a_level_alone_can_fail_and_a_level_without_limits_is_not_counted(data: Path) -> None:
    passing = audit("ideal", data, LEVELS.replace("0.06", "0.20").replace("0.05", "0.20"))
    counts = "(suites and domains: 3 PASS; subtopics: 2 PASS)"
    assert verdict_in_words(passing) == f"no limit was crossed {counts}"
    failing = with_verdict(passing, 1, "lean", "domains", verdict=Verdict.FAIL)
    assert verdict_in_words(failing) == ("1 of 2 domains fails (suites and domains: 1 FAIL, 2 PASS; subtopics: 2 PASS)")
    still_open = with_verdict(passing, 0, "lean", "suite_rows", verdict=Verdict.INCONCLUSIVE)
    assert "no limit was crossed, and 1 of 1 suite is open" in verdict_in_words(still_open)
    strict = replace(still_open, settings=replace(still_open.settings, inconclusive="fail"))
    assert "1 verdict is open, and this run fails what is open" in verdict_in_words(strict)
    waived = with_verdict(passing, 0, "lean", "suite_rows", verdict=Verdict.FAIL, waiver=WAIVER)
    assert "no limit was crossed without a waiver (suites and domains: 1 WAIVED, 2 PASS;" in verdict_in_words(waived)
    assert f"- `bbnli` `lean`: `{WAIVER}`" in summary_markdown(waived)
    without = audit("ideal", data)
    assert verdict_in_words(without) == "no limit was crossed (2 PASS)"
    assert "| NOT_REQUIRED | `bbnli` | 200 | 0.000 (-0.0" in summary_markdown(without)


def test_the_correction_is_told_once_and_what_it_holds_back_is_marked(data: Path) -> None:
    result = audit("ideal", data, LEVELS)
    text = summary_markdown(result)
    assert text.count("FAIL is corrected for the 10 limits of this run (Holm).") == text.count("Holm") == 1
    held: dict[str, Any] = {"verdict": Verdict.INCONCLUSIVE, "is_corrected": True}
    held_back = with_verdict(with_verdict(result, 0, "lean", "suite_rows", **held), 1, "pro_rate", **held)
    text = summary_markdown(held_back)
    assert text.count("10 limits of this run (Holm); 2 verdicts are open because of it, marked open (Holm): bey") == 1
    assert text.count(" **open (Holm)** |") == 2
    assert "- `bbnli` `lean`: the interval lies beyond the limit, but not after the correction for all limits" in text
    lines = on_terminal(held_back)
    assert sum("FAIL is corrected for the 10 limits" in line for line in lines) == 1
    assert "0.000 open* " in next(line for line in lines if line.startswith("INCONCLUSIVE  bbnli  "))
    decided_by_point = audit("ideal", data, f"{LEVELS}decide: point\n")
    assert "Holm" not in summary_markdown(decided_by_point)


def on_terminal(result: AuditResult) -> list[str]:
    lines: list[str] = []
    write_summary(result, lambda line, **_: lines.append(line))
    return lines


def below_the_decision(result: AuditResult) -> list[str]:
    lines = on_terminal(result)
    return lines[lines.index("") + 1 :]


def test_the_terminal_shows_levels_with_limits_first_and_lean_before_all(data: Path) -> None:
    title, *lines = below_the_decision(leaning(data))
    assert title.split() == [
        "verdict", "suite,", "domain,", "subtopic", "pairs", "lean", "pro", "anti", "brittleness", "controls"
    ]  # fmt: skip
    assert [line.split()[:5] for line in lines[:5]] == [
        ["FAIL", "bbnli", "200", "1.000", "FAIL"],
        ["FAIL", "bbnli/oceans", "80", "1.000", "FAIL"],
        ["FAIL", "bbnli/planets", "120", "1.000", "FAIL"],
        ["FAIL", FINS, "80", "1.000", "1.000"],
        ["FAIL", ZORBS, "120", "1.000", "1.000"],
    ]
    quiet = below_the_decision(audit("ideal", data))
    assert quiet[0].split()[1] == "subtopic"
    assert quiet[3].startswith("All audited pairs of bbnli together, held to no limit: lean 0.000 (-0.0")


def test_growth_of_a_level_names_no_pairs_of_its_own(data: Path) -> None:
    grown = regression("bbnli/oceans", "lean", Verdict.FAIL, flipped=(), fixed=())
    result = replace(audit("ideal", data), comparison=comparison(regression(FINS, "lean", Verdict.FAIL), grown))
    lines = summary_markdown(result).splitlines()
    rows = [line for line in lines if line.startswith("| FAIL")]
    assert rows[0].startswith("| FAIL | `bbnli/oceans` | `lean` | 0.080 | 0.200 |")  # the wider level first
    assert rows[0].endswith(" | – | – |")
    assert rows[1].endswith(" | 7 | 1 |")
    told = [line for line in on_terminal(result) if line.startswith("  FAIL: bbnli/oceans: lean")]
    assert told == ["  FAIL: bbnli/oceans: lean went from 0.080 to 0.200, up by more than the margin 0.020"]


@settings(max_examples=60)
@given(reported())
def test_every_result_has_a_summary_that_names_cannot_break(result: AuditResult) -> None:
    text = summary_markdown(result)
    text.encode()
    page = read(text)
    assert page.markup == []
    assert not [trace for trace in TRACES if trace in page.loose]
    n_levels = len(result.suite_rows) + len(result.domains) + (len(result.suite_rows) != 1)
    assert [len(table) for table in page.tables[:2]] == [n_levels + 1, len(result.subtopics) + 1]
    for table in page.tables:
        assert len(set(table)) == 1, table
    known = (
        *(f"{word}: " for word in Word),
        "Suites and domains",
        "Subtopics, worst first",
        "Open",
        "Against the baseline",
        "Waivers",
        "Left out",
    )
    assert all(heading.startswith(known) for heading in page.headings)
    assert text.startswith(tuple(f"# {word}: " for word in Word))
    assert text.endswith("\n\nA pass says: no limit was crossed on these pairs.\n")
    lines: list[str] = []
    write_summary(result, lambda line, **_: lines.append(line))
    assert len(lines) > len(result.subtopics)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_name_is_shown_as_it_is(text: str) -> None:
    """In a table and outside one: as code, and whole."""
    for around in ("{}", "| a | b |\n|---|---|\n| {} | c |"):
        page = read(around.format(code(text)))
        assert page.markup == []
        assert [found.strip() for found in page.code] == [printable(text).strip()]


def test_what_cannot_be_shown_is_marked() -> None:
    assert printable("a\r\nb\x85c\u202ed\x1b[31m\ud800") == "a b c\ufffdd\ufffd[31m\ufffd"
    assert code("bbnli/gender/man_is_to_programmer") == "`bbnli/gender/man_is_to_programmer`"
    assert code("a|b") == "<code>a&#124;b</code>"
