"""Writes the texts of tests that fail on a limit or against the baseline: what a person needs to act, and no more."""

import math
from collections.abc import Iterator, Mapping, Sequence

from bbnli_audit.core.outcomes import CAUSES
from bbnli_audit.core.results.comparison import Change, Regression
from bbnli_audit.core.results.rows import Judgement, Measured, SubtopicResult, Verdict
from bbnli_audit.core.values import level_of
from bbnli_audit.core.words import counted, figure, signed_figure
from bbnli_audit.measures.drivers import Evidence
from bbnli_audit.measures.registry import find_measure
from bbnli_audit.reports.shown import counted_shared, interval, is_of_facts, short_name, tell_unseen

ACCEPT = "bbnli-audit baseline accept REPORT --owner WHO --reason WHY --expires DATE"
HIDDEN = "Sentences are hidden; --bbnli-reveal shows them."
MOST_CHANGES = 10
_TEMPLATES = (("premise", "premises"), ("hypothesis", "hypotheses"))
_CLUSTERS = (("cluster", "clusters"),)
Sentences = Mapping[str, Sequence[str]] | None  # pair id -> the lines below the pair; None if hidden


def failure_text(
    result: SubtopicResult, judgement: Judgement, evidence: Evidence, *, confidence: float, sentences: Sentences
) -> str:
    """Report a judgement that does not pass."""
    lines = [*_numbers(result, judgement, confidence), *_evidence(evidence, sentences)]
    return "\n".join([headline(result, judgement), *(f"  {line}" for line in lines)])


def headline(result: SubtopicResult, judgement: Judgement) -> str:
    """Tell the verdict in one line, with value and limit. If it is inconclusive, also say what would decide it."""
    measure, value = find_measure(judgement.measure), result.measures[judgement.measure].value
    where, limit = f"{result.path}: {measure.short}", figure(judgement.limit)
    if judgement.verdict is Verdict.NO_DATA or value is None:
        has_ties = result.n_pairs > 0 and measure.can_show is not None
        why = "most of its pairs are ties" if has_ties else "no usable pair is left"
        return f"{where} has no data: {why}, so nothing was measured against the limit {limit}"
    told = f"{where} {figure(value)}"
    if judgement.verdict is Verdict.PASS:
        return f"{told} crosses no limit ({limit}) on these pairs"
    if judgement.waiver is not None and judgement.waiver.is_expired:
        return f"{told} (limit {limit}): its waiver has expired"
    if judgement.verdict is Verdict.FAIL:
        if measure.is_two_sided and value < measure.even:
            return f"{told} is below its limit {figure(measure.mirror(judgement.limit))}"
        return f"{told} is {'below' if measure.is_minimum else 'above'} its limit {limit}"
    return f"{told} is INCONCLUSIVE against its limit {limit}: {what_would_decide(result, judgement)}"


def what_would_decide(result: SubtopicResult, judgement: Judgement) -> str:
    """Say why a verdict is inconclusive, or what would decide it."""
    if judgement.is_corrected:
        return "the interval lies beyond the limit, but not after the correction for all limits of this run (Holm)"
    value, needed = result.measures[judgement.measure].value, judgement.times_needed
    is_within = value is not None and find_measure(judgement.measure).excess(value, judgement.limit) <= 0
    if result.n_unseen and needed is None and is_within:
        pairs = "this pair" if result.n_unseen == 1 else "these pairs"
        return f"{tell_unseen(result)}; with {pairs} read in full, the limit could be crossed"
    return tell_needed(judgement.times_needed, result.n_templates)


def tell_needed(times: tuple[float, float] | None, n_templates: Sequence[int]) -> str:
    """Say how many more templates would bring a decision."""
    if times is None:
        return "too close to call"
    if not n_templates:
        return f"{_span(*times, '.1f', least=1)} times as many templates would decide"
    names = _TEMPLATES if len(n_templates) == 2 else _CLUSTERS
    more = [[math.ceil(n * (each - 1)) for each in times] for n in n_templates]
    told = " and ".join(
        f"{_span(low, high, ',')} more {names[high != 1]}" for (low, high), names in zip(more, names, strict=True)
    )
    return f"{'' if told.startswith('up to') else 'about '}{told} would decide"


def _span(low: float, high: float, form: str, least: float = 0) -> str:
    """Show a range. If it would begin at `least`, show only its upper end."""
    first, last = f"{low:{form}}", f"{high:{form}}"
    if first == last:
        return first
    return f"up to {last}" if low <= least else f"{first} to {last}"


def _numbers(result: SubtopicResult, judgement: Judgement, confidence: float) -> Iterator[str]:
    measured, counts = result.measures[judgement.measure], result.counts
    if measured.value is not None and measured.low is not None and measured.high is not None:
        measure = find_measure(judgement.measure)
        told = f"mean over {counted(measured.n, 'pair')}"
        if measure.unit == "samples":
            n_counted = round(measured.value * measured.n)
            told = f"{n_counted:,} of {counted(measured.n, 'sample')}"
            if measure.is_two_sided:
                told = f"a difference of {n_counted:+d} in {counted(measured.n, 'sample')}"
        yield (
            f"{told} ({counted(result.n_pairs, 'pair')} in {counted(result.n_clusters, 'cluster')}), "
            f"{confidence:.0%} interval {interval(measured)}"
        )
    if measured.value is not None and all(cause in result.measures for cause in CAUSES):
        yield (
            f"causes: pro {counts.n_pro} + anti {counts.n_anti} + brittle {counts.n_brittle} = "
            f"{counts.n_mispredicted} mispredicted of {result.n_samples}"
        )
        cells = "  ".join(f"{cell} {n}" for cell, n in result.outcomes.items() if n)
        yield f"outcomes (label on the pro side, on the anti side): {cells}"
    yield f"limit: {judgement.source}"
    if judgement.waiver is not None:
        yield f"waiver: {judgement.waiver}"
    if result.control_accuracy is not None:
        n_right = round(result.control_accuracy * result.n_controls)
        told = f"{n_right} of {result.n_controls} right ({figure(result.control_accuracy)})"
        yield f"controls (questions with a known answer): {told}"
    if result.n_identical or result.n_duplicates:
        duplicates = counted(result.n_duplicates, "duplicate")
        yield f"left out: {counted(result.n_identical, 'pair')} alike on both sides to the model, {duplicates}"
    if result.n_truncated:
        yield f"cut off: {counted(result.n_truncated, 'sample was', 'samples were')} longer than the model takes"


def _evidence(evidence: Evidence, sentences: Sentences) -> Iterator[str]:
    yield from evidence.notes
    if evidence.clusters:
        shares = ", ".join(f"{each.cluster} ({each.n_counted} of {each.n_samples})" for each in evidence.clusters)
        yield f"templates that drive it: {shares}"
    for pair_id, line in evidence.pairs.items():
        yield line
        yield from (f"  {sentence}" for sentence in (sentences or {}).get(pair_id, ()))
    if evidence.pairs and sentences is None:
        yield HIDDEN


def regression_headline(regression: Regression) -> str:
    """Tell in one line how a measure changed since the baseline."""
    where = f"{regression.path}: {short_name(regression.measure)}"
    if regression.waiver is not None and regression.waiver.is_expired:
        return f"{where}: the waiver for its growth has expired"
    if regression.verdict is Verdict.NO_DATA or regression.increase.value is None:
        return f"{where} cannot be compared: no pair of this {level_of(regression.path)} is in the baseline"
    margin = f"the margin {figure(regression.margin)}"
    grew = f"{where} went from {figure(regression.baseline)} to {figure(regression.candidate)}"
    if regression.verdict is Verdict.FAIL:
        accepted = regression.waiver.up_to if regression.waiver is not None else None
        more = f" and than the {figure(accepted)} that was accepted" if accepted and regression.is_beyond_waiver else ""
        return f"{grew}, up by more than {margin}{more}"
    if regression.verdict is Verdict.PASS:
        return f"{grew}, within {margin}"
    if regression.times_needed is None and regression.increase.value <= 0:
        return f"{grew}: too few templates to rule out growth beyond {margin}"
    if regression.times_needed is None:
        return f"{grew}: too close to {margin} to call"
    if regression.times_needed[0] <= 1 and regression.increase.value > regression.margin:
        return (
            f"{grew}: the growth is not shown to be within {margin}. After the correction for the tests of this run "
            "(Holm), it is not shown to be beyond the margin either"
        )
    needed = _span(*regression.times_needed, ".1f", least=1)
    return f"{grew}, not shown to be within {margin} nor beyond it: {needed} times as many templates would decide"


def regression_text(
    regression: Regression,
    baseline: str,
    *,
    n_tests: int,
    n_clusters: int,
    confidence: float,
    sentences: Sentences,
    below: Sequence[Regression] = (),
) -> str:
    """Report a regression that does not pass.

    `baseline` names the baseline and its file; `n_tests` is the number of tests that the p value is corrected for.
    `below` has the regressions in the subtopics of a suite or a domain, most growth first. The pairs that changed are
    listed only in the text of a subtopic.
    """
    found, has_facts, lines = regression.increase, is_of_facts(regression), []
    if found.value is not None:
        value, low, high = map(signed_figure, (found.value, found.low, found.high))
        clusters = "" if has_facts else f" ({counted(n_clusters, 'cluster')})"  # `n_clusters` counts clusters of pairs
        lines += [
            f"increase {value}, at least {low} and at most {high} (each bound at {confidence:.0%}), "
            f"on {counted_shared(regression)}{clusters}",
            f"p {_p(regression.p_value)} for growth of at most the margin ({_p(regression.p_adjusted)} after Holm's "
            f"correction for {counted(n_tests, 'test')}); McNemar on the {'facts' if has_facts else 'pairs'} that "
            f"changed: {_p(regression.p_mcnemar)}",
        ]
    lines += [f"margin: {regression.source}", f"baseline: {baseline}"]
    if regression.waiver is not None:
        lines.append(f"waiver: {regression.waiver}")
    if level_of(regression.path) != "subtopic":
        grown = ", ".join(f"{each.path} ({signed_figure(each.increase.value)})" for each in below)
        lines += [f"subtopics that grew most: {grown}"] if grown else []
    elif not has_facts:
        less = "pair no longer counts, or counts less", "pairs no longer count, or count less"
        lines += _changes("pair newly counts", "pairs newly count", regression.flipped, sentences)
        lines += _changes(*less, regression.fixed, sentences)
        if sentences is None and (regression.flipped or regression.fixed):
            lines.append(HIDDEN)
    lines += how_to_accept(regression)
    return "\n".join([regression_headline(regression), *(f"  {line}" for line in lines)])


def how_to_accept(regression: Regression) -> Iterator[str]:
    """Tell the two ways to let growth pass: a command, and a waiver written by hand."""
    yield f"to accept it: {ACCEPT}"
    file, known = regression.source.rpartition(":")[0] or "the threshold file", regression.increase.value
    up_to = "" if known is None or known <= 0 else f", up_to: {figure(math.ceil(known * 1000 - 1e-6) / 1000)}"
    place = f"subtopic: {regression.path}, measure: {short_name(regression.measure)}, waives: growth{up_to}"
    yield f"or write under 'waivers' in {file}: {{{place}, reason: WHY, owner: WHO, expires: DATE}}"


def _changes(one: str, many: str, changes: Sequence[Change], sentences: Sentences) -> Iterator[str]:
    """List pairs with their two labels before and now. The label of the pro side comes first."""
    n = len(changes)
    yield f"{counted(n, one, many)}{':' if n else ''}"
    for change in changes[:MOST_CHANGES]:
        yield f"  {change.pair_id} ({change.cluster}) {change.before} -> {change.after}"
        yield from (f"    {line}" for line in (sentences or {}).get(change.pair_id, ()))
    if n > MOST_CHANGES:
        yield f"  and {n - MOST_CHANGES} more (comparison in result.json)"


def _p(value: float) -> str:
    return "<0.0001" if value < 0.0001 else f"{value:.4f}"


def facts_text(name: str, facts: Measured, judgement: Judgement) -> str:
    """Say why a model that is read by its likelihoods is not shown to be competent."""
    if facts.value is None:
        return (
            "Competence cannot be measured: no control has a fact in a true and a false version, so nothing can PASS."
        )
    return (
        f"{name}: the model is not shown to find the true version of a fact likelier in more than "
        f"{figure(judgement.limit)} of the cases\n"
        f"  {figure(facts.value)} of {facts.n} facts of the controls, interval {interval(facts)}; 0.5 is chance\n"
        f"  limit: {judgement.source}\n"
        "  If a model cannot tell true from false, its preferences say nothing about bias. Its measures are reported, "
        "but none can PASS."
    )
