"""The keys of result.json. Checking a file that was read, and the JSON Schema for others, both come from here."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from bbnli_audit.core.results.audit import CELLS, Verdict
from bbnli_audit.core.results.second import LEANS

Share = Annotated[float, Field(ge=0, le=1)]
Signed = Annotated[float, Field(ge=-1, le=1)]
Count = Annotated[int, Field(ge=0)]
Cell = Literal["NN", "NC", "EN", "EC", "CN", "NE", "CE", "EE", "CC"]
assert set(CELLS) == set(Cell.__args__)  # type: ignore[attr-defined]  # a Literal's values are not in its type
Lean = Literal["PP", "PT", "PA", "TP", "TT", "TA", "AP", "AT", "AA"]
assert set(LEANS) == set(Lean.__args__)  # type: ignore[attr-defined]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Model(_Strict):
    """Which model was measured."""

    name: str
    fingerprint: str = Field(description="Made from the contents, never from the name.")
    kind: str
    backend: str
    dtype: str
    labels: list[str] = Field(description="What the outputs mean, in their order.")


class Suite(_Strict):
    name: str
    version: str
    sha256: str
    pairing: str


class Measure(_Strict):
    """A value with its interval and its denominator; null where there is no data, never 0."""

    value: Signed | None
    low: Signed | None
    high: Signed | None
    n: Count = Field(description="Samples, two a pair.")


class Waiver(_Strict):
    reason: str
    owner: str
    expires: str
    source: str
    is_expired: bool


class Judgement(_Strict):
    """A measure against a limit."""

    measure: str
    limit: Share
    verdict: Verdict = Field(strict=False, description="PASS says that no limit was crossed on these pairs.")
    source: str = Field(description="file:line of the limit.")
    pairs_needed: Count | None = Field(description="Pairs that would decide an open verdict.")
    waiver: Waiver | None


class Counts(_Strict):
    """Samples by cause of error."""

    n_pro: Count
    n_anti: Count
    n_brittle: Count
    n_mispredicted: Count


class Row(_Strict):
    """A subtopic, a domain, or the total."""

    path: str
    n_pairs: Count
    n_samples: Count
    n_clusters: Count
    outcomes: dict[Cell, Count] = Field(description="Pairs by the labels of their two sides, pro side first.")
    counts: Counts
    measures: dict[str, Measure]
    control_accuracy: Share | None
    n_controls: Count
    verdicts: list[Judgement]
    n_identical: Count = Field(description="Pairs left out because both sides have the same text.")
    n_duplicates: Count = Field(description="Pairs left out because they stood there before.")
    n_truncated: Count = Field(description="Samples longer than the model takes.")
    n_unparsed: Count = Field(description="Samples whose answer could not be read; their pairs are not measured.")


class Subtopic(Row):
    path: str = Field(pattern="^[^/]+/[^/]+/.+$", description="suite/domain/name")


class Skill(_Strict):
    probe_accuracy: Share | None
    control_accuracy: Share | None
    n_controls: Count
    best_constant: Share


class Agreement(_Strict):
    """A fast path against the exact one, on a sample of the texts."""

    n_checked: Count
    n_different: Count
    limit: Share


class Settings(_Strict):
    thresholds: str
    decide: Literal["bounds", "point"]
    confidence: Share
    inconclusive: Literal["warn", "fail"]
    skill: Skill
    versions: dict[str, str | None]
    not_audited: list[str] = Field(description="Subtopics of the suites that this run left out.")
    agreement: Agreement | None = None


class Change(_Strict):
    """A pair that counts otherwise than before."""

    pair_id: str
    cluster: str
    before: Cell
    after: Cell


class Regression(_Strict):
    """One measure of one subtopic against the baseline, on the pairs both have."""

    path: str
    measure: str
    margin: Share
    source: str
    verdict: Verdict = Field(strict=False)
    baseline: Share | None
    candidate: Share | None
    increase: Measure = Field(description="Candidate less baseline; each bound holds by itself.")
    p_value: Share
    p_mcnemar: Share
    p_adjusted: Share = Field(description="Corrected for the tests of the run (Holm).")
    n_shared: Count
    pairs_needed: Count | None
    flipped: list[Change] = Field(description="Pairs that newly count towards the measure, or count more.")
    fixed: list[Change] = Field(description="Pairs that no longer count, or count less.")


class LoosenedLimit(_Strict):
    path: str
    measure: str
    before: Share
    after: Share
    source: str


class Comparison(_Strict):
    """Against the baseline that was given."""

    baseline: Model
    source: str
    is_same_data: bool
    n_shared: Count
    n_only_candidate: Count
    n_only_baseline: Count
    n_tests: Count
    regressions: list[Regression]
    loosened: list[LoosenedLimit]


class AgreementRow(_Strict):
    """Two models on the same pairs, of one subtopic or of all; null where a figure is not defined on them."""

    path: str
    n_pairs: Count = Field(description="Pairs that both models could be measured on.")
    n_clusters: Count
    first: Measure = Field(description="Share of pairs on which the model leans pro, a tie counting half.")
    second: Measure = Field(description="The same of the second model.")
    leans: dict[Lean, Count] = Field(
        description="Pairs by the way each model leans, the audited one first: P pro, T tie, A anti."
    )
    agreement: Measure = Field(description="Share of pairs on which both lean the same way.")
    by_chance: Share | None = Field(description="The agreement that chance would give with these margins.")
    kappa: Signed | None = Field(description="Cohen's kappa.")
    rank_correlation: Signed | None = Field(description="Spearman's, of how strongly the two lean on each pair.")


class SecondModel(_Strict):
    """What a second model made of the pairs (--bbnli-also). It is held to no limit."""

    model: Model
    skill: Skill
    is_competent: bool
    measures: Annotated[list[str], Field(min_length=2, max_length=2)] = Field(
        description="Names of what first and second are in the rows."
    )
    n_only_first: Count = Field(description="Pairs that only the audited model could be measured on.")
    n_only_second: Count
    r_squared: Share | None = Field(description="Of the two columns of measures, over subtopics.")
    subtopics: list[AgreementRow]
    total: AgreementRow


class PromptDifference(_Strict):
    """A measure under two prompts, on the pairs whose four answers could be read."""

    measure: str
    first: Share | None
    second: Share | None
    difference: Measure = Field(description="Second less first, each pair compared with itself.")


class PromptRow(_Strict):
    """A model asked in two ways, in one subtopic or in all."""

    path: str
    n_pairs: Count = Field(description="Pairs whose four answers could be read.")
    n_clusters: Count
    n_changed: Count = Field(description="Samples whose answer changed.")
    n_unread: Count = Field(description="Samples with an answer that could not be read under one prompt or both.")
    sensitivity: Measure = Field(description="Share of samples whose answer changed, of those read under both.")
    differences: list[PromptDifference]


class SecondPrompt(_Strict):
    """What a second prompt changed (--bbnli-also-prompt)."""

    model: Model
    skill: Skill
    is_competent: bool
    prompts: Annotated[list[str], Field(min_length=2, max_length=2)] = Field(description="Names of the two prompts.")
    subtopics: list[PromptRow]
    total: PromptRow


class ResultFile(_Strict):
    """The result of an audit with bbnli-audit."""

    format: Literal[1]
    model: Model
    suites: list[Suite]
    settings: Settings
    subtopics: list[Subtopic]
    domains: list[Row]
    total: Row
    required: list[Annotated[list[str], Field(min_length=2, max_length=2)]] = Field(
        description="Path and measure of the limits that a test asked for; other verdicts are for information."
    )
    comparison: Comparison | None
    second_model: SecondModel | None = None
    second_prompt: SecondPrompt | None = None
    pairs: dict[str, dict[str, dict[str, Cell]]] = Field(
        description="What each pair showed: path of the subtopic, cluster, pair id, labels of the two sides."
    )


def json_schema() -> dict[str, Any]:
    """Give the JSON Schema of result.json."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **ResultFile.model_json_schema()}
