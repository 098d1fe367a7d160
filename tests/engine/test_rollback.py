"""A lost bid leaves no trace and a kept one is as if written directly, in every kind of memory.

The witness is a second context that llama.cpp's own calls drive (`tests.oracles.bare`): it is given only what
stays. After every round both must have the same logits, to the bit, behind a token that was decoded since.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from easy_vqa import get_test_image_paths

from macr_local import Pool, Prompt, Sampling
from macr_local.config import MemberSpec
from macr_local.engine.member import LlamaMember
from tests.oracles.architectures import ARCHITECTURES, WINDOW
from tests.oracles.bare import GEMMA_TEMPLATE, Bare, Session
from tests.oracles.gguf_models import write_model

QUESTION = "what is it?"
WORDS = (" the shape", " is red", ".\nAnswer:", " yes, and then", "  twice \u00e9", "?")
DRAWN = Sampling(temperature=1.0)


class Lockstep:
    """A member, and a witness that is given what stays in the batches the member must have decoded."""

    def __init__(self, member: LlamaMember, witness: Session, seed: int) -> None:
        self.member, self.witness = member, witness
        self.rng = random.Random(seed)
        self._waiting: list[int] = []

    def begin(self, question: str, *images: Path) -> None:
        self.member.begin(Prompt.of(question, list(images)), DRAWN, lambda: False)
        self.witness.prompt(question, images)

    def write(self, length: int) -> list[int]:
        """Sample and accept that many tokens, or fewer before an end token; the witness is not told."""
        tokens: list[int] = []
        while len(tokens) < length and not (token := self.member.propose(self.rng.random)).is_end:
            self.member.accept(token)
            tokens.append(token.id)
        return tokens

    def stay(self, tokens: list[int]) -> None:
        """Tell the witness what was written: a token is decoded alone, when its successor is asked for."""
        for token in tokens:
            self._flush()
            self._waiting = [token]

    def read(self, text: str) -> None:
        """Words of another member."""
        self.member.ingest(text.encode())
        self._waiting += self.witness.bare.tokenize(text.encode())

    def bid(self, length: int, *, keep: bool) -> None:
        self._flush()
        self.member.branch(length)
        tokens = self.write(length)
        if keep:
            self.member.adopt()
            self.stay(tokens)
        else:
            self.member.drop()

    def agree(self) -> None:
        """Both have the same next logits, to the bit."""
        self._flush()
        assert np.array_equal(self.member.run(self.member._logits), self.witness.logits())

    def _flush(self) -> None:
        if self._waiting:
            self.witness.decode(self._waiting)
            self._waiting = []

    def round(self, longest: int) -> None:
        """One round as a relay makes it: others' words perhaps, a bid, and the lead perhaps."""
        if self.rng.random() < 0.5:
            self.read(self.rng.choice(WORDS))
        self.bid(self.rng.randint(1, longest), keep=self.rng.random() < 0.4)
        self.agree()
        self.stay(self.write(self.rng.randint(1, 3)))
        self.agree()


Opened = Callable[..., Lockstep]


@pytest.fixture
def open_pair() -> Iterator[Opened]:
    """Opens a member and its witness over one file; closes both after the test."""
    opened: list[LlamaMember | Session | Bare] = []

    def open_(spec: MemberSpec, seed: int = 0) -> Lockstep:
        member = LlamaMember(spec)
        bare = Bare(
            spec.model,
            spec.projector,
            template=spec.chat_template,
            n_ctx=spec.n_ctx,
            n_batch=spec.n_batch,
            threads=1,
        )
        witness = bare.fresh()
        opened.extend((member, bare, witness))
        return Lockstep(member, witness, seed)

    yield open_
    for one in reversed(opened):
        one.close()


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Paths of models with random weights, each written at its first use."""
    folder = tmp_path_factory.mktemp("models")

    def path(name: str) -> Path:
        file = folder / f"{name}.gguf"
        return file if file.exists() else write_model(file, name)

    return path


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_twenty_random_rounds_leave_every_kind_of_memory_exact(
    name: str, files: Callable[[str], Path], open_pair: Opened
) -> None:
    pair = open_pair(MemberSpec(name, files(name), n_ctx=1024, n_batch=64, threads=1), seed=len(name))
    assert pair.member.info.memory == ARCHITECTURES[name].memory
    pair.begin(QUESTION * 8)
    pair.agree()
    for _ in range(20):
        pair.round(longest=16)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_lost_bid_does_not_change_what_is_proposed_next(
    name: str, files: Callable[[str], Path], open_pair: Opened
) -> None:
    pair = open_pair(MemberSpec(name, files(name), n_ctx=256, threads=1))

    def tokens(*, bids: bool) -> list[tuple[int, float]]:
        pair.member.begin(Prompt(QUESTION), DRAWN, lambda: False)
        draw = random.Random(3).random
        written = []
        for _ in range(12):
            if bids:
                pair.member.branch(4)
                pair.write(4)
                pair.member.drop()
            token = pair.member.propose(draw)
            pair.member.accept(token)
            written.append((token.id, token.logprob))
        return written

    assert tokens(bids=True) == tokens(bids=False)


@pytest.mark.parametrize("name", ["tiny-qwen3vl", "tiny-internvl", "tiny-minicpmv"])
def test_twenty_random_rounds_after_an_image(name: str, tiny: Pool, open_pair: Opened) -> None:
    pair = open_pair(tiny.member(name).spec, seed=7)
    pair.begin("what shape is this?", Path(get_test_image_paths()[4]))
    pair.agree()
    for _ in range(20):
        pair.round(longest=8)


@pytest.mark.parametrize("keep", [False, True], ids=["dropped", "kept"])
@pytest.mark.parametrize("length", [16, 300])
def test_a_window_that_has_slid_far_is_exact_after_every_bid(
    length: int, keep: bool, files: Callable[[str], Path], open_pair: Opened
) -> None:
    """With a ring for the window's cells, 256 here, a bid would overwrite what the window needs.

    Short ones would leave the ring in another order: once it has gone round, sums over the window then differ
    in their last bits. So the answer goes on here until any ring would have gone round.
    """
    pair = open_pair(MemberSpec("window", files("gemma3"), n_ctx=3072, n_batch=64, threads=1))
    pair.begin(QUESTION * 40)
    pair.agree()
    assert pair.witness.n_past > 256 + WINDOW
    for _ in range(3):
        pair.bid(length, keep=keep)
        pair.agree()
        for _ in range(260):
            pair.stay(pair.write(1))
            pair.agree()


@pytest.mark.slow
def test_a_real_sliding_window_model_is_exact_far_beyond_its_window(
    gemma_file: Path, open_pair: Opened
) -> None:
    """gemma3-270m: a window of 512 in what would be a ring of 768 cells, and a prompt longer than both."""
    spec = MemberSpec("gemma", gemma_file, n_ctx=2048, n_batch=64, threads=1, chat_template=GEMMA_TEMPLATE)
    pair = open_pair(spec)
    pair.begin("The history of the steam engine begins in the first century. " * 75)
    assert pair.witness.n_past > 768
    pair.agree()
    for length, keep in ((16, False), (16, True), (280, False), (280, True), (16, False)):
        pair.bid(length, keep=keep)
        pair.agree()
        pair.stay(pair.write(3))
        pair.agree()
