"""Choosing w, tau and cooldown: every setting of a grid asks the same questions, and the best is kept."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from macr_local.errors import DataError, ImageError
from macr_local.evaluation.datasets.dataset import DataSet
from macr_local.evaluation.method import Method
from macr_local.evaluation.result import Result
from macr_local.evaluation.statistics.estimate import Estimate
from macr_local.evaluation.statistics.paired import Comparison, compare
from macr_local.images import load
from macr_local.settings import RelaySettings


@dataclass(frozen=True, slots=True)
class Setting:
    """One point of the grid."""

    window: int
    threshold: float
    cooldown: int

    @classmethod
    def of(cls, settings: RelaySettings) -> Setting:
        """The one that settings have."""
        return cls(settings.window, settings.threshold, settings.cooldown)

    @property
    def method(self) -> Method:
        """The relay with it; its run is called after it."""

        def change(settings: RelaySettings, member: str | None) -> RelaySettings:
            return replace(settings, window=self.window, threshold=self.threshold, cooldown=self.cooldown)

        return Method(str(self), "relay", None, change)

    def __str__(self) -> str:
        return f"w={self.window} tau={self.threshold:g} cooldown={self.cooldown}"


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of one setting.

    Attributes:
        setting: The setting.
        accuracy: Share of right answers, with its interval.
        written: Tokens written for an answer.
    """

    setting: Setting
    accuracy: Estimate
    written: float


@dataclass(frozen=True, slots=True)
class Choice:
    """The outcome.

    Attributes:
        best: The setting with the most right answers; of equals, the one that writes the fewest tokens.
        trials: All, in the grid's order.
        before: The setting that the pool had.
        gain: The best against that one, question by question; None where it is the same.
    """

    best: Trial
    trials: tuple[Trial, ...]
    before: Setting
    gain: Comparison | None


def grid(
    windows: Sequence[int], thresholds: Sequence[float], cooldowns: Sequence[int], before: Setting
) -> list[Setting]:
    """Every combination, and what the pool has now, each once."""
    return list(
        dict.fromkeys([*(Setting(*each) for each in product(windows, thresholds, cooldowns)), before])
    )


def choose(results: Sequence[tuple[Setting, Result]], before: Setting) -> Choice:
    """Choose by results that were judged by one scorer.

    Its accuracy is the best of many and so too high by itself: it is measured anew on other data.

    Raises:
        DataError: A setting has no answer.
    """
    by = dict(results)
    trials = tuple(_trial(setting, result) for setting, result in results)
    best = max(trials, key=lambda t: (t.accuracy.value, -t.written, t.setting == before))
    gain = compare(by[best.setting], by[before]) if best.setting != before else None
    return Choice(best, trials, before, gain)


def pixels(data: DataSet, ids: Collection[str] | None = None) -> Iterator[tuple[str, str]]:
    """Ids of items with the sha256 of each of their images' upright pixels, for images that can be read."""
    for item in data.items():
        if ids is None or item.id in ids:
            for image in item.images:
                try:
                    yield item.id, load(image).sha256
                except ImageError:
                    continue


def apart(tuned: Collection[str], data: DataSet) -> None:
    """See to it that no image of a data set was tuned on.

    Args:
        tuned: sha256 of upright pixels.
        data: What is to be evaluated.

    Raises:
        DataError: One was.
    """
    shared = {name for name, digest in pixels(data) if digest in tuned}
    if shared:
        raise DataError(
            f"{data.name} shows images that would be tuned on ({len(shared)} times, such as {min(shared)})",
            "Tune on other data, or on other items of it (--ids)",
        )


def _trial(setting: Setting, result: Result) -> Trial:
    if not result.judged or result.written is None:
        raise DataError(f"No answer with {setting} could be judged", "Give data with right answers")
    return Trial(setting, result.interval, result.written)
