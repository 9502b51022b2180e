"""Writes and reads results as JSON, checks them, and makes their JSON Schema. The dataclasses define the format."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bbnli_audit.core.errors import ResultError
from bbnli_audit.core.files import replacing
from bbnli_audit.core.reading import Source
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.consistency import find_contradiction

if TYPE_CHECKING:
    from pydantic import TypeAdapter

NAME = "result.json"
FORMAT = 1
# Keys that results of earlier versions may lack. All other keys are required, even those with a default in Python.
_ADDED_LATER = {
    "AuditResult": {
        "second_model",
        "second_prompt",
        "suite_rows",
        "reliability",
        "release",
        "troubles",
        "directions",
        "facts",
    },
    "Settings": {"agreement", "size", "n_limits", "excluded"},
    "ModelInfo": {"prompt"},
    "Skill": {"recalls", "facts"},
    "Judgement": {"times_needed", "is_corrected", "may_lack_data"},
    "Regression": {"times_needed", "waiver"},
    "Comparison": {"is_unchanged"},
    "Waiver": {"up_to"},
    "AgreementRow": {"kappa_interval", "rank_interval"},
    "SecondModel": {"r"},
    "SubtopicResult": {"n_templates", "n_asked", "n_unseen"},
}
_RETIRED = {"pairs_needed"}  # keys of earlier versions that are no longer read
_ADVICE = f"Give a {NAME} that --bbnli-report wrote."
T = TypeVar("T")


@cache  # making an adapter takes milliseconds
def _adapter(kind: type[Any]) -> "TypeAdapter[Any]":
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def dump(value: object) -> Any:
    """Turn a part of a result into plain values, as in result.json."""
    return _adapter(type(value)).dump_python(value, mode="json")  # type: ignore[arg-type]  # types can be hashed


def load(kind: type[T], data: object) -> T:
    """Turn the output of `dump` back into a part of a result."""
    found: T = _adapter(kind).validate_python(data, strict=False)  # type: ignore[arg-type]  # types can be hashed
    return found


def json_schema() -> dict[str, Any]:
    schema = _adapter(AuditResult).json_schema(mode="serialization")
    parts = {"AuditResult": schema, **schema["$defs"]}
    for name, later in _ADDED_LATER.items():
        parts[name]["required"] = [key for key in parts[name]["required"] if key not in later]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def read_result(path: Path | str) -> AuditResult:
    """Read and check a result, given its file or its report folder."""
    path = Path(path, NAME) if Path(path).is_dir() else Path(path)
    told = f"there is no such file. {_ADVICE}"
    source = Source(path, ResultError, if_missing=told, advice="Was it cut off, merged or changed by hand?")
    text = source.read_text()
    data = source.parse_json(text)
    if not isinstance(data, dict) or "format" not in data:
        raise ResultError(f"{path}: is not the result of an audit. {_ADVICE}")
    if data["format"] != FORMAT:
        advice = "Read it with the version of bbnli-audit that wrote it, or run the audit again."
        raise ResultError(f"{path}: has format {data['format']!r:.80}; this version reads format {FORMAT}.\n{advice}")
    result = _check(
        path, text if not any(f'"{key}"' in text for key in _RETIRED) else json.dumps(_without_retired(data))
    )
    missing = _find_missing(data, result)
    if missing is not None:
        raise _wrong(path, missing, "is missing")
    contradiction = find_contradiction(result)
    if contradiction is not None:
        raise _wrong(path, contradiction)
    return result


def write_result(result: AuditResult, path: Path | str) -> None:
    with replacing(Path(path)) as file:
        json.dump(dump(result), file, indent=1, ensure_ascii=False, allow_nan=False)
        file.write("\n")


def _check(path: Path, text: str) -> AuditResult:
    from pydantic import ValidationError

    try:
        result: AuditResult = _adapter(AuditResult).validate_json(text)
    except ValidationError as exc:
        error = exc.errors()[0]
        place = ".".join(map(str, error["loc"]))
        found = {"missing": "is missing", "unexpected_keyword_argument": "is not a key of a result"}.get(
            error["type"], f"is {error['input']!r:.80}: {error['msg'][0].lower()}{error['msg'][1:]}"
        )
        raise _wrong(path, place, found) from None
    return result


def _without_retired(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _without_retired(value) for key, value in data.items() if key not in _RETIRED}
    return [_without_retired(value) for value in data] if isinstance(data, list) else data


def _wrong(path: Path, *what: str) -> ResultError:
    advice = "It was changed by hand, or written by another version: run the audit again."
    return ResultError(f"{path}: {' '.join(what)}.\n{advice}")


def _find_missing(data: Any, part: object, place: str = "") -> str | None:
    """Find a required key that the file (`data`) lacks. `part` is the part of a result that was read from `data`."""
    later = _ADDED_LATER.get(type(part).__name__, ())
    for key, value in _parts_of(part):
        if isinstance(data, dict) and key not in data:
            if key not in later:
                return f"{place}{key}"
        elif (found := _find_missing(data[key], value, f"{place}{key}.")) is not None:
            return found
    return None


def _parts_of(part: object) -> Iterable[tuple[Any, object]]:
    """Return the members of a part of a result, each with its key or its index in the file."""
    if is_dataclass(part):
        return ((each.name, getattr(part, each.name)) for each in fields(part))
    if isinstance(part, Mapping):
        return part.items()
    return enumerate(part if isinstance(part, tuple) else ())
