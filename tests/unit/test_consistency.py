"""A result that contradicts itself is not read: somebody has changed one part of it and not the others."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from bbnli_audit import AuditOptions, ModelInfo, Predictions, TextPair, run_audit
from bbnli_audit.core.errors import ResultError
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.file import dump, read_result
from tests.invented import limits, write_large_suite, write_quads

FINS, ZORBS = "bbnli/oceans/fins_are_to_singing", "bbnli/planets/zorbs_are_to_juggling"


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> AuditResult:
    data = write_large_suite(tmp_path_factory.mktemp("suite"))
    return run_audit(AuditOptions(model="planted:random", thresholds=limits(), data=data))


def change_pairs(document: dict[str, Any]) -> None:
    """What an edited baseline looks like: its pairs say that the earlier model was biased too."""
    for ids in document["pairs"][FINS].values():
        ids.update(dict.fromkeys(ids, "EN"))


def lose_a_pair(document: dict[str, Any]) -> None:
    next(iter(document["pairs"][FINS].values())).popitem()


def repeat_a_pair(document: dict[str, Any]) -> None:
    first, second, *_ = document["pairs"][FINS].values()
    second[next(iter(first))] = "NN"


def lose_a_subtopic(document: dict[str, Any]) -> None:
    del document["pairs"][ZORBS]


def repeat_a_subtopic(document: dict[str, Any]) -> None:
    document["subtopics"].append(document["subtopics"][0])


def swap_outcomes(document: dict[str, Any]) -> None:
    outcomes = document["subtopics"][0]["outcomes"]
    outcomes["EN"], outcomes["NE"] = outcomes["NE"] + 1, outcomes["EN"] - 1


def call_competent(measure: str) -> Callable[[dict[str, Any]], None]:
    return lambda document: document["total"]["verdicts"][0].update(measure=measure, verdict="PASS")


def merge_clusters(document: dict[str, Any]) -> None:
    """Pairs in one cluster show less than pairs in many."""
    clusters = document["pairs"][FINS]
    document["pairs"][FINS] = {"p/h": {pair: cell for ids in clusters.values() for pair, cell in ids.items()}}


def setting(*place: str | int, value: object) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        holder: Any = document
        for key in place[:-1]:
            holder = holder[key]
        holder[place[-1]] = value

    return change


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "pairs": (change_pairs, rf"{FINS}: outcomes has \d+ pairs NN, and pairs has 0"),
    "a pair less": (lose_a_pair, rf"{FINS}: outcomes has \d+ pairs .., and pairs has \d+"),
    "a pair twice": (repeat_a_pair, rf"pairs of {FINS} hold a pair twice"),
    "a subtopic less": (lose_a_subtopic, rf"subtopics and pairs must name the same subtopics, each once \({ZORBS}\)"),
    "a subtopic twice": (repeat_a_subtopic, "must name the same subtopics, each once"),
    "outcomes": (swap_outcomes, rf"{FINS}: outcomes has \d+ pairs .., and pairs has \d+"),
    "n_pairs": (setting("subtopics", 0, "n_pairs", value=7), rf"{FINS}: n_pairs is 7, and its pairs give 80"),
    "n_samples": (setting("subtopics", 0, "n_samples", value=7), rf"{FINS}: n_samples is 7, and its pairs give 160"),
    "counts": (setting("subtopics", 0, "counts", "n_pro", value=0), rf"{FINS}: n_pro is 0, and its pairs give \d+"),
    "a rate": (
        setting("subtopics", 0, "measures", "pro_rate", value={"value": 0.0, "low": 0.0, "high": 0.01, "n": 160}),
        rf"{FINS}: pro_rate is 0.0, and its pairs give 0\.\d+",
    ),
    "lean of a level": (
        setting("suite_rows", 0, "measures", "lean", value={"value": 0.9, "low": 0.8, "high": 1.0, "n": 200}),
        "bbnli: lean is 0.9, and its pairs give",
    ),
    "bounds": (setting("subtopics", 0, "measures", "pro_rate", "high", value=0.0), "pro_rate is not within its own"),
    "a bound": (setting("subtopics", 0, "measures", "pro_rate", "high", value=None), "pro_rate is not within its own"),
    "a domain": (setting("domains", 0, "counts", "n_brittle", value=0), "bbnli/oceans: n_brittle is 0"),
    "the total": (setting("total", "n_pairs", value=3), "total: n_pairs is 3, and its pairs give 200"),
    "unseen pairs": (
        setting("subtopics", 0, "n_unseen", value=900),
        rf"{FINS}: n_asked is 80, with n_pairs 80 and n_un",
    ),
    "asked pairs": (setting("subtopics", 0, "n_asked", value=9), rf"{FINS}: n_asked is 9, with n_pairs 80 and n_uns"),
    "clusters": (merge_clusters, rf"{FINS}: n_clusters is 80, but its pairs are in 1 cluster\."),
    "two verdicts": (
        lambda document: document["subtopics"][0]["verdicts"].append(document["subtopics"][0]["verdicts"][0]),
        f"{FINS}: there are two verdicts on one measure",
    ),
    "no domains": (setting("domains", value=[]), "domains are none, and the subtopics are in bbnli/oceans, bbnli/pl"),
    "a suite twice": (
        lambda document: document["suite_rows"].append(document["suite_rows"][0]),
        "suite_rows are bbnli, bbnli, and the subtopics are in bbnli",
    ),
    "another suite": (
        setting("suites", 0, "name", value="other"),
        "suites lacks bbnli, to which audited subtopics belong",
    ),
    "directions of another subtopic": (
        setting("directions", "a/b/c", value={"with": ["x"]}),
        "directions names a/b/c, which was",
    ),
    "facts of another subtopic": (setting("facts", "a/b/c", value={}), "facts names a/b/c, which was not audited"),
    "not audited": (setting("settings", "not_audited", value=[FINS]), f"not_audited names {FINS}, which was audited"),
    "excluded": (
        setting("settings", "excluded", value=["bbnli/x/y"]),
        "excluded names bbnli/x/y, which not_audited does not",
    ),
    "skill": (setting("total", "control_accuracy", value=0.9), r"total: control_accuracy is 0\.9, and skill says 0"),
    "competence by recall": (
        call_competent("control_recall"),
        "total: competence is PASS by control_recall, but the figures",
    ),
    "competence by facts": (
        call_competent("fact_preference"),
        "total: competence is PASS by fact_preference, but the figures",
    ),
    "competence": (
        setting("total", "verdicts", 0, "verdict", value="PASS"),
        "total: competence is PASS by control_accuracy",
    ),
}


@pytest.mark.parametrize(("change", "message"), CHANGES.values(), ids=CHANGES)
def test_a_result_that_contradicts_itself_is_refused(
    result: AuditResult, tmp_path: Path, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    document = dump(result)
    path = tmp_path / "result.json"
    path.write_text(json.dumps(document))
    assert read_result(path) == result
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(ResultError, match=message) as raised:
        read_result(path)
    assert str(raised.value).startswith(f"{path}: ")
    assert str(raised.value).endswith("It was changed by hand, or written by another version: run the audit again.")


class Even:
    """A language model, read by its likelihoods, that finds both sides of every pair equally likely."""

    info = ModelInfo("even", "0" * 64, "masked-lm", "torch", "float32", ("likelier", "not_likelier"))

    def predict(self, texts: Sequence[TextPair]) -> Predictions:
        return Predictions.of([(0.5, 0.5, 0.0)] * len(texts))


def test_a_model_read_by_its_likelihoods_has_no_overreach_to_compare(tmp_path: Path) -> None:
    """Premises of quads have directions whichever way a model is read."""
    write_quads(tmp_path / "data")
    result = run_audit(AuditOptions(model=Even(), thresholds=limits(), data=tmp_path / "data"))
    assert result.directions
    assert "overreach" not in result.total.measures
    path = tmp_path / "result.json"
    path.write_text(json.dumps(dump(result)))
    assert read_result(path) == result
