"""Settings of our own tests."""

import gc
import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

# Machines are shared and noisy: no deadline. In CI the examples are the same every time.
settings.register_profile("ours", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("ours"), derandomize=True)
# `make test-fast` draws fewer examples.
settings.register_profile("fast", settings.get_profile("ours"), max_examples=10)
settings.load_profile("ci" if os.environ.get("CI") == "true" else os.environ.get("BBNLI_TESTS", "ours"))

# The longest files begin first, so that two workers end together. A worker takes whole files, in the order collected.
LONGEST = ("unit/test_selftest.py", "unit/test_imports.py")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.path.as_posix().endswith(LONGEST))


def pytest_collection_finish() -> None:
    """Keep the collector of garbage off what all tests share: it runs at the end of each run that a test starts."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """End with the tests that were left out, and why: a machine without a browser must not hide it."""
    reasons: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", ()):
        where, _, reason = report.longrepr if isinstance(report.longrepr, tuple) else ("", 0, str(report.longrepr))
        reasons[f"{report.nodeid.rpartition('/')[0] or where}: {reason.removeprefix('Skipped: ')}"] += 1
    for reason, n in sorted(reasons.items()):
        terminalreporter.write_line(f"Left out: {n} test{'s' if n > 1 else ''} of {reason}", yellow=True)
