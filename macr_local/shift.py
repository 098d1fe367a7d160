"""How far apart the members' raw confidences lie, and how far after standardising, with intervals.

Overlapping windows of one answer are not independent, and every member answers the same questions. So one
window is drawn from each question, and intervals come from resampling questions, all members with them
(docs/calibration.md). The paper's F over all windows is given beside it, as a number only: without any shift
it is about w.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from macr_local.calibration import MemberCalibration

_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Gap:
    """The difference between two members, in standard deviations (Cohen's d), with a 95 % interval."""

    first: str
    second: str
    raw: float
    raw_interval: tuple[float, float]
    standardised: float
    """Of one half of the questions, with mu and sigma from all windows of the other half."""
    standardised_interval: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Shift:
    """The shift between the members of a pool for one window.

    Attributes:
        questions: Questions that all members answered with at least w tokens.
        gaps: One for each pair of members.
        f_one_window: One-way F over one window per question (Eq. 2).
        f_all_windows: The same over all overlapping windows, as the paper seems to have it.
    """

    questions: int
    gaps: tuple[Gap, ...]
    f_one_window: float
    f_all_windows: float


def shift(calibrations: Mapping[str, MemberCalibration], window: int, *, seed: int = 0) -> Shift | None:
    """Measure the shift between members.

    None with fewer than two members or eight shared questions, or where a member's windows are all alike.

    Args:
        calibrations: By member's name.
        window: w.
        seed: For the windows that are drawn, the halves and the resampling.
    """
    means = {name: _by_key(calibration, window) for name, calibration in calibrations.items()}
    shared = sorted(set.intersection(*(set(found) for found in means.values()))) if means else []
    if len(means) < 2 or len(shared) < 8:
        return None
    drawn = [
        np.array([_draw(found[key], name, key, seed) for key in shared]) for name, found in means.items()
    ]
    moments = [np.array([_moments(found[key]) for key in shared]) for found in means.values()]
    rng = np.random.default_rng(seed)
    everyone = rng.permutation(len(shared))
    fit, held = np.split(everyone, [len(shared) // 2])
    if any(_mu_sigma(member[fit])[1] <= 0 for member in moments):
        return None
    found = _distances(drawn, moments, everyone, fit, held)
    # mu and sigma are themselves estimates: each resample makes them anew, or the intervals were too narrow.
    spread = [
        _distances(drawn, moments, *(rng.choice(part, len(part)) for part in (everyone, fit, held)))
        for _ in range(_RESAMPLES)
    ]
    low, high = np.nanpercentile(spread, [2.5, 97.5], axis=0)
    gaps = tuple(
        Gap(first, second, float(raw), (float(a), float(b)), float(standardised), (float(c), float(d)))
        for (first, second), (raw, standardised), (a, c), (b, d) in zip(
            combinations(means, 2), found, low, high, strict=True
        )
    )
    pooled = [np.concatenate(list(found.values())) for found in means.values()]
    return Shift(len(shared), gaps, _f(drawn), _f(pooled))


def _distances(
    drawn: Sequence[NDArray[np.float64]],
    moments: Sequence[NDArray[np.float64]],
    everyone: NDArray[np.int64],
    fit: NDArray[np.int64],
    held: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Cohen's d of each pair, (pairs, 2): raw over everyone; of held, with mu and sigma from fit."""
    raw = [x[everyone] for x in drawn]
    standardised = []
    for x, member in zip(drawn, moments, strict=True):
        mu, sigma = _mu_sigma(member[fit])
        standardised.append((x[held] - mu) / sigma if sigma > 0 else np.full(len(held), np.nan))
    pairs = list(combinations(range(len(drawn)), 2))
    return np.array([(_d(raw[a], raw[b]), _d(standardised[a], standardised[b])) for a, b in pairs])


def _moments(means: NDArray[np.float64]) -> tuple[float, float, float]:
    return len(means), means.sum(), (means**2).sum()


def _mu_sigma(moments: NDArray[np.float64]) -> tuple[float, float]:
    """Mean and standard deviation (ddof = 1) over all windows of some questions, from (questions, 3)."""
    n, total, squares = moments.sum(axis=0)
    variance = (squares - total**2 / n) / (n - 1)
    return float(total / n), float(np.sqrt(variance)) if variance > 1e-12 * squares / n else 0.0


def _by_key(calibration: MemberCalibration, window: int) -> dict[str, NDArray[np.float64]]:
    answers = zip(calibration.keys, calibration.logprobs, strict=True)
    keys = [key for key, answer in answers if len(answer) >= window]
    return dict(zip(keys, calibration.windows(window), strict=True))


def _draw(means: NDArray[np.float64], name: str, key: str, seed: int) -> float:
    digest = hashlib.sha256(f"{seed} {name} {key}".encode()).digest()
    return float(means[int.from_bytes(digest[:8], "big") % len(means)])


def _d(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    pooled = np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / 2)
    return float((a.mean() - b.mean()) / pooled) if pooled != 0 else 0.0


def _f(groups: Sequence[NDArray[np.float64]]) -> float:
    everything = np.concatenate(groups)
    between = sum(len(g) * (g.mean() - everything.mean()) ** 2 for g in groups) / (len(groups) - 1)
    within = sum(((g - g.mean()) ** 2).sum() for g in groups) / (len(everything) - len(groups))
    return float(between / within) if within > 0 else float("nan")
