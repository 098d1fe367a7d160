"""The worlds by name."""

from __future__ import annotations

from training.worlds.easy_vqa.world import EasyVqaWorld
from training.worlds.scenes.world import ScenesWorld
from training.worlds.tiny.variant import VARIANTS
from training.worlds.tiny.world import TinyWorld
from training.worlds.world import World

_TINY = {"tiny" if name == "friendly" else f"tiny-{name}": name for name in VARIANTS}
NAMES = ("easy-vqa", "scenes", *_TINY)


def open_world(name: str, scale: float = 1.0) -> World:
    """Load or draw a world's training images.

    Args:
        name: One of `NAMES`.
        scale: Below 1, fewer scenes are drawn (a trial run needs few).
    """
    if name in _TINY:
        return TinyWorld(name, VARIANTS[_TINY[name]], count=max(64, round(16000 * min(1.0, scale))))
    if name == "scenes":
        return ScenesWorld(count=max(64, round(8000 * min(1.0, scale))))
    return EasyVqaWorld()
