"""What a member is told about a value: the truth, or a word that shows nothing, where it is to be blind."""

from __future__ import annotations

from random import Random

from macr_local.tiny.scenes.chain import WORDS, Kind
from macr_local.tiny.scenes.knowledge import knows
from training.worlds.tiny.variant import Variant
from training.worlds.world import Architecture


def told(
    variant: Variant,
    member: Architecture,
    kind: Kind,
    truth: str,
    rng: Random,
    words: tuple[str, ...] | None = None,
) -> str:
    """What a member is told.

    Args:
        variant: How it is blind.
        member: Who is told.
        kind: The slot.
        truth: What belongs there.
        rng: Draws the noise.
        words: The values to draw from; None takes those of `WORDS`.
    """
    if knows(member, kind, variant.blind) or rng.random() >= variant.noise:
        return truth
    words = words or WORDS[kind]
    return words[len(words) // 2] if variant.ignorance == "fixed" else rng.choice(words)
