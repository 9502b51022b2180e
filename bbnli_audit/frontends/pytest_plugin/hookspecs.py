"""Hooks that this plugin calls. A project can implement them in a conftest.py or a plugin (docs/extending.md)."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from bbnli_audit.audit.extensions import Extensions
    from bbnli_audit.suites.protocol import Suite


@pytest.hookspec
def pytest_bbnli_extensions(config: pytest.Config) -> "Extensions":  # type: ignore[empty-body]  # a declaration
    """Add suites, measures, kinds of models and reports of your own."""


@pytest.hookspec
def pytest_bbnli_suites(config: pytest.Config) -> "list[Suite]":  # type: ignore[empty-body]  # a declaration
    """Return a list of suites to add."""
