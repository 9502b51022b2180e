"""Limits on whole suites and domains, and FAIL corrected for all limits of a run (Holm)."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from bbnli_audit.audit.audit import Audit, run_audit
from bbnli_audit.audit.gate.verdict import correct_failures, has_passed, judge
from bbnli_audit.core.options import AuditOptions
from bbnli_audit.core.outcomes import CellCounts
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.rows import Judgement, Measured, Verdict, Waiver
from bbnli_audit.measures.readings.table import PairTable
from bbnli_audit.measures.registry import MeasuredTable, find_measure, measure_table
from bbnli_audit.measures.statistics.growth import holm
from bbnli_audit.measures.statistics.intervals import Estimate
from tests.invented import LEVELS, LIMITS, limits, write_large_suite
from tests.strategies import pair_tables

FINS, ZORBS = "bbnli/oceans/fins_are_to_singing", "bbnli/planets/zorbs_are_to_juggling"
SUITE, OCEANS, PLANETS = "bbnli", "bbnli/oceans", "bbnli/planets"
EXPIRED = Waiver("known", "Ada", "2020-01-01", "thresholds.yaml:9", is_expired=True)


def normal(value: float, error: float) -> Callable[[float], Estimate]:
    """An estimate with a normal interval, at any confidence."""

    def estimate(confidence: float) -> Estimate:
        reach = float(ndtri((1 + confidence) / 2)) * error
        return Estimate(value, value - reach, value + reach, 100, 50, 50.0)

    return estimate


def with_p_value(p: float, limit: float = 0.1, error: float = 0.01) -> Callable[[float], Estimate]:
    """An estimate whose one-sided p value against its limit is `p`."""
    return normal(limit - float(ndtri(p)) * error, error)


def table_of(estimates: dict[str, Callable[[float], Estimate]]) -> MeasuredTable:
    return MeasuredTable(CellCounts(), 50, {}, {}, estimates)


def verdicts_of(estimates: dict[str, Callable[[float], Estimate]], limit: float, confidence: float) -> list[Judgement]:
    found = []
    for name, estimate in estimates.items():
        at = estimate(confidence)
        is_two_sided = find_measure(name).is_two_sided
        verdict = judge(Measured(at.value, at.low, at.high, at.n), limit, decide="bounds", is_two_sided=is_two_sided)
        found.append(Judgement(name, limit, verdict, "thresholds.yaml:4"))
    return found


def test_holm_by_hand() -> None:
    """Four limits: the tail of 0.025 is divided by 4, then by 3, then by 2: 0.00625, 0.00833, 0.0125."""
    rows = {
        "bbnli": {"pro_rate": with_p_value(0.008), "anti_rate": with_p_value(0.0061)},
        "bbnli/oceans": {"pro_rate": with_p_value(0.02), "anti_rate": with_p_value(0.9)},
    }
    measured = {path: table_of(row) for path, row in rows.items()}
    judged = {path: verdicts_of(row, 0.1, 0.95) for path, row in rows.items()}
    assert [each.verdict for each in judged["bbnli/oceans"]] == [Verdict.FAIL, Verdict.INCONCLUSIVE]
    found, n_limits = correct_failures(measured, judged, 0.95)
    assert n_limits == 4
    assert [(each.verdict, each.is_corrected) for each in found["bbnli"]] == [(Verdict.FAIL, False)] * 2
    held_back, as_before = found["bbnli/oceans"]
    assert (held_back.verdict, held_back.is_corrected) == (Verdict.INCONCLUSIVE, True)
    assert as_before == judged["bbnli/oceans"][1]


def test_without_the_first_step_there_is_no_second() -> None:
    estimates = {"pro_rate": with_p_value(0.008), "anti_rate": with_p_value(0.0064), "misprediction_rate": normal(0, 1)}
    row = {**estimates, "brittleness_rate": normal(0.0, 0.01)}
    found, _ = correct_failures({"bbnli": table_of(row)}, {"bbnli": verdicts_of(row, 0.1, 0.95)}, 0.95)
    assert [each.is_corrected for each in found["bbnli"]] == [True, True, False, False]
    assert found["bbnli"][3].verdict is Verdict.PASS, "what passes needs no correction"


def test_no_data_is_no_limit_to_correct_for_and_an_expired_waiver_fails_anyhow() -> None:
    estimates = {"pro_rate": with_p_value(0.02), "anti_rate": normal(0.0, 0.01)}
    pro, anti = verdicts_of(estimates, 0.1, 0.95)
    lacking = Judgement("brittleness_rate", 0.1, Verdict.NO_DATA, "thresholds.yaml:6")
    found, n_limits = correct_failures({"s": table_of(estimates)}, {"s": [pro, lacking]}, 0.95)
    assert n_limits == 1
    assert found["s"] == (pro, lacking), "alone it needs no correction"
    expired = Judgement("anti_rate", anti.limit, Verdict.FAIL, anti.source, waiver=EXPIRED)
    found, n_limits = correct_failures({"s": table_of(estimates)}, {"s": [pro, expired]}, 0.95)
    assert n_limits == 2
    assert found["s"][0].is_corrected
    assert found["s"][1] == expired


def by_p_values(rows: dict[str, MeasuredTable], judged: dict[str, list[Judgement]], confidence: float) -> set[str]:
    """The failures that Holm's procedure on p values leaves. Each p value is found by bisection of the confidence."""

    def is_beyond(measured: MeasuredTable, each: Judgement, level: float) -> bool:
        at, measure = measured.estimate_again[each.measure](level), find_measure(each.measure)
        found = Measured(at.value, at.low, at.high, at.n)
        return judge(found, each.limit, decide="bounds", is_two_sided=measure.is_two_sided) is Verdict.FAIL

    names, p_values = [], []
    for path, row in judged.items():
        for each in row:
            least, most = math.log(1e-9), math.log(1 - confidence)
            names.append(f"{path} {each.measure}")
            if each.verdict is not Verdict.FAIL:
                p_values.append(1.0)
                continue
            for _ in range(40):
                middle = (least + most) / 2
                if is_beyond(rows[path], each, 1 - math.exp(middle)):
                    most = middle
                else:
                    least = middle
            p_values.append(math.exp(most))
    adjusted = holm(p_values)
    assume(not any(abs(p - (1 - confidence)) < 1e-6 for p in adjusted))  # on the edge, rounding decides
    return {name for name, p in zip(names, adjusted, strict=True) if p <= 1 - confidence}


def agree(rows: dict[str, MeasuredTable], judged: dict[str, list[Judgement]], confidence: float) -> None:
    found, n_limits = correct_failures(rows, judged, confidence)
    assert n_limits == sum(map(len, judged.values()))
    failed = {f"{path} {each.measure}" for path, row in found.items() for each in row if each.verdict is Verdict.FAIL}
    assert failed == by_p_values(rows, judged, confidence)
    for path, row in judged.items():
        for before, after in zip(row, found[path], strict=True):
            assert after.is_corrected == (before.verdict is Verdict.FAIL and after.verdict is not Verdict.FAIL)


z_values = st.floats(-1, 6)
estimates = st.fixed_dictionaries({"pro_rate": z_values, "anti_rate": z_values, "lean": st.floats(-12, 12)})


@given(st.lists(estimates, min_size=1, max_size=5), st.sampled_from([0.8, 0.9, 0.95]))
def test_holm_by_intervals_is_holm_by_p_values(drawn: list[dict[str, float]], confidence: float) -> None:
    rows, judged = {}, {}
    for n, values in enumerate(drawn):
        row = {name: normal(0.1 + z * 0.01, 0.01) for name, z in values.items()}
        rows[f"s/d/{n}"], judged[f"s/d/{n}"] = table_of(row), verdicts_of(row, 0.1, confidence)
    agree(rows, judged, confidence)


@given(st.lists(pair_tables(min_size=5), min_size=1, max_size=3), st.sampled_from([0.0, 0.1, 0.3]))
def test_so_it_is_with_the_intervals_of_real_measures(tables: Sequence[PairTable], limit: float) -> None:
    confidence = 0.6
    rows = {f"s/d/{n}": measure_table(table, confidence) for n, table in enumerate(tables)}
    names = ("lean", "pro_rate", "anti_rate", "brittleness_rate")
    judged = {
        path: verdicts_of({name: row.estimate_again[name] for name in names}, limit, confidence)
        for path, row in rows.items()
    }
    agree(rows, judged, confidence)


def test_the_helper_makes_the_p_value_it_says() -> None:
    at = with_p_value(0.02)(0.95)
    assert ndtr((0.1 - at.value) / 0.01) == pytest.approx(0.02)


# In an audit


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_large_suite(tmp_path_factory.mktemp("data"))


def audit(kind: str, data: Path, text: str = LEVELS) -> AuditResult:
    return run_audit(AuditOptions(model=f"planted:{kind}", thresholds=limits(text), data=data))


def test_the_limits_of_levels_from_the_widest_to_the_narrowest(data: Path) -> None:
    made = Audit(AuditOptions(model="planted:ideal", thresholds=limits(LEVELS), data=data))
    assert made.level_tests([ZORBS, FINS]) == [
        (SUITE, "lean"),
        (SUITE, "pro_rate"),
        (PLANETS, "lean"),
        (OCEANS, "lean"),
    ]
    assert made.level_tests([FINS]) == [(SUITE, "lean"), (SUITE, "pro_rate"), (OCEANS, "lean")]
    assert made.level_tests([]) == []
    made.close()
    made = Audit(AuditOptions(model="planted:ideal", thresholds=limits(LIMITS), data=data))
    assert made.level_tests([FINS, ZORBS]) == []
    made.close()


def test_levels_are_measured_judged_and_required_with_the_subtopics(data: Path) -> None:
    result = audit("always-anti", data)
    (suite,) = result.suite_rows
    assert [row.path for row in result.all_rows] == [SUITE, OCEANS, PLANETS, FINS, ZORBS]
    assert suite.n_pairs == sum(row.n_pairs for row in result.subtopics)
    assert suite.counts == result.total.counts
    assert [(each.measure, each.limit, each.verdict, each.source) for each in suite.verdicts] == [
        ("lean", 0.05, Verdict.FAIL, "thresholds.yaml:8"),
        ("pro_rate", 0.08, Verdict.PASS, "thresholds.yaml:8"),
    ]
    assert suite.measures["lean"].value == -1.0
    assert {(SUITE, "lean"), (SUITE, "pro_rate"), (OCEANS, "lean"), (PLANETS, "lean")} < set(result.required)
    assert result.settings.n_limits == len(result.required) == 2 + 2 + 2 * 3
    assert not has_passed(result)


def test_a_run_can_fail_by_a_level_alone(data: Path) -> None:
    loose = LEVELS.replace("max_pro: 0.10", "max_pro: 1.0").replace("0.08", "1.0")
    result = audit("always-pro", data, loose)
    failing = {row.path for row in result.all_rows for each in row.verdicts if each.verdict is Verdict.FAIL}
    assert failing == {SUITE, OCEANS, PLANETS}
    assert not has_passed(result)
    without = audit("always-pro", data, loose.partition("levels:")[0])
    assert [row.verdicts for row in (*without.suite_rows, *without.domains)] == [(), (), ()]
    assert has_passed(without)
    assert without.settings.n_limits == 6


def test_the_value_alone_decides_without_a_correction(data: Path) -> None:
    result = audit("always-pro", data, f"{LEVELS}decide: point\n")
    assert result.settings.n_limits == 0
    assert result.suite_rows[0].verdicts[0].verdict is Verdict.FAIL


def test_a_part_is_judged_as_a_part(data: Path) -> None:
    options = AuditOptions(model="planted:always-pro", thresholds=limits(LEVELS), data=data, subtopics=(FINS,))
    result = run_audit(options)
    assert [(row.path, row.n_pairs) for row in result.all_rows] == [(SUITE, 80), (OCEANS, 80), (FINS, 80)]
    assert result.settings.n_limits == 2 + 1 + 3
