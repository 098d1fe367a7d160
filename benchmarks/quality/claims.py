"""The paper's own claims: calibration removes the shift between members; right answers are surer."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from macr_local.calibration import MemberCalibration
from macr_local.evaluation.statistics.estimate import Estimate, Floats

RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Between:
    """Differences between the members' confidences in held-out questions, one window drawn from each.

    Attributes:
        f: One-way F (Eq. 2).
        eta2: Share of the variance that lies between the members; does not grow with the questions.
        null: 95th percentile of F where members are exchanged within each question.
    """

    f: float
    eta2: Estimate
    null: float


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Before and after standardising with mu and sigma of the other half of the questions.

    Attributes:
        questions: In the half that is looked at.
        raw: Of mean log-probabilities.
        standardised: Of z.
    """

    questions: int
    raw: Between
    standardised: Between


def held_out(calibrations: Mapping[str, MemberCalibration], window: int, seed: int = 0) -> HeldOut:
    """F before and after calibration, on questions that mu and sigma have not seen.

    Args:
        calibrations: By member's name.
        window: Tokens of a window.
        seed: Of the halves, the windows and the resampling.
    """
    rng = np.random.default_rng(seed)
    means = [
        dict(zip(c.keys, (_means(answer, window) for answer in c.logprobs), strict=True))
        for c in calibrations.values()
    ]
    shared = sorted(set.intersection(*({k for k, v in m.items() if len(v)} for m in means)))
    order = rng.permutation(len(shared))
    fit, held = ([shared[i] for i in half] for half in np.split(order, [len(shared) // 2]))
    raw = np.array([[rng.choice(member[key]) for member in means] for key in held])
    seen = [np.concatenate([member[key] for key in fit]) for member in means]
    mu, sigma = (np.array([f(values) for values in seen]) for f in (np.mean, lambda v: np.std(v, ddof=1)))
    return HeldOut(len(held), _between(raw, rng), _between((raw - mu) / sigma, rng))


def _means(logprobs: Floats, window: int) -> Floats:
    if len(logprobs) < window:
        return np.empty(0)
    return np.lib.stride_tricks.sliding_window_view(logprobs, window).mean(1)


def _between(values: Floats, rng: np.random.Generator) -> Between:
    """Of (questions, members)."""
    count = len(values)
    f, eta2 = _f(values[None])
    drawn = _f(values[rng.integers(0, count, (RESAMPLES, count))])[1]
    exchanged = rng.permuted(np.broadcast_to(values, (RESAMPLES, *values.shape)), axis=2)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Between(
        float(f[0]),
        Estimate(float(eta2[0]), float(low), float(high)),
        float(np.quantile(_f(exchanged)[0], 0.95)),
    )


def _f(values: Floats) -> tuple[Floats, Floats]:
    """F and eta squared of (sets, questions, members)."""
    _, n, k = values.shape
    groups, grand = values.mean(1), values.mean((1, 2))
    between = n * ((groups - grand[:, None]) ** 2).sum(1)
    within = ((values - groups[:, None]) ** 2).sum((1, 2))
    return (between / (k - 1)) / (within / (n * k - k)), between / (between + within)


def auroc(
    scores: Sequence[float], right: Sequence[bool], clusters: Sequence[Hashable], seed: int = 0
) -> Estimate:
    """How likely a right answer is surer than a wrong one, a tie being half; clusters are resampled.

    Args:
        scores: Confidences.
        right: Whether each answer is.
        clusters: What each belongs to.
        seed: Of the resampling.
    """
    values, truth = np.asarray(scores), np.asarray(right, dtype=bool)
    place = {name: number for number, name in enumerate(dict.fromkeys(clusters))}
    member = np.array([place[name] for name in clusters])
    above = np.sign(values[truth][:, None] - values[~truth][None, :]) / 2 + 0.5
    if not above.size:
        return Estimate(np.nan, np.nan, np.nan)
    rng = np.random.default_rng(seed)
    weights = rng.multinomial(len(place), np.full(len(place), 1 / len(place)), RESAMPLES).astype(float)
    won, lost = weights[:, member[truth]], weights[:, member[~truth]]
    with np.errstate(invalid="ignore"):
        drawn: NDArray[np.float64] = ((won @ above) * lost).sum(1) / (won.sum(1) * lost.sum(1))
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return Estimate(float(above.mean()), float(low), float(high))
