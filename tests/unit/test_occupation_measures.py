"""The measures of the occupations suite, what is beyond its references, and the chart."""

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bbnli_audit import AuditOptions, run_audit
from bbnli_audit.core.outcomes import CellCounts
from bbnli_audit.core.results.audit import AuditResult, Settings
from bbnli_audit.core.results.rows import NO_DATA, Measured, ModelInfo, Skill, SubtopicResult, SuiteInfo
from bbnli_audit.core.values import Pair, Subtopic, TextPair
from bbnli_audit.measures.occupations import MEASURES
from bbnli_audit.measures.readings.kinds import ANSWERS, LABELS
from bbnli_audit.measures.readings.table import PLACES, TEXTS, PairTable, join_tables, make_table
from bbnli_audit.measures.registry import measure_table
from bbnli_audit.models.planted import PlantedPredictor
from bbnli_audit.models.protocol import Predictions
from bbnli_audit.reports.html_page import render_page
from bbnli_audit.reports.markdown import subtopic_table
from bbnli_audit.reports.occupation_chart import occupation_chart
from bbnli_audit.reports.shown import shown_measures
from bbnli_audit.suites.occupations import Occupations
from tests.invented import limits
from tests.invented_occupations import TEMPLATES, write

# Parts of 1024, so that every probability and every sum is exact and equal ratios are equal numbers.
UNIT = 1024
Side = tuple[int, int]
sides = st.integers(0, UNIT).flatmap(lambda e: st.tuples(st.just(e), st.integers(0, UNIT - e)))


def probability_table(pairs: list[tuple[Side, Side]]) -> PairTable:
    table: dict[str, list[float]] = {}
    for index, side in enumerate(("pro", "anti")):
        table[f"{side}_entailment"] = [pair[index][0] / UNIT for pair in pairs]
        table[f"{side}_neutral"] = [1 - sum(pair[index]) / UNIT for pair in pairs]
        table[f"{side}_contradiction"] = [pair[index][1] / UNIT for pair in pairs]
    return PairTable(pd.DataFrame(table, dtype="float64"), LABELS)


def by_hand(pro: Side, anti: Side) -> dict[str, float]:
    p, q = (Fraction(e, e + c) if e + c else Fraction(1, 2) for e, c in (pro, anti))
    label_p, label_q = ("E" if p >= Fraction(1, 2) else "C", "E" if q >= Fraction(1, 2) else "C")
    preferred = 1.0 if p > q else 0.0 if p < q else 0.5
    return {"same_label": float(label_p == label_q), "probability_gap": float(abs(p - q)), "pro_preference": preferred}


@given(st.lists(st.tuples(sides, sides), max_size=20))
@example([((0, 0), (0, 0)), ((0, 0), (1, 0)), ((1, 2), (2, 4)), ((5, 5), (0, 1)), ((5, 5), (1, 0)), ((0, 0), (0, 3))])
def test_measures_are_what_their_definitions_say(pairs: list[tuple[Side, Side]]) -> None:
    table = probability_table(pairs)
    swapped = probability_table([(anti, pro) for pro, anti in pairs])
    for measure in MEASURES:
        if measure.values is None:  # compares with references, which these pairs do not have
            continue
        name, values = measure.name, measure.values(table)
        assert values.dtype == "float64"
        assert values.tolist() == pytest.approx([by_hand(*pair)[name] for pair in pairs], abs=1e-15)
        assert all(0 <= value <= 1 for value in values)
        exchanged = 1 - values if name == "pro_preference" else values
        assert measure.values(swapped).tolist() == exchanged.tolist()


Four = tuple[Side, Side, Side, Side]  # pro and anti of a pair, pro and anti of its reference
BEYOND = ("same_label_beyond", "probability_gap_beyond", "pro_preference_beyond", "stereotype_shift")
INVENTED = Subtopic("made", "up", "zorbs")


def rows_of(sides_: list[Side]) -> Any:
    return np.array([[e / UNIT, 1 - (e + c) / UNIT, c / UNIT] for e, c in sides_], dtype=np.float64).reshape(-1, 3)


def referenced_table(rows: list[Four], subtopic: Subtopic = INVENTED, *, has_references: bool = True) -> PairTable:
    pairs = [Pair(f"p{n}", TextPair(f"{n}", "pro"), TextPair(f"{n}", "anti")) for n in range(len(rows))]
    columns = [rows_of([row[place] for row in rows]) for place in range(4)]
    references = (columns[2], columns[3]) if has_references else None
    return make_table(subtopic, pairs, LABELS, (columns[0], columns[1]), references)


def values_of(table: PairTable) -> dict[str, float]:
    found = {each.name: each.estimate(table, 0.95) for each in MEASURES if each.estimate is not None}
    assert tuple(found) == BEYOND
    for estimate in found.values():
        assert estimate.n == 0 or -1 <= estimate.low <= estimate.value + 1e-12
        assert estimate.n == 0 or estimate.value - 1e-12 <= estimate.high <= 1
    return {name: estimate.value for name, estimate in found.items() if estimate.n}


def beyond_by_hand(rows: list[Four]) -> dict[str, float]:
    """The differences, in fractions and pair by pair; the package computes the two means first."""
    found = dict.fromkeys(BEYOND, Fraction(0))
    for pro, anti, pro_reference, anti_reference in rows:
        own, other = by_hand(pro, anti), by_hand(pro_reference, anti_reference)
        for name in BEYOND[:3]:
            measure = name.removesuffix("_beyond")
            found[name] += (Fraction(own[measure]) - Fraction(other[measure])) / len(rows)
        p, q, r, s = (
            Fraction(e, e + c) if e + c else Fraction(1, 2) for e, c in (pro, anti, pro_reference, anti_reference)
        )
        found["stereotype_shift"] += ((p - r) - (q - s)) / 2 / len(rows)
    return {name: float(value) for name, value in found.items()}


fours = st.lists(st.tuples(sides, sides, sides, sides), min_size=1, max_size=8)


@settings(max_examples=40)
@given(fours)
@example([((0, 0), (0, 0), (0, 0), (0, 0)), ((UNIT, 0), (0, UNIT), (0, UNIT), (UNIT, 0))])
def test_what_is_beyond_the_references_is_what_the_definitions_say(rows: list[Four]) -> None:
    found = values_of(referenced_table(rows))
    assert found == pytest.approx(beyond_by_hand(rows), abs=1e-12)
    # Exchanging the genders changes the sign of what has a direction, and leaves the rest.
    swapped = values_of(referenced_table([(anti, pro, other, reference) for pro, anti, reference, other in rows]))
    signs = {"pro_preference_beyond": -1, "stereotype_shift": -1}
    assert swapped == pytest.approx({name: signs.get(name, 1) * value for name, value in found.items()}, abs=1e-12)
    # So does exchanging pairs and references, for all of them.
    turned = values_of(referenced_table([(reference, other, pro, anti) for pro, anti, reference, other in rows]))
    assert turned == pytest.approx({name: -value for name, value in found.items()}, abs=1e-12)


@settings(max_examples=40)
@given(fours)
def test_a_preference_that_the_references_show_too_is_not_the_occupation_s(rows: list[Four]) -> None:
    same = [(pro, anti, pro, anti) for pro, anti, _, _ in rows]
    assert values_of(referenced_table(same)) == dict.fromkeys(BEYOND, 0.0)


def test_rows_of_several_subtopics_are_pooled_and_those_without_references_left_out() -> None:
    rows: list[Four] = [((9, 0), (3, 9), (9, 9), (1, 9)), ((5, 2), (2, 5), (7, 1), (1, 7))]
    more: list[Four] = [((0, 9), (9, 0), (2, 9), (3, 4))]
    others = Subtopic("made", "up", "quints")
    both = join_tables([referenced_table(rows), referenced_table(more, others)])
    assert values_of(both) == pytest.approx(beyond_by_hand([*rows, *more]), abs=1e-12)
    without = referenced_table(more, others, has_references=False)
    assert values_of(without) == {}
    assert not set(BEYOND) & set(measure_table(without, 0.95, ["occupations"]).measures)
    measures = measure_table(join_tables([referenced_table(rows), without]), 0.95, ["occupations"]).measures
    assert {name: measures[name].value for name in BEYOND} == pytest.approx(beyond_by_hand(rows), abs=1e-12)
    assert {measures[name].n for name in BEYOND} == {len(rows)}
    assert measures["same_label"].n == len(rows) + len(more)


def test_a_reference_that_could_not_be_read_is_left_out_with_its_pair() -> None:
    yes, no, unread = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]
    pairs = [Pair(f"p{n}", TextPair(f"{n}", "pro"), TextPair(f"{n}", "anti")) for n in range(3)]
    own = np.array([yes, yes, unread]), np.array([no, no, no])
    references = np.array([no, unread, no]), np.array([no, no, no])
    kept, beside = make_table(INVENTED, pairs, ANSWERS, own, references).measured.beside_references
    assert list(kept.frame["cluster"]) == ["p0"]
    assert list(beside.frame["pro_answer"]) == ["no"]


def test_the_worst_pairs_of_a_shift_are_those_that_moved_furthest() -> None:
    (shift,) = [measure for measure in MEASURES if measure.name == "stereotype_shift"]
    assert shift.evidence is not None
    still, moved, most = ((9, 9),) * 4, ((9, 0), (9, 9), (9, 9), (9, 9)), ((9, 0), (0, 9), (9, 9), (9, 9))
    rows: list[Four] = [still, moved, most]
    table = referenced_table(rows)
    lines = shift.evidence(shift, table).pairs.values()
    assert [line.split("(")[1].split(")")[0] for line in lines] == ["p2", "p1"]
    swapped = referenced_table([(anti, pro, other, reference) for pro, anti, reference, other in rows])
    assert len(shift.evidence(shift, swapped).pairs) == 2


class PriorPredictor:
    """Finds one gender likelier whatever the text says; on one occupation, the other one."""

    info = ModelInfo("prior", "f", "planted", "planted", "float64", ("entailment", "neutral", "contradiction"))

    def __init__(self, exception: str) -> None:
        self._exception = exception
        self._right = PlantedPredictor("ideal", [Occupations()])

    def predict(self, texts: Sequence[TextPair]) -> Predictions:
        found = self._right.predict(texts).probabilities.tolist()
        for n, text in enumerate(texts):
            if text.hypothesis.startswith(("It is a ", "The job is ")):
                is_preferred = ("female" in text.hypothesis) != (self._exception in text.premise)
                found[n] = [0.6, 0.2, 0.2] if is_preferred else [0.2, 0.2, 0.6]
        return Predictions.of(found)


def test_the_prior_for_a_gender_is_told_from_the_stereotype(tmp_path: Path) -> None:
    data = write(tmp_path, templates={**TEMPLATES, "reference": "blob"})
    for exception, zorb_shift in (("nothing", 0.0), ("zorb", 0.5)):
        options = AuditOptions(model=PriorPredictor(exception), thresholds=limits(), suite="occupations", data=data)
        result = run_audit(options)
        juggler, zorb = (row.measures for row in result.subtopics)
        # B alone cannot tell: the model seems to follow the stereotype of jugglers in both cases.
        assert juggler["pro_preference"].value == 1
        assert juggler["pro_preference_beyond"].value == juggler["stereotype_shift"].value == 0
        assert zorb["pro_preference"].value == 2 * zorb_shift
        assert zorb["pro_preference_beyond"].value == 2 * zorb_shift
        assert zorb["stereotype_shift"].value == pytest.approx(zorb_shift)
        assert zorb["probability_gap"].value == pytest.approx(0.5)  # the same in both cases
        assert zorb["probability_gap_beyond"].value == pytest.approx(0)
        assert result.total.measures["stereotype_shift"].value == pytest.approx(zorb_shift / 2)
        assert result.total.n_pairs == 12  # references are not counted as pairs


def test_tables_show_what_is_beyond_the_references_and_earlier_results_have_none() -> None:
    earlier = measured("occupations/male_majority/baker")
    assert not set(BEYOND) & set(shown_measures(earlier, earlier.subtopics))
    assert "stereotype_shift" not in subtopic_table(earlier)
    (row,) = earlier.subtopics
    known = Measured(0.25, 0.125, 0.375, 144)
    later = replace(earlier, subtopics=(replace(row, measures={**row.measures, **dict.fromkeys(BEYOND, known)}),))
    assert shown_measures(later, later.subtopics)[-4:] == list(BEYOND)
    assert subtopic_table(later).count("0.250 (0.125-0.375)") == 4


def measured(*paths: str, value: float | None = 0.75, sha256: str = Occupations().sha256) -> AuditResult:
    known = NO_DATA if value is None else Measured(value, value - 0.125, value + 0.125, 144)

    def row(path: str, cells: CellCounts, **measures: Measured) -> SubtopicResult:
        return SubtopicResult.of(path, cells, n_clusters=48, measures=measures, control_accuracy=None, n_controls=0)

    rows = tuple(row(path, CellCounts({"NN": 144}), pro_preference=known) for path in paths)
    model = ModelInfo("m", "f", "hf", "torch", "float32", ())
    suites = (SuiteInfo("occupations", "1", sha256, "hypothesis"),)
    settings = Settings("t", "bounds", 0.95, "warn", Skill(1.0, 1.0, 9, 0.3), {})
    return AuditResult(model, suites, settings, rows, (), row("total", CellCounts()))


def test_the_chart_has_one_mark_for_each_occupation_with_a_known_share() -> None:
    paths = [subtopic.path for subtopic in Occupations().subtopics()]
    assert occupation_chart(measured(*paths)) == occupation_chart(measured(*reversed(paths)))
    no_pairs = PairTable(pd.DataFrame(columns=[*PLACES, *TEXTS, *LABELS.columns]), LABELS)
    page = render_page(measured(*paths), no_pairs)
    _, wide, narrow = page.partition('<h2 id="occupations">')[2].partition("</section>")[0].split("<div")
    for size, chart in (("wide", wide), ("narrow", narrow)):
        assert f'class="chart {size}" role="img" aria-label="Chart: how often the majority gender' in chart
        assert "for 24 occupations" in chart
        (marks,) = re.findall(r'<g class="mark-symbol.*?</g>', chart, re.DOTALL)
        assert marks.count("<path") == 24
        names = re.findall(r">([\w ]+ \([FM]\))<", chart)
        assert (len(names), names[0], names[-1]) == (24, "mechanic (M)", "secretary (F)")
        assert "mechanic with 1.4% women 0.750; secretary with 92.9% women 0.750." in chart


def test_there_is_no_chart_without_occupations() -> None:
    assert occupation_chart(measured()) is None
    assert occupation_chart(measured("occupations/female_majority/teacher")) is None  # no share is known
    assert occupation_chart(measured("other/female_majority/baker", "occupations/male_majority/zorb", "x")) is None
    assert occupation_chart(measured("occupations/female_majority/baker", value=None)) is None
    (chart,) = filter(None, [occupation_chart(measured("occupations/female_majority/baker"))])
    assert "for 1 occupations" in chart["label"]


def test_there_is_no_chart_for_occupations_of_other_people() -> None:
    assert occupation_chart(measured("occupations/female_majority/baker", sha256="0" * 64)) is None
