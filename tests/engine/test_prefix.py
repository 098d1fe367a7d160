"""A prompt that begins as the one before is read from where they part, and nobody can tell by the answer."""

from __future__ import annotations

import random

import numpy as np
import pytest

from macr_local import Pool, Prompt
from macr_local.engine.member import LlamaMember
from macr_local.errors import Cancelled
from macr_local.settings import Sampling


def pixels(seed: int) -> np.ndarray:
    blocks = np.random.default_rng(seed).integers(0, 256, (8, 8, 3), np.uint8)
    return np.kron(blocks, np.ones((8, 8, 1), np.uint8))


def begin(member: LlamaMember, prompt: Prompt) -> None:
    member.begin(prompt, Sampling(), lambda: False)


def afresh(member: LlamaMember, prompt: Prompt) -> None:
    """Begin with nothing in the memory."""
    member._worker.run(member._reset)
    begin(member, prompt)
    assert member.work.reused == 0


def answer(member: LlamaMember, length: int) -> list[tuple[int, float]]:
    """Tokens and their log-probabilities, to the bit."""
    written = []
    while len(written) < length:
        token = member.propose(lambda: 0.0)
        written.append((token.id, token.logprob))
        if token.is_end:
            break
        member.accept(token)
    return written


@pytest.fixture(params=["tiny-qwen3vl", "tiny-internvl", "tiny-minicpmv"])
def member(request: pytest.FixtureRequest, tiny: Pool) -> LlamaMember:
    found = tiny.member(request.param)
    found._worker.run(found._reset)
    return found


def test_a_second_question_about_an_image_reads_only_the_question(member: LlamaMember) -> None:
    first, second = Prompt.of("what shape is it?", pixels(21)), Prompt.of("is there a red cross?", pixels(21))
    begin(member, first)
    begin(member, second)
    size = member.prepare(second)
    assert member.work.images_encoded == 0
    assert member.work.reused > size.image
    assert member.work.decoded == size.cells - member.work.reused
    assert member.room == member.n_ctx - size.cells


def test_another_image_shares_only_what_stands_before_it(member: LlamaMember) -> None:
    begin(member, Prompt.of("what shape is it?", pixels(22)))
    begin(member, other := Prompt.of("what shape is it?", pixels(23)))
    size = member.prepare(other)
    assert 0 < member.work.reused < size.cells - size.image
    assert member.work.decoded == size.cells - member.work.reused


def test_the_same_prompt_again_still_has_logits(member: LlamaMember) -> None:
    prompt = Prompt.of("what shape is it?", pixels(24))
    begin(member, prompt)
    first = answer(member, 12)
    begin(member, prompt)
    assert member.work.decoded > 0
    assert answer(member, 12) == first


def test_what_was_asked_before_changes_no_bit_of_an_answer(member: LlamaMember) -> None:
    rng = random.Random(5)
    questions = ["what shape is it?", "how many red circles are there?", "what is in the top row?", "?"]
    prompts = [Prompt.of(q, [pixels(image)]) for q in questions for image in (31, 32)]
    prompts.append(Prompt.of("what differs?", [pixels(31), pixels(32)]))
    prompts.append(Prompt.of("what shape is it?", pixels(31), system="Be brief."))
    expected = []
    for prompt in prompts:
        afresh(member, prompt)
        expected.append(answer(member, 25))
    reused = 0
    for _ in range(40):
        number = rng.randrange(len(prompts))
        begin(member, prompts[number])
        reused += member.work.reused
        if rng.random() < 0.5:
            member.branch(6)
            answer(member, 6)
            if rng.random() < 0.5:
                continue  # a question may end inside a bid
            member.drop()
        if rng.random() < 0.3:
            member.ingest(b" so it is a word of another member")
            answer(member, rng.randrange(30))
        else:
            assert answer(member, 25) == expected[number]
    assert reused > 0


def test_nothing_is_reused_behind_a_decode_that_was_stopped(member: LlamaMember) -> None:
    prompt = Prompt.of("what shape is it?", pixels(33))
    afresh(member, prompt)
    expected = answer(member, 12)
    begin(member, prompt)
    member.accept(member.propose(lambda: 0.0))
    member._context.interrupt()
    with pytest.raises(Cancelled):
        member.propose(lambda: 0.0)
    member._context.intact = False  # as where the flag is seen inside a decode
    begin(member, prompt)
    assert member.work.reused == 0
    assert answer(member, 12) == expected
