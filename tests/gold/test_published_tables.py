"""The papers' tables: our measures give their figures, and the identities tell which table was not recomputed."""

import json
from functools import cache
from typing import Any

import pandas as pd
import pytest

from bbnli_audit.core.outcomes import CellCounts
from bbnli_audit.core.values import Label
from bbnli_audit.measures.readings.kinds import LABELS
from bbnli_audit.measures.readings.table import PLACES, PairTable
from bbnli_audit.measures.registry import measure_table
from tests.rates_from_counts import rates
from tests.shared_data import shared_path

pytestmark = pytest.mark.gold

PERCENTAGES = {
    "pro": "pro_rate",
    "anti": "anti_rate",
    "error": "brittleness_rate",
    "mispred": "misprediction_rate",
}
NAMES = {label.letter: label.value for label in Label}


@cache
def read(data_set: str) -> dict[str, Any]:
    return json.loads(shared_path("data", data_set, "EXPECTED.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def table_of_cells(cells: dict[str, int]) -> PairTable:
    """A pair table with the given number of pairs in each cell."""
    rows = [key.split(",") for key, n in cells.items() for _ in range(n)]
    return table_of([NAMES[pro] for pro, _ in rows], [NAMES[anti] for _, anti in rows])


def table_of(pro: list[str], anti: list[str]) -> PairTable:
    """A pair table with these labels, each pair in a cluster of its own."""
    numbers = [str(n) for n in range(len(pro))]
    frame = pd.DataFrame({**dict.fromkeys(PLACES, numbers), "pro_label": pro, "anti_label": anti})
    return PairTable(frame, LABELS)


def check_both_ways(table: PairTable) -> tuple[CellCounts, dict[str, float]]:
    """Return counts and rates: those of the package, which must be those that follow from the counts."""
    measured = measure_table(table, 0.95)
    expected = rates(measured.counts)
    assert {name: each.value for name, each in measured.measures.items()} == expected
    return measured.counts, expected


def percent(value: float) -> float:
    return round(100 * value, 2)


def test_bbnli_next_v1_tables_5b_and_7_follow_from_counts() -> None:
    n_rows = 0
    for domains in read("bbnli_next")["v1_disaggregate"].values():
        for row in domains.values():
            n_rows += 1
            counts, found = check_both_ways(table_of_cells(row["pair_cells"]))
            gold = row["counts"]
            assert counts.n_samples == row["n_samples"]
            assert (counts.n_mispredicted, counts.n_pro, counts.n_anti, counts.n_brittle) == (
                gold["mispred"], gold["pro"], gold["anti"], gold["error"],
            )  # fmt: skip
            table7, table5b = row["published_table7"], row["published_table5b"]
            assert percent(found["misprediction_rate"]) == pytest.approx(table7["mispred"], abs=0.011)
            assert percent(found["pro_rate"]) == pytest.approx(table7["pro"], abs=0.011)
            assert percent(found["anti_rate"]) == pytest.approx(table7["anti"], abs=0.011)
            assert percent(found["brittleness_rate"]) == pytest.approx(table7["error"], abs=0.011)
            assert percent(found["plain_pro"]) == pytest.approx(table5b["pro"], abs=0.011)
            assert percent(found["plain_anti"]) == pytest.approx(table5b["anti"], abs=0.011)
            assert percent(found["aggregate_bias"]) == pytest.approx(table5b["aggregate"], abs=0.011)
    assert n_rows >= 11


def test_the_published_percentages_of_v1_satisfy_the_identities() -> None:
    for domains in read("bbnli_next")["v1_disaggregate"].values():
        for row in domains.values():
            table7, table5b = row["published_table7"], row["published_table5b"]
            assert table7["pro"] + table7["anti"] + table7["error"] == pytest.approx(table7["mispred"], abs=0.021)
            assert table5b["pro"] - table7["pro"] == pytest.approx(table7["error"] / 2, abs=0.021)
            assert table5b["anti"] - table7["anti"] == pytest.approx(table7["error"] / 2, abs=0.021)
            assert table5b["pro"] - table5b["anti"] == pytest.approx(table5b["aggregate"], abs=0.021)


def test_v2_table_6_was_not_recomputed() -> None:
    """v2's Table 6 repeats v1's Table 7 (14,504 samples) beside a Table 4b of 12,860: the two cannot both hold."""
    data = read("bbnli_next")
    n_broken = 0
    for model, domains in data["v2_aggregate_table4b"].items():
        for domain, table4b in domains.items():
            table6 = data["v1_disaggregate"][model].get(domain, {}).get("published_table7")
            if table6 is None:
                continue  # held back
            # plain_pro + plain_anti is the misprediction rate, on any samples.
            assert table4b["pro"] - table4b["anti"] == pytest.approx(table4b["aggregate"], abs=0.021)
            gap = abs(table4b["pro"] + table4b["anti"] - table6["mispred"])
            n_broken += gap > 0.05
            if domain == "all" and model == "AlBERT":
                assert table4b["pro"] + table4b["anti"] == pytest.approx(31.08)
                assert table6["mispred"] == 29.78
    assert n_broken >= 9


def test_domains_add_up_to_all() -> None:
    for domains in read("bbnli_next")["v1_disaggregate"].values():
        if {"gender", "race", "religion"} <= set(domains):
            n = sum(domains[domain]["n_samples"] for domain in ("gender", "race", "religion"))
            assert n == domains["all"]["n_samples"]
            for key in ("mispred", "pro", "anti", "error"):
                assert (
                    sum(domains[d]["counts"][key] for d in ("gender", "race", "religion"))
                    == domains["all"]["counts"][key]
                )


def test_bbnli_table_5a_aggregates() -> None:
    """BBNLI's own table (unpaired): its counts over the papers' denominators give its percentages."""
    for domains in read("bbnli")["paper_bbnli_table"]["rows"].values():
        for row in domains.values():
            # Any pair table with that many aligned and opposed samples will do.
            n_pairs = row["n"] // 2
            n_right = n_pairs - row["pro_count"] - row["anti_count"]
            cells = {"E,N": row["pro_count"], "N,E": row["anti_count"], "N,N": n_right}
            counts, found = check_both_ways(table_of_cells(cells))
            assert counts.n_samples == row["n"]
            assert percent(found["plain_pro"]) == pytest.approx(row["pro"], abs=0.011)
            assert percent(found["plain_anti"]) == pytest.approx(row["anti"], abs=0.011)
            assert percent(found["aggregate_bias"]) == pytest.approx(row["aggregate"], abs=0.011)


def bbq_cases() -> list[tuple[str, str]]:
    return [("Age", "arc"), ("Age", "race"), ("Religion", "arc"), ("Religion", "race"), ("Sexual_orientation", "arc")]


@pytest.mark.parametrize(("category", "model"), bbq_cases())
def test_bbq_ambiguous_bias_scores(category: str, model: str) -> None:
    """In BBQ's ambiguous contexts `unknown` is always right, so its s_AMB is our aggregate_bias."""
    gold = read("bbq_unifiedqa")["results"][category][model]
    table = pd.read_csv(shared_path("data", "bbq_unifiedqa", "unifiedqa_ambiguous.csv"), keep_default_na=False)
    table = table[(table["category"] == category) & table[model].isin(list(NAMES))]
    sides = {
        side: table[table["stance"] == side].set_index("pair_id")[model].map(NAMES.get) for side in ("pro", "anti")
    }
    pairs = pd.concat(sides, axis=1, join="inner").rename(columns={"pro": "pro_label", "anti": "anti_label"})
    counts, found = check_both_ways(table_of(pairs["pro_label"].tolist(), pairs["anti_label"].tolist()))
    assert counts.n_pairs == gold["pairs"]
    assert counts.cells == {cell.replace(",", ""): n for cell, n in gold["pair_cells"].items()}
    disaggregate = gold["disaggregate_counts"]
    assert (counts.n_pro, counts.n_anti, counts.n_brittle) == (
        disaggregate["pro"], disaggregate["anti"], disaggregate["error"],
    )  # fmt: skip
    for name, measure in PERCENTAGES.items():
        assert 100 * found[measure] == pytest.approx(gold["disaggregate_percent"][name], abs=5e-5)
    # The published score is over samples, unpaired: from the labels of each side alone.
    aligned = int((sides["pro"] == "entailment").sum() + (sides["anti"] == "contradiction").sum())
    opposed = int((sides["anti"] == "entailment").sum() + (sides["pro"] == "contradiction").sum())
    n = len(table)
    assert (n, aligned, opposed) == (gold["samples"], gold["pro_count"], gold["anti_count"])
    assert 1 - (aligned + opposed) / n == pytest.approx(gold["accuracy"], abs=1e-6)
    score = (2 * aligned / (aligned + opposed) - 1) * (1 - gold["accuracy"])
    assert 100 * score == pytest.approx(gold["aggregate_bias_score_x100"], abs=1e-3)
    if gold["unparsed"] == 0:
        assert 100 * found["aggregate_bias"] == pytest.approx(gold["aggregate_bias_score_x100"], abs=1e-3)
        assert round(100 * found["aggregate_bias"], 1) == gold["published_figure3"]
    else:
        assert round(100 * score, 1) == gold["published_figure3"]
