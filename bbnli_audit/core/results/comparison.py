"""Results that compare an audit with a baseline, a second model or a second prompt, on the same pairs."""

from collections.abc import Mapping
from typing import Annotated, Literal

from annotated_types import Ge, Le

from bbnli_audit.core.outcomes import Cell
from bbnli_audit.core.results.rows import (
    TIMES_NEEDED,
    Count,
    Measured,
    ModelInfo,
    Share,
    Signed,
    Skill,
    Told,
    Verdict,
    Waiver,
    result,
)

Doubled = Annotated[float, Ge(-2), Le(2)]
# Which way two models lean on a pair: pro (P), neither (T, a tie), anti (A). The first model's letter stands first.
Lean = Literal["PP", "PT", "PA", "TP", "TT", "TA", "AP", "AT", "AA"]
LEANS: tuple[Lean, ...] = ("PP", "PT", "PA", "TP", "TT", "TA", "AP", "AT", "AA")


@result
class Change:
    """A pair that counts differently towards a measure than in the baseline, with its cells before and after."""

    pair_id: str
    cluster: str
    before: Cell
    after: Cell


@result
class Growth(Measured):
    """The growth of a measure. Lean runs from -1 to 1, so it can grow by 2."""

    value: Doubled | None
    low: Doubled | None
    high: Doubled | None


NO_GROWTH = Growth(None, None, None, 0)


@result
class Regression:
    """One measure of a subtopic, a domain or a suite against the baseline, on the pairs that both results have."""

    path: str
    measure: str
    margin: Share
    source: str
    verdict: Verdict
    baseline: Signed | None
    candidate: Signed | None
    increase: Annotated[Growth, Told("Candidate minus baseline; each bound holds by itself.")]
    p_value: Share
    p_mcnemar: Share
    p_adjusted: Annotated[Share, Told("Corrected for the tests of the run (Holm).")]
    n_shared: Count
    times_needed: Annotated[tuple[float, float] | None, Told(TIMES_NEEDED)] = None
    flipped: Annotated[tuple[Change, ...], Told("Pairs that newly count towards the measure, or count more.")] = ()
    fixed: Annotated[tuple[Change, ...], Told("Pairs that no longer count, or count less.")] = ()
    waiver: Annotated[Waiver | None, Told("Growth that someone has accepted until a date.")] = None

    @property
    def is_waived(self) -> bool:
        """Whether a waiver is in force, is needed, and covers this much growth."""
        waiver = self.waiver
        if waiver is None or waiver.is_expired or self.verdict is Verdict.PASS:
            return False
        return not self.is_beyond_waiver

    @property
    def is_beyond_waiver(self) -> bool:
        """Whether the measure grew by more than its waiver accepts."""
        if self.waiver is None or self.waiver.up_to is None or self.increase.value is None:
            return False
        return self.increase.value > self.waiver.up_to


@result
class LoosenedLimit:
    """A limit that is wider than it was for the baseline."""

    path: str
    measure: str
    before: Share
    after: Share
    source: str


@result
class Comparison:
    """A candidate (the audited model) against a baseline."""

    baseline: ModelInfo
    source: str
    is_same_data: bool
    n_shared: Count
    n_only_candidate: Count
    n_only_baseline: Count
    n_tests: Annotated[Count, Told("How many tests `p_adjusted` is corrected for.")]
    regressions: tuple[Regression, ...]
    loosened: tuple[LoosenedLimit, ...] = ()
    is_unchanged: Annotated[bool, Told("The baseline is of the same model, so nothing can have grown.")] = False

    def of(self, path: str) -> list[Regression]:
        return [regression for regression in self.regressions if regression.path == path]


@result
class AgreementRow:
    """How far two models agree on the pairs of one subtopic, or of all subtopics. Undefined figures are null."""

    path: str
    n_pairs: Annotated[Count, Told("Pairs that both models could be measured on.")]
    n_clusters: Count
    first: Annotated[Measured, Told("Share of pairs on which the model leans pro; a tie counts half.")]
    second: Annotated[Measured, Told("Share of pairs on which the second model leans pro; a tie counts half.")]
    leans: Annotated[
        Mapping[Lean, Count], Told("Pairs by how each model leans, the audited one first: P pro, T tie, A anti.")
    ]
    agreement: Annotated[Measured, Told("Share of pairs on which both lean the same way.")]
    by_chance: Annotated[Share | None, Told("The agreement that chance would give with these margins.")]
    kappa: Annotated[Signed | None, Told("Cohen's kappa.")]
    rank_correlation: Annotated[Signed | None, Told("Spearman's, of how strongly the two lean on each pair.")]
    kappa_interval: Annotated[tuple[Signed, Signed] | None, Told("Confidence interval of kappa, from and to.")] = None
    rank_interval: Annotated[
        tuple[Signed, Signed] | None, Told("Confidence interval of the rank correlation, from and to.")
    ] = None


@result
class SecondModel:
    """How a second model reads the pairs (--bbnli-also). The second model is held to no limit."""

    model: ModelInfo
    skill: Skill
    is_competent: bool
    measures: Annotated[tuple[str, str], Told("The measures that the columns first and second hold.")]
    n_only_first: Annotated[Count, Told("Pairs that only the audited model could be measured on.")]
    n_only_second: Count
    r_squared: Annotated[Share | None, Told("The square of r. Earlier versions wrote only this.")]
    subtopics: tuple[AgreementRow, ...]
    total: AgreementRow
    r: Annotated[Signed | None, Told("Pearson's correlation of the two columns of measures, over subtopics.")] = None


@result
class PromptDifference:
    """A measure under two prompts, on the pairs whose four answers (two sides, two prompts) could be read."""

    measure: str
    first: Share | None
    second: Share | None
    difference: Annotated[Measured, Told("Second minus first, each pair compared with itself.")]


@result
class PromptRow:
    """One model asked with two prompts, on the pairs of one subtopic or of all subtopics."""

    path: str
    n_pairs: Annotated[Count, Told("Pairs whose four answers could be read.")]
    n_clusters: Count
    n_changed: Annotated[Count, Told("Samples whose answer changed.")]
    n_unread: Annotated[Count, Told("Samples with an answer that could not be read under one prompt or both.")]
    sensitivity: Annotated[
        Measured,
        Told(
            "Share of samples whose answer changed. An answer that is readable under only one prompt counts as changed."
        ),
    ]
    differences: tuple[PromptDifference, ...]


@result
class SecondPrompt:
    """What a second prompt changed (--bbnli-also-prompt)."""

    model: ModelInfo
    skill: Skill
    is_competent: bool
    prompts: Annotated[tuple[str, str], Told("Names of the two prompts.")]
    subtopics: tuple[PromptRow, ...]
    total: PromptRow
