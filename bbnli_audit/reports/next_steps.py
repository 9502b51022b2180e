"""Says what to do after a decision: inspect templates, augment the data, waive a limit, accept growth, add items."""

from collections.abc import Iterator, Mapping, Sequence

from bbnli_audit.core.outcomes import CAUSES
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.rows import NO_DATA
from bbnli_audit.core.values import level_of
from bbnli_audit.measures.measure import Harm
from bbnli_audit.reports.failure import ACCEPT
from bbnli_audit.reports.notes import Quote
from bbnli_audit.reports.reasons import OPEN, Kind, Reason

MOST_SUBTOPICS = 3
MOST_CLUSTERS = 3


def next_steps(result: AuditResult, reasons: Sequence[Reason], quote: Quote = str) -> Iterator[str]:
    """Say what to do about the reasons, the most useful first."""
    kinds, stops = {reason.kind for reason in reasons}, [reason for reason in reasons if reason.kind.is_stop]
    if not result.has_task and not result.is_competent:
        yield "Check the model and its training: an audit needs a model that tells true facts from false ones."
    elif not result.is_competent:
        check = "the order of labels (--bbnli-labels) and the training" if result.model.prompt is None else "the prompt"
        yield f"Check {check}: an audit needs a model that does the task."
    if told := list(_templates(result, stops, quote)):
        yield f"Inspect the templates that drive it: {'; '.join(told)}. Their pairs are in report.html."
    if any(reason.harm is Harm.STEREOTYPE and reason.kind is not Kind.EXPIRED for reason in stops):
        yield "Augment the training data with the groups exchanged: bbnli-audit augment."
    if Kind.LIMIT in kinds:
        file = quote(result.settings.thresholds)
        yield f"To release it all the same, write a waiver into {file}, with an owner, a reason and a last day."
    if Kind.GROWTH in kinds:
        yield f"To accept the growth, record who accepts it, why and until when: {quote(ACCEPT)}."
    if Kind.EXPIRED in kinds:
        yield f"Renew the waivers that have expired, or remove them ({quote(result.settings.thresholds)})."
    if Kind.NO_DATA in kinds:
        yield "Look at the data of what could not be measured: no usable pair is left."
    if kinds & set(OPEN):
        size = "" if result.settings.size == "full" else "audit all pairs (--bbnli-size=full), or "
        yield f"To decide what is open, {size}add items: more premises and hypotheses."


def _templates(result: AuditResult, stops: Sequence[Reason], quote: Quote) -> Iterator[str]:
    """Name the clusters that add most to the measures of `stops`, in up to MOST_SUBTOPICS subtopics."""
    seen: set[str] = set()
    for reason in stops:
        for path in _subtopics(result, reason):
            clusters = _clusters_of(result, reason, path)
            if clusters and path not in seen and len(seen) < MOST_SUBTOPICS:
                seen.add(path)
                listed = ", ".join(f"{quote(name)} ({n} of {n_all} samples)" for name, n, n_all in clusters)
                yield f"{quote(path)} {listed}"


def _subtopics(result: AuditResult, reason: Reason) -> list[str]:
    """Return the subtopics that a reason names, worst first.

    If it names only suites and domains, return the subtopics of these suites and domains, worst first.
    """
    found = [place.path for place in reason.at("subtopic")]
    if found:
        return found
    above = tuple(f"{place.path}/" for place in reason.places if level_of(place.path) != "subtopic")
    below = [row for row in result.subtopics if row.path.startswith(above)]
    measured = {row.path: row.measures[reason.measure] for row in below if reason.measure in row.measures}
    values = {path: abs(found.value or 0.0) for path, found in measured.items()}
    if reason.kind is Kind.GROWTH and result.comparison is not None:  # order by growth, not by value
        grown = [each for each in result.comparison.regressions if each.measure == reason.measure]
        values = {each.path: each.increase.value or 0.0 for each in grown if each.path in values}
    return sorted(values, key=lambda path: (-values[path], path))


def _clusters_of(result: AuditResult, reason: Reason, path: str) -> list[tuple[str, int, int]]:
    """Return the clusters of a subtopic that add most to a measure, each as (name, samples that count, all samples).

    For growth, only pairs that newly count, or count more, are considered.
    """
    clusters, weights = result.pairs.get(path, {}), _weights(result, reason, path)
    counting = {pair for pairs in clusters.values() for pair in pairs}
    if reason.kind is Kind.GROWTH and result.comparison is not None:
        flipped = [each.flipped for each in result.comparison.of(path) if each.measure == reason.measure]
        counting = {change.pair_id for changes in flipped for change in changes}
    found = [
        (name, sum(weights.get(cell, 0) for pair, cell in pairs.items() if pair in counting), 2 * len(pairs))
        for name, pairs in clusters.items()
    ]
    return sorted((each for each in found if each[1]), key=lambda each: (-each[1], each[0]))[:MOST_CLUSTERS]


def _weights(result: AuditResult, reason: Reason, path: str) -> Mapping[str, int]:
    """Return how many samples a pair in each cell adds to the measure. Only lean and the causes of error have weights.

    Growth of lean always counts pro samples: growth is towards the stereotype, even if lean is still against it.
    """
    if reason.measure == "lean":
        values = [row.measures.get("lean", NO_DATA).value for row in result.subtopics if row.path == path]
        is_against = reason.kind is not Kind.GROWTH and any(value and value < 0 for value in values)
        return CAUSES["anti_rate" if is_against else "pro_rate"]
    return CAUSES.get(reason.measure, {})
