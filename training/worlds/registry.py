"""The worlds by name: the pool that is shipped, and what it would be in other worlds."""

from __future__ import annotations

from training.worlds.tiny.variant import VARIANTS
from training.worlds.tiny.world import TinyWorld
from training.worlds.world import World

_VARIANTS = {"tiny" if name == "friendly" else f"tiny-{name}": name for name in VARIANTS}
NAMES = tuple(_VARIANTS)
SCENES = 16000


def open_world(name: str, scale: float = 1.0) -> World:
    """Load or draw a world's training images.

    Args:
        name: One of `NAMES`.
        scale: Below 1, fewer scenes are drawn (a trial run needs few).
    """
    return TinyWorld(name, VARIANTS[_VARIANTS[name]], count=max(64, round(SCENES * min(1.0, scale))))
