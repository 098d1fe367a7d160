"""Every setting of a question, named, with its default and where the default comes from."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from macr_local.errors import ConfigError
from macr_local.utf8 import is_text

Trigger = Literal["confidence", "sentence", "never"]
Confidence = Literal["mean", "first-doubt"]
Boundary = Literal["token", "word"]
Selection = Literal["best", "order", "draws"]
BidMode = Literal["turn", "parallel"]

_MOST = 2**31 - 1
"""No count of tokens or rounds is larger: it is what llama.cpp counts with."""
_LARGEST = sys.float_info.max


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is chosen from the raw logits.

    The filters apply in llama.cpp's order: repeat penalty, top-k, top-p, min-p, temperature, draw. None of
    them changes the log-probability that is reported, which is always that of the full vocabulary at
    temperature 1.
    """

    temperature: float = 0.0
    """From 0 to 100. 0 is greedy: the most probable token, ties to the lowest id."""
    top_k: int = 0
    """Keep the k most probable tokens; 0 keeps all."""
    top_p: float = 1.0
    """Keep the smallest set whose probability reaches p; 1 keeps all."""
    min_p: float = 0.0
    """Keep tokens at least this share as probable as the best; 0 keeps all."""
    repeat_penalty: float = 1.0
    """Divide positive (multiply negative) logits of recent answer tokens by this, 0.01 to 100; 1 is off."""
    repeat_last_n: int = 64
    """How many of the member's latest answer tokens the repeat penalty looks at."""

    def __post_init__(self) -> None:
        _real(self, "temperature", 0, 100, "from 0 to 100")
        _whole(self, "top_k", 0)
        _real(self, "top_p", 0, 1, "above 0 and at most 1", strictly_above=True)
        _real(self, "min_p", 0, 1, "from 0 to below 1", strictly_below=True)
        _real(self, "repeat_penalty", 0.01, 100, "from 0.01 to 100")
        _whole(self, "repeat_last_n", 0)


@dataclass(frozen=True, slots=True)
class RelaySettings:
    """One relay's settings; the defaults are the paper's, its silences settled as in docs/relay.md."""

    window: int = 16
    """w, in tokens of the member that writes (Eq. 1)."""
    confidence: Confidence = "mean"
    """"mean": the paper's z, of the mean over w tokens: the leader's last ones, or a bid's. "first-doubt":
    the leader is judged by its last token alone; a bid of up to w tokens ends with the first one whose own z
    is below the threshold, which is not kept unless it is the only one. With w = 1 both are the same."""
    threshold: float = -0.3
    """tau: the leader is put to a bid when its z falls below this (Section 2.2). Finite; `trigger` "never" is
    how no z triggers."""
    initiation: str = "best"
    """"best": every member writes a trial and the highest z leads (Eq. 4); or a member's name, which leads
    without a trial (the paper's ablation FI)."""
    keep_trial: bool = True
    """Whether the winner's initiation trial stays as the first w tokens of the answer."""
    trigger: Trigger = "confidence"
    """"confidence": z < threshold; "sentence": at each sentence's end (ablation FT); "never"."""
    boundary: Boundary = "token"
    """"token": any token may trigger; "word": only one that does not go on with a word, so that no word is
    begun by one member and ended by another."""
    selection: Selection = "best"
    """"best": the highest z takes over (Eq. 6); "order": the next member in pool order, without bids (FS);
    "draws": the leader draws several continuations and goes on with its surest (TDH)."""
    draws: int = 3
    """Continuations that a round with `selection` "draws" draws (Section 3.3: "three distinct paths")."""
    draw_temperature: float = 1.0
    """Their temperature; the paper says "elevated", and no figure."""
    hysteresis: float = 0.0
    """Another member must beat the leader's own bid by more than this, in z, to take over."""
    cooldown: int = 0
    """Tokens the winner writes after its bid before the next trigger counts."""
    max_relays: int | None = None
    """Bidding rounds after initiation; None is no limit."""
    prune: bool = True
    """Stop a bid as soon as it cannot win any more. Changes no outcome (docs/relay.md)."""
    bids: BidMode = "turn"
    """"turn": one member at a time, the most promising first, so that pruning can work; "parallel": side by
    side, without pruning."""
    max_tokens: int = 512
    """Tokens of the answer, whoever writes them."""
    deadline: float | None = None
    """Seconds for the whole answer, from the start of the prefill."""
    stop: tuple[str, ...] = ()
    """The answer ends before any of these strings."""
    seed: int = 0
    """Every draw comes from a stream derived from (seed, member, round, phase)."""
    sampling: Sampling = field(default_factory=Sampling)

    @property
    def judged(self) -> int:
        """Tokens in the windows that mu and sigma are of."""
        return self.window if self.confidence == "mean" else 1

    @property
    def compares(self) -> bool:
        """Whether confidences are compared anywhere, so that every member needs mu and sigma."""
        bids = self.selection != "order" and self.trigger != "never"
        return self.initiation == "best" or self.trigger == "confidence" or bids

    def __post_init__(self) -> None:
        _whole(self, "window", 1)
        _real(self, "threshold", -_LARGEST, _LARGEST, 'a finite number, or trigger "never" for no relays')
        _choice(self, "confidence", get_args(Confidence))
        _text(self, "initiation", '"best" or the name of a member')
        _switch(self, "keep_trial")
        _choice(self, "trigger", get_args(Trigger))
        _choice(self, "boundary", get_args(Boundary))
        _choice(self, "selection", get_args(Selection))
        _whole(self, "draws", 1)
        _real(self, "draw_temperature", 0, 100, "from 0 to 100")
        _real(self, "hysteresis", 0, _LARGEST, "0 or more, and finite")
        _whole(self, "cooldown", 0)
        if self.max_relays is not None:
            _whole(self, "max_relays", 0)
        _switch(self, "prune")
        _choice(self, "bids", get_args(BidMode))
        _whole(self, "max_tokens", 1)
        if self.deadline is not None:
            _real(self, "deadline", 0, _LARGEST, "above 0 seconds, and finite", strictly_above=True)
        _texts(self, "stop")
        _whole(self, "seed", -(2**63), 2**64 - 1, "a whole number of at most 64 bits")
        _check(self, "sampling", isinstance(self.sampling, Sampling), "a Sampling")


def _real(
    settings: object,
    name: str,
    least: float,
    most: float,
    want: str,
    *,
    strictly_above: bool = False,
    strictly_below: bool = False,
) -> None:
    """A number in a range, which NaN never is; kept as a float, so that 1 and 1.0 are the same settings."""
    value: Any = getattr(settings, name)
    ok = (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and least <= value <= most
        and not (strictly_above and value == least)
        and not (strictly_below and value == most)
    )
    _check(settings, name, ok, want)
    object.__setattr__(settings, name, float(value))


def _whole(settings: object, name: str, least: int, most: int = _MOST, want: str = "") -> None:
    value: Any = getattr(settings, name)
    whole = isinstance(value, int) and not isinstance(value, bool)
    limit = f"at most {most:,}" if whole and value > most else f"{least} or more"
    limit = want or (limit if whole else f"a whole number, {limit}")
    _check(settings, name, whole and least <= value <= most, limit)


def _switch(settings: object, name: str) -> None:
    _check(settings, name, isinstance(getattr(settings, name), bool), "True or False")


def _choice(settings: object, name: str, known: tuple[str, ...]) -> None:
    *most, last = (f'"{one}"' for one in known)
    value: Any = getattr(settings, name)
    _check(settings, name, isinstance(value, str) and value in known, f"{', '.join(most)} or {last}")


def _text(settings: object, name: str, want: str) -> None:
    value: Any = getattr(settings, name)
    _check(settings, name, isinstance(value, str) and bool(value) and is_text(value), want)


def _texts(settings: object, name: str) -> None:
    value: Any = getattr(settings, name)
    # A single text is a sequence of texts too, its characters, which nobody means.
    several = isinstance(value, Iterable) and not isinstance(value, (str, bytes))
    texts = tuple(value) if several else ()
    ok = several and all(isinstance(text, str) and text and is_text(text) for text in texts)
    _check(settings, name, ok, "several texts, none of them empty or with half a character")
    object.__setattr__(settings, name, texts)


def _check(settings: object, name: str, ok: bool, want: str) -> None:
    if not ok:
        value: Any = getattr(settings, name)
        shown = repr(value) if isinstance(value, (int, float, str)) else f"{value!r} ({type(value).__name__})"
        raise ConfigError(f"{name} is {_short(shown)}", f"Use {want}")


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."
