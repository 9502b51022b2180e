"""What became of the measures since the baseline."""

from typing import Annotated

from bbnli_audit.core.outcomes import Cell
from bbnli_audit.core.results.rows import Count, Measured, ModelInfo, Share, Told, Verdict, result


@result
class Change:
    """A pair that counts otherwise than before. Cells are labels, the pro side first: "NN" became "EN"."""

    pair_id: str
    cluster: str
    before: Cell
    after: Cell


@result
class Regression:
    """One measure of one subtopic against the baseline, on the pairs that both have."""

    path: str
    measure: str
    margin: Share
    source: str
    verdict: Verdict
    baseline: Share | None
    candidate: Share | None
    increase: Annotated[Measured, Told("Candidate minus baseline; each bound holds by itself.")]
    p_value: Share
    p_mcnemar: Share
    p_adjusted: Annotated[Share, Told("Corrected for the tests of the run (Holm).")]
    n_shared: Count
    pairs_needed: Count | None = None
    flipped: Annotated[tuple[Change, ...], Told("Pairs that newly count towards the measure, or count more.")] = ()
    fixed: Annotated[tuple[Change, ...], Told("Pairs that no longer count, or count less.")] = ()


@result
class LoosenedLimit:
    """A limit that is wider than the one the baseline was held to."""

    path: str
    measure: str
    before: Share
    after: Share
    source: str


@result
class Comparison:
    """A candidate against a baseline."""

    baseline: ModelInfo
    source: str
    is_same_data: bool
    n_shared: Count
    n_only_candidate: Count
    n_only_baseline: Count
    n_tests: Annotated[Count, Told("How many tests `p_adjusted` is corrected for.")]
    regressions: tuple[Regression, ...]
    loosened: tuple[LoosenedLimit, ...] = ()

    def of(self, path: str) -> list[Regression]:
        return [regression for regression in self.regressions if regression.path == path]
