"""Accepts growth: writes waivers into thresholds.yaml that say who accepts what, why and until when."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from typing import Any

from bbnli_audit.audit.gate.thresholds import Thresholds, parse_thresholds
from bbnli_audit.audit.gate.thresholds_edit import put_items, quote
from bbnli_audit.core.errors import OptionError, ResultError, ThresholdsError
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.comparison import Regression
from bbnli_audit.core.results.rows import Verdict
from bbnli_audit.core.values import Subtopic
from bbnli_audit.measures.registry import find_limited, find_measure


@dataclass(frozen=True, slots=True)
class Terms:
    """Who accepts growth, why, and until when."""

    owner: str
    reason: str
    expires: date


def find_growth(result: AuditResult, only: Sequence[str] = ()) -> list[Regression]:
    """Return the growth that stops a release and can be accepted.

    `only` has patterns. If there are any, return just the growth that at least one of the patterns matches. A pattern
    may match a path (bbnli/gender) or the name of a test (bbnli/gender-pro).
    """
    if result.comparison is None:
        told = f"{result.model.name} was not compared with a baseline, so no growth is known"
        raise ResultError(f"{told}. Audit it with --bbnli-baseline=FILE and --bbnli-report=DIR first.")
    stopping = result.settings.stopping
    found = [
        each
        for each in result.comparison.regressions
        if each.verdict in stopping and not each.is_waived and _is_growth(each)
    ]
    for pattern in only:
        if not any(_is_named(each, pattern) for each in found):
            grown = ", ".join(map(_name, found)) or "nothing"
            raise OptionError(f"--only={pattern} matches no growth that stops this release. What stops it: {grown}.")
    return [each for each in found if not only or any(_is_named(each, pattern) for pattern in only)]


def _is_growth(regression: Regression) -> bool:
    """Whether there is growth to accept. There is none if the test fails only because a waiver has expired."""
    grew = regression.increase.value or 0.0
    return grew > regression.margin or (regression.verdict is Verdict.INCONCLUSIVE and grew > 0)


def _name(regression: Regression) -> str:
    return f"{regression.path}-{find_measure(regression.measure).short}"


def _is_named(regression: Regression, pattern: str) -> bool:
    return any(fnmatchcase(name, pattern) for name in (regression.path, _name(regression)))


def make_waiver(regression: Regression, terms: Terms, accepted: str) -> dict[str, Any]:
    """Return a waiver that covers the measured growth, rounded up to three decimals. `accepted` names the model."""
    return {
        "subtopic": regression.path,
        "measure": find_measure(regression.measure).short,
        "waives": "growth",
        "up_to": math.ceil((regression.increase.value or 0.0) * 1000 - 1e-6) / 1000,
        "reason": terms.reason,
        "owner": terms.owner,
        "expires": terms.expires,
        "accepted": accepted,
    }


def write_waivers(
    text: str, waivers: Sequence[dict[str, Any]], thresholds: Thresholds, known: Iterable[Subtopic] = ()
) -> str:
    """Write waivers into the text of a threshold file, in place of earlier waivers for the same growth.

    `known` are subtopics that an earlier waiver may call by another name. The new text is read again to check that it
    has these waivers, and that all else is unchanged.
    """
    name, before = thresholds.name, thresholds.file.model_dump(exclude_unset=True)
    kept, items = list(before.get("waivers", ())), {}
    written = thresholds.waivers()
    places = {test: written.index(waiver) for test, waiver in thresholds.growth_waivers(known).items()}
    for waiver in waivers:
        place = places.get((waiver["subtopic"], find_limited(waiver["measure"]).name), len(kept))
        kept[place : place + 1] = [waiver]
        items[place] = _as_source(waiver)
    changed = put_items(text, "waivers", items, name)
    try:
        found = parse_thresholds(changed, name).file.model_dump(exclude_unset=True)
    except ThresholdsError:
        found = {}
    if found != {**before, "waivers": kept}:
        told = "the waivers cannot be written there (an anchor, or an unusual layout). Nothing was written"
        raise ThresholdsError(f"{name}: {told}. Add by hand:\n" + "\n".join(f"  - {each}" for each in items.values()))
    return changed


def _as_source(waiver: dict[str, Any]) -> str:
    """Write a waiver as YAML on one line."""
    plain = {key: quote(value) if isinstance(value, str) else str(value) for key, value in waiver.items()}
    plain |= {key: waiver[key] for key in ("measure", "waives")}
    return "{" + ", ".join(f"{key}: {value}" for key, value in plain.items()) + "}"
