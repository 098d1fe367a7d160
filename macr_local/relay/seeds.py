"""One random stream for each thing that draws, so that nothing that happens elsewhere can shift it."""

from __future__ import annotations

import hashlib
import json
import random
from typing import Literal

from macr_local.protocol import Draw

Phase = Literal["bid", "lead"]
"""A bid's draws (one of several: its number), or those of a segment while its leader is monitored."""


def stream(seed: int, member: str, round: int, phase: Phase, number: int = 0) -> Draw:
    """Uniform numbers in [0, 1) that depend on these values and on nothing else.

    Neither pruning nor the order of bids nor threads can therefore change a draw. The JSON text of them
    is hashed, so that no two of them run into each other, and the same run draws the same numbers on every
    platform.
    """
    values = [seed, member, round, phase, *([number] if number else [])]
    key = json.dumps(values).encode("ascii")
    return random.Random(int.from_bytes(hashlib.sha256(key).digest(), "big")).random
