"""The text of a regression test that does not pass: how much worse, how sure that is, and which pairs changed."""

from collections.abc import Iterator, Mapping, Sequence

from bbnli_audit.core.results.comparison import Change, Regression
from bbnli_audit.core.results.rows import Verdict
from bbnli_audit.reports.failure import HIDDEN

MOST_CHANGES = 10


def regression_headline(regression: Regression) -> str:
    """Say in one line how a measure changed since the baseline."""
    where = f"{regression.path}: {regression.measure}"
    if regression.verdict is Verdict.NO_DATA or regression.increase.value is None:
        return f"{where} cannot be compared: no pair of this subtopic is in the baseline"
    margin = f"the margin {regression.margin:.3f}"
    grew = f"{where} went from {regression.baseline:.3f} to {regression.candidate:.3f}"
    if regression.verdict is Verdict.FAIL:
        return f"{grew}, up by more than {margin}"
    if regression.verdict is Verdict.PASS:
        return f"{grew}, within {margin}"
    if regression.pairs_needed is None:
        return f"{grew}, too near {margin} for any number of pairs to decide"
    if regression.pairs_needed <= regression.n_shared:
        return f"{grew}, not shown to be within {margin} nor, corrected for the tests of this run, beyond it"
    return (
        f"{grew}, not shown to be within {margin} nor beyond it: about {regression.pairs_needed:,} pairs would decide, "
        f"{regression.n_shared:,} are shared"
    )


def regression_text(
    regression: Regression,
    baseline: str,
    *,
    n_tests: int,
    n_clusters: int,
    confidence: float,
    sentences: Mapping[str, Sequence[str]] | None,
) -> str:
    """Report one regression that does not pass.

    `baseline` names the baseline and its file; `n_tests` is how many tests the p value is corrected for. `sentences`
    has the lines to show below a pair, by pair id; None hides them.
    """
    found = regression.increase
    lines = [regression_headline(regression)]
    if found.value is not None:
        lines += [
            f"  increase {found.value:+.3f}, at least {found.low:+.3f} and at most {found.high:+.3f} (each bound at "
            f"{confidence:.0%}), on {regression.n_shared} shared pairs ({n_clusters} clusters)",
            f"  p {_p(regression.p_value)} if it had grown by the margin at most, {_p(regression.p_adjusted)} "
            f"corrected for {n_tests} tests (Holm); McNemar on the changed pairs {_p(regression.p_mcnemar)}",
        ]
    lines += [f"  margin: {regression.source}", f"  baseline: {baseline}"]
    lines += _changes("newly count", regression.flipped, sentences)
    lines += _changes("no longer count, or count less", regression.fixed, sentences)
    if sentences is None and (regression.flipped or regression.fixed):
        lines.append(f"  {HIDDEN}")
    return "\n".join(lines)


def _changes(what: str, changes: Sequence[Change], sentences: Mapping[str, Sequence[str]] | None) -> Iterator[str]:
    """List changed pairs by their labels, the pro side first, before and now."""
    n = len(changes)
    yield f"  {n} pair{'' if n == 1 else 's'} {what}{':' if n else ''}"
    for change in changes[:MOST_CHANGES]:
        yield f"    {change.pair_id} ({change.cluster}) {change.before} -> {change.after}"
        for line in (sentences or {}).get(change.pair_id, ()):
            yield f"      {line}"
    if n > MOST_CHANGES:
        yield f"    and {n - MOST_CHANGES} more (comparison in result.json)"


def _p(value: float) -> str:
    return "<0.0001" if value < 0.0001 else f"{value:.4f}"
