"""One member over a real context: what the relay relies on."""

from __future__ import annotations

import logging
import random
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from macr_local import Pool, Prompt, Sampling
from macr_local.config import ImageLimits
from macr_local.engine.member import LlamaMember
from macr_local.errors import Cancelled, ConfigError, ContextFull, EngineError
from macr_local.protocol import Token

GREEDY = Sampling()
QUESTION = "what shape is in the image?"


def pixels(seed: int, width: int = 64, height: int = 64) -> np.ndarray:
    blocks = np.random.default_rng(seed).integers(0, 256, (-(-height // 8), -(-width // 8), 3), np.uint8)
    return np.kron(blocks, np.ones((8, 8, 1), np.uint8))[:height, :width]


def begin(member: LlamaMember, prompt: Prompt, sampling: Sampling = GREEDY) -> None:
    member.begin(prompt, sampling, lambda: False)


def no_draw() -> float:
    raise AssertionError("greedy sampling draws nothing")


def write(member: LlamaMember, count: int) -> list[Token]:
    """Greedy tokens, accepted; stops before the end token."""
    tokens: list[Token] = []
    while len(tokens) < count and not (token := member.propose(no_draw)).is_end:
        member.accept(token)
        tokens.append(token)
    return tokens


def row(member: LlamaMember) -> np.ndarray:
    return np.array(member.run(member._logits))


@pytest.fixture(params=["tiny-qwen3vl", "tiny-internvl", "tiny-minicpmv"])
def member(request: pytest.FixtureRequest, tiny: Pool) -> LlamaMember:
    return tiny.member(request.param)


def test_three_lost_bids_after_an_image_leave_the_logits_bit_identical(member: LlamaMember) -> None:
    begin(member, Prompt.of(QUESTION, pixels(1)))
    before = row(member)
    for _ in range(3):
        member.branch(8)
        write(member, 8)
        member.drop()
        assert np.array_equal(row(member), before)
    first = write(member, 1)
    assert first, "the tiny models answer with more than an end token"
    after_bids = row(member)
    begin(member, Prompt.of(QUESTION, pixels(1)))
    assert write(member, 1) == first
    assert np.array_equal(row(member), after_bids)


def test_positions_follow_the_memory_and_not_the_cells(member: LlamaMember) -> None:
    prompt = Prompt.of(QUESTION, pixels(2))
    begin(member, prompt)
    context = member._context
    assert context.cells == member.prepare(prompt).cells
    assert (context.n_past < context.cells) == (member.name == "tiny-qwen3vl"), "only M-RoPE saves positions"
    for step in ("branch", "write", "drop", "write", "branch", "write", "adopt", "write"):
        if step == "write":
            write(member, 3)
            row(member)
        elif step == "branch":
            member.branch(4)
        else:
            getattr(member, step)()
        assert context.n_past == context.last_position() + 1, step


def test_an_adopted_bid_goes_on_as_if_it_had_been_written_directly(member: LlamaMember) -> None:
    prompt = Prompt.of(QUESTION, pixels(3))
    begin(member, prompt)
    member.branch(6)
    bid = write(member, 6)
    member.adopt()
    adopted = row(member)
    begin(member, prompt)
    assert write(member, 6) == bid
    assert np.array_equal(row(member), adopted)


def test_ingested_words_are_decoded_once_and_only_when_logits_are_needed(member: LlamaMember) -> None:
    begin(member, Prompt.of(QUESTION, pixels(4)))
    before = member.work.decoded
    count = member.ingest(b"the shape is a circle.") + member.ingest(b" the color is red.")
    assert member.work.decoded == before
    room = member.room
    row(member)
    assert member.work.decoded == before + count
    assert member.room == room


def test_the_log_probability_is_the_full_softmax_of_the_sampled_token(member: LlamaMember) -> None:
    begin(member, Prompt.of(QUESTION, pixels(5)))
    for _ in range(4):
        logits = row(member).astype(np.float64)
        expected = logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())
        token = member.propose(no_draw)
        assert token.id == int(logits.argmax())
        assert token.logprob == pytest.approx(expected[token.id], abs=1e-5)
        if token.is_end:
            break
        member.accept(token)


@pytest.mark.parametrize("sampling", [Sampling(temperature=1.0), Sampling(temperature=1.0, top_k=1)])
def test_the_sampler_does_not_change_a_token_s_confidence(member: LlamaMember, sampling: Sampling) -> None:
    prompt = Prompt.of(QUESTION, pixels(6))
    begin(member, prompt)
    greedy = member.propose(no_draw)
    begin(member, prompt, sampling)
    sampled = member.propose(random.Random(1).random)
    logits = row(member).astype(np.float64)
    expected = logits[sampled.id] - logits.max() - np.log(np.exp(logits - logits.max()).sum())
    assert sampled.logprob == pytest.approx(expected, abs=1e-5)
    if sampled.id == greedy.id:
        assert sampled.logprob == greedy.logprob


def test_an_image_is_encoded_once_however_often_it_is_asked_about(tiny: Pool) -> None:
    member = tiny.member("tiny-internvl")
    begin(member, Prompt.of(QUESTION, pixels(77)))
    assert member.work.images_encoded == 1
    first = row(member)
    begin(member, Prompt.of(QUESTION, pixels(77)))
    assert member.work.images_encoded == 0
    assert np.array_equal(row(member), first)


def test_several_images_reach_the_model_in_their_order(member: LlamaMember) -> None:
    a, b = pixels(8), pixels(9)
    rows = []
    for images in ([a, b], [b, a], [a, b]):
        prompt = Prompt.of(QUESTION, images)
        begin(member, prompt)
        rows.append(row(member))
        assert member.prepare(prompt).images == 2
    assert np.array_equal(rows[0], rows[2])
    assert not np.array_equal(rows[0], rows[1])


@pytest.mark.parametrize("size", [(1, 1), (27, 257), (640, 480)])
def test_no_image_size_is_a_crash(member: LlamaMember, size: tuple[int, int]) -> None:
    prompt = Prompt.of(QUESTION, pixels(10, *size))
    assert member.prepare(prompt).notes, "the user is told what was done to the image"
    begin(member, prompt)
    assert np.isfinite(row(member)).all()


def test_an_image_without_a_projector_is_refused_by_name(gemma: LlamaMember) -> None:
    with pytest.raises(ConfigError, match="gemma has no projector"):
        gemma.prepare(Prompt.of(QUESTION, pixels(1)))


def test_a_text_only_model_answers_without_an_image(gemma: LlamaMember) -> None:
    begin(gemma, Prompt("Say the word yes."))
    text = b"".join(token.text for token in write(gemma, 8))
    assert text.decode().strip()


def test_a_full_context_is_an_error_and_the_next_question_is_right(tiny: Pool) -> None:
    member = tiny.member("tiny-qwen3vl")
    begin(member, Prompt.of(QUESTION, pixels(11)))
    expected = row(member)
    member.ingest(b"red " * member.n_ctx)
    with pytest.raises(ContextFull, match=r"tiny-qwen3vl.*do not fit"):
        row(member)
    begin(member, Prompt.of(QUESTION, pixels(11)))
    assert np.array_equal(row(member), expected)


def test_a_bid_cannot_be_dropped_twice(tiny: Pool) -> None:
    member = tiny.member("tiny-qwen3vl")
    begin(member, Prompt("x"))
    with pytest.raises(EngineError, match="no bid to drop"):
        member.drop()


def test_an_interrupt_stops_a_long_prefill_and_leaves_the_member_usable(gemma: LlamaMember) -> None:
    prompt = Prompt("Say the word yes.")
    begin(gemma, prompt)
    expected = row(gemma)
    raised: list[BaseException] = []

    def ask() -> None:
        try:
            begin(gemma, Prompt("one two three four five six " * 140))
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    time.sleep(0.1)
    gemma.interrupt()
    thread.join(timeout=5)
    assert not thread.is_alive()
    assert [type(error) for error in raised] == [Cancelled]
    begin(gemma, prompt)
    assert np.array_equal(row(gemma), expected)


def test_a_task_that_cannot_be_stopped_does_not_hold_its_caller(tiny: Pool) -> None:
    member = tiny.member("tiny-qwen3vl")
    release = threading.Event()
    future = member.submit(lambda: release.wait(timeout=30))
    member.interrupt()
    with pytest.raises(Cancelled):
        future.result(timeout=5)
    release.set()
    begin(member, Prompt("x"))


def test_the_batch_size_does_not_change_what_a_causal_image_says(tiny: Pool) -> None:
    spec = tiny.member("tiny-internvl").spec
    texts = []
    for n_batch in (24, 512):
        member = LlamaMember(replace(spec, n_batch=n_batch))
        begin(member, Prompt.of(QUESTION, pixels(12)))
        texts.append([token.id for token in write(member, 20)])
        member.close()
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", ["tiny-qwen3vl", "tiny-internvl", "tiny-minicpmv"])
def test_an_image_of_many_tokens_says_the_same_in_batches_of_512_and_2048(tiny: Pool, name: str) -> None:
    spec = replace(tiny.member(name).spec, images=ImageLimits(), n_ctx=2048)
    prompt = Prompt.of(QUESTION, pixels(13, 640, 480))
    texts, cells = [], set()
    for n_batch in (512, 2048):
        member = LlamaMember(replace(spec, n_batch=n_batch))
        begin(member, prompt)
        cells.add(member.prepare(prompt).image)
        texts.append([token.id for token in write(member, 20)])
        member.close()
    assert texts[0] == texts[1]
    assert len(cells) == 1
    if name == "tiny-qwen3vl":
        assert cells == {1200}, "more than one batch of 512"


def test_llama_cpp_speaks_through_logging(tiny: Pool, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="macr_local.llama"):
        LlamaMember(tiny.member("tiny-qwen3vl").spec).close()
    assert any(record.name == "macr_local.llama" for record in caplog.records)
