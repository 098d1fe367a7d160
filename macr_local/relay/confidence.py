"""Confidence: the mean log-probability of a window, standardised by the member's own history."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from macr_local.errors import CalibrationError


def mean(logprobs: Sequence[float]) -> float:
    """The mean log-probability (Eq. 1, 4), in nats; the sum is correctly rounded, whatever the order."""
    return math.fsum(logprobs) / len(logprobs)


def highest_mean(logprobs: Sequence[float], length: int) -> float:
    """The highest mean that a bid of at most ``length`` tokens which begins like this can still reach.

    Log-probabilities are at most 0, so the sum S only falls, and S / n is lowest in absolute value where the
    bid goes to its full length: no completion has a mean above S / length.

    The bound also holds in floating point, without a margin. `math.fsum` and division are correctly rounded,
    and correct rounding is monotonic: x <= y in exact arithmetic gives round(x) <= round(y). The sum of a
    completion is at most the sum of its beginning, so its rounded sum is too, and the same goes for the
    quotient. `Calibration.z` subtracts and divides by the same numbers on both sides, so it keeps the order.
    """
    return math.fsum(logprobs) / length


@dataclass(frozen=True, slots=True)
class Calibration:
    """One member's history of windows of one length (Section 2.1).

    Attributes:
        mu: Mean of the window means over the reference questions, in nats.
        sigma: Their standard deviation, in nats.
        window: w, the length of the windows in tokens.

    Raises:
        CalibrationError: sigma is not above 0, or a number is not finite.
    """

    mu: float
    sigma: float
    window: int

    def __post_init__(self) -> None:
        if not (math.isfinite(self.mu) and math.isfinite(self.sigma) and self.sigma > 0):
            raise CalibrationError(
                f"A calibration for w = {self.window} has mu {self.mu!r} and sigma {self.sigma!r}",
                "Calibrate on more questions: macr-local calibrate",
            )

    def z(self, mean: float) -> float:
        """The standardised mean (Eq. 3); never decreases as ``mean`` grows."""
        return (mean - self.mu) / self.sigma


class Window:
    """The log-probabilities of the last w tokens of one segment (Eq. 1)."""

    def __init__(self, size: int) -> None:
        self._logprobs: deque[float] = deque(maxlen=size)
        self._size = size

    def add(self, logprob: float) -> None:
        """A token joined the segment."""
        self._logprobs.append(logprob)

    def mean_with(self, logprob: float) -> float | None:
        """The mean of the window that ends with this token; None while the segment is shorter than w."""
        if len(self._logprobs) + 1 < self._size:
            return None
        return mean([*self._logprobs, logprob][-self._size :])
