"""A number with its interval, where questions about one image are not independent."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 4000
_CHUNK = 500
_Z = 1.959964

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its 95 % interval; NaN where the data say nothing."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"

    @property
    def triple(self) -> tuple[float, float, float]:
        """As plain numbers, rounded for tables."""
        return round(self.value, 4), round(self.low, 4), round(self.high, 4)


class Sums:
    """Columns of numbers, summed over each cluster.

    Args:
        clusters: (rows,) which cluster each row belongs to.
        columns: (rows, columns).
    """

    def __init__(self, clusters: Sequence[Hashable], columns: Sequence[Sequence[float]]) -> None:
        place = {name: number for number, name in enumerate(dict.fromkeys(clusters))}
        values = np.asarray(columns, dtype=np.float64)
        self._sums = np.zeros((len(place), values.shape[1]))
        np.add.at(self._sums, [place[name] for name in clusters], values)

    def estimate(self, statistic: Callable[[Floats], Floats], seed: int = 0) -> Estimate:
        """A statistic of the totals, with a percentile bootstrap over clusters.

        Args:
            statistic: Takes (..., columns) totals, gives (...) values.
            seed: Of the resampling.
        """
        rng = np.random.default_rng(seed)
        count = len(self._sums)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = float(statistic(self._sums.sum(0)))
            found = [
                statistic(
                    rng.multinomial(count, np.full(count, 1 / count), _CHUNK).astype(float) @ self._sums
                )
                for _ in range(RESAMPLES // _CHUNK)
            ]
        drawn = np.concatenate(found)
        drawn = drawn[np.isfinite(drawn)]
        if not math.isfinite(value) or not len(drawn):
            return Estimate(value, math.nan, math.nan)
        low, high = np.quantile(drawn, [0.025, 0.975])
        return Estimate(value, float(low), float(high))


def share(clusters: Sequence[Hashable], holds: Sequence[bool]) -> Estimate:
    """How often something holds.

    Where it always or never does, no resample differs, and the bootstrap would be sure of it: there the
    interval is Wilson's, with as many cases as there are clusters.
    """
    found = Sums(clusters, [(held, 1) for held in holds]).estimate(ratio())
    if 0 < found.value < 1:
        return found
    bound = len(set(clusters)) / (len(set(clusters)) + _Z**2)
    return Estimate(found.value, *((bound, 1.0) if found.value == 1 else (0.0, 1 - bound)))


def ratio(above: int = 0, below: int = 1) -> Callable[[Floats], Floats]:
    """One total by another."""
    return lambda totals: totals[..., above] / totals[..., below]
