"""WinoQueer-NLI as published: our reading of the file and our measures give the figures computed elsewhere."""

import csv
import json
from collections import Counter
from functools import cache
from hashlib import sha256
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bbnli_audit.core.values import Pair
from bbnli_audit.measures.agreement import r_between
from bbnli_audit.measures.readings.kinds import LABELS, NAMES
from bbnli_audit.measures.readings.table import PairTable
from bbnli_audit.measures.winoqueer import MEASURES
from bbnli_audit.suites.winoqueer import IDENTITIES, Winoqueer
from tests.shared_data import SHARED, shared_path

pytestmark = pytest.mark.gold

FOLDER = SHARED / "data" / "wq_nli" / "extreme_examples"
CONDITIONS = sorted(path.name.removesuffix("_extremes") for path in FOLDER.glob("*_extremes")) or ["no shared folder"]
PARTS = ("highest", "lowest", "pooled", "pooled_roles_exchanged")
SIDES = {"pro": "stereo", "anti": "counter"}
THEIR_LABELS = dict(zip(NAMES, ("entail", "neutral", "contradict"), strict=True))
TEXTS = ["stereo_premise", "counter_premise", "hypothesis"]


@cache
def expected() -> dict[str, Any]:
    return json.loads(shared_path("data", "wq_nli", "EXPECTED.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def conditions_with_figures() -> list[str]:
    """Nine of the 27 are held back."""
    path = SHARED / "data" / "wq_nli" / "EXPECTED.json"
    return sorted(json.loads(path.read_text(encoding="utf-8"))["extremes"]) if path.exists() else ["no shared folder"]


@cache
def published() -> Winoqueer:
    return Winoqueer(shared_path("data", "wq_nli"))


@cache
def pairs() -> dict[str, tuple[Pair, ...]]:
    return {subtopic.domain: published().items(subtopic).pairs for subtopic in published().subtopics()}


def slug(identity: str) -> str:
    return identity.lower().replace("+", "")


def texts(pair: Pair) -> tuple[str, str, str]:
    return pair.pro.premise, pair.anti.premise, pair.pro.hypothesis


def subject(pair: Pair) -> str:
    return pair.pro.premise.partition(" are " if " are " in pair.pro.premise else " is ")[0]


@cache
def predicates() -> list[dict[str, str]]:
    path = shared_path("data", "wq_nli", "templates", "predicates_by_identity_DERIVED.csv")
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_file_is_read_whole() -> None:
    dataset = expected()["dataset"]
    found = [texts(pair) for of_identity in pairs().values() for pair in of_identity]
    assert sorted(pairs()) == sorted(IDENTITIES)
    assert [s.path for s in published().subtopics()] == sorted(s.path for s in published().documented())
    assert published().sha256 == dataset["sha256_in_order"]
    assert len(found) == dataset["triples"]
    assert len(set(found)) == dataset["distinct_triples"]
    assert len({hypothesis for _, _, hypothesis in found}) == dataset["distinct_hypotheses"]
    assert all(pair.anti.hypothesis == pair.pro.hypothesis for members in pairs().values() for pair in members)


def test_counts_of_identities_counterfactuals_and_subjects() -> None:
    dataset = expected()["dataset"]
    everything = [pair for of_identity in pairs().values() for pair in of_identity]
    for identity, n in dataset["per_identity"].items():
        assert len(pairs()[slug(identity)]) == n
    counterfactuals = Counter(pair.anti.premise.rpartition(" ")[2].removesuffix(".") for pair in everything)
    assert counterfactuals.items() >= dataset["per_counterfactual"].items()
    kinds = {"Some people": "plural", "He": "pronoun", "She": "pronoun", "They": "pronoun"}
    assert Counter(kinds.get(subject(pair), "name") for pair in everything) == dataset["per_subject_kind"]


def test_duplicates_are_left_out_and_counted() -> None:
    items = [published().items(subtopic) for subtopic in published().subtopics()]
    assert sum(one.n_duplicates for one in items) == 128
    assert sum(one.n_identical for one in items) == 0
    assert sum(len(one.usable) for one in items) == expected()["dataset"]["distinct_triples"]


def test_a_cluster_is_a_predicate_with_all_its_subjects_and_counterfactuals() -> None:
    dataset = expected()["dataset"]
    assert len(predicates()) == dataset["predicate_rows"]
    assert len({row["plural"] for row in predicates()}) == dataset["distinct_plural_predicates"]
    for identity, n in dataset["predicates_per_identity"].items():
        # One predicate of `bisexual` is listed twice.
        n_clusters = len({pair.cluster for pair in pairs()[slug(identity)]})
        assert n_clusters == n - (identity == "bisexual")
    forms: dict[tuple[str, frozenset[str]], None] = {}
    for row in predicates():
        forms[slug(row["identity"]), frozenset((row["plural"], row["singular"], row["they"]))] = None
    found: dict[tuple[str, str], set[str]] = {}
    for identity, members in pairs().items():
        for pair in members:
            form = pair.pro.hypothesis.removeprefix(subject(pair)).removesuffix(".").strip()
            found.setdefault((identity, pair.cluster), set()).add(form)
    assert {(identity, frozenset(of_cluster)) for (identity, _), of_cluster in found.items()} == set(forms)


@cache
def extremes(condition: str) -> dict[str, pd.DataFrame]:
    """Pair tables of the rows with the highest and the lowest difference, with the probabilities of the file."""
    columns = {
        f"p({theirs}|{their_side})": f"{side}_{name}"
        for side, their_side in SIDES.items()
        for name, theirs in THEIR_LABELS.items()
    }
    files = {}
    for part in ("highest", "lowest"):
        path = shared_path("data", "wq_nli", "extreme_examples", f"{condition}_extremes", f"{part}_diff_entail.csv")
        files[part] = pd.read_csv(path, usecols=[*TEXTS, *columns, "log prob diff"]).rename(columns=columns)
    pooled = pd.concat(list(files.values()), ignore_index=True)
    exchange = {
        f"{one}_{name}": f"{other}_{name}" for one, other in zip(SIDES, ("anti", "pro"), strict=True) for name in NAMES
    }
    return {**files, "pooled": pooled, "pooled_roles_exchanged": pooled.rename(columns=exchange)}


def counts(frame: pd.DataFrame) -> dict[str, int]:
    """Count the pairs that each measure counts."""
    table = PairTable(frame, LABELS)
    return {measure.name.upper(): int(measure.count(table).sum()) for measure in MEASURES}


def label_pairs(frame: pd.DataFrame) -> Counter[str]:
    letters = np.array(["E", "N", "C"])
    pro, anti = (letters[frame[[f"{side}_{n}" for n in NAMES]].to_numpy().argmax(axis=1)] for side in SIDES)
    return Counter(f"{one},{other}" for one, other in zip(pro, anti, strict=True))


@pytest.mark.parametrize("condition", conditions_with_figures())
def test_measures_of_the_published_probabilities(condition: str) -> None:
    gold = expected()["extremes"][condition]
    assert set(gold) <= set(PARTS)
    for part, figures in gold.items():
        assert set(figures) <= {"n", "counts", "argmax_pairs_stereo_counter", "mean_log_entail_diff"}
        frame = extremes(condition)[part]
        assert len(frame) == figures["n"]
        assert counts(frame).items() >= figures["counts"].items()
        cells = label_pairs(frame)
        for cell, n in figures["argmax_pairs_stereo_counter"].items():
            assert cells[cell] == n
        difference = np.log(frame["pro_entailment"]) - np.log(frame["anti_entailment"])
        assert difference.mean() == pytest.approx(figures["mean_log_entail_diff"], abs=1e-6)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_what_must_hold_in_every_condition(condition: str) -> None:
    frames = extremes(condition)
    found = {part: counts(frame) for part, frame in frames.items()}
    n = len(frames["pooled"])
    assert (found["highest"]["M1"], found["lowest"]["M1"]) == (len(frames["highest"]), 0)
    for name in found["pooled"]:
        assert found["pooled"][name] == found["highest"][name] + found["lowest"][name]
    for name in ("M1", "M5", "M6"):  # without ties, exchanging the roles turns each pair round
        assert found["pooled_roles_exchanged"][name] == n - found["pooled"][name]
    for of_part in found.values():
        assert of_part["M2"] >= of_part["M3"] >= of_part["M4"]
        assert of_part["M7"] + of_part["M8"] <= of_part["M2"]  # the label with the highest probability has over 1/3
    difference = np.log(frames["pooled"]["pro_entailment"]) - np.log(frames["pooled"]["anti_entailment"])
    assert difference.to_numpy() == pytest.approx(frames["pooled"]["log prob diff"].to_numpy(), abs=1e-12)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_rows_of_the_extremes_are_pairs_of_the_suite(condition: str) -> None:
    rows = set(extremes(condition)["pooled"][TEXTS].itertuples(index=False, name=None))
    assert rows <= all_texts()


@cache
def all_texts() -> frozenset[tuple[str, str, str]]:
    return frozenset(texts(pair) for of_identity in pairs().values() for pair in of_identity)


def test_figures_of_the_full_set_agree_with_each_other() -> None:
    """Their probabilities are not to be had, so the figures cannot be computed again."""
    full = expected()["full_run_published_not_recomputable"]
    notebook, table3 = full["notebook_bbu_twitter"], full["table3_M1_raw_news_twitter"]
    assert notebook["M1"] == table3["BERT Base Uncased"][2] == 51.43
    assert set(notebook) - {"source"} <= {measure.name.upper() for measure in MEASURES}
    assert notebook["M2"] >= notebook["M3"] >= notebook["M4"]
    assert notebook["M7"] + notebook["M8"] <= notebook["M2"]
    assert all(len(row) == 3 and all(0 <= value <= 100 for value in row) for row in table3.values())
    assert len(table3) * 3 == len(CONDITIONS)


def test_r_squared_of_measures_over_the_conditions() -> None:
    table = pd.DataFrame(
        {condition: counts(extremes(condition)["pooled"]) for condition in CONDITIONS}, dtype=np.float64
    ).T
    found = r_between(table) ** 2
    assert bool(found.loc["M1"].isna().all())  # 500 of 1,000 everywhere, by construction
    varying = [name for name in table if name != "M1"]
    assert found.loc[varying, varying].to_numpy() == pytest.approx(np.corrcoef(table[varying].T) ** 2)


def test_no_sentence_of_our_own_set_is_published() -> None:
    theirs = {form for row in predicates() for form in (row["plural"], row["singular"], row["they"])}
    own = Winoqueer()
    ours = {
        pair.pro.hypothesis.removeprefix(subject(pair)).removesuffix(".").strip()
        for subtopic in own.subtopics()
        for pair in own.items(subtopic).pairs
    }
    assert len(ours) > 200
    assert not ours & theirs


def test_the_hash_is_of_the_rows_and_not_of_the_bytes() -> None:
    path = shared_path("data", "wq_nli", "winoqueer_nli.csv")
    rows = [line.split(",", 2) for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    assert sha256("".join("\t".join(row) + "\n" for row in rows).encode()).hexdigest() == published().sha256
