"""Reads a JSON file of a suite: one object, each key once, and a message with file and line when it is not so."""

import json
from pathlib import Path
from typing import Any

from bbnli_audit.core.errors import SuiteError


def read_object(path: Path, expected: str) -> dict[str, Any]:
    """Read one object.

    Args:
        path: The file.
        expected: What it must hold and where that is described, for the message.

    Raises:
        SuiteError: when the file cannot be read, is no JSON, names a key twice, or holds something else.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_refuse_duplicates)
    except OSError as exc:
        raise SuiteError(f"{path}: cannot be read: {exc.strerror}.") from exc
    except UnicodeDecodeError as exc:
        raise SuiteError(f"{path}: is not UTF-8 text (byte {exc.start}). Save it as UTF-8.") from exc
    except json.JSONDecodeError as exc:
        raise SuiteError(
            f"{path}:{exc.lineno}: is not valid JSON: {exc.msg} (column {exc.colno}). Mend that line."
        ) from exc
    except ValueError as exc:  # raised by _refuse_duplicates
        raise SuiteError(f"{path}: {exc}") from exc
    if not isinstance(data, dict):
        raise SuiteError(f"{path}: holds a {json_type(data)}; expected {expected}")
    return data


def json_type(value: object) -> str:
    """Name the type of a value in JSON's words."""
    names = {dict: "object", list: "list", str: "text", bool: "true/false", int: "number", float: "number"}
    return names.get(type(value), "null")


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        keys = [key for key, _ in pairs]
        double = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"key {double!r} stands there twice; only one can hold. Remove one.")
    return data
