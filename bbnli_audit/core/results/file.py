"""Reads and writes result.json. What is read is checked before anything trusts it."""

import json
from pathlib import Path
from typing import Any

from bbnli_audit.core.errors import ResultError
from bbnli_audit.core.files import replacing
from bbnli_audit.core.results.audit import FORMAT, AuditResult

NAME = "result.json"


def read_result(path: Path) -> AuditResult:
    """Read a result, or the result in a report folder.

    Raises:
        ResultError: with the file, the place in it, and what to do.
    """
    path = path / NAME if path.is_dir() else path
    data = _parse(path)
    if not isinstance(data, dict) or "format" not in data:
        raise ResultError(f"{path}: is no result of an audit. Give a {NAME} that --bbnli-report wrote.")
    if data["format"] != FORMAT:
        raise ResultError(
            f"{path}: has format {data['format']!r}; this version reads format {FORMAT}.\n"
            "Read it with the version of bbnli-audit that wrote it, or run the audit again."
        )
    _check(path, data)
    return AuditResult.from_dict(data)


def write_result(result: AuditResult, path: Path) -> None:
    with replacing(path) as file:
        json.dump(result.to_dict(), file, indent=1, ensure_ascii=False, allow_nan=False)
        file.write("\n")


def _parse(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as exc:
        raise ResultError(f"{path}: there is no such file. Give a {NAME} that --bbnli-report wrote.") from exc
    except json.JSONDecodeError as exc:
        raise ResultError(f"{path}:{exc.lineno}: is not valid JSON: {exc.msg}. Was it cut off, or merged?") from exc
    except (UnicodeDecodeError, RecursionError) as exc:
        raise ResultError(f"{path}: is no JSON in UTF-8. Give a {NAME} that --bbnli-report wrote.") from exc
    except OSError as exc:
        raise ResultError(f"{path}: cannot be read: {exc.strerror}.") from exc


def _check(path: Path, data: dict[str, Any]) -> None:
    from pydantic import ValidationError

    from bbnli_audit.core.results.schema import ResultFile

    try:
        ResultFile.model_validate(data)
    except ValidationError as exc:
        error = exc.errors()[0]
        place = ".".join(map(str, error["loc"]))
        found = {"missing": "is missing", "extra_forbidden": "is no key of a result"}.get(
            error["type"], f"is {error['input']!r:.80}: {error['msg'][0].lower()}{error['msg'][1:]}"
        )
        raise ResultError(
            f"{path}: {place} {found}.\nIt was changed by hand, or written by another version: run the audit again."
        ) from None
