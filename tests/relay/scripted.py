"""A member without a model: a script says what it would write, and it checks how it is treated.

It implements `protocol.Member` as strictly as the protocol is written: it decodes late, it undoes bids, it
computes on its own thread only, and any call out of turn is an assertion.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from macr_local.errors import ContextFull, EngineError
from macr_local.prompt import Prompt
from macr_local.protocol import Draw, PromptSize, Token, Work
from macr_local.relay.confidence import Calibration
from macr_local.settings import Sampling

T = TypeVar("T")


@dataclass(frozen=True)
class Choice:
    """One token that a script offers."""

    text: bytes
    logprob: float
    is_end: bool = False


Script = Callable[[tuple[bytes, ...]], Sequence[Choice]]
"""From a member's tokens of the answer so far (others' words as its own tokens) to what may come next."""

END = b"<end>"


def split(text: bytes) -> list[bytes]:
    """A tokenizer: two characters a token, so that a text cut elsewhere becomes other tokens."""
    characters = text.decode("utf-8")
    return [characters[i : i + 2].encode("utf-8") for i in range(0, len(characters), 2)]


def choose(choices: Sequence[Choice], greedy: bool, draw: Draw, forbid: Collection[bytes]) -> Choice:
    """What a member samples: the likeliest, or by a draw."""
    allowed = [choice for choice in choices if choice.text not in forbid or choice.is_end]
    if greedy:
        return max(allowed, key=lambda choice: choice.logprob)
    weights = [math.exp(choice.logprob) for choice in allowed]
    target = draw() * math.fsum(weights)
    for choice, weight in zip(allowed, weights, strict=True):
        if target < weight:
            return choice
        target -= weight
    return allowed[-1]


class ScriptedMember:
    """Writes what its script says.

    Args:
        name: Its name.
        script: What it writes.
        prompt: What a prompt takes in it.
        n_ctx: Cells of its context.
        opens_thought: Whether its prompt ends inside a thought.
        before: Called with a method's name and the member before the method does its work; may raise.
    """

    def __init__(
        self,
        name: str,
        script: Script,
        *,
        prompt: PromptSize | None = None,
        n_ctx: int = 100_000,
        opens_thought: bool = False,
        before: Callable[[str, ScriptedMember], None] = lambda method, member: None,
    ) -> None:
        self.name = name
        self.script = script
        self.size = prompt if prompt is not None else PromptSize(7, 4, 1)
        self.n_ctx = n_ctx
        self.opens_thought = opens_thought
        self.before = before
        self.calls: list[str] = []
        self.cache: list[bytes] = []
        self.pending: list[bytes] = []
        self.begun = self.interrupted = False
        self._proposed: list[Token] = []
        self._trunk: int | None = None
        self._length = 0
        self._decoded = self._encoded = self._depth = 0
        self._threads: ThreadPoolExecutor | None = None

    @property
    def room(self) -> int:
        return self.n_ctx - self.size.cells - len(self.cache) - len(self.pending)

    @property
    def work(self) -> Work:
        return Work(self._decoded, self._encoded)

    def prepare(self, prompt: Prompt) -> PromptSize:
        self._called("prepare")
        return self.size

    def begin(self, prompt: Prompt, sampling: Sampling, cancelled: Callable[[], bool]) -> None:
        self.cache, self.pending, self._proposed, self._trunk = [], [], [], None
        self._decoded = self._encoded = 0
        self._called("begin")
        self._greedy = sampling.temperature == 0
        self._decoded, self._encoded = self.size.cells, self.size.images
        self.begun = True

    def ingest(self, text: bytes) -> int:
        self._called("ingest")
        assert self._trunk is None, "words of others belong to the trunk"
        text.decode("utf-8")
        assert text, "there is nothing to ingest"
        tokens = split(text)
        self.pending += tokens
        return len(tokens)

    def propose(self, draw: Draw, forbid: Collection[bytes] = (), sampling: Sampling | None = None) -> Token:
        self._called("propose")
        self._decode()
        greedy = self._greedy if sampling is None else sampling.temperature == 0
        choice = choose(self.script(tuple(self.cache)), greedy, draw, forbid)
        identity = int.from_bytes(hashlib.sha256(choice.text).digest()[:3], "big")
        text = b"" if choice.is_end else choice.text
        token = Token(identity, text, choice.logprob, choice.is_end)
        self._proposed.append(token)
        return token

    def accept(self, token: Token) -> None:
        self._called("accept")
        assert any(token is one for one in self._proposed), "only what was proposed can be accepted"
        assert not token.is_end, "an end token is never written"
        self.pending.append(token.text)

    def branch(self, length: int) -> None:
        self._called("branch")
        assert self._trunk is None, "a bid is open already"
        self._decode()
        self._trunk, self._length = len(self.cache), length

    def adopt(self) -> None:
        self._called("adopt")
        assert self._trunk is not None, "no bid is open"
        assert len(self.cache) + len(self.pending) - self._trunk <= self._length, "the bid is too long"
        self._trunk = None

    def drop(self) -> None:
        self._called("drop")
        assert self._trunk is not None, "no bid is open"
        del self.cache[self._trunk :]
        self.pending, self._trunk = [], None

    def run(self, task: Callable[[], T]) -> T:
        self._depth += 1
        try:
            return task()
        finally:
            self._depth -= 1

    def submit(self, task: Callable[[], T]) -> Future[T]:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(1)
        return self._threads.submit(self.run, task)

    def interrupt(self) -> None:
        self.interrupted = True

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown()

    def _called(self, method: str) -> None:
        assert self._depth > 0, f"{method} was called outside the member's thread"
        assert self.begun or method in ("prepare", "begin")
        self.calls.append(method)
        self.before(method, self)

    def _decode(self) -> None:
        if self.room < 0:
            raise ContextFull(f"{self.name} is full")
        self._decoded += len(self.pending)
        self.cache += self.pending
        self.pending = []


def says(write: Callable[[str], tuple[str, float]]) -> Script:
    """A script with one choice at a time: from the text so far to the next token and its log-probability."""

    def script(tokens: tuple[bytes, ...]) -> list[Choice]:
        text, logprob = write(b"".join(tokens).decode("utf-8", "ignore"))
        return [Choice(text.encode("utf-8"), logprob, is_end=text == END.decode())]

    return script


def reads(*tokens: tuple[str | bytes, float]) -> Script:
    """A script that writes these tokens one after the other, whatever others wrote, then ends.

    The place is found by the text, so every token must stand where it would be written.
    """

    def script(so_far: tuple[bytes, ...]) -> list[Choice]:
        text, before = b"".join(so_far), b""
        for token, logprob in tokens:
            piece = token if isinstance(token, bytes) else token.encode("utf-8")
            if before == text:
                return [Choice(piece, logprob, is_end=piece == END)]
            before += piece
        return [Choice(END, -0.01, is_end=True)]

    return script


VOCABULARY = (
    *(
        b"a",
        b"b",
        b"ab",
        b" c",
        b" The",
        b". ",
        b".",
        b"?\n",
        b"\n",
        b"<think>",
        b"</think>",
        b"<",
        b"think>",
    ),
    *(
        token
        for text in ("é", "你", "。", "🙂")
        for token in (text.encode(), text.encode()[:1], text.encode()[1:])
    ),
    *(b"\xff", b""),
)


def improvises(seed: int, *, ends: float = 0.03, vocabulary: Sequence[bytes] = VOCABULARY) -> Script:
    """A random script: one to four choices with coarse weights, a fixed function of the tokens so far."""

    def script(tokens: tuple[bytes, ...]) -> list[Choice]:
        key = hashlib.sha256(repr((seed, tokens)).encode()).digest()
        rng = random.Random(key)
        texts = rng.sample(vocabulary, rng.randint(1, 4))
        if rng.random() < ends:
            texts[0] = END
        if len(tokens) > 400 or all(text in (b"<think>", b"</think>") for text in texts):
            texts.append(END)
        weights = [rng.choice((1, 2, 4, 16)) for _ in texts]
        total = sum(weights)
        return [
            Choice(text, math.log(weight / total), is_end=text == END)
            for text, weight in zip(texts, weights, strict=True)
        ]

    return script


def calibrated(
    *members: ScriptedMember, mu: float = -0.5, sigma: float = 0.5, window: int
) -> dict[str, Calibration]:
    """The same calibration for all, so that means decide."""
    return {member.name: Calibration(mu, sigma, window) for member in members}


def failing(method: str, nth: int = 1) -> Callable[[str, ScriptedMember], None]:
    """Raises at the nth call of a method, and at every later one."""

    def before(called: str, member: ScriptedMember) -> None:
        if called == method and member.calls.count(method) >= nth:
            raise EngineError(f"{member.name} broke in {method}")

    return before
