"""Who starts, when to bid, who wins: the paper's rule, and the ablations of its Table 2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from macr_local.protocol import Token
from macr_local.relay.boundaries import begins_sentence, goes_on
from macr_local.relay.events import BidReason
from macr_local.settings import RelaySettings

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Alarm:
    """Why a new round begins."""

    reason: BidReason
    mean: float | None = None
    z: float | None = None
    dropped: bytes = b""


def alarm(
    settings: RelaySettings, token: Token, mean: float | None, z: float | None, written: bytes
) -> Alarm | None:
    """When to bid: whether the token just proposed calls for a round, and is dropped.

    Args:
        settings: `trigger`, `threshold` and `boundary` are looked at.
        token: What the leader proposes.
        mean: Mean of the window that ends with it; None while the segment is shorter than w.
        z: The same, standardised (Eq. 5).
        written: The segment's text before it.
    """
    if settings.trigger == "confidence" and z is not None and z < settings.threshold:
        if settings.boundary == "word" and goes_on(written, token.text):
            return None
        return Alarm("confidence", mean, z, token.text)
    if settings.trigger == "sentence" and not token.is_end and begins_sentence(written, token.text):
        return Alarm("sentence", mean, z, token.text)
    return None


class Rank(NamedTuple):
    """What bids are compared by; no two of a round are equal."""

    score: float
    """z, plus the hysteresis for the leader."""
    leads: bool
    """On a tie the leader comes first,"""
    order: int
    """then pool order (negative places)."""


def rank(z: float, place: int, *, leads: bool, hysteresis: float) -> Rank:
    """Who wins: the highest rank (Eq. 6, ties settled). Never falls as z grows, in floating point too."""
    return Rank(z + hysteresis if leads else z, leads, -place)


def successors(pool: Sequence[T], leader: T | None) -> list[T]:
    """A fixed order (ablation FS): those after the leader, then those before it, itself at the end."""
    start = pool.index(leader) + 1 if leader is not None else 0
    return [*pool[start:], *pool[:start]]
