"""What is kept of one asked item: a line of JSON that can be scored again without any model."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from macr_local.errors import DataError
from macr_local.evaluation.item import Item
from macr_local.relay.answer import Answer
from macr_local.relay.counters import Counters


@dataclass(frozen=True, slots=True)
class Record:
    """One item, asked with one seed.

    Attributes:
        item: What was asked, without its images.
        seed: The run's seed; the draws came from it and from the item's id.
        text: The answer; empty where it failed.
        finish_reason: Why the answer ended.
        counters: What it cost, by member.
        relays: Bidding rounds after initiation.
        handovers: Those that another member won.
        seconds: Wall time.
        final: What each member's own whole answer came down to, where one of several was chosen.
        tied: Whether that choice was a tie.
        error: Why there is no answer; empty where there is one. A failed item is not a wrong one.
    """

    item: Item
    seed: int
    text: str = ""
    finish_reason: str = ""
    counters: Mapping[str, Counters] = field(default_factory=dict)
    relays: int = 0
    handovers: int = 0
    seconds: float = 0.0
    final: Mapping[str, str | None] = field(default_factory=dict)
    tied: bool = False
    error: str = ""

    @classmethod
    def of(cls, item: Item, seed: int, answer: Answer) -> Record:
        """Keep an answer."""
        return cls(
            item=replace(item, images=()),
            seed=seed,
            text=answer.text,
            finish_reason=answer.finish_reason,
            counters=answer.counters,
            relays=answer.relays,
            handovers=answer.handovers,
            seconds=answer.seconds,
            final={one.member: one.final for one in answer.answers if not one.step},
            tied=answer.chosen is not None and answer.chosen.tied,
        )

    @classmethod
    def failed(cls, item: Item, seed: int, error: str) -> Record:
        """Keep that an item could not be answered."""
        return cls(item=replace(item, images=()), seed=seed, error=error)

    @property
    def key(self) -> tuple[str, int]:
        """What is asked once in a run."""
        return self.item.id, self.seed

    @property
    def total(self) -> Counters:
        """The counters of all members together."""
        return sum(self.counters.values(), Counters())

    def encode(self) -> bytes:
        """As one line of JSON, without its end."""
        plain = asdict(self)
        del plain["item"]["images"]
        plain["item"]["row"] = _storable(plain["item"]["row"])
        return json.dumps(plain, allow_nan=False).encode()

    @classmethod
    def decode(cls, line: bytes, where: str) -> Record:
        """Read a line back.

        Raises:
            DataError: It is not what `encode` writes.
        """
        try:
            plain: dict[str, Any] = json.loads(line)
            item = plain.pop("item")
            item["groups"] = {name: tuple(values) for name, values in item["groups"].items()}
            counters = {name: Counters(**each) for name, each in plain.pop("counters").items()}
            return cls(item=Item(images=(), **item), counters=counters, **plain)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise DataError(
                f"{where} is damaged ({type(error).__name__})",
                "Remove that line, and its item is asked again",
            ) from None


def _storable(value: Any) -> Any:
    """A value of somebody's data file as JSON can hold it; what it cannot hold, as text."""
    if isinstance(value, dict):
        return {str(key): _storable(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_storable(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
