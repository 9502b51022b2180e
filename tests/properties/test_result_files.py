"""result.json: what is written fits the published schema, and is read back unchanged."""

import json
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bbnli_audit.core.errors import ResultError
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.file import dump, json_schema, read_result, write_result
from tests.strategies import sound_results

VALIDATOR = jsonschema.Draft202012Validator(json_schema())


def write(result: dict[str, Any], folder: str) -> Path:
    path = Path(folder, "result.json")
    path.write_text(json.dumps(result), encoding="utf-8")
    return path


@given(sound_results)
@settings(deadline=None)
def test_a_result_is_read_back_unchanged(result: AuditResult) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_result(result, Path(folder, "result.json"))
        assert read_result(Path(folder, "result.json")) == result
        assert read_result(Path(folder)) == result, "the folder stands for the file in it"


@given(sound_results)
@settings(deadline=None)
def test_every_result_fits_the_schema(result: AuditResult) -> None:
    VALIDATOR.validate(json.loads(json.dumps(dump(result))))


# Results of earlier versions lack these.
MAY_LACK = {
    "result": {
        *("second_model", "second_prompt", "suite_rows", "reliability", "release", "troubles", "directions", "facts"),
    },
    "settings": {"agreement", "size", "n_limits", "excluded"},
    "skill": {"recalls", "facts"},
    "model": {"prompt"},
    "row": {"n_templates", "n_asked", "n_unseen"},
    "judgement": {"times_needed", "is_corrected", "may_lack_data"},
    "comparison": {"is_unchanged"},
    "regression": {"times_needed", "waiver"},
}


@given(sound_results, st.data())
@settings(deadline=None, max_examples=50)
def test_a_missing_or_a_new_key_fits_neither_the_schema_nor_the_reader(
    result: AuditResult, data: st.DataObject
) -> None:
    document = dump(result)
    kind, holder = data.draw(st.sampled_from(list(objects(document))))
    if data.draw(st.booleans()):
        del holder[data.draw(st.sampled_from(sorted(set(holder) - MAY_LACK.get(kind, set()))))]
    else:
        holder["surprise"] = 1
    assert not VALIDATOR.is_valid(document)
    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.raises(ResultError, match=r"is missing|is not a key of a result|is not the result of an audit"),
    ):
        read_result(write(document, folder))


@given(sound_results, st.data())
@settings(deadline=None, max_examples=50)
def test_a_key_that_came_later_may_be_missing(result: AuditResult, data: st.DataObject) -> None:
    document = dump(result)
    kind, holder = data.draw(st.sampled_from([each for each in objects(document) if each[0] in MAY_LACK]))
    for key in data.draw(st.sets(st.sampled_from(sorted(MAY_LACK[kind])), min_size=1)):
        del holder[key]
    VALIDATOR.validate(document)
    with tempfile.TemporaryDirectory() as folder:
        assert "is missing" not in find_fault(write(document, folder))


def find_fault(path: Path) -> str:
    """Say why a result is not read; empty if it is. Its other parts may contradict what a missing key stands for."""
    try:
        read_result(path)
    except ResultError as exc:
        return str(exc)
    return ""


@given(sound_results)
@settings(deadline=None, max_examples=10)
def test_a_key_that_came_later_in_one_class_is_required_in_another(result: AuditResult) -> None:
    """Growth may lack `waiver`, and limits always had it."""
    document = dump(result)
    judgement = {"measure": "lean", "limit": 0.5, "verdict": "PASS", "source": "x:1", "may_lack_data": False}
    document["total"]["verdicts"] = [judgement]
    assert not VALIDATOR.is_valid(document)
    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.raises(ResultError, match=r"total\.verdicts\.0\.waiver is missing"),
    ):
        read_result(write(document, folder))


def objects(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give the objects of a result whose keys are fixed, each with its kind."""

    def all_of(kind: str, found: Iterable[dict[str, Any] | None]) -> Iterator[tuple[str, dict[str, Any]]]:
        return ((kind, each) for each in found if each is not None)

    yield from (("result", document), ("model", document["model"]), ("settings", document["settings"]))
    yield "skill", document["settings"]["skill"]
    yield from all_of("suite", document["suites"])
    yield from all_of("reliability", document["reliability"])
    yield from all_of("release", [document["release"]])
    for row in (*document["subtopics"], *document["domains"], document["total"]):
        yield from (("row", row), ("counts", row["counts"]))
        yield from all_of("measured", row["measures"].values())
        yield from all_of("judgement", row["verdicts"])
    yield from all_of("comparison", [document["comparison"]])
    yield from all_of("regression", (document["comparison"] or {"regressions": ()})["regressions"])


def test_the_schema_in_docs_is_the_one_from_the_code() -> None:
    written = Path(__file__).parents[2] / "docs" / "result.schema.json"
    assert json.loads(written.read_text(encoding="utf-8")) == json_schema(), "run: make schema"
