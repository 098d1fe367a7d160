"""What is compared: members alone, choices among finished answers, the relay; relays set otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from benchmarks.quality.trial import Method
from macr_local.settings import Confidence, RelaySettings

WINDOWS = (1, 2, 3, 4, 8, 16, 32)
THRESHOLDS = (-2.0, -1.0, -0.6, -0.3, 0.0, 0.2)
DOUBTING = (4, 8, 16, 32)
COOLDOWNS = (1, 2, 4, 8, 16)


def compared(members: Sequence[str], settings: RelaySettings) -> list[Method]:
    """Each member alone, the two ways to choose among finished answers, and the relay."""
    alone = [Method(name, "single", settings, name) for name in members]
    return [*alone, *(Method(name, name, settings) for name in ("vote", "best-of", "relay"))]


def windows(settings: RelaySettings) -> list[Method]:
    """The paper's confidence with windows shorter and longer than a weakness is far, and the first doubt."""
    ways: list[tuple[Confidence, int]] = [
        *(("mean", window) for window in (1, 3, 4, 8, 16)),
        *(("first-doubt", window) for window in (4, 8, 16)),
    ]
    return [
        Method(f"{confidence} w={window}", "relay", replace(settings, window=window, confidence=confidence))
        for confidence, window in ways
    ]


def sweep(members: Sequence[str], settings: RelaySettings) -> list[Method]:
    """Relays with w and tau in ranges, and with one thing changed at a time."""
    return list({method.name: method for method in _sweep(members, settings)}.values())


def _sweep(members: Sequence[str], settings: RelaySettings) -> Iterator[Method]:
    for window in WINDOWS:
        for threshold in THRESHOLDS:
            name = f"w={window} tau={threshold}"
            yield Method(name, "relay", replace(settings, window=window, threshold=threshold))
    for window in DOUBTING:
        for threshold in (-1.0, -0.3, 0.2):
            name = f"first-doubt w={window} tau={threshold}"
            doubting = replace(settings, window=window, threshold=threshold, confidence="first-doubt")
            yield Method(name, "relay", doubting)
    for cooldown in COOLDOWNS:
        yield Method(f"cooldown={cooldown}", "relay", replace(settings, cooldown=cooldown))
    yield Method("cooldown=w", "relay", replace(settings, cooldown=settings.window))
    yield Method("boundary=word", "relay", replace(settings, boundary="word"))
    yield Method("trial dropped", "relay", replace(settings, keep_trial=False))
    for name in members:
        yield Method(f"{name} first", "relay", replace(settings, initiation=name))
    for threshold in (-1.0, -0.5, -0.3, -0.2, -0.1):
        raw = replace(settings, threshold=threshold)
        yield Method(f"raw tau={threshold}", "relay", raw, raw=True)
    yield Method("order", "relay", replace(settings, selection="order"))
    yield Method("sentences", "relay", replace(settings, trigger="sentence"))
    yield Method("no relay", "relay", replace(settings, trigger="never"))
