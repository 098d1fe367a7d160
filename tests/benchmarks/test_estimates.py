"""Intervals and tests, against naive ones and against SciPy's."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from benchmarks.quality.claims import _f, auroc
from macr_local.evaluation.statistics.estimate import Estimate, Sums, ratio, share


def naive_bootstrap(clusters: list[int], rows: list[tuple[float, float]], draws: int) -> tuple[float, float]:
    rng = np.random.default_rng(9)
    names = sorted(set(clusters))
    found = []
    for _ in range(draws):
        chosen = rng.choice(names, len(names))
        drawn = [row for name in chosen for c, row in zip(clusters, rows, strict=True) if c == name]
        found.append(sum(a for a, _ in drawn) / sum(b for _, b in drawn))
    low, high = np.quantile(found, [0.025, 0.975])
    return float(low), float(high)


def test_a_ratio_of_totals_with_an_interval_over_clusters() -> None:
    rng = np.random.default_rng(1)
    clusters = [i // 2 for i in range(80)]
    easy = rng.random(40) < 0.7
    rows = [(float(easy[c]), 1.0) for c in clusters]  # Both questions about an image go alike.
    found = Sums(clusters, rows).estimate(ratio())
    assert found.value == sum(a for a, _ in rows) / 80
    low, high = naive_bootstrap(clusters, rows, 2000)
    assert found.low == pytest.approx(low, abs=0.03)
    assert found.high == pytest.approx(high, abs=0.03)
    alone = Sums(range(80), rows).estimate(ratio())
    assert (found.high - found.low) / (alone.high - alone.low) == pytest.approx(math.sqrt(2), abs=0.2)


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(3)
    inside = 0
    for trial in range(200):
        images = rng.random(150) * 0.8
        rows = [(float(rng.random() < p), 1.0) for p in images for _ in range(2)]
        found = Sums([i // 2 for i in range(300)], rows).estimate(ratio(), seed=trial)
        inside += found.low <= 0.4 <= found.high
    assert 0.90 <= inside / 200 <= 0.985


def test_a_ratio_by_nothing_says_nothing() -> None:
    found = Sums([0, 1], [(1, 0), (2, 0)]).estimate(ratio())
    assert not math.isfinite(found.value)
    assert math.isnan(found.low)


def test_the_same_seed_gives_the_same_interval() -> None:
    sums = Sums(range(50), [(i % 3, 2) for i in range(50)])
    assert sums.estimate(ratio()) == sums.estimate(ratio())
    assert sums.estimate(ratio()) != sums.estimate(ratio(), seed=1)
    assert str(Estimate(0.5, 0.25, 0.75)) == "0.500 [0.250, 0.750]"


def test_auroc_is_the_share_of_pairs_in_order() -> None:
    rng = np.random.default_rng(4)
    right = rng.random(60) < 0.4
    scores = np.round(rng.normal(right * 0.8, 1.0), 1)  # Rounded, so that there are ties.
    found = auroc(scores.tolist(), right.tolist(), list(range(60)))
    pairs = [(a > b) + 0.5 * (a == b) for a, b in product(scores[right], scores[~right])]
    assert found.value == pytest.approx(sum(pairs) / len(pairs))
    u = stats.mannwhitneyu(scores[right], scores[~right]).statistic
    assert found.value == pytest.approx(u / (right.sum() * (~right).sum()))
    assert found.low < found.value < found.high
    assert math.isnan(auroc([1.0, 2.0], [True, True], [0, 1]).value)


def test_f_and_eta_squared_are_those_of_the_books() -> None:
    values = np.random.default_rng(5).normal([0, 0.3, 0.5], 1.0, (40, 3))
    f, eta2 = _f(values[None])
    assert f[0] == pytest.approx(stats.f_oneway(*values.T).statistic)
    total = ((values - values.mean()) ** 2).sum()
    between = 40 * ((values.mean(0) - values.mean()) ** 2).sum()
    assert eta2[0] == pytest.approx(between / total)


def test_what_always_holds_is_not_certain() -> None:
    always = share(list(range(20)), [True] * 20)
    interval = stats.binomtest(20, 20).proportion_ci(method="wilson")
    assert (always.value, always.high) == (1.0, 1.0)
    assert always.low == pytest.approx(interval.low, abs=1e-6)
    never = share([0, 0, 1, 1], [False] * 4)
    assert (never.value, never.low) == (0.0, 0.0)
    assert never.high == pytest.approx(stats.binomtest(0, 2).proportion_ci(method="wilson").high, abs=1e-6)
    assert share([0, 1, 2], [True, False, True]).value == pytest.approx(2 / 3)
