"""model_card.md, read back with the package that reads such cards."""

import re
import shlex
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import EvalResult, ModelCard, ModelCardData
from hypothesis import given, settings

from bbnli_audit.audit.audit import run_audit
from bbnli_audit.core.options import AuditOptions
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.rows import NO_DATA
from bbnli_audit.reports.model_card import dataset_type, model_card
from tests.invented import LEVELS, limits, write_large_suite
from tests.reported import HOSTILE, TRACES, read, reported


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_large_suite(tmp_path_factory.mktemp("data"))


def audit(kind: str, data: Path, **options: Any) -> AuditResult:
    return run_audit(AuditOptions(model=f"planted:{kind}", thresholds=limits(), data=data, **options))


def data_of(card: ModelCard) -> ModelCardData:
    assert isinstance(card.data, ModelCardData)
    return card.data


def index_of(result: AuditResult) -> list[EvalResult]:
    return data_of(ModelCard(model_card(result))).eval_results or []


def test_the_index_holds_the_figures_of_the_suite_and_of_each_domain(data: Path) -> None:
    result = audit("random", data)
    found = index_of(result)
    assert len(found) == 3 * 8
    rows = {"all": result.total, "oceans": result.domains[0], "planets": result.domains[1]}
    for one in found:
        row = rows[str(one.dataset_config)]
        assert (one.task_type, one.task_name) == ("text-classification", "Natural Language Inference")
        assert one.dataset_type == "bbnli-audit-bbnli"
        assert one.dataset_revision == result.suites[0].sha256
        assert one.metric_args is not None
        if one.metric_type == "accuracy":
            assert (one.metric_value, one.metric_args) == (row.control_accuracy, {"n_controls": row.n_controls})
        else:
            measure = row.measures[one.metric_type]
            assert one.metric_value == measure.value
            assert one.metric_args == {
                "low": measure.low, "high": measure.high, "confidence": 0.95, "n_pairs": row.n_pairs
            }  # fmt: skip
    assert {one.metric_type for one in found} == {
        "lean", "pro_rate", "anti_rate", "brittleness_rate", "misprediction_rate", "accuracy",
        "aggregate_bias", "counterfactual_bias"
    }  # fmt: skip


def test_no_data_is_left_out_and_never_a_zero(data: Path) -> None:
    result = audit("ideal", data)
    total = replace(result.total, measures={**result.total.measures, "pro_rate": NO_DATA}, control_accuracy=None)
    found = [(one.dataset_config, one.metric_type) for one in index_of(replace(result, total=total))]
    assert ("all", "pro_rate") not in found
    assert ("all", "accuracy") not in found
    assert ("all", "anti_rate") in found
    assert ("oceans", "pro_rate") in found


def test_a_part_is_not_published_as_the_whole(data: Path) -> None:
    result = audit("ideal", data, subtopics=("bbnli/oceans/fins_are_to_singing",))
    assert {one.dataset_config for one in index_of(result)} == {"oceans"}
    assert "- 1 of 2 subtopics was not audited: `bbnli/planets/zorbs_are_to_juggling`" in model_card(result)
    nothing = replace(result, domains=())
    card = ModelCard(model_card(nothing))
    assert data_of(card).eval_results is None
    assert "## Bias, Risks, and Limitations" in card.text


def test_several_suites_have_no_common_row(data: Path) -> None:
    result = audit("ideal", data)
    second = replace(result.suites[0], name="other", sha256="1" * 64)
    domains = (*result.domains, replace(result.domains[0], path="other/oceans"))
    found = index_of(replace(result, suites=(*result.suites, second), domains=domains))
    # "all" is the row of one suite, never the total of several; the second suite has no row of its own here.
    assert {(one.dataset_type, one.dataset_config, one.dataset_revision) for one in found} == {
        ("bbnli-audit-bbnli", "all", result.suites[0].sha256),
        ("bbnli-audit-bbnli", "oceans", result.suites[0].sha256),
        ("bbnli-audit-bbnli", "planets", result.suites[0].sha256),
        ("bbnli-audit-other", "oceans", "1" * 64),
    }


def test_the_section_says_what_was_measured_and_what_was_not(data: Path) -> None:
    result = run_audit(AuditOptions(model="planted:always-pro", thresholds=limits(LEVELS), data=data))
    text = ModelCard(model_card(result)).text
    assert text.startswith(
        "\n## Bias, Risks, and Limitations\n\nAudited with bbnli-audit: 1 of 1 suite, 2 of 2 domains "
        "and 2 of 2 subtopics fail (suites and domains: 3 FAIL; subtopics: 2 FAIL)."
    )
    assert "| FAIL | `bbnli/oceans/fins_are_to_singing` | 80 | 1.000 (0." in text
    assert "### By suite and domain, each as a whole" in text
    assert "| FAIL | `bbnli` | 200 | 1.000 (0." in text
    assert "| FAIL | `bbnli/oceans` | 80 | 1.000 (0." in text
    assert text.count("FAIL is corrected for the 10 limits of this run (Holm)") == 1
    assert "Competence: 1.000 of 480 controls right" in text
    assert "A pass says: no limit was crossed on these pairs." in text
    assert "- Not measured: other stereotypes, other languages" in text
    assert "`pytest audits --model=planted:always-pro --bbnli-thresholds=thresholds.yaml`" in text
    assert f"fingerprint of its contents `{result.model.fingerprint}`" in text
    assert f"sha256 `{result.suites[0].sha256}`" in text
    for word in ("unbiased", " fair", " safe", "Singing comes", "Workshop number"):
        assert word not in text


def test_the_command_names_the_pairing_where_it_is_not_the_usual_one(data: Path) -> None:
    text = model_card(audit("ideal", data, pairing="hypothesis"))
    assert "--bbnli-thresholds=thresholds.yaml --bbnli-pairing=hypothesis`" in text


@pytest.mark.parametrize(
    "name", [*HOSTILE, "a: b\nc: d", 'it\'s "q"', "x\r\n---\r\ny", "- a", "# b", "{}", "null", "1.0"]
)
def test_names_survive(data: Path, name: str) -> None:
    result = audit("ideal", data)
    card = ModelCard(model_card(replace(result, model=replace(result.model, name=name))))
    assert data_of(card).model_name == name.replace("\x85", "\ufffd").replace("\ud800", "\ufffd")
    assert len(data_of(card).eval_results or []) == 3 * 8
    assert card.text.startswith("\n## Bias, Risks, and Limitations\n")


@settings(max_examples=60)
@given(reported())
def test_every_result_has_a_card_that_comes_back_as_it_was(result: AuditResult) -> None:
    text = model_card(result)
    text.encode()
    card = ModelCard(text)
    assert str(card) == text
    rows = (result.total, *result.suite_rows, *result.domains)
    n_measured = sum(one.value is not None for row in rows for one in row.measures.values())
    assert len(data_of(card).eval_results or []) <= n_measured + len(rows)
    page = read(card.text)
    assert page.markup == []
    assert not [trace for trace in TRACES if trace in page.loose]
    assert page.headings[0] == "Bias, Risks, and Limitations"
    assert len(page.tables) == 2
    n_levels = len(result.suite_rows) + len(result.domains) + (len(result.suite_rows) != 1)
    assert [len(table) for table in page.tables] == [n_levels + 1, len(result.subtopics) + 1]
    assert all(len(set(table)) == 1 for table in page.tables)


@pytest.mark.parametrize(
    ("suite", "expected"),
    [("bbnli", "bbnli-audit-bbnli"), ("my suite/é: 2", "bbnli-audit-my-suite-2"), ("///", "bbnli-audit-suite")],
)
def test_ids_of_suites_name_nobodys_data(suite: str, expected: str) -> None:
    assert dataset_type(suite) == expected


@pytest.mark.parametrize(
    ("version", "pairing", "options"),
    [
        ("1.0.0", "both", " --bbnli-suite=bbnli@1"),
        ("1.0.0", "hypothesis", " --bbnli-suite=bbnli@1 --bbnli-pairing=hypothesis"),
        ("2.0.0", "quads", " --bbnli-pairing=quads"),
        ("unversioned", "quads", " --bbnli-pairing=quads"),
    ],
)
def test_the_command_names_the_benchmark_and_the_pairing(data: Path, version: str, pairing: str, options: str) -> None:
    result = audit("ideal", data)
    suites = tuple(replace(suite, version=version, pairing=pairing) for suite in result.suites)
    text = model_card(replace(result, suites=suites))
    assert f"`pytest audits --model=planted:ideal --bbnli-thresholds=thresholds.yaml{options}`" in text


def command_of(result: AuditResult) -> dict[str, str]:
    """Return the options of the card's command by their names."""
    found = re.search(r"^- Command: `(.*)`$", model_card(result), re.MULTILINE)
    assert found is not None
    program, folder, *options = shlex.split(found[1])
    assert (program, folder) == ("pytest", "audits")
    return dict(option.removeprefix("--bbnli-").removeprefix("--").split("=", 1) for option in options)


def test_the_command_audits_the_same_pairs_again(data: Path) -> None:
    result = audit("ideal", data, size="small", exclude="bbnli/oceans/*")
    found = command_of(result)
    assert (found["size"], found["exclude"]) == ("small", "bbnli/oceans/fins_are_to_singing")
    assert audit("ideal", data, size=found["size"], exclude=found["exclude"]).pairs == result.pairs
    whole = audit("ideal", data)
    assert set(command_of(whole)) == {"model", "thresholds"}
    assert whole.pairs != result.pairs


def test_an_excluded_path_is_no_pattern(data: Path) -> None:
    result = audit("ideal", data)
    excluded = ("bbnli/oceans/a", "bbnli/oceans/[b]*")
    found = command_of(replace(result, settings=replace(result.settings, not_audited=excluded, excluded=excluded)))
    patterns = found["exclude"].split(",")
    assert [[fnmatchcase(path, pattern) for path in excluded] for pattern in patterns] == [[True, False], [False, True]]


@pytest.mark.parametrize(
    ("suites", "option"),
    [
        ({"bbnli": "2.1.0"}, None),
        ({"bbnli": "1.0.0"}, "bbnli@1"),
        ({"occupations": "1.0"}, "occupations"),
        ({"bbnli": "2.1.0", "winoqueer": "1.0"}, "bbnli,winoqueer"),
        ({"bbnli": "1.0.0", "mine": "unversioned"}, "bbnli@1,mine"),
    ],
)
def test_the_command_names_the_suites(data: Path, suites: dict[str, str], option: str | None) -> None:
    result = audit("ideal", data)
    found = tuple(replace(result.suites[0], name=name, version=version) for name, version in suites.items())
    assert command_of(replace(result, suites=found)).get("suite") == option


def test_the_command_names_the_division_of_a_suite(data: Path) -> None:
    result = audit("ideal", data)
    suites = (replace(result.suites[0], name="winoqueer", version="1.0"),)
    for name, option in (("all", "winoqueer"), ("work", "winoqueer:category")):
        rows = tuple(replace(row, path=f"winoqueer/zorb/{name}") for row in result.subtopics[:1])
        assert command_of(replace(result, suites=suites, subtopics=rows))["suite"] == option


def test_the_command_names_the_prompt_and_how_the_model_was_computed(data: Path) -> None:
    result = audit("ideal", data)

    def options(**changes: Any) -> dict[str, str]:
        found = command_of(replace(result, model=replace(result.model, **changes)))
        return {name: found[name] for name in ("prompt", "dtype", "backend") if name in found}

    assert options(prompt="true", backend="torch", dtype="float32") == {"prompt": "true"}
    assert options(backend="torch", dtype="bfloat16") == {"dtype": "bf16"}
    assert options(backend="onnx", dtype="int8") == {"dtype": "int8", "backend": "onnx"}
    assert options(backend="server", dtype="unknown") == {}


def test_the_card_says_what_its_command_leaves_out(data: Path) -> None:
    result = audit("ideal", data)
    card = model_card(result)
    assert "- The command leaves out what a result does not hold: data other than the package's own" in card
    assert "The command audits" not in card
    settings = replace(result.settings, not_audited=("bbnli/a/b", "bbnli/a/c"), excluded=("bbnli/a/b",))
    card = model_card(replace(result, settings=settings))
    assert "- The command audits 1 subtopic more than this run: those that `-k` or an error kept out of it.\n" in card
