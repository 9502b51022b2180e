"""Intervals of kappa and of the rank correlation: their variance another way, their room, and how often they hold."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm, spearmanr
from sklearn.metrics import cohen_kappa_score

from bbnli_audit.measures.statistics.association import kappa_interval, rank_interval
from bbnli_audit.measures.statistics.design import Design

Floats = NDArray[np.float64]


def design_of(n_premises: int, n_hypotheses: int, n_alike: int = 1) -> tuple[Design, NDArray[np.intp]]:
    """Every premise with every hypothesis, and the place of each pair in that crossing."""
    places = np.array([each for each in product(range(n_premises), range(n_hypotheses)) for _ in range(n_alike)])
    return Design.of(np.array([f"p{p:02d}/h{h:02d}" for p, h in places], dtype=object)), places


def alone(n: int) -> Design:
    return Design.of(np.array([f"c{each}" for each in range(n)], dtype=object))


def categories(strengths: Floats) -> NDArray[np.intp]:
    return (1 - np.sign(strengths)).astype(np.intp)


def draw(rng: np.random.Generator, places: NDArray[np.intp], spread: float, r: float, ties: float = 0.0) -> Floats:
    """Draw two models whose strengths correlate by r, in what premises, hypotheses and pairs add to them."""

    def part(n: int, size: float) -> Floats:
        one, other = rng.normal(size=(2, n))
        return size * np.column_stack([one, r * one + np.sqrt(1 - r**2) * other])

    found = part(places[:, 0].max() + 1, spread)[places[:, 0]] + part(places[:, 1].max() + 1, spread)[places[:, 1]]
    found = (found + part(len(places), 1.0)) / np.sqrt(1 + 2 * spread**2)
    return np.where(np.abs(found) < ties, 0.0, found)


def bounds(
    interval: Callable[[Any, Any, Design, float], tuple[float, float] | None], values: NDArray[Any], design: Design
) -> tuple[float, float] | None:
    return interval(values[:, 0], values[:, 1], design, 0.95)


def test_of_independent_pairs_the_interval_is_that_of_the_jackknife() -> None:
    rng = np.random.default_rng(3)
    one = rng.choice(3, 2000, p=[0.6, 0.1, 0.3])
    other = np.where(rng.random(2000) < 0.4, one, rng.choice(3, 2000, p=[0.3, 0.3, 0.4]))
    kappa = cohen_kappa_score(one, other)
    # Leaving out one pair changes kappa in the same way for all pairs of the same two categories.
    left = dict.fromkeys(product(range(3), repeat=2), 0.0)
    for a, b in left:
        place = int(np.flatnonzero((one == a) & (other == b))[0])
        left[a, b] = cohen_kappa_score(np.delete(one, place), np.delete(other, place))
    values = np.array([left[a, b] for a, b in zip(one.tolist(), other.tolist(), strict=True)])
    error = np.sqrt((len(one) - 1) / len(one) * ((values - values.mean()) ** 2).sum())
    found = kappa_interval(one, other, alone(2000), 0.95)
    assert found is not None
    assert found == pytest.approx((kappa - 1.96 * error, kappa + 1.96 * error), abs=0.005)


def test_of_independent_pairs_ranks_have_the_interval_of_bonett_and_wright() -> None:
    strengths = draw(np.random.default_rng(4), np.column_stack([np.arange(500)] * 2), 0.0, 0.5)
    r = spearmanr(*strengths.T).statistic
    reach = norm.ppf(0.975) * np.sqrt((1 + r**2 / 2) / 497)
    expected = np.tanh(np.arctanh(r) + np.array([-reach, reach]))
    found = bounds(rank_interval, strengths, alone(500))
    assert found is not None
    assert found == pytest.approx(expected, abs=0.01)


def test_pairs_that_repeat_each_other_count_once() -> None:
    design, places = design_of(10, 12)
    strengths = draw(np.random.default_rng(5), places, 0.5, 0.5)
    names = np.array([f"p{p:02d}/h{h:02d}" for p, h in places], dtype=object)
    twice = Design.of(np.concatenate([names, names]))
    for interval, values in ((kappa_interval, categories(strengths)), (rank_interval, strengths)):
        once = bounds(interval, values, design)
        again = bounds(interval, np.concatenate([values, values]), twice)
        assert once is not None
        assert again == pytest.approx(once, abs=0.03)


def test_full_agreement_leaves_room() -> None:
    design, places = design_of(5, 8)
    strengths = draw(np.random.default_rng(6), places, 0.0, 0.0)[:, 0]
    kappa = kappa_interval(categories(strengths), categories(strengths), design, 0.95)
    ranks = rank_interval(strengths, strengths, design, 0.95)
    opposite = rank_interval(strengths, -strengths, design, 0.95)
    assert kappa is not None
    assert 0.3 < kappa[0] < 0.9
    assert kappa[1] == 1
    assert ranks is not None
    assert ranks[0] < 0.9
    assert ranks[1] == pytest.approx(1)
    assert opposite == pytest.approx((-ranks[1], -ranks[0]))


def test_where_there_is_no_figure_there_is_no_interval() -> None:
    same = np.zeros(6, dtype=np.intp)
    assert kappa_interval(same, same, alone(6), 0.95) is None
    assert kappa_interval(same[:0], same[:0], alone(0), 0.95) is None
    assert rank_interval(same, np.arange(6), alone(6), 0.95) is None
    assert rank_interval([0, 1], [1, 0], alone(2), 0.95) is None


def test_one_cluster_tells_nothing() -> None:
    together = Design.of(np.array(["c0"] * 40, dtype=object))
    strengths = draw(np.random.default_rng(7), np.column_stack([np.arange(40)] * 2), 0.0, 0.5)
    assert bounds(rank_interval, strengths, together) == (-1.0, 1.0)
    kappa = bounds(kappa_interval, categories(strengths), together)
    assert kappa is not None
    assert kappa[0] < -0.5
    assert kappa[1] > 0.9


def test_subtopics_add_up() -> None:
    """Two subtopics with the same templates are two sets of templates; their names do not make them one."""
    _, places = design_of(8, 10)
    names = np.array([f"p{p:02d}/h{h:02d}" for p, h in places], dtype=object)
    rng = np.random.default_rng(8)
    strengths = np.concatenate([draw(rng, places, 1.0, 0.5) for _ in range(6)])
    apart = Design.of(np.tile(names, 6), np.repeat(np.arange(6), len(names)))
    for interval, values in ((kappa_interval, categories(strengths)), (rank_interval, strengths)):
        whole, part = bounds(interval, values, apart), bounds(interval, values[:80], Design.of(names))
        assert whole is not None
        assert part is not None
        assert (whole[1] - whole[0]) < 0.7 * (part[1] - part[0])


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.0, 0.5, 1.2])
@pytest.mark.parametrize(("r", "ties"), [(0.0, 0.0), (0.5, 0.0), (0.5, 0.7), (0.95, 0.7)])
def test_intervals_hold_as_often_as_they_say(spread: float, r: float, ties: float) -> None:
    """Other templates of the same kind: 10 premises with 15 hypotheses, two pairs of each; wider grids are in 0018."""
    rng = np.random.default_rng(11)
    design, places = design_of(10, 15, 2)
    many = draw(rng, np.column_stack([np.arange(200_000)] * 2), 0.0, r, ties)
    kappa, rank = cohen_kappa_score(*categories(many).T), spearmanr(*many.T).statistic
    holds = np.zeros((300, 2))
    for row in holds:
        strengths = draw(rng, places, spread, r, ties)
        found = bounds(kappa_interval, categories(strengths), design), bounds(rank_interval, strengths, design)
        for place, (truth, interval) in enumerate(zip((kappa, rank), found, strict=True)):
            assert interval is not None
            row[place] = interval[0] <= truth <= interval[1]
    assert holds.mean(axis=0).min() > 0.91, "0.91 is three standard errors below 0.95"
