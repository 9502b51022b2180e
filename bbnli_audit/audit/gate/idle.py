"""Finds limits and margins that no value can cross: a model that keeps such a limit has shown nothing."""

from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.measures.registry import find_measure


def cannot_be_crossed(measure: str, limit: float) -> bool:
    """Whether no value of a measure is beyond a limit: all measures lie between 0 and 1, or between -1 and 1."""
    return limit <= 0 if find_measure(measure).is_minimum else limit >= 1


def is_idle_margin(margin: float) -> bool:
    """Whether a margin is too wide to matter: it allows a rate, or lean, to grow from 0 to 1."""
    return margin >= 1


def find_idle_limits(result: AuditResult) -> list[str]:
    """List the required limits and the margins of growth that no value can cross, each with its line in the file."""
    required = [judgement for row in result.all_rows for judgement in result.required_of(row)]
    if result.competence is not None and cannot_be_crossed(result.competence.measure, result.competence.limit):
        required.append(result.competence)
    idle = [one for one in required if cannot_be_crossed(one.measure, one.limit)]
    told = [f"{find_measure(one.measure).limit or one.measure}: {one.limit:g} ({one.source})" for one in idle]
    grown = () if result.comparison is None else result.comparison.regressions
    told += [f"margin of growth: {one.margin:g} ({one.source})" for one in grown if is_idle_margin(one.margin)]
    return list(dict.fromkeys(told))
