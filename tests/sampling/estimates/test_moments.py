"""Over all possible samples of a design, estimated totals and variances are exactly unbiased."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from tidegate.sampling.estimates.moments import Moments, OrderedDraws
from tidegate.types import Array

CLUSTERS = ([3.0, -1.0, 4.0], [10.0], [0.5, 0.5], [7.0, 2.0])
CHANCES = (0.3, 0.9, 0.5, 1.0)


def moments(rows: list[tuple[int, float, float]], sizes: list[int] | None = None) -> Array:
    """The moments of rows (unit, probability, value) of one group; shuffled, since the order must not matter."""
    order = np.random.default_rng(len(rows)).permutation(len(rows))
    unit, chance, value = (np.array([row[i] for row in rows])[order] for i in range(3))
    reservoir = None if sizes is None else np.array(sizes)[unit.astype(int)]
    draws = OrderedDraws.of(np.zeros(len(rows), np.int64), unit.astype(np.int64), chance, reservoir, 1)
    found = draws.moments(value[draws.order])
    assert np.allclose(draws.totals(value[draws.order]), found.total)
    return np.array(found)[:, 0]


def test_poisson_clusters() -> None:
    """Also the third cumulant, and the covariance of total and variance."""
    expected = np.zeros(6)
    squares = cubes = together = 0.0
    truth = sum(map(sum, CLUSTERS))
    for drawn in product([False, True], repeat=len(CLUSTERS)):
        chance = float(np.prod([p if d else 1 - p for p, d in zip(CHANCES, drawn, strict=True)]))
        rows = [(i, CHANCES[i], y) for i, d in enumerate(drawn) if d for y in CLUSTERS[i]]
        if not chance:
            continue
        found = moments(rows)
        expected += chance * found
        squares += chance * (found[0] - truth) ** 2
        cubes += chance * (found[0] - truth) ** 3
        together += chance * (found[0] - truth) * found[1]
    by_name = Moments(*expected)
    assert by_name.total == pytest.approx(truth)
    assert by_name.variance == pytest.approx(squares)
    assert by_name.third == pytest.approx(cubes)
    assert by_name.covariance == pytest.approx(together)


def test_clusters_that_are_thinned() -> None:
    """The second half of a cluster has a lower probability, and is drawn only if the first half is."""
    later = (0.1, 0.6, 0.5, 0.4)
    outcomes = []
    for i, cluster in enumerate(CLUSTERS):
        half = (len(cluster) + 1) // 2
        first = [(i, CHANCES[i], y) for y in cluster[:half]]
        second = [(i, later[i], y) for y in cluster[half:]]
        chances = (1 - CHANCES[i], CHANCES[i] - later[i], later[i])
        outcomes.append(list(zip(chances, ([], first, [*first, *second]), strict=True)))
    total = variance = squares = 0.0
    truth = sum(map(sum, CLUSTERS))
    for outcome in product(*outcomes):
        chance = float(np.prod([p for p, _ in outcome]))
        found = moments([row for _, rows in outcome for row in rows])
        total += chance * found[0]
        variance += chance * found[1]
        squares += chance * (found[0] - truth) ** 2
    assert total == pytest.approx(truth)
    assert variance == pytest.approx(squares)


def test_results_drawn_independently_from_drawn_clusters() -> None:
    """Each result of a drawn cluster is held independently with probability `keep`."""
    keep, everything = 0.4, [(i, y) for i, cluster in enumerate(CLUSTERS) for y in cluster]
    total = variance = squares = 0.0
    truth = sum(y for _, y in everything)
    for drawn in product([False, True], repeat=len(CLUSTERS)):
        odds = float(np.prod([p if d else 1 - p for p, d in zip(CHANCES, drawn, strict=True)]))
        there = [(i, y) for i, y in everything if drawn[i]] if odds else []
        for held in product([False, True], repeat=len(there)):
            chance = odds * float(np.prod([keep if h else 1 - keep for h in held]))
            rows = [row for row, h in zip(there, held, strict=True) if h]
            shown = np.array([CHANCES[i] for i, _ in rows])
            unit, value = np.array([i for i, _ in rows], np.int64), np.array([y for _, y in rows])
            draws = OrderedDraws.of(np.zeros(len(rows), np.int64), unit, keep * shown, None, 1, shown)
            found = draws.moments(value[draws.order])
            total += chance * found.total[0]
            variance += chance * found.variance[0]
            squares += chance * (found.total[0] - truth) ** 2
    assert total == pytest.approx(truth)
    assert variance == pytest.approx(squares)


def test_merged_reservoirs_and_a_group_of_them() -> None:
    """Only results of one group count; the others are zeros."""
    strata = ([3.0, 1.0, 4.0, 1.5, 9.0], [20.0, 60.0, 50.0, 30.0])
    of_group = ([True, False, True, True, True], [True, True, False, True])
    sizes = [3, 2]
    truth = sum(
        y for ys, ours in zip(strata, of_group, strict=True) for y, our in zip(ys, ours, strict=True) if our
    )
    samples = [
        [[(h, n / len(ys), ys[i]) for i in places if ours[i]] for places in combinations(range(len(ys)), n)]
        for h, (ys, ours, n) in enumerate(zip(strata, of_group, sizes, strict=True))
    ]
    found = np.array([moments([*a, *b], sizes) for a, b in product(*samples)])
    assert found[:, 0].mean() == pytest.approx(truth)
    assert found[:, 1].mean() == pytest.approx(found[:, 0].var())


def test_higher_moments_of_a_reservoir_are_central() -> None:
    """Including the zeros of other groups: three of eight results are of this group."""
    chance, values = 0.4, [3.0, 1.0, 9.0]
    deviation = np.array([*values, 0, 0, 0, 0, 0]) / chance
    deviation -= deviation.mean()
    found = Moments(*moments([(0, chance, value) for value in values], [8]))
    out = 1 - chance
    assert found.third == pytest.approx(out * (out - chance) * (deviation**3).sum())
    assert found.covariance == pytest.approx(out**2 * (deviation**3).sum())
    assert found.fourth == pytest.approx(out**2 * (deviation**4).sum())
    assert found.draws == 3


def test_groups_are_independent() -> None:
    group = np.array([1, 0, 1, 0, 1])
    unit = np.array([5, 5, 5, 6, 7])
    chance = np.array([0.5, 0.5, 0.5, 0.25, 0.2])
    value = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    draws = OrderedDraws.of(group, unit, chance, None, 2)
    both = np.array(draws.moments(value[draws.order]))
    for g in (0, 1):
        ours = group == g
        alone = moments(
            list(zip(unit[ours].tolist(), chance[ours].tolist(), value[ours].tolist(), strict=True))
        )
        assert np.allclose(both[:, g], alone)
