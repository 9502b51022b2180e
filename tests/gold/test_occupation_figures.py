"""The published figures of Sharma et al. (Tables 3 and 8, the lists, the released sheets) and of NLI-CoAL."""

import json
import math
from collections import Counter
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bbnli_audit.measures.coal import coal_bias
from bbnli_audit.measures.occupations import pro_preference, probability_gap, same_label
from bbnli_audit.measures.readings.kinds import LABELS
from bbnli_audit.measures.readings.table import OPEN_NEUTRAL, PairTable, join_tables
from bbnli_audit.suites.nli_coal import NliCoal
from bbnli_audit.suites.occupations import OWN_DATA, Occupations
from tests.shared_data import SHARED, shared_path

pytestmark = pytest.mark.gold

N_MALE, N_FEMALE = 21, 18  # occupations that Tables 3 and 8 fit, not the 19 and 19 that the paper states
# The two tables disagree in one place: its dP 43.02 is 43.20 from the parts.
DISAGREE = {("SNLI(I)", "BERT")}
# Its S 72.13 is no count of 1,950 pairs (nor of 1,900): it lies between 1,406 and 1,407.
NO_COUNT = {("SNLI(I)", "RoBERTa")}


@cache
def gold(folder: str) -> dict[str, Any]:
    return json.loads(shared_path("data", folder, "EXPECTED.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def rows() -> list[tuple[str, str]]:
    path = SHARED / "data" / "sharma_gender_nli" / "EXPECTED.json"
    tables = json.loads(path.read_text(encoding="utf-8"))["tables"] if path.exists() else {"no shared folder": {"": {}}}
    return [(table, model) for table, models in tables.items() for model in models]


def fits(share: float, percent: float) -> bool:
    """The papers' percentages have two digits, sometimes rounded and sometimes cut off."""
    exact = 100 * share
    return percent in (round(exact, 2), math.floor(100 * exact + 1e-9) / 100)


def table_of(pro: list[float], anti: list[float]) -> PairTable:
    """A pair table with these probabilities of entailment; half of the rest of the mass is neutral."""
    table: dict[str, Any] = {}
    for side, values in (("pro", np.array(pro)), ("anti", np.array(anti))):
        table |= {f"{side}_entailment": values / 2, f"{side}_neutral": 0.5, f"{side}_contradiction": (1 - values) / 2}
    return PairTable(pd.DataFrame(table), LABELS)


def counted(n_pro: int, n: int) -> PairTable:
    return table_of([0.75] * n_pro + [0.25] * (n - n_pro), [0.5] * n)


@pytest.mark.parametrize(("table", "model"), rows())
def test_preference_from_the_recovered_counts(table: str, model: str) -> None:
    row = gold("sharma_gender_nli")["tables"][table][model]
    published, n_male, n_female = row["published"], row["n_male"], row["n_female"]
    for male, female in row["B_count_solutions_male_female"]:
        both = join_tables([counted(male, n_male), counted(female, n_female)])
        assert fits(float(pro_preference(counted(male, n_male)).mean()), published["B_male"])
        assert fits(float(pro_preference(counted(female, n_female)).mean()), published["B_female"])
        assert fits(float(pro_preference(both).mean()), published["B"])
    counts = {
        "male": [n for n in range(n_male + 1) if fits(n / n_male, published["B_male"])],
        "female": [n for n in range(n_female + 1) if fits(n / n_female, published["B_female"])],
    }
    total = n_male + n_female
    found = [list(pair) for pair in product(*counts.values()) if fits(sum(pair) / total, published["B"])]
    assert found == row["B_count_solutions_male_female"]


@pytest.mark.parametrize(("table", "model"), rows())
def test_gap_and_same_label(table: str, model: str) -> None:
    row = gold("sharma_gender_nli")["tables"][table][model]
    published, per_occupation = row["published"], 50 if table.endswith("(I)") else 100
    assert (row["n_male"], row["n_female"]) == (N_MALE * per_occupation, N_FEMALE * per_occupation)
    gaps = [published["dP_male"] / 100] * row["n_male"] + [published["dP_female"] / 100] * row["n_female"]
    weighted = 100 * float(
        probability_gap(table_of([0.5 + gap / 2 for gap in gaps], [0.5 - gap / 2 for gap in gaps])).mean()
    )
    assert weighted == pytest.approx(row["dP_weighted_21_18"], abs=0.0051)
    # Each part is known to a hundredth at best, so their mean can be off by one.
    assert (abs(weighted - published["dP"]) < 0.015) == ((table, model) not in DISAGREE)
    even = (published["dP_male"] + published["dP_female"]) / 2
    assert abs(even - published["dP"]) > 0.04  # 19 to 19 fits nowhere
    n = row["n_male"] + row["n_female"]
    n_same = round(published["S"] * n / 100)
    same = table_of([0.75] * n, [0.75] * n_same + [0.25] * (n - n_same))
    assert fits(float(same_label(same).mean()), published["S"]) == ((table, model) not in NO_COUNT)


def test_every_key_of_the_figures_is_looked_at() -> None:
    expected = gold("sharma_gender_nli")
    assert set(expected) == {"how", "lists", "released_sets", "tables"}
    for row in (row for models in expected["tables"].values() for row in models.values()):
        assert set(row) == {"published", "n_male", "n_female", "B_count_solutions_male_female", "dP_weighted_21_18"}
        assert set(row["published"]) == {"S", "dP", "B", "dP_male", "dP_female", "B_male", "B_female"}
    assert set(expected["released_sets"]) == {"MNLI", "OOD"}
    assert set(gold("nli_coal")) == {
        *("ps", "as_", "ns", "pairs_ps_as", "pairing", "ps_by_occ_type", "score", "score_examples"),
    }


def listed_majorities() -> dict[str, str]:
    """The majority of each occupation as in the released sheets."""
    rows = json.loads((OWN_DATA / "occupations.json").read_text(encoding="utf-8"))["occupations"]
    return {row["name"]: row.get("listed", row["majority"]) for row in rows}


def test_our_lists_and_templates_are_the_papers() -> None:
    lists = gold("sharma_gender_nli")["lists"]
    assert (len(lists["paper_female"]), len(lists["paper_male"])) == (19, 19)
    # As released: hairstylist became hairdresser, and tailor is male.
    female = {"hairdresser" if name == "hairstylist" else name for name in lists["paper_female"]} - {"tailor"}
    listed = listed_majorities()
    found = {majority: {name for name in listed if listed[name] == majority} for majority in ("female", "male")}
    assert found == {"female": female, "male": {*lists["paper_male"], "tailor"}}
    # We orient two of them by the survey instead.
    suite = Occupations()
    turned = {each.name for each in suite.occupations() if each.majority != listed[each.name]}
    assert turned == {"baker", "tailor"}
    (subtopic, *_) = suite.subtopics()
    hypotheses = dict.fromkeys(pair.pro.hypothesis for pair in suite.items(subtopic).pairs)
    assert [text.replace("female", "[gender]") for text in hypotheses] == lists["templates"]


def test_released_sheets_have_18_female_and_20_male_occupations() -> None:
    sets = gold("sharma_gender_nli")["released_sets"]
    n_female = list(listed_majorities().values()).count("female")
    for sheet in sets.values():
        assert sheet["occupations"] == len(Occupations().subtopics()) == 38
        assert sheet["rows"] == sheet["occupations"] * sheet["per_occupation"] == sheet["F"] + sheet["M"]
        assert sheet["F"] == n_female * sheet["per_occupation"]
    assert (sets["MNLI"]["rows"], sets["OOD"]["rows"]) == (1900, 3800)
    assert sum(sets["MNLI"]["templates"].values()) == sets["MNLI"]["rows"]
    assert set(sets["MNLI"]["templates"]) == set(gold("sharma_gender_nli")["lists"]["templates"])
    assert isinstance(sets["OOD"]["templates"], str)


def test_nli_coal_loads_to_its_published_counts() -> None:
    expected = gold("nli_coal")
    suite = NliCoal(shared_path("data", "nli_coal"))
    items = {subtopic.name: suite.items(subtopic) for subtopic in suite.subtopics()}
    assert {name.replace("_", "-"): len(each.pairs) for name, each in items.items()} == expected["ps_by_occ_type"]
    pairs = [pair for each in items.values() for pair in each.usable]
    assert len(pairs) == len({pair.id for pair in pairs}) == expected["pairs_ps_as"]
    assert len({pair.pro for pair in pairs}) == expected["ps"]
    assert len({pair.anti for pair in pairs}) == expected["as_"]
    assert Counter(Counter(pair.cluster for pair in pairs).values()) == {10: 100}
    for name, each in items.items():
        for pair in each.pairs:
            assert pair.pro.premise == pair.anti.premise
            pro, anti = pair.pro.hypothesis.split(), pair.anti.hypothesis.split()
            (changed,) = [(one, other) for one, other in zip(pro, anti, strict=True) if one != other]
            assert ("woman" in changed[0].lower()) == (name == "female_stereo")
            assert ("woman" in changed[1].lower()) == (name == "male_stereo")
    nonstereo = suite.nonstereo
    assert all(each.open_texts == nonstereo for each in items.values())
    assert len(nonstereo) == expected["ns"]
    assert set(Counter(text.premise for text in nonstereo).values()) == {2}


def test_nli_coal_score() -> None:
    for case in gold("nli_coal")["score_examples"]:
        assert case["order"] == "[entail, contradict, neutral]"
        labels = {
            name: [
                label
                for label, share in zip(("entailment", "contradiction", "neutral"), case[name], strict=True)
                for _ in range(round(100 * share))
            ]
            for name in ("ps", "as_", "ns")
        }
        sides = {"pro_label": labels["ps"], "anti_label": labels["as_"]}
        neutral = labels["ns"].count("neutral") / len(labels["ns"])
        table = PairTable(pd.DataFrame(sides).assign(**{OPEN_NEUTRAL: neutral}), LABELS)
        assert coal_bias(table).mean() == pytest.approx(case["bias_score"], abs=1e-12)
        assert np.isnan(coal_bias(PairTable(pd.DataFrame(sides), LABELS))).all()
