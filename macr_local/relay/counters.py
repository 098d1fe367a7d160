"""What a question cost: counters per member, and the least that any such relay must decode."""

from __future__ import annotations

from dataclasses import dataclass, fields

from macr_local.protocol import PromptSize, Work


@dataclass(frozen=True, slots=True)
class Counters:
    """One member's counters for one question, or the sum of several."""

    prompt_text: int = 0
    """Text tokens of the prompt."""
    prompt_image: int = 0
    """Image cells of the prompt."""
    committed: int = 0
    """Tokens it wrote that joined the answer, an end token included."""
    discarded: int = 0
    """Tokens it wrote that did not: lost and pruned bids, dropped tokens."""
    ingested: int = 0
    """Tokens, in its own vocabulary, of other members' words that it took in."""
    images_encoded: int = 0
    """Images that went through its vision encoder; cached ones did not."""
    decoded: int = 0
    """Cells that went through a decode, counted by the member where it happens."""
    least: int = 0
    """The least that any relay with these proposals must decode (`Ledger`)."""
    reused: int = 0
    """Cells of the prompt that it still held, from a question that began the same way."""

    def __add__(self, other: Counters) -> Counters:
        return Counters(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Counters)))

    @property
    def tokens(self) -> int:
        """The paper's "Tokens": the prompt once, and every token written."""
        return self.prompt_text + self.prompt_image + self.written

    @property
    def written(self) -> int:
        """Tokens it wrote, whether they joined the answer or not."""
        return self.committed + self.discarded

    @property
    def work_ratio(self) -> float | None:
        """Decoded over the least: 1.0 when nothing was decoded twice or in vain. None before any decode."""
        return self.decoded / self.least if self.least else None


class Ledger:
    """Counts, for one member, what the relay asked of it; the only place where `Counters.least` is derived.

    A decode is needed for exactly one thing: the logits from which a next token is sampled. Logits are asked
    for when the prompt is prefilled, when a token is proposed, and when a bid starts (from the trunk's
    logits). To have them, every cell before them must have been decoded once. So what must be decoded is

    * the prompt's cells, once, but those that the member still held;
    * others' words and own accepted tokens, once, *if* logits behind them are asked for afterwards.

    The last token of a lost bid, the end token, the token that trips the threshold, and words that come after
    a member's last turn need no decode. Undoing a bid needs none either: the trunk's logits were there before
    it, and a member keeps them. What was accepted or ingested since the last logits is *waiting*.
    """

    def __init__(self) -> None:
        self._size = PromptSize(0, 0, 0)
        self._began = False
        self._written = 0
        self._committed = 0
        self._ingested = 0
        self._least = 0
        self._waiting = 0

    def prefilled(self, size: PromptSize) -> None:
        """The member holds the prompt."""
        self._size, self._began = size, True
        self._least += size.cells

    def ingested(self, tokens: int) -> None:
        """The member took in others' words."""
        self._ingested += tokens
        self._waiting += tokens

    def proposed(self) -> None:
        """The member sampled a token."""
        self._asked_for_logits()
        self._written += 1

    def accepted(self) -> None:
        """A proposed token was taken as written, in the trunk or in a bid."""
        self._waiting += 1

    def branched(self) -> None:
        """A bid started."""
        self._asked_for_logits()

    def dropped(self) -> None:
        """A bid was undone; what waited in it needs no decode any more."""
        self._waiting = 0

    def committed(self) -> None:
        """A token of the member joined the answer."""
        self._committed += 1

    def close(self, work: Work) -> Counters:
        """The counters, with what the member says it computed.

        A member that never held the prompt still tells of the question before.
        """
        work = work if self._began else Work()
        return Counters(
            prompt_text=self._size.text,
            prompt_image=self._size.image,
            committed=self._committed,
            discarded=self._written - self._committed,
            ingested=self._ingested,
            images_encoded=work.images_encoded,
            decoded=work.decoded,
            least=self._least - work.reused,
            reused=work.reused,
        )

    def _asked_for_logits(self) -> None:
        self._least += self._waiting
        self._waiting = 0
