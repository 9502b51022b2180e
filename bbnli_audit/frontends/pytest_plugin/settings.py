"""Turns pytest's options and ini keys into the options of an audit."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bbnli_audit.core.errors import OptionError, ThresholdsError
from bbnli_audit.core.options import AuditOptions, find_options
from bbnli_audit.core.printable import printable

STORE_FILE = "predictions.sqlite"
FIXTURES = ("bbnli", "bbnli_model", "bbnli_answers", "bbnli_suite", "bbnli_level", "bbnli_regression")


def spell(name: str) -> str:
    return f"--bbnli-{name.replace('_', '-')}"


def get_setting(config: pytest.Config, name: str) -> str | None:
    """Return the value of an option. If it is not given, return that of the ini key of the same name."""
    option = config.getoption(f"bbnli_{name}", None)
    spelled = f"{spell(name)} (or --model)" if name == "model" else spell(name)
    if option is not None and not str(option).strip():
        raise pytest.UsageError(f"{spelled} is empty. Give a value, or leave the option out.")
    value = str(option or config.getini(f"bbnli_{name}") or "")
    if printable(value) != value:
        told = "has a line break, another control character, or bytes that are not UTF-8"
        raise pytest.UsageError(f"{spelled} {told}. Rename the file, or give another name.")
    return value or None


def is_strict(config: pytest.Config) -> bool:
    return bool(config.getoption("bbnli_strict", None) or config.getini("bbnli_strict"))


def is_audit(item: pytest.Item) -> bool:
    return any(fixture in getattr(item, "fixturenames", ()) for fixture in FIXTURES)


@dataclass(frozen=True, slots=True)
class _Reader:
    config: pytest.Config

    def is_option(self, name: str) -> bool:
        return self.config.getoption(f"bbnli_{name}", None) is not None

    def folder(self, name: str) -> Path:
        """Return the base of a relative path: pytest's start folder for an option, its root folder for an ini key."""
        return self.config.invocation_params.dir if self.is_option(name) else self.config.rootpath

    def path(self, name: str) -> Path | None:
        value = get_setting(self.config, name)
        return None if value is None else self.folder(name) / value

    def model(self, name: str) -> str | None:
        value = get_setting(self.config, name)
        beside_ini = None if value is None or self.is_option(name) else self.config.rootpath / value
        return str(beside_ini) if beside_ini is not None and beside_ini.is_dir() else value


def read_options(config: pytest.Config) -> AuditOptions:
    read = _Reader(config)
    paths = ("prompts", "baseline", "save_baseline", "report")
    texts = set(find_options()) - {*paths, "model", "also", "thresholds", "store"}
    values: dict[str, Any] = {name: get_setting(config, name) for name in texts}
    values |= {name: read.path(name) for name in paths}
    return AuditOptions(
        **values,
        model=read.model("model"),
        also=read.model("also"),
        thresholds=_find_thresholds(config, read),
        store=_find_store(config, read),
        data_folder=read.folder("data"),
        reveal=bool(config.getoption("bbnli_reveal")),
        extensions=_hook_extensions(config),
    )


def _find_thresholds(config: pytest.Config, read: _Reader) -> Path:
    base = config.rootpath
    path = Path(os.path.normpath(read.path("thresholds") or base / "thresholds.yaml"))
    if not path.exists() and config.invocation_params.dir != base:
        told = f"there is no such file. pytest's root folder is {base}, not the folder it was started in"
        advice = "if it took an option's value for a test path, write the option with '=': --model=PATH."
        raise ThresholdsError(f"{path}: {told}; {advice}")
    return path


def _find_store(config: pytest.Config, read: _Reader) -> Path | None:
    given = read.path("store")
    if config.getoption("bbnli_no_store"):
        if read.is_option("store"):
            raise OptionError(f"--bbnli-store={given} and --bbnli-no-store exclude each other. Leave one out.")
        return None
    # Without pytest's cache plugin (-p no:cacheprovider), predictions are kept only in a file that --bbnli-store names.
    cache = getattr(config, "cache", None)
    if given is None and cache is not None:
        try:
            folder = Path(cache.mkdir("bbnli"))
        except OSError:  # read-only folder, or a file of that name: the store reports it at the end
            folder = config.rootpath / config.getini("cache_dir") / "d" / "bbnli"
        return folder / STORE_FILE
    return given


def _hook_extensions(config: pytest.Config) -> tuple[Any, ...]:
    """Return what the hooks `pytest_bbnli_suites` and `pytest_bbnli_extensions` give."""
    from bbnli_audit.audit.extensions import from_hooks

    hook = config.hook
    return from_hooks(hook.pytest_bbnli_suites(config=config), hook.pytest_bbnli_extensions(config=config))
