"""What the plugin declares: options, derived from those of an audit, and fixtures."""

from typing import get_type_hints

import pytest

from bbnli_audit.core.options import AuditOptions, Option

FIXTURES = ("bbnli", "bbnli_model", "bbnli_answers", "bbnli_regression")


def find_options() -> dict[str, Option]:
    """Return the options of an audit by name. Each is --bbnli-NAME and the ini key bbnli_NAME."""
    hints = get_type_hints(AuditOptions, include_extras=True)
    found = {name: next(iter(getattr(hint, "__metadata__", ())), None) for name, hint in hints.items()}
    return {name: option for name, option in found.items() if isinstance(option, Option)}


def spell(name: str) -> str:
    return f"--bbnli-{name.replace('_', '-')}"


def get_setting(config: pytest.Config, name: str) -> str | None:
    """Read an option, or the ini key of the same name."""
    option = config.getoption(f"bbnli_{name}", None)
    if option is not None and not str(option).strip():
        raise pytest.UsageError(f"{spell(name)} (or --model) is empty. Give a value, or leave the option out.")
    value = option or config.getini(f"bbnli_{name}")
    return str(value) if value else None


def is_audit(item: pytest.Item) -> bool:
    return any(fixture in getattr(item, "fixturenames", ()) for fixture in FIXTURES)
