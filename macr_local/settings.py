"""Every setting of a question, named, with its default and where the default comes from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from macr_local.errors import ConfigError

Trigger = Literal["confidence", "sentence", "never"]
Selection = Literal["best", "order"]
BidMode = Literal["turn", "parallel"]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is chosen from the raw logits.

    The filters apply in llama.cpp's order: repeat penalty, top-k, top-p, min-p, temperature, draw. None of
    them changes the log-probability that is reported, which is always that of the full vocabulary at
    temperature 1.
    """

    temperature: float = 0.0
    """0 is greedy: the most probable token, ties to the lowest id."""
    top_k: int = 0
    """Keep the k most probable tokens; 0 keeps all."""
    top_p: float = 1.0
    """Keep the smallest set whose probability reaches p; 1 keeps all."""
    min_p: float = 0.0
    """Keep tokens at least this share as probable as the best; 0 keeps all."""
    repeat_penalty: float = 1.0
    """Divide positive (multiply negative) logits of recent answer tokens by this; 1 is off."""
    repeat_last_n: int = 64
    """How many of the member's latest answer tokens the repeat penalty looks at."""

    def __post_init__(self) -> None:
        _check("temperature", self.temperature, self.temperature >= 0, "0 or more")
        _check("top_k", self.top_k, self.top_k >= 0, "0 or more")
        _check("top_p", self.top_p, 0 < self.top_p <= 1, "above 0 and at most 1")
        _check("min_p", self.min_p, 0 <= self.min_p < 1, "from 0 to below 1")
        _check("repeat_penalty", self.repeat_penalty, self.repeat_penalty > 0, "above 0")
        _check("repeat_last_n", self.repeat_last_n, self.repeat_last_n >= 0, "0 or more")


@dataclass(frozen=True, slots=True)
class RelaySettings:
    """One relay's settings; the defaults are the paper's, its silences settled as in docs/relay.md."""

    window: int = 16
    """w, in tokens of the member that writes (Eq. 1)."""
    threshold: float = -0.3
    """tau: the leader is put to a bid when its z falls below this (Section 2.2)."""
    initiation: str = "best"
    """"best": every member writes a trial and the highest z leads (Eq. 4); or a member's name, which leads
    without a trial (the paper's ablation FI)."""
    keep_trial: bool = True
    """Whether the winner's initiation trial stays as the first w tokens of the answer."""
    trigger: Trigger = "confidence"
    """"confidence": z < threshold; "sentence": at each sentence's end (ablation FT); "never"."""
    selection: Selection = "best"
    """"best": the highest z takes over (Eq. 6); "order": the next member in pool order, without bids (FS)."""
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

    def __post_init__(self) -> None:
        _check("window", self.window, self.window >= 1, "1 or more")
        _check("hysteresis", self.hysteresis, self.hysteresis >= 0, "0 or more")
        _check("cooldown", self.cooldown, self.cooldown >= 0, "0 or more")
        _check("max_relays", self.max_relays, self.max_relays is None or self.max_relays >= 0, "0 or more")
        _check("max_tokens", self.max_tokens, self.max_tokens >= 1, "1 or more")
        _check("deadline", self.deadline, self.deadline is None or self.deadline > 0, "above 0 seconds")
        _check("trigger", self.trigger, self.trigger in ("confidence", "sentence", "never"),
               '"confidence", "sentence" or "never"')
        _check("selection", self.selection, self.selection in ("best", "order"), '"best" or "order"')
        _check("bids", self.bids, self.bids in ("turn", "parallel"), '"turn" or "parallel"')
        _check("stop", self.stop, all(self.stop), "strings that are not empty")


def _check(name: str, value: object, ok: bool, want: str) -> None:
    if not ok:
        raise ConfigError(f"{name} is {value!r}", f"Use {want}")
