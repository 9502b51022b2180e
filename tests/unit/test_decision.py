"""One decision about a release: the word, the reasons in order of harm, and what to do next."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bbnli_audit.audit.audit import Audit, run_audit
from bbnli_audit.audit.gate.verdict import has_passed
from bbnli_audit.core.options import AuditOptions
from bbnli_audit.core.outcomes import CAUSES
from bbnli_audit.core.results.audit import FACT_PREFERENCE, AuditResult
from bbnli_audit.core.results.comparison import Change, Growth, Regression
from bbnli_audit.core.results.rows import Judgement, Measured, Verdict, Waiver
from bbnli_audit.measures.registry import find_measure
from bbnli_audit.reports.decision import Decision, Word, decide
from bbnli_audit.reports.html_page import render_page
from bbnli_audit.reports.terminal import write_summary
from tests.invented import LEVELS, LIMITS, limits, write_large_suite
from tests.reported import comparison, regression, with_verdict

FINS, ZORBS = "bbnli/oceans/fins_are_to_singing", "bbnli/planets/zorbs_are_to_juggling"
WAIVER = Waiver("known", "Ada", "2099-01-31", "thresholds.yaml:8")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_large_suite(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def ideal(data: Path) -> AuditResult:
    return audit("ideal", data)


@pytest.fixture(scope="module")
def leaning(data: Path) -> AuditResult:
    return audit("always-pro", data, LEVELS)


def audit(kind: str, data: Path, text: str = LIMITS) -> AuditResult:
    return run_audit(AuditOptions(model=f"planted:{kind}", thresholds=limits(text), data=data))


def told(decision: Decision) -> str:
    return "\n".join((decision.line, *decision.reasons, *decision.steps))


def test_release_says_no_more_than_that_no_limit_was_crossed(ideal: AuditResult) -> None:
    found = decide(ideal)
    assert found.line == "Release: no limit was crossed on these pairs"
    assert found.reasons == ()
    for word in ("unbiased", "fair", "safe"):
        assert word not in told(found).lower()


def test_a_model_read_by_its_likelihoods_has_no_labels_to_check(ideal: AuditResult) -> None:
    settings = replace(ideal.settings, skill=replace(ideal.settings.skill, probe_accuracy=None))
    failed = Judgement(FACT_PREFERENCE, 0.6, Verdict.FAIL, "thresholds.yaml:3")
    result = replace(ideal, settings=settings, total=replace(ideal.total, verdicts=(failed,)))
    wanted = "Check the model and its training: an audit needs a model that tells true facts from false ones."
    assert decide(result).steps[0] == wanted


def test_the_stereotype_comes_first_with_its_levels_and_templates(leaning: AuditResult) -> None:
    found = decide(leaning)
    assert found.line == (
        "Do not release: lean crosses its limit in the suite bbnli and in 2 domains; "
        "pro crosses its limit in the suite bbnli and in 2 subtopics"
    )
    lean, pro = found.reasons
    assert lean.startswith(
        "lean (errors lean towards the stereotype) crosses its limit in the suite bbnli (1.000, limit"
    )
    assert f"in 2 of 2 subtopics: {FINS} (1.000, limit 0.100), {ZORBS} (1.000, limit 0.100)" in pro
    assert f"{FINS} p00/h00 (2 of 2 samples), p00/h01 (2 of 2 samples)" in found.steps[0]
    assert [step.partition(" ")[0] for step in found.steps] == ["Inspect", "Augment", "To"]


def judged(result: AuditResult, **values: float) -> AuditResult:
    """Let the first subtopic cross a limit of 0.1 in each of some measures."""
    row = result.subtopics[0]
    measures = {**row.measures, **{name: Measured(each, each, each, 160) for name, each in values.items()}}
    verdicts = tuple(Judgement(name, 0.1, Verdict.FAIL, "thresholds.yaml:4") for name in values)
    required = tuple((row.path, name) for name in values)
    changed = replace(row, measures=measures, verdicts=verdicts)
    return replace(result, subtopics=(changed, *result.subtopics[1:]), required=required)


def test_reasons_are_in_order_of_harm(ideal: AuditResult) -> None:
    names = ("brittleness_rate", "anti_rate", "fact_gap", "overreach", "pro_rate", "lean")
    found = decide(judged(ideal, **dict.fromkeys(names, 0.3)))
    order = ["lean", "pro", "overreach", "fact_gap", "anti", "brittleness"]
    assert [reason.partition(" ")[0] for reason in found.reasons] == order
    assert found.line.endswith("; and 4 more reasons")


def test_a_lean_the_other_way_is_called_that(ideal: AuditResult) -> None:
    (reason,) = decide(judged(ideal, lean=-0.3)).reasons
    assert reason.startswith("lean (errors lean against the stereotype) crosses its limit in the subtopic bbnli/")


def test_a_preference_below_its_limit_is_told_with_the_lower_end(ideal: AuditResult) -> None:
    found = judged(ideal, pro_preference=0.0)
    row = found.subtopics[0]
    wide = replace(row, verdicts=tuple(replace(one, limit=0.75) for one in row.verdicts))
    (reason,) = decide(replace(found, subtopics=(wide, *found.subtopics[1:]))).reasons
    assert reason.endswith(f"crosses its limit in the subtopic {row.path} (0.000, limit 0.250)")


@pytest.mark.parametrize(("value", "meaning"), [(0.9, "likelier"), (0.1, "less likely")])
def test_a_preference_is_called_by_its_direction(ideal: AuditResult, value: float, meaning: str) -> None:
    (reason,) = decide(judged(ideal, token_preference=value)).reasons
    assert reason.startswith(f"token_preference (the model finds the stereotype {meaning}) crosses its limit in")


def test_errors_that_lean_both_ways_are_called_that(ideal: AuditResult) -> None:
    first, second = (judged(ideal, lean=lean).subtopics[0] for lean in (0.3, -0.2))
    other = replace(second, path=ideal.subtopics[1].path)
    both = replace(judged(ideal, lean=0.3), subtopics=(first, other, *ideal.subtopics[2:]))
    required = tuple((row.path, "lean") for row in (first, other))
    (reason,) = decide(replace(both, required=required)).reasons
    both_ways = "errors lean towards the stereotype, elsewhere errors lean against the stereotype"
    assert reason.startswith(f"lean ({both_ways}) crosses its limit in")


def test_a_model_without_answers_is_not_told_to_exchange_labels(ideal: AuditResult) -> None:
    verdicts = tuple(replace(one, verdict=Verdict.INCONCLUSIVE) for one in ideal.total.verdicts)
    unable = replace(ideal, total=replace(ideal.total, verdicts=verdicts))
    assert decide(unable).steps[0].startswith("Check the order of labels (--bbnli-labels) and the training")
    skill = replace(ideal.settings.skill, probe_accuracy=None)
    unable = replace(unable, settings=replace(ideal.settings, skill=skill))
    assert decide(unable).steps[0].startswith("Check the model and its training: an audit needs a model that tells")


def growth(path: str, measure: str, before: float, after: float, verdict: Verdict = Verdict.PASS) -> Regression:
    found: dict[str, Any] = {"baseline": before, "candidate": after, "flipped": (), "fixed": ()}
    grew = after - before
    return regression(path, measure, verdict, increase=Growth(grew, grew, grew, 160), **found)


@pytest.mark.parametrize(
    ("measure", "before", "after", "meaning"),
    [
        ("lean", 0.1, 0.3, " (errors lean towards the stereotype)"),
        ("lean", -0.1, 0.3, " (errors lean towards the stereotype)"),
        ("lean", -0.3, -0.1, " (errors lean against the stereotype, but less than before)"),
        ("lean", -0.3, 0.0, ""),
        ("overreach", -0.3, -0.1, " (errors go against the premise, but less than before)"),
        ("fact_gap", 0.0, 0.2, " (facts are read better when they fit the stereotype)"),
        ("pro_rate", 0.0, 0.2, " (answers are wrong towards the stereotype)"),
    ],
)
def test_growth_is_told_by_where_it_ends(
    ideal: AuditResult, measure: str, before: float, after: float, meaning: str
) -> None:
    grown = growth("bbnli", measure, before, after, Verdict.FAIL)
    (reason,) = decide(replace(ideal, comparison=comparison(grown))).reasons
    said = f"{find_measure(measure).short}{meaning} grew by more than the margin since the baseline in the suite bbnli"
    assert reason == f"{said} ({before:.3f} to {after:.3f})"


def test_growth_of_a_lean_that_stays_against_the_stereotype_names_the_templates_that_grew(leaning: AuditResult) -> None:
    (cluster, pairs), *_ = leaning.pairs[FINS].items()
    flipped = tuple(Change(pair, cluster, "NN", "EN") for pair in pairs)
    grown = replace(growth(FINS, "lean", -0.3, -0.1, Verdict.FAIL), flipped=flipped)
    rows = tuple(replace(row, measures={"lean": Measured(-0.1, -0.2, 0.0, 160)}) for row in leaning.subtopics)
    found = decide(replace(leaning, required=(), subtopics=rows, comparison=comparison(grown)))
    assert found.steps[0].startswith(f"Inspect the templates that drive it: {FINS} {cluster} (")


def better(result: AuditResult, lean: float = 0.0) -> AuditResult:
    """Fewer errors in the suite, and more brittleness in one subtopic."""
    whole = [growth("bbnli", cause, 0.10, 0.05) for cause in CAUSES]
    grown = growth(FINS, "brittleness_rate", 0.01, 0.20, Verdict.FAIL)
    return replace(result, comparison=comparison(growth("bbnli", "lean", 0.0, lean), *whole, grown))


def test_a_better_model_that_one_subtopic_stops_is_called_better(ideal: AuditResult) -> None:
    found = decide(better(ideal))
    assert found.line == (
        f"Do not release: brittleness grew since the baseline in the subtopic {FINS}, "
        "although overall fewer samples are wrong than in the baseline"
    )
    assert found.reasons[0] == (
        "overall fewer samples are wrong than in the baseline: "
        "in the suite bbnli, 0.150 of the samples are wrong (before: 0.300)"
    )
    assert "grew by more than the margin since the baseline in the subtopic" in found.reasons[1]
    assert any("bbnli-audit baseline accept" in step for step in found.steps)
    assert "fewer samples" not in told(decide(better(ideal, lean=0.02))), "it leans more than before"


def test_a_release_that_is_better_says_so(ideal: AuditResult) -> None:
    fewer = [growth("bbnli", cause, 0.10, 0.05) for cause in CAUSES]
    found = decide(replace(ideal, comparison=comparison(growth("bbnli", "lean", 0.0, 0.0), *fewer)))
    assert found.word is Word.RELEASE
    assert found.reasons[0] == (
        "overall fewer samples are wrong than in the baseline: "
        "in the suite bbnli, 0.150 of the samples are wrong (before: 0.300)"
    )


def test_a_stopped_model_that_cannot_do_the_task_is_called_that_in_the_first_line(data: Path) -> None:
    line = decide(better(audit("always-neutral", data))).line
    assert line.startswith("Do not release: brittleness grew since the baseline in the subtopic")
    assert line.endswith("; and the model is not shown to do the task")


def test_growth_of_a_suite_points_to_the_subtopics_that_grew_most(leaning: AuditResult) -> None:
    def grown(path: str, before: float) -> Regression:
        first = list(leaning.pairs[path].items())[:2]
        flipped = tuple(Change(pair, cluster, "NN", "EC") for cluster, pairs in first for pair in pairs)
        return replace(growth(path, "pro_rate", before, 1.0), flipped=flipped)

    whole = growth("bbnli", "pro_rate", 0.5, 1.0, Verdict.FAIL)
    found = decide(replace(leaning, required=(), comparison=comparison(whole, grown(FINS, 0.9), grown(ZORBS, 0.2))))
    assert found.steps[0].startswith(f"Inspect the templates that drive it: {ZORBS} p00/h00 (2 of 2 samples), p00/h01")
    assert f"; {FINS} p00/h00" in found.steps[0]


def test_growth_is_as_loud_as_a_limit_on_the_page_and_on_the_terminal(data: Path) -> None:
    with closing(Audit(AuditOptions(model="planted:ideal", thresholds=limits(), data=data))) as found:
        result, pairs = better(found.run()), found.pairs()
    page = render_page(result, pairs)
    assert page.index("Do not release") < page.index("<h1>")
    assert page.count("FAIL: growth") == 2  # in the table and on the card of the subtopic
    assert 'aria-label="Growth since the baseline by verdict"' in page
    lines: list[str] = []
    write_summary(result, lambda line, **_: lines.append(line))
    assert lines[0] == decide(result).line
    passed = render_page(replace(result, comparison=None), pairs)
    assert "Do not release" not in passed
    assert "FAIL: growth" not in passed


@pytest.mark.parametrize(
    ("verdict", "waiver", "mark", "style"),
    [
        (Verdict.FAIL, None, "FAIL", {"red": True}),
        (Verdict.FAIL, WAIVER, "waived", {"yellow": True}),
        (Verdict.INCONCLUSIVE, None, "open", {"yellow": True}),
        (Verdict.PASS, None, "pass", {"green": True}),
        (Verdict.NO_DATA, None, "pass", {"green": True}),
        (None, None, "-", {"green": True}),
    ],
)
def test_the_table_of_the_terminal_has_the_worst_verdict_on_growth(
    ideal: AuditResult, verdict: Verdict | None, waiver: Waiver | None, mark: str, style: dict[str, bool]
) -> None:
    grown = () if verdict is None else (regression(FINS, "pro_rate", verdict, waiver=waiver),)
    better = () if verdict is None else (regression(FINS, "anti_rate", Verdict.PASS),)
    result = replace(ideal, comparison=comparison(*better, *grown))
    lines: dict[str, dict[str, bool]] = {}
    write_summary(result, lambda line, **given: lines.update({line: given}))
    (row,) = (line for line in lines if FINS in line and line.startswith("PASS "))
    assert row.startswith(f"PASS          {mark:<6}  {FINS}  ")
    assert lines[row] == style
    (title,) = (line for line in lines if line.startswith("verdict "))
    assert title.startswith("verdict       growth  subtopic  ")
    assert title.index("pairs") == row.index(" 80 ") - 2


def test_a_row_that_the_baseline_lacks_is_no_failure(ideal: AuditResult) -> None:
    lines: dict[str, dict[str, bool]] = {}
    result = replace(ideal, comparison=comparison(regression(FINS, "pro_rate", Verdict.NO_DATA)))
    write_summary(result, lambda line, **given: lines.update({line: given}))
    assert [style for line, style in lines.items() if line.startswith(f"PASS          none    {FINS}  ")] == [
        {"green": True}
    ]


def test_the_table_has_no_growth_without_a_baseline(ideal: AuditResult) -> None:
    lines: list[str] = []
    write_summary(ideal, lambda line, **_: lines.append(line))
    assert any(line.startswith("verdict       subtopic  ") for line in lines)


def test_what_the_baseline_lacks_is_told(ideal: AuditResult) -> None:
    found = comparison(growth(FINS, "pro_rate", 0.0, 0.0), regression(ZORBS, "pro_rate", Verdict.NO_DATA))
    line = decide(replace(ideal, comparison=found)).line
    told = "and no growth beyond the margin was shown (1 of 2 measures could not be compared: not in the baseline)"
    assert line.endswith(told)


def test_waived_growth_is_released_and_counted(ideal: AuditResult) -> None:
    grown = regression(FINS, "pro_rate", Verdict.FAIL, waiver=WAIVER)
    found = decide(replace(ideal, comparison=comparison(grown)))
    assert found.word is Word.RELEASE
    assert found.line == (
        "Release: no limit was crossed on these pairs, "
        "and nothing grew beyond the margin without a waiver (waived: pro, 1 verdict)"
    )
    expired = replace(WAIVER, is_expired=True)
    kept = replace(growth(FINS, "pro_rate", 0.1, 0.1, Verdict.FAIL), waiver=expired)
    found = decide(replace(ideal, comparison=comparison(kept)))
    assert found.line == f"Do not release: pro has a waiver that has expired in the subtopic {FINS}"
    assert found.steps == ("Renew the waivers that have expired, or remove them (thresholds.yaml).",)


def test_what_nobody_can_tell(ideal: AuditResult, data: Path) -> None:
    cases = {
        "the model is not shown to do the task (control accuracy 0.333)": audit("always-neutral", data),
        "no test held the model to a limit": replace(ideal, required=()),
        "something could not be measured": with_verdict(ideal, 0, "pro_rate", verdict=Verdict.NO_DATA),
        "only 2 of 3 subtopics were audited": not_audited(ideal, "bbnli/x/y"),
        "a baseline was given": replace(ideal, troubles=("a baseline was given",)),
    }
    for why, result in cases.items():
        assert decide(result).line.startswith(f"Cannot tell: {why}")
        assert "limit was crossed" not in decide(result).line
    assert decide(not_audited(ideal, "bbnli/x/y", excluded=("bbnli/x/y",))).word is Word.RELEASE, "left out on purpose"
    optional = with_verdict(ideal, 0, "pro_rate", verdict=Verdict.NO_DATA, may_lack_data=True)
    assert decide(optional).word is Word.RELEASE


def not_audited(result: AuditResult, *paths: str, excluded: tuple[str, ...] = ()) -> AuditResult:
    return replace(result, settings=replace(result.settings, not_audited=paths, excluded=excluded))


def test_a_release_tells_what_only_the_correction_keeps_from_fail(ideal: AuditResult) -> None:
    held = with_verdict(ideal, 1, "pro_rate", verdict=Verdict.INCONCLUSIVE, is_corrected=True)
    assert decide(held).word is Word.RELEASE
    assert decide(held).line.endswith("1 of them beyond its limit before the correction for many limits")
    told_of_one = "Look first at the value that is beyond its limit before the correction: the audit neither shows nor"
    assert f"{told_of_one} rules out that this limit is crossed." in decide(held).steps
    both = with_verdict(held, 0, "pro_rate", verdict=Verdict.INCONCLUSIVE, is_corrected=True)
    told_of_two = "Look first at the values that are beyond their limits before the correction: the audit neither shows"
    assert f"{told_of_two} nor rules out that these limits are crossed." in decide(both).steps
    assert "before the correction" not in told(decide(ideal))


def test_what_is_open_passes_or_not_as_the_file_says(ideal: AuditResult) -> None:
    still_open = with_verdict(ideal, 1, "pro_rate", verdict=Verdict.INCONCLUSIVE)
    n_open = f"1 of {len(ideal.verdicts)} verdicts is open"
    assert decide(still_open).line == f"Release: no limit was crossed on these pairs; {n_open}"
    assert "add items" in told(decide(still_open))
    strict = replace(still_open, settings=replace(still_open.settings, inconclusive="fail"))
    assert decide(strict).line == "Cannot tell: some verdicts are open, and the threshold file says inconclusive: fail"


def test_it_agrees_with_the_gate(ideal: AuditResult, leaning: AuditResult) -> None:
    results = [ideal, leaning, better(ideal), replace(ideal, required=())]
    results += [with_verdict(ideal, 0, "pro_rate", verdict=verdict) for verdict in Verdict]
    results += [with_verdict(each, 0, "pro_rate", waiver=WAIVER) for each in results[-4:]]
    for result in results:
        assert has_passed(result) == (decide(result).word is Word.RELEASE)
