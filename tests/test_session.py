"""A pool in an application: queued, cancelled, closed early."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest

import macr_local
from macr_local import (
    CalibrationError,
    Cancelled,
    ConfigError,
    Finished,
    MacrError,
    Pool,
    PoolBusy,
    Prompt,
    Relay,
    RelaySettings,
    Started,
)
from macr_local.relay.events import Token

QUESTION = "how many red shapes are there?"


def test_a_relay_answers_about_an_image(scenes: Pool, scene: Path) -> None:
    answer = Relay(scenes).ask(Prompt.of(QUESTION, scene))
    assert answer.finish_reason == "end"
    assert "Answer:" in answer.text
    assert answer.relays >= 1
    assert {segment.member for segment in answer.segments} <= {member.name for member in scenes.members}


def test_a_stream_that_is_closed_early_gives_the_pool_back(scenes: Pool, scene: Path) -> None:
    relay = Relay(scenes)
    prompt = Prompt.of(QUESTION, scene)
    expected = relay.ask(prompt).text
    with relay.stream(prompt) as stream:
        for event in stream:
            if isinstance(event, Token):
                break
    assert relay.ask(prompt).text == expected


def test_asking_inside_an_open_answer_of_the_same_thread_is_refused(scenes: Pool, scene: Path) -> None:
    relay = Relay(scenes)
    with relay.stream(Prompt.of(QUESTION, scene)) as stream:
        assert isinstance(next(stream), Started)
        with pytest.raises(PoolBusy, match="still open"):
            relay.ask(QUESTION)
    assert relay.ask(Prompt.of(QUESTION, scene)).text


def test_cancel_from_another_thread_ends_the_answer_with_what_there_is(scenes: Pool, scene: Path) -> None:
    relay = Relay(scenes)
    prompt = Prompt.of(QUESTION, scene)
    expected = relay.ask(prompt)
    with relay.stream(prompt) as stream:
        events = []
        for event in stream:
            events.append(event)
            if isinstance(event, Token) and len(events) > 5 and not stream._cancelled.is_set():
                canceller = threading.Thread(target=stream.cancel)
                canceller.start()
                canceller.join()
    last = events[-1]
    assert isinstance(last, Finished)
    assert last.reason == "cancelled"
    assert relay.ask(prompt).text == expected.text


def test_a_queued_question_can_be_cancelled(scenes: Pool, scene: Path) -> None:
    holder, waiter = Relay(scenes), Relay(scenes)
    raised: list[BaseException] = []

    def wait() -> None:
        try:
            waiter.ask(QUESTION)
        except BaseException as error:
            raised.append(error)

    with holder.stream(Prompt.of(QUESTION, scene)) as stream:
        next(stream)
        thread = threading.Thread(target=wait)
        thread.start()
        while not waiter._open:
            time.sleep(0.01)
        waiter.cancel()
        thread.join(timeout=5)
        assert [type(error) for error in raised] == [Cancelled]
        assert isinstance([*stream][-1], Finished)


def test_eight_threads_on_one_pool_get_the_answers_they_would_get_alone(scenes: Pool) -> None:
    rng = np.random.default_rng(3)
    prompts = [
        Prompt.of(QUESTION, rng.integers(0, 256, (64, 64, 3)).astype(np.uint8)) for _ in range(8)
    ]
    relay = Relay(scenes)
    expected = [relay.ask(prompt).text for prompt in prompts]
    answers: dict[int, str] = {}
    threads = [
        threading.Thread(target=lambda i=i: answers.update({i: relay.ask(prompts[i]).text})) for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answers[i] for i in range(8)] == expected


def test_single_is_one_member_that_never_bids(scenes: Pool, scene: Path) -> None:
    answer = Relay(scenes, strategy="single", leader="scene-internvl").ask(Prompt.of(QUESTION, scene))
    assert {segment.member for segment in answer.segments} == {"scene-internvl"}
    assert answer.relays == answer.bids == 0


def test_names_that_do_not_exist_are_refused_at_once(scenes: Pool) -> None:
    with pytest.raises(ConfigError, match="no strategy"):
        Relay(scenes, strategy="magic")
    with pytest.raises(ConfigError, match='no member "nobody"'):
        Relay(scenes, strategy="single", leader="nobody")
    with pytest.raises(ConfigError, match='no member "nobody"'):
        Relay(scenes, RelaySettings(initiation="nobody"))
    with pytest.raises(ConfigError, match='no member "nobody"'):
        Pool.open("tiny", members=["nobody"])


def test_a_closed_pool_says_so() -> None:
    with Pool.open("tiny", members=["tiny-internvl"]) as pool:
        relay = Relay(pool, strategy="single")
        assert relay.ask("what shape is in the image?").text
    with pytest.raises(MacrError, match="is closed"):
        relay.ask("again?")


def test_a_pool_given_by_file_is_named_so_in_the_command_that_mends_it(tmp_path: Path) -> None:
    text = (Path(macr_local.__file__).parent / "tiny" / "models.toml").read_text("utf-8")
    folder = Path(macr_local.__file__).parent / "tiny"
    for part in ("easy-vqa/", "scenes/"):
        text = text.replace(f'"{part}', f'"{folder / part}/')
    path = tmp_path / "mine.toml"
    path.write_text(text.replace(f'"{folder}/easy-vqa/calibration"', '"nowhere"'))
    with Pool.open(f"{path}#tiny", members=["tiny-internvl"]) as pool:
        with pytest.raises(CalibrationError, match="has no calibration") as raised:
            Relay(pool).ask(QUESTION)
        assert f"--pool '{path}#tiny'" in raised.value.fix
