"""result.json: what is written fits the published schema, and is read back unchanged."""

import json
import tempfile
from collections.abc import Iterator
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
    *("agreement", "size", "recalls", "second_model", "second_prompt", "reliability", "release"),
    *("suite_rows", "n_limits", "times_needed", "is_corrected", "n_templates", "n_asked", "n_unseen"),
    *("directions", "excluded", "facts", "is_unchanged", "may_lack_data", "prompt", "troubles", "waiver"),
}


@given(sound_results, st.data())
@settings(deadline=None, max_examples=50)
def test_a_missing_or_a_new_key_fits_neither_the_schema_nor_the_reader(
    result: AuditResult, data: st.DataObject
) -> None:
    document = dump(result)
    holder = data.draw(st.sampled_from(list(objects(document))))
    if data.draw(st.booleans()):
        del holder[data.draw(st.sampled_from(sorted(set(holder) - MAY_LACK)))]
    else:
        holder["surprise"] = 1
    assert not VALIDATOR.is_valid(document)
    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.raises(ResultError, match=r"is missing|is not a key of a result|is not the result of an audit"),
    ):
        read_result(write(document, folder))


def objects(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Give the objects of a result whose keys are fixed."""
    yield document
    yield document["model"]
    yield document["settings"]
    yield from document["suites"]
    yield from document["reliability"]
    yield from filter(None, [document["release"]])
    for row in (*document["subtopics"], *document["domains"], document["total"]):
        yield row
        yield row["counts"]
        yield from row["measures"].values()
        yield from row["verdicts"]
    if document["comparison"] is not None:
        yield document["comparison"]
        yield from document["comparison"]["regressions"]


def test_the_schema_in_docs_is_the_one_from_the_code() -> None:
    written = Path(__file__).parents[2] / "docs" / "result.schema.json"
    assert json.loads(written.read_text(encoding="utf-8")) == json_schema(), "run: make schema"
