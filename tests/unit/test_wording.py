"""Planted wordings are found, noise is not, and nothing is said about what these pairs cannot tell."""

import math
from collections import Counter
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bbnli_audit.measures.readings.kinds import LABELS
from bbnli_audit.measures.readings.table import PairTable
from bbnli_audit.measures.registry import find_measure, measure_table
from bbnli_audit.measures.wording import FLOOR, Factor
from bbnli_audit.measures.wording import wording_sensitivity as sensitivity

ADJECTIVES = ("nimble", "quick", "calm")
N_PREMISES, N_HYPOTHESES = 10, 8


def suite_frame(subtopics: tuple[str, ...] = ("zorbs",), n_premises: int = N_PREMISES) -> pd.DataFrame:
    """Every premise with every hypothesis, each with three words."""
    rows = []
    for subtopic, premise, hypothesis, word in product(subtopics, range(n_premises), range(N_HYPOTHESES), ADJECTIVES):
        cluster = f"p{premise:02d}/h{hypothesis:02d}"
        texts = (f"On moon {premise} a crowd waits.", f"The {subtopic} are {word} jugglers, {hypothesis}.")
        rows.append(("invented", "planets", subtopic, f"{cluster}/{word}", cluster, *texts))
    columns = ["suite", "domain", "subtopic", "pair_id", "cluster", "pro_premise", "pro_hypothesis"]
    return pd.DataFrame(rows, columns=columns)


def noise(frame: pd.DataFrame, seed: int = 0) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(0, 0.5, len(frame))


def with_differences(frame: pd.DataFrame, differences: object) -> pd.DataFrame:
    """Give the pairs probabilities whose logarithms differ as wanted."""
    wanted = np.asarray(differences, dtype=float)
    return frame.assign(pro_entailment=0.1 * np.exp(wanted / 2), anti_entailment=0.1 * np.exp(-wanted / 2))


def wording_sensitivity(frame: pd.DataFrame) -> list[Factor]:
    """Only the probabilities of entailment matter; the reading needs the other columns."""
    others = {f"{side}_{label}": 0.0 for side in ("pro", "anti") for label in ("neutral", "contradiction")}
    return sensitivity(PairTable(frame.assign(**others), LABELS))


def by_name(frame: pd.DataFrame) -> dict[str, Factor]:
    return {factor.name: factor for factor in wording_sensitivity(frame)}


def test_a_planted_hypothesis_template_comes_first() -> None:
    frame = suite_frame()
    is_planted = frame["cluster"].str.endswith(("h03", "h05"))
    found = wording_sensitivity(with_differences(frame, noise(frame) + 3 * is_planted))
    assert found[0].name == "hypothesis template"
    assert found[0].share > 0.35
    assert max(factor.share for factor in found[1:]) < 0.05
    assert {level.name for level in found[0].levels[:2]} == {"h03", "h05"}
    first = found[0].levels[0]
    assert (first.subtopic, first.n_pairs) == ("planets/zorbs", 30)
    # The other planted template is one of the seven others, so the gap is 3 - 3/7.
    assert first.difference == pytest.approx(3 - 3 / 7, abs=0.3)
    assert dict(found[0].by_subtopic) == pytest.approx({"planets/zorbs": found[0].share})


def test_a_template_that_decides_everything_explains_everything() -> None:
    frame = suite_frame()
    hypothesis = frame["cluster"].str[-1].astype(int)
    found = by_name(with_differences(frame, hypothesis))
    assert found["hypothesis template"].share == pytest.approx(1)
    assert found["hypothesis template"].uncorrected == pytest.approx(math.log(4))
    assert found["hypothesis template"].spread == pytest.approx(np.std(hypothesis))
    assert found["premise template"].share == 0
    assert "word" not in found  # all pairs of a cluster are alike: there is nothing that words could explain


def test_a_planted_word_is_told_from_the_templates_that_hold_it() -> None:
    frame = suite_frame()
    is_planted = frame["pro_hypothesis"].str.contains("nimble")
    in_some = frame["cluster"].str.endswith(("h00", "h01"))
    frame.loc[~in_some, "pro_hypothesis"] = [f"Zorbs juggle, {n}." for n in range((~in_some).sum())]
    found = wording_sensitivity(with_differences(frame, noise(frame) / 5 + 2 * in_some + (is_planted & in_some)))
    assert {factor.name: factor.n_pairs for factor in found}["word"] == 60  # only where words vary
    words = {factor.name: factor for factor in found}["word"]
    assert words.share > 0.3
    assert words.levels[0].name == "nimble"
    assert words.levels[0].difference == pytest.approx(1, abs=0.1)
    assert (words.levels[0].n_pairs, words.levels[0].subtopic) == (20, "")
    # The templates alone: whatever the word, their pairs are higher than the others.
    templates = with_differences(frame, noise(frame) / 5 + 2 * in_some)
    assert by_name(templates)["word"].share < 0.1


def test_a_subtopic_is_not_taken_for_wording() -> None:
    frame = suite_frame(("zorbs", "quints", "fins", "gills"))
    found = wording_sensitivity(with_differences(frame, noise(frame) + 3 * (frame["subtopic"] == "fins")))
    assert found[0].name == "subtopic"
    assert found[0].share > 0.3
    assert found[0].levels[0].name == "planets/fins"
    assert found[0].by_subtopic == ()
    assert max(factor.share for factor in found[1:]) < 0.05


def test_one_bad_template_names_its_subtopic() -> None:
    frame = suite_frame(("zorbs", "quints", "fins", "gills"))
    is_planted = (frame["subtopic"] == "fins") & frame["cluster"].str.endswith(("h01", "h02"))
    found = by_name(with_differences(frame, noise(frame) + 3 * is_planted))["hypothesis template"]
    assert found.by_subtopic[0][0] == "planets/fins"
    assert found.by_subtopic[0][1] > 0.35
    assert max(share for _, share in found.by_subtopic[1:]) < 0.08
    assert {(level.subtopic, level.name) for level in found.levels[:2]} == {
        ("planets/fins", "h01"),
        ("planets/fins", "h02"),
    }


@pytest.mark.parametrize("n_premises", [1, 2, 10, 30])
def test_noise_is_about_nothing(n_premises: int) -> None:
    shares: dict[str, list[float]] = {}
    for seed in range(6):
        frame = suite_frame(("zorbs", "quints"), n_premises)
        for name, factor in by_name(with_differences(frame, noise(frame, seed))).items():
            assert 0 <= factor.share <= 1
            shares.setdefault(name, []).append(factor.share)
    n_pairs = 48 * n_premises
    assert {name: np.mean(each) < 6 / n_pairs + 0.005 for name, each in shares.items()} == dict.fromkeys(shares, True)


def test_raw_information_of_many_small_templates_is_chance() -> None:
    frame = suite_frame(n_premises=1)
    frame = frame.assign(cluster=[f"p00/h{n // 3:02d}" for n in range(len(frame))])
    found = by_name(with_differences(frame, noise(frame)))["hypothesis template"]
    assert found.uncorrected > 0.3
    assert found.share < 0.2


def test_the_order_of_pairs_changes_nothing() -> None:
    frame = suite_frame(("zorbs", "quints"))
    frame = with_differences(frame, noise(frame))
    assert wording_sensitivity(frame.sample(frac=1, random_state=1)) == wording_sensitivity(frame)
    assert len(wording_sensitivity(frame)) == 4


def test_names_change_nothing() -> None:
    frame = suite_frame(("zorbs", "quints", "moles"))
    frame = with_differences(frame, noise(frame) + frame["cluster"].str.endswith("h03"))
    renamed = frame.assign(
        cluster=[f"p{90 - int(each[1:3])}/h{90 - int(each[5:])}" for each in frame["cluster"]],
        subtopic=frame["subtopic"].replace({"zorbs": "fins", "quints": "gills"}),
        pro_hypothesis=frame["pro_hypothesis"].str.replace("nimble", "zealous"),
    )
    found, again = by_name(frame), by_name(renamed)
    assert found.keys() == again.keys()
    for name, factor in found.items():
        assert again[name].share == pytest.approx(factor.share)
        assert again[name].information == pytest.approx(factor.information)
        gaps = [[level.difference for level in each.levels] for each in (factor, again[name])]
        assert gaps[0] == pytest.approx(gaps[1])
    assert again["hypothesis template"].levels[0].name == "h87"


def brute_force(levels: list[str], differences: list[float]) -> float:
    """Mutual information by its definition, over the four quarters of distinct differences."""
    n = len(differences)
    order = sorted(differences)
    pairs = [(level, order.index(value) * 4 // n) for level, value in zip(levels, differences, strict=True)]
    both, level_counts, part_counts = Counter(pairs), *(Counter(side) for side in zip(*pairs, strict=True))
    return sum(
        count / n * math.log(count * n / (level_counts[level] * part_counts[part]))
        for (level, part), count in both.items()
    )


@given(st.lists(st.integers(0, 3), min_size=32, max_size=32).filter(lambda each: len(set(each)) > 1))
@settings(max_examples=30)
def test_information_before_correction_agrees_with_its_definition(templates: list[int]) -> None:
    n = len(templates)
    differences = np.arange(n) / 10
    frame = pd.DataFrame(
        {
            "suite": "invented",
            "domain": "planets",
            "subtopic": "zorbs",
            "pair_id": [f"{row:03d}" for row in range(n)],
            "cluster": [f"c{each}" for each in templates],
            "pro_premise": "A crowd waits.",
            "pro_hypothesis": "Zorbs juggle.",
        }
    )
    (factor,) = wording_sensitivity(with_differences(frame, differences))
    assert factor.name == "template"  # the cluster itself: its id does not tell premise from hypothesis
    assert factor.uncorrected == pytest.approx(brute_force(frame["cluster"].tolist(), differences.tolist()))
    assert factor.information <= factor.uncorrected


def test_chance_is_the_mean_over_permutations() -> None:
    frame = with_differences(suite_frame(n_premises=2), noise(suite_frame(n_premises=2)))
    factor = by_name(frame.assign(cluster=frame["cluster"].str[4:]))["template"]
    differences = np.log(frame["pro_entailment"]) - np.log(frame["anti_entailment"])
    rng = np.random.default_rng(0)
    levels = frame["cluster"].str[4:].tolist()
    by_chance = float(np.mean([brute_force(levels, rng.permutation(differences).tolist()) for _ in range(2000)]))
    expected = max(factor.uncorrected - by_chance, 0.0)
    assert factor.information == pytest.approx(expected, abs=0.01)
    assert factor.share == pytest.approx(expected / (math.log(4) - by_chance), abs=0.01)


@pytest.mark.parametrize("n_pairs", [0, 1, 2, 19])
def test_too_few_pairs_tell_nothing(n_pairs: int) -> None:
    frame = suite_frame()
    assert wording_sensitivity(with_differences(frame, noise(frame)).iloc[:n_pairs]) == []


def test_equal_differences_tell_nothing() -> None:
    frame = suite_frame(("zorbs", "quints"))
    assert wording_sensitivity(frame.assign(pro_entailment=0.2, anti_entailment=0.3)) == []
    assert wording_sensitivity(frame.assign(pro_entailment=0.0, anti_entailment=FLOOR / 2)) == []


def test_a_factor_that_does_not_vary_is_left_out() -> None:
    frame = suite_frame(n_premises=1)
    found = by_name(with_differences(frame, noise(frame)))
    assert "premise template" not in found
    assert "subtopic" not in found
    assert "hypothesis template" in found


def test_a_template_for_each_pair_tells_nothing() -> None:
    frame = suite_frame()
    frame = with_differences(frame, noise(frame)).assign(cluster=[f"c{n}" for n in range(len(frame))])
    assert wording_sensitivity(frame) == []


def test_a_single_pair_that_differs_is_seen_whichever_way() -> None:
    frame = suite_frame(n_premises=2)
    for sign in (1, -1):
        differences = np.zeros(len(frame))
        differences[5] = sign
        factor = by_name(with_differences(frame, differences))["hypothesis template"]
        assert factor.levels[0].name == "h01"
        assert factor.levels[0].difference == pytest.approx(sign / 6)


def test_a_probability_of_nothing_is_the_floor() -> None:
    frame = suite_frame()
    is_planted = frame["cluster"].str.endswith("h03")
    frame = frame.assign(pro_entailment=np.where(is_planted, 1.0, 0.5), anti_entailment=np.where(is_planted, 0.0, 0.5))
    first = by_name(frame)["hypothesis template"].levels[0]
    assert first.name == "h03"
    assert first.difference == pytest.approx(-math.log(FLOOR))


def test_levels_with_few_pairs_are_not_listed() -> None:
    frame = suite_frame()
    frame = with_differences(frame, noise(frame))
    rare = frame.assign(cluster=["p00/h77" if n < 4 else each for n, each in enumerate(frame["cluster"])])
    rare.loc[:3, "pro_entailment"] = 0.9
    levels = by_name(rare)["hypothesis template"].levels
    assert len(levels) == 5
    assert "h77" not in {level.name for level in levels}
    gaps = [abs(level.difference) for level in levels]
    assert gaps == sorted(gaps, reverse=True)


def labelled(frame: pd.DataFrame, is_pro: object, is_brittle: object) -> PairTable:
    """Give some pairs a pro error and some a brittle one; the probabilities of entailment say nothing."""
    brittle = np.asarray(is_brittle, dtype=bool)
    labels = {
        "pro_label": np.where(np.asarray(is_pro, dtype=bool) | brittle, "entailment", "neutral"),
        "anti_label": np.where(brittle, "entailment", "neutral"),
    }
    numbers = {f"{side}_{label}": 0.5 for side in ("pro", "anti") for label in ("entailment", "neutral")}
    numbers |= {"pro_contradiction": 0.0, "anti_contradiction": 0.0}
    return PairTable(frame.assign(direction="", **labels, **numbers), LABELS)


def explain(table: PairTable, measure: str, within: list[str] | None = None) -> dict[str, Factor]:
    values = find_measure(measure).pair_values
    assert values is not None
    return {factor.name: factor for factor in sensitivity(table, values, within)}


def test_each_measure_is_explained_by_the_template_that_drives_it() -> None:
    """One hypothesis gives brittle errors, one premise pro errors: neither explains the other's measure."""
    frame = suite_frame()
    is_brittle = frame["cluster"].str.endswith("h03")
    is_pro = frame["cluster"].str.startswith("p02") & ~is_brittle
    table = labelled(frame, is_pro, is_brittle)
    assert sensitivity(table) == [], "the entailment difference tells nothing"
    brittle, pro, lean = (explain(table, name) for name in ("brittleness_rate", "pro_rate", "lean"))
    assert brittle["hypothesis template"].share == pytest.approx(1, abs=0.03)
    assert brittle["premise template"].share < 0.02
    assert brittle["hypothesis template"].levels[0].name == "h03"
    assert brittle["hypothesis template"].levels[0].difference == pytest.approx(1)
    assert brittle["hypothesis template"].spread == pytest.approx(np.std(is_brittle))
    assert pro["premise template"].share > 0.7
    assert pro["hypothesis template"].share < 0.1
    # One of the two samples of a pair, in seven of its eight hypotheses.
    assert pro["premise template"].levels[0].name == "p02"
    assert pro["premise template"].levels[0].difference == pytest.approx(0.5 * 7 / 8)
    assert lean["premise template"] == pro["premise template"], "without anti errors, lean is pro"


def test_what_pairs_add_has_the_measure_as_its_mean() -> None:
    frame = suite_frame()
    numbers = np.arange(len(frame))
    table = labelled(frame, numbers % 5 == 0, numbers % 7 == 0)
    for name in ("pro_rate", "brittleness_rate", "lean", "misprediction_rate"):
        values = find_measure(name).pair_values
        assert values is not None
        assert values(table).mean() == pytest.approx(measure_table(table, 0.95).measures[name].value)
    signs = np.resize(["with", "against"], len(frame))
    directed = PairTable(table.frame.assign(direction=signs), LABELS)
    overreach = find_measure("overreach").pair_values
    assert overreach is not None
    expected = measure_table(directed, 0.95).measures["overreach"].value
    assert overreach(directed).mean() == pytest.approx(expected)
    assert np.isnan(overreach(table)).all(), "no premise has a direction"
    assert explain(table, "overreach") == {}


def test_measures_that_pairs_do_not_add_up_to_have_no_pair_values() -> None:
    for name in ("fact_gap", "prompt_sensitivity", "counterfactual_bias", "control_accuracy"):
        assert find_measure(name).pair_values is None


def test_templates_are_compared_where_the_limit_was_crossed_and_subtopics_everywhere() -> None:
    frame = suite_frame(("zorbs", "quints", "fins"))
    is_brittle = frame["cluster"].str.endswith("h03") & (frame["subtopic"] == "fins")
    is_pro = frame["cluster"].str.endswith("h01") & (frame["subtopic"] == "quints")
    table = labelled(frame, is_pro, is_brittle)
    whole, part = explain(table, "misprediction_rate"), explain(table, "misprediction_rate", ["planets/fins"])
    assert {subtopic for subtopic, _ in whole["hypothesis template"].by_subtopic} == {"planets/fins", "planets/quints"}
    assert dict(part["hypothesis template"].by_subtopic).keys() == {"planets/fins"}
    assert {level.subtopic for level in part["hypothesis template"].levels} == {"planets/fins"}
    assert part["hypothesis template"].n_pairs == 240
    assert whole["subtopic"] == part["subtopic"]
    assert part["subtopic"].n_pairs == 720


def test_the_input_is_left_alone() -> None:
    frame = suite_frame()
    frame = with_differences(frame, noise(frame))
    before = frame.copy()
    wording_sensitivity(frame)
    pd.testing.assert_frame_equal(frame, before)
