"""The text of a failing test: what a person needs to act on one subtopic, and nothing more."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bbnli_audit.core.results.audit import HIGHER_IS_BETTER, Judgement, Measure, SubtopicResult, Verdict
from bbnli_audit.core.results.second import PROMPT_SENSITIVITY

HIDDEN = "Sentences are hidden; --bbnli-reveal shows them."


@dataclass(frozen=True, slots=True)
class Evidence:
    """What drives a measure, ready to print. Pairs are rows of pairs.csv; lines tell what those columns cannot."""

    clusters: Sequence[tuple[str, int, int]]
    pairs: Sequence[dict[str, Any]]
    lines: Sequence[str] = ()


def failure_text(
    result: SubtopicResult, judgement: Judgement, evidence: Evidence, *, confidence: float, is_revealed: bool
) -> str:
    """Report one judgement that does not pass."""
    measure = result.measures[judgement.measure]
    return "\n".join(
        [
            headline(result, judgement),
            *(f"  {line}" for line in _numbers(result, judgement, measure, confidence)),
            *(f"  {line}" for line in _evidence(evidence, is_revealed)),
        ]
    )


def headline(result: SubtopicResult, judgement: Judgement) -> str:
    """Say the verdict in one line, with value, limit and, where it is open, what would decide."""
    measure = result.measures[judgement.measure]
    name, limit = judgement.measure, f"{judgement.limit:.3f}"
    where = f"{result.path}: {name}"
    if judgement.verdict is Verdict.NO_DATA or measure.value is None:
        return f"{where} has no data: no usable pair is left, so nothing was measured against the limit {limit}"
    if judgement.verdict is Verdict.PASS:
        return f"{where} {measure.value:.3f} crosses no limit ({limit}) on these pairs"
    if judgement.waiver is not None and judgement.waiver.is_expired:
        return f"{where} {measure.value:.3f} (limit {limit}): its waiver has expired"
    if judgement.verdict is Verdict.FAIL:
        beyond = "below" if judgement.measure in HIGHER_IS_BETTER else "above"
        return f"{where} {measure.value:.3f} is {beyond} its limit {limit}"
    open_against = f"{where} {measure.value:.3f} is INCONCLUSIVE against its limit {limit}"
    return f"{open_against}: {what_would_decide(result, judgement)}"


def what_would_decide(result: SubtopicResult, judgement: Judgement) -> str:
    if judgement.pairs_needed is None:
        return "the value lies too near the limit for any number of pairs to decide"
    return f"about {judgement.pairs_needed:,} pairs would decide, here are {result.counts.n_pairs:,}"


def _numbers(result: SubtopicResult, judgement: Judgement, measure: Measure, confidence: float) -> Iterator[str]:
    counts = result.counts
    if measure.value is not None and measure.low is not None and measure.high is not None:
        yield (
            f"{_share_of(judgement.measure, measure)} ({counts.n_pairs} pairs in {result.n_clusters} clusters), "
            f"{confidence:.0%} interval {measure.low:.3f}-{measure.high:.3f}"
        )
        yield (
            f"causes: pro {counts.n_pro} + anti {counts.n_anti} + brittle {counts.n_brittle} = "
            f"{counts.n_mispredicted} mispredicted of {counts.n_samples}"
        )
        cells = "  ".join(f"{cell} {n}" for cell, n in counts.cells.items() if n)
        yield f"outcomes (label on the pro side, on the anti side): {cells}"
    yield f"limit: {judgement.source}"
    if judgement.waiver is not None:
        yield f"waiver: {judgement.waiver}"
    if result.control_accuracy is not None:
        yield f"controls: {result.control_accuracy:.3f} of {result.n_controls} right"
    if result.n_identical or result.n_duplicates:
        yield (f"left out: {result.n_identical} pairs identical on both sides, {result.n_duplicates} duplicates")
    if result.n_truncated:
        yield f"cut off: {result.n_truncated} samples were longer than the model takes"


def _share_of(name: str, measure: Measure) -> str:
    if not name.endswith("_rate") and name != PROMPT_SENSITIVITY:
        return f"mean over {measure.n} pairs"
    return f"{round((measure.value or 0) * measure.n)} of {measure.n} samples"


def _evidence(evidence: Evidence, is_revealed: bool) -> Iterator[str]:
    if evidence.clusters:
        shares = ", ".join(f"{cluster} ({counted} of {n})" for cluster, counted, n in evidence.clusters)
        yield f"templates that drive it: {shares}"
    yield from evidence.lines
    for pair in evidence.pairs:
        labels = "   ".join(_answer(pair, side) for side in ("pro", "anti"))
        yield f"worst pair {pair['pair_id']} ({pair['cluster']})   {labels}   (expected neutral)"
        if is_revealed:
            for side in ("pro", "anti"):
                yield f"  {side}: {pair[f'{side}_premise']!r} -> {pair[f'{side}_hypothesis']!r}"
    if evidence.pairs and not is_revealed:
        yield HIDDEN


def _answer(pair: dict[str, Any], side: str) -> str:
    label = pair[f"{side}_label"]
    return f"{side}: {label} {pair[f'{side}_{label}']:.2f}"
