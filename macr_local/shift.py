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
    """After mu and sigma of one half of the questions are applied to the other half."""
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
        seed: For the windows that are drawn and for the resampling.
    """
    means = {name: _by_key(calibration, window) for name, calibration in calibrations.items()}
    shared = sorted(set.intersection(*(set(found) for found in means.values()))) if means else []
    if len(means) < 2 or len(shared) < 8:
        return None
    drawn = {
        name: np.array([_draw(found[key], name, key, seed) for key in shared])
        for name, found in means.items()
    }
    rng = np.random.default_rng(seed)
    half = rng.permutation(len(shared)) < len(shared) // 2
    if any(x[half].std() == 0 for x in drawn.values()):
        return None
    held_out = {name: (x[~half] - x[half].mean()) / x[half].std(ddof=1) for name, x in drawn.items()}
    picks = rng.integers(0, len(shared), (_RESAMPLES, len(shared)))
    held_picks = rng.integers(0, int((~half).sum()), (_RESAMPLES, int((~half).sum())))
    gaps = tuple(
        Gap(a, b, _d(drawn[a], drawn[b]), _interval(drawn[a], drawn[b], picks),
            _d(held_out[a], held_out[b]), _interval(held_out[a], held_out[b], held_picks))
        for a, b in combinations(means, 2)
    )  # fmt: skip
    pooled = [np.concatenate(list(found.values())) for found in means.values()]
    return Shift(len(shared), gaps, _f([*drawn.values()]), _f(pooled))


def _by_key(calibration: MemberCalibration, window: int) -> dict[str, NDArray[np.float64]]:
    answers = zip(calibration.keys, calibration.logprobs, strict=True)
    keys = [key for key, answer in answers if len(answer) >= window]
    return dict(zip(keys, calibration.windows(window), strict=True))


def _draw(means: NDArray[np.float64], name: str, key: str, seed: int) -> float:
    digest = hashlib.sha256(f"{seed} {name} {key}".encode()).digest()
    return float(means[int.from_bytes(digest[:8], "big") % len(means)])


def _d(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    pooled = np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / 2)
    return float((a.mean() - b.mean()) / pooled) if pooled > 0 else 0.0


def _interval(
    a: NDArray[np.float64], b: NDArray[np.float64], picks: NDArray[np.int64]
) -> tuple[float, float]:
    low, high = np.percentile([_d(a[pick], b[pick]) for pick in picks], [2.5, 97.5])
    return float(low), float(high)


def _f(groups: Sequence[NDArray[np.float64]]) -> float:
    everything = np.concatenate(groups)
    between = sum(len(g) * (g.mean() - everything.mean()) ** 2 for g in groups) / (len(groups) - 1)
    within = sum(((g - g.mean()) ** 2).sum() for g in groups) / (len(everything) - len(groups))
    return float(between / within) if within > 0 else float("nan")
