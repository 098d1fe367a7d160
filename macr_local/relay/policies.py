"""Who starts, when to bid, who wins: the paper's rule, and the ablations of its Table 2."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from macr_local.protocol import Token
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


_CLOSERS = "\"'”’»)\\]*_」』】〉》）"
_LATIN_END = re.compile(rf"[.!?…][{_CLOSERS}]*$")
_CJK_END = re.compile(rf"[。！？｡][{_CLOSERS}]*$")
_NOT_AFTER_CJK = re.compile(rf"[.!?…。！？｡{_CLOSERS}\s]")


def begins_sentence(written: bytes, piece: bytes) -> bool:
    """Whether a sentence ends where ``written`` ends, as the piece that follows shows.

    ``.``, ``!``, ``?`` or an ellipsis, with closing quotes and brackets, ends a sentence when white space
    follows: at the end of what is written, or at the beginning of the piece. A tokenizer puts the space
    before the next word into that word's token, so the end of a sentence often shows only there. The CJK
    full stop, exclamation and question mark need no space; the piece must not be a part of the same ending.
    The piece belongs to the next sentence. A piece that holds both an end and a beginning is passed over.
    """
    text = written.decode("utf-8")
    after = piece.decode("utf-8", "ignore")
    if not after:
        return False
    ended = text.rstrip()
    if len(ended) < len(text):
        return bool((_LATIN_END.search(ended) or _CJK_END.search(ended)) and not after[:1].isspace())
    if _LATIN_END.search(text):
        return after[:1].isspace()
    return bool(_CJK_END.search(text)) and not _NOT_AFTER_CJK.match(after)


_SPACELESS = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
"""Thai, Lao, Burmese, Khmer, kana and ideographs are written without spaces: any letter may begin a word."""
_IN_WORD = re.compile(r"['’]?\w")


def goes_on(written: bytes, piece: bytes) -> bool:
    """Whether a piece goes on with the word that ``written`` ends in the middle of.

    Letters, digits and their marks make a word, and an apostrophe between two of them.
    """
    text = written.decode("utf-8")
    after = piece.decode("utf-8", "ignore")
    if not text or not after or _SPACELESS.match(text[-1]) or _SPACELESS.match(after[0]):
        return False
    if not _is_letter(text[-1]):
        return False
    return bool(_IN_WORD.match(after)) or unicodedata.category(after[0]).startswith("M")


def _is_letter(character: str) -> bool:
    return character.isalnum() or character == "_" or unicodedata.category(character).startswith("M")


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
