"""Two methods on the same questions: the difference, its interval, and what chance alone would do."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from macr_local.errors import DataError
from macr_local.evaluation.result import Judged, Result
from macr_local.evaluation.statistics.estimate import Estimate, Sums, ratio

Cost = Callable[[Judged], float]
FLIPS = 9_999
_CHUNK = 500


@dataclass(frozen=True, slots=True)
class McNemar:
    """One seed's discordant answers.

    Attributes:
        first: Right by the first method only.
        second: Right by the second only.
        p: Two-sided, exact (binomial); questions about one image count as independent here.
    """

    first: int
    second: int
    p: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """The first method against the second, on items that both have answered with the same seeds.

    Attributes:
        dataset: The data set.
        first: A method.
        second: The other.
        items: Items in common.
        clusters: Independent groups of them (one image, one figure).
        seeds: Seeds in common.
        left_out: Answers, of either, that have no counterpart.
        accuracies: Share of right answers, of the first and of the second.
        difference: The first's less the second's, with a bootstrap over clusters.
        p: Of that difference under sign flips of whole clusters, two-sided.
        mcnemar: By seed.
        tokens: The first's tokens by the second's, all prompts and all that was written.
        written: The same of tokens written.
    """

    dataset: str
    first: str
    second: str
    items: int
    clusters: int
    seeds: tuple[int, ...]
    left_out: int
    accuracies: tuple[float, float]
    difference: Estimate
    p: float
    mcnemar: Mapping[int, McNemar]
    tokens: Estimate
    written: Estimate


def compare(first: Result, second: Result) -> Comparison:
    """Compare two results of one data set under one scorer.

    Raises:
        DataError: They are not of one data set and scorer, or have no answer in common.
    """
    if (first.dataset, first.scorer) != (second.dataset, second.scorer):
        raise DataError(
            f"{first.dataset} ({first.scorer}) and {second.dataset} ({second.scorer}) cannot be compared",
            "Give runs of one data set",
        )
    ours, theirs = _by_key(first), _by_key(second)
    common = [key for key in ours if key in theirs]
    if not common:
        raise DataError(
            f"{first.method} and {second.method} have no answer to {first.dataset} in common",
            "Run both with the same --limit, --ids and --seeds",
        )
    pairs = [(ours[key], theirs[key]) for key in common]
    clusters = [one.record.item.cluster_or_id for one, _ in pairs]
    items: dict[str, int] = {}
    for item, _ in common:
        items[item] = items.get(item, 0) + 1
    # An item asked with more seeds than another weighs no more.
    weights = [1 / items[item] for item, _ in common]
    gains = [weight * (a.score.right - b.score.right) for weight, (a, b) in zip(weights, pairs, strict=True)]
    seeds = tuple(sorted({seed for _, seed in common}))
    return Comparison(
        dataset=first.dataset,
        first=first.method,
        second=second.method,
        items=len(items),
        clusters=len(set(clusters)),
        seeds=seeds,
        left_out=len(ours) + len(theirs) - 2 * len(common),
        accuracies=(_share(weights, [a for a, _ in pairs]), _share(weights, [b for _, b in pairs])),
        difference=Sums(clusters, list(zip(gains, weights, strict=True))).estimate(ratio()),
        p=sign_flip(clusters, gains),
        mcnemar={
            seed: _mcnemar(pair for key, pair in zip(common, pairs, strict=True) if key[1] == seed)
            for seed in seeds
        },
        tokens=_ratio(clusters, pairs, lambda one: one.record.total.tokens),
        written=_ratio(clusters, pairs, lambda one: one.record.total.written),
    )


def sign_flip(clusters: Sequence[Hashable], gains: Sequence[float], seed: int = 0) -> float:
    """How often chance gives a sum as large, were each cluster's gain as likely to be its opposite.

    Args:
        clusters: (rows,) which cluster each row belongs to; all of a cluster's rows flip together.
        gains: (rows,) differences.
        seed: Of the flips.

    Returns:
        p, two-sided; never 0, since the data themselves are one of the cases (1 / (`FLIPS` + 1) at least).
    """
    sums: dict[Hashable, float] = {}
    for cluster, gain in zip(clusters, gains, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + gain
    values = np.array([value for value in sums.values() if value])
    if not len(values):
        return 1.0
    rng = np.random.default_rng(seed)
    observed = abs(values.sum()) - 1e-9
    extreme = 0
    for start in range(0, FLIPS, _CHUNK):
        signs = rng.integers(0, 2, (min(_CHUNK, FLIPS - start), len(values))) * 2 - 1
        extreme += int((abs(signs @ values) >= observed).sum())
    return (1 + extreme) / (1 + FLIPS)


def mcnemar(first: int, second: int) -> float:
    """The exact two-sided p of McNemar's test: of b + c discordant answers, b or fewer on one side."""
    return float(stats.binomtest(first, first + second).pvalue) if first + second else 1.0


def holm(ps: Sequence[float]) -> list[float]:
    """Holm's adjusted p of each test of a family, in the order given."""
    adjusted, highest = [0.0] * len(ps), 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=lambda place: ps[place])):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[place]))
        adjusted[place] = highest
    return adjusted


def _by_key(result: Result) -> dict[tuple[str, int], Judged]:
    return {one.record.key: one for one in result.judged}


def _share(weights: Sequence[float], judged: Sequence[Judged]) -> float:
    right = sum(weight for weight, one in zip(weights, judged, strict=True) if one.score.right)
    return right / sum(weights)


def _mcnemar(pairs: Iterable[tuple[Judged, Judged]]) -> McNemar:
    first = second = 0
    for a, b in pairs:
        first += a.score.right and not b.score.right
        second += b.score.right and not a.score.right
    return McNemar(first, second, mcnemar(first, second))


def _ratio(clusters: Sequence[str], pairs: Sequence[tuple[Judged, Judged]], cost: Cost) -> Estimate:
    return Sums(clusters, [(cost(a), cost(b)) for a, b in pairs]).estimate(ratio())
