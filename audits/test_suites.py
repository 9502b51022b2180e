"""What suites bring of their own, such as the measures of their papers: with --bbnli-suite=occupations or winoqueer."""

from bbnli_audit import OneMeasureHandle


def test_suite(bbnli_suite: OneMeasureHandle) -> None:
    bbnli_suite.require()
