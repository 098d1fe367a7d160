"""Members that remember: the same words in the same place are computed once, whatever the settings are.

A sweep asks every question with many settings, and most of what members write is the same under most of
them. Greedy members have no memory beyond their text, so what one wrote once it would write again, bit for
bit: the path that led there is kept with all that decides the bits, which text was read at once included.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TypeVar

from macr_local.engine.member import LlamaMember
from macr_local.prompt import Prompt
from macr_local.protocol import Draw, PromptSize, Token, Work
from macr_local.settings import Sampling

T = TypeVar("T")
Step = Token | bytes | str
"""A token that was accepted, a text that was read, or "logits", "branch" or "adopt"."""


@dataclass(slots=True)
class _Node:
    """A place that a path led to."""

    next: dict[Step, _Node] = field(default_factory=dict)
    tokens: dict[tuple[bytes, ...], Token] = field(default_factory=dict)
    """What was proposed here, by what was forbidden."""


class RecallingMember:
    """Stands before a member and asks it only for what is new. Implements `Member`; greedy only.

    The member is asked nothing else while the question stays the same. What stands before it computes
    nothing by itself, so its `work` is empty: a sweep counts tokens, not decodes.
    """

    def __init__(self, member: LlamaMember) -> None:
        self._real = member
        self._prompt: Prompt | None = None
        self._root = _Node()
        self._lengths: dict[bytes, int] = {}
        self._done: list[Step] | None = None
        """What the real member has been led through; None before its prefill."""
        self._restart()

    def _restart(self) -> None:
        self._node, self._path, self._cells = self._root, list[Step](), 0
        self._trunk: tuple[_Node, int, int] | None = None

    # What it is.

    @property
    def name(self) -> str:
        """The member's."""
        return self._real.name

    @property
    def n_ctx(self) -> int:
        """The member's."""
        return self._real.n_ctx

    @property
    def room(self) -> int:
        """As it would be in the member."""
        return self.n_ctx - self._cells

    @property
    def work(self) -> Work:
        """None of its own."""
        return Work()

    @property
    def opens_thought(self) -> bool:
        """The member's."""
        return self._real.opens_thought

    # Member.

    def prepare(self, prompt: Prompt) -> PromptSize:
        """As the member."""
        return self._real.prepare(prompt)

    def begin(self, prompt: Prompt, sampling: Sampling, cancelled: Callable[[], bool]) -> None:
        """Begin anew; another prompt than the last one forgets everything."""
        assert sampling == Sampling(), "only greedy members can be recalled"
        if prompt is not self._prompt:
            self._prompt, self._root, self._done = prompt, _Node(), None
        self._restart()
        self._cells = self._real.prepare(prompt).cells

    def ingest(self, text: bytes) -> int:
        """Read a text."""
        if text not in self._lengths:
            self._lengths[text] = len(self._real._model.vocabulary.encode(text))
        self._go(text, self._lengths[text])
        return self._lengths[text]

    def propose(self, draw: Draw, forbid: Collection[bytes] = (), sampling: Sampling | None = None) -> Token:
        """Recall a token, or have it computed."""
        assert sampling in (None, Sampling()), "only greedy members can be recalled"
        if not self._path or self._path[-1] not in ("logits", "branch"):
            self._go("logits")
        forbidden = tuple(forbid)
        token = self._node.tokens.get(forbidden)
        if token is None:
            self._lead()
            token = self._node.tokens[forbidden] = self._real.propose(draw, forbidden)
        return token

    def accept(self, token: Token) -> None:
        """Take a token as written."""
        self._go(token, 1)

    def branch(self, length: int) -> None:
        """Start a bid."""
        self._trunk = self._node, len(self._path), self._cells
        self._go("branch")

    def adopt(self) -> None:
        """Keep the bid."""
        self._trunk = None
        self._go("adopt")

    def drop(self) -> None:
        """Forget the bid."""
        assert self._trunk is not None
        self._node, length, self._cells = self._trunk
        del self._path[length:]
        self._trunk = None

    def run(self, task: Callable[[], T]) -> T:
        """Run a task here."""
        return task()

    def submit(self, task: Callable[[], T]) -> Future[T]:
        """Run a task here, at once."""
        future: Future[T] = Future()
        future.set_result(task())
        return future

    def interrupt(self) -> None:
        """Interrupt the member."""
        self._real.interrupt()

    # The path.

    def _go(self, step: Step, cells: int = 0) -> None:
        self._path.append(step)
        self._cells += cells
        self._node = self._node.next.setdefault(step, _Node())

    def _lead(self) -> None:
        """Lead the real member to where this one stands, from where it stands itself if possible."""
        done, self._done = self._done, None  # unknown again, should something fail on the way
        if done is not None and done != self._path[: len(done)] and "branch" in done:
            at = len(done) - 1 - done[::-1].index("branch")
            if "adopt" not in done[at:] and done[:at] == self._path[:at]:
                self._real.drop()
                del done[at:]
        if done is None or done != self._path[: len(done)]:
            assert self._prompt is not None
            self._real.begin(self._prompt, Sampling(), lambda: False)
            done = []
        for step in self._path[len(done) :]:
            self._take(step)
        self._done = list(self._path)

    def _take(self, step: Step) -> None:
        if isinstance(step, Token):
            self._real.accept(step)
        elif isinstance(step, bytes):
            self._real.ingest(step)
        elif step == "branch":
            self._real.branch(0)
        elif step == "adopt":
            self._real.adopt()
        else:
            self._real.propose(lambda: 0.0)
