"""Simulated runs of 24 subtopics and six limits, in which no rate is above its limit: how many have a FAIL?"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.simulated_runs import (
    CHUNK,
    CONFIDENCE,
    Effects,
    Random,
    bound_differences,
    bound_subtopics,
    layout_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


class Limited(NamedTuple):
    """A measure with a limit. A difference of two shares has the share of pairs that count for either."""

    limit: float
    share: float | None = None


LIMITS: Mapping[str, Limited] = {  # those of thresholds.yaml
    "pro_rate": Limited(0.10),
    "anti_rate": Limited(0.10),
    "brittleness_rate": Limited(0.20),
    "lean": Limited(0.05, 0.15),
    "overreach": Limited(0.10, 0.25),
    "fact_gap": Limited(0.20, 0.40),
}


class Alarms(NamedTuple):
    """Of each run: has any limit a FAIL, after Holm's correction and without it?"""

    corrected: NDArray[np.bool_]
    plain: NDArray[np.bool_]


def any_fail(closeness: float, effects: Mapping[str, Effects], n_runs: int, random: Random) -> Alarms:
    """Draw runs in which every rate is this share of its limit.

    Holm's correction finds something exactly if the least p value is small enough for all limits of the run.
    """
    parts = [_any_fail(closeness, effects, min(CHUNK, n_runs - at), random) for at in range(0, n_runs, CHUNK)]
    return Alarms(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def _any_fail(closeness: float, effects: Mapping[str, Effects], n_runs: int, random: Random) -> Alarms:
    found = Alarms(np.zeros(n_runs, np.bool_), np.zeros(n_runs, np.bool_))
    n_limits = sum(len(layout_of(measure).clusters) for measure in LIMITS)
    levels = (1.0 - (1.0 - CONFIDENCE) / n_limits, CONFIDENCE)
    for measure, (limit, share) in LIMITS.items():
        layout, value = layout_of(measure), closeness * limit
        if share is None:
            values = layout.draw(value, effects[measure], n_runs, random)
            bounds = [bound_subtopics(layout, values, level) for level in levels]
        else:
            sides = layout.draw_signed(share, value, effects[measure], n_runs, random)
            is_pooled = measure != "fact_gap"
            bounds = [bound_differences(layout, *sides, level, is_pooled=is_pooled) for level in levels]
        for alarms, each in zip(found, bounds, strict=True):
            alarms |= (each.low > limit).any(axis=0)
    return found
