"""Which rates are decided with a chance of 80 %, at the level of a subtopic, a domain and the suite."""

from __future__ import annotations

import numpy as np

from bbnli_audit.measures.statistics.intervals import find_spreads
from benchmarks.limit_runs import LIMITS
from benchmarks.simulated_runs import CHUNK, CONFIDENCE, Effects, Floats, Layout, Random, bound_places

CHANCE = 0.8
RATES = np.concatenate([np.arange(0.005, 0.06, 0.005), np.arange(0.06, 0.2, 0.01), np.arange(0.2, 0.45, 0.02)])
LIMIT_VALUES = (0.05, 0.1, 0.2)


def decided(layout: Layout, effects: Effects, n_runs: int, random: Random) -> dict[str, Floats]:
    """Return for each level: (rates, limits, 3), the chances of PASS, of FAIL, and of FAIL as one limit of a run."""
    n_subtopics = len(layout.clusters)
    places = {
        "subtopic": layout.places,
        "domain of 4": [layout.place(range(at, at + 4)) for at in range(0, n_subtopics - 3, 4)],
        f"suite of {n_subtopics}": [(np.arange(len(layout.run)), layout.run)],
    }
    corrected = 1.0 - (1.0 - CONFIDENCE) / (n_subtopics * len(LIMITS))
    found = {level: np.zeros((len(RATES), len(LIMIT_VALUES), 3)) for level in places}
    for at, rate in enumerate(RATES):
        for n in [CHUNK] * (n_runs // CHUNK):
            values = layout.draw(float(rate), effects, n, random)
            spreads = find_spreads(values, layout.run)
            for level, here in places.items():
                plain = bound_places(here, values, spreads)
                strict = bound_places(here, values, spreads, corrected)
                for column, limit in enumerate(LIMIT_VALUES):
                    shares = (plain.high <= limit, plain.low > limit, strict.low > limit)
                    found[level][at, column] += np.array([each.mean() for each in shares]) * n / n_runs
    return found


def crossing(chances: Floats, *, is_rising: bool) -> float | None:
    """Return the rate at which the chance passes 80 %, between the rates that were simulated; None if it never does."""
    order = slice(None) if is_rising else slice(None, None, -1)
    rates, shares = RATES[order], np.maximum.accumulate(chances[order])
    place = int(np.searchsorted(shares, CHANCE))
    if place == len(shares) or place == 0:
        return None
    (low, high), (left, right) = shares[place - 1 : place + 1], rates[place - 1 : place + 1]
    return float(left + (right - left) * (CHANCE - low) / (high - low))


def rows(layout: Layout, effects: Effects, n_runs: int, random: Random) -> list[list[str]]:
    found = decided(layout, effects, n_runs, random)
    return [
        [
            f"{limit:.2f}",
            level,
            str(effects),
            *(
                "–" if rate is None else f"{rate:.3f}"
                for rate in (
                    crossing(chances[:, column, 0], is_rising=False),
                    crossing(chances[:, column, 1], is_rising=True),
                    crossing(chances[:, column, 2], is_rising=True),
                )
            ),
        ]
        for column, limit in enumerate(LIMIT_VALUES)
        for level, chances in found.items()
    ]
