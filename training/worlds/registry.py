"""The worlds by name."""

from __future__ import annotations

from training.worlds.easy_vqa.world import EasyVqaWorld
from training.worlds.scenes.world import ScenesWorld
from training.worlds.world import World

NAMES = ("easy-vqa", "scenes")


def open_world(name: str, scale: float = 1.0) -> World:
    """Load or draw a world's training images.

    Args:
        name: One of `NAMES`.
        scale: Below 1, fewer scenes are drawn (a trial run needs few).
    """
    if name == "scenes":
        return ScenesWorld(count=max(64, round(8000 * min(1.0, scale))))
    return EasyVqaWorld()
