"""Hooks that this plugin calls and a project may implement."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bbnli_audit.suites.protocol import Suite


@pytest.hookspec
def pytest_bbnli_suites(config: pytest.Config) -> "Sequence[Suite]":  # type: ignore[empty-body]  # a declaration
    """Give further suites to audit (`bbnli_audit.suites.protocol.Suite`), in a conftest.py or a plugin."""
