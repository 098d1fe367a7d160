"""A pool in an application: queued, cancelled, closed early."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import CodeType, FrameType

import numpy as np
import pytest

import macr_local
from macr_local import (
    CalibrationError,
    Cancelled,
    ConfigError,
    EngineError,
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

QUESTION = "how many white circles are there?"


def test_a_relay_answers_about_an_image(tiny: Pool, scene: Path) -> None:
    answer = Relay(tiny).ask(Prompt.of(QUESTION, scene))
    assert answer.finish_reason == "end"
    assert "Answer:" in answer.text
    assert answer.relays >= 1
    assert {segment.member for segment in answer.segments} <= {member.name for member in tiny.members}


def test_a_stream_that_is_closed_early_gives_the_pool_back(tiny: Pool, scene: Path) -> None:
    relay = Relay(tiny)
    prompt = Prompt.of(QUESTION, scene)
    expected = relay.ask(prompt).text
    with relay.stream(prompt) as stream:
        for event in stream:
            if isinstance(event, Token):
                break
    assert relay.ask(prompt).text == expected


def test_asking_inside_an_open_answer_of_the_same_thread_is_refused(tiny: Pool, scene: Path) -> None:
    relay = Relay(tiny)
    with relay.stream(Prompt.of(QUESTION, scene)) as stream:
        assert isinstance(next(stream), Started)
        with pytest.raises(PoolBusy, match="still open"):
            relay.ask(QUESTION)
    assert relay.ask(Prompt.of(QUESTION, scene)).text


def test_cancel_from_another_thread_ends_the_answer_with_what_there_is(tiny: Pool, scene: Path) -> None:
    relay = Relay(tiny)
    prompt = Prompt.of(QUESTION, scene)
    expected = relay.ask(prompt)
    with relay.stream(prompt) as stream:
        events = []
        for event in stream:
            events.append(event)
            if isinstance(event, Token) and len(events) > 5 and not stream._turn.cancelled.is_set():
                canceller = threading.Thread(target=stream.cancel)
                canceller.start()
                canceller.join()
    last = events[-1]
    assert isinstance(last, Finished)
    assert last.reason == "cancelled"
    assert relay.ask(prompt).text == expected.text


def test_a_queued_question_can_be_cancelled(tiny: Pool, scene: Path) -> None:
    holder, waiter = Relay(tiny), Relay(tiny)
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


def test_eight_threads_on_one_pool_get_the_answers_they_would_get_alone(tiny: Pool) -> None:
    rng = np.random.default_rng(3)
    prompts = [Prompt.of(QUESTION, rng.integers(0, 256, (64, 64, 3)).astype(np.uint8)) for _ in range(8)]
    relay = Relay(tiny)
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


def test_single_is_one_member_that_never_bids(tiny: Pool, scene: Path) -> None:
    answer = Relay(tiny, strategy="single", leader="tiny-internvl").ask(Prompt.of(QUESTION, scene))
    assert {segment.member for segment in answer.segments} == {"tiny-internvl"}
    assert answer.relays == answer.bids == 0


def test_names_that_do_not_exist_are_refused_at_once(tiny: Pool) -> None:
    with pytest.raises(ConfigError, match="no strategy"):
        Relay(tiny, strategy="magic")
    with pytest.raises(ConfigError, match='no member "nobody"'):
        Relay(tiny, strategy="single", leader="nobody")
    with pytest.raises(ConfigError, match='no member "nobody"'):
        Relay(tiny, RelaySettings(initiation="nobody"))
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
    text = re.sub(r'"(\w+(-mmproj)?\.gguf)"', lambda found: f'"{folder / found[1]}"', text)
    path = tmp_path / "mine.toml"
    path.write_text(text.replace('calibration = "calibration"', 'calibration = "nowhere"'))
    with Pool.open(f"{path}#tiny", members=["tiny-internvl"]) as pool:
        with pytest.raises(CalibrationError, match="has no calibration") as raised:
            Relay(pool).ask(QUESTION)
        assert f"--pool '{path}#tiny'" in raised.value.fix


def test_a_stream_left_by_break_gives_the_pool_back(scene: Path) -> None:
    with Pool.open("tiny") as pool:
        relay = Relay(pool)
        for event in relay.stream(Prompt.of(QUESTION, scene)):
            if isinstance(event, Token):
                break
        assert relay.ask(Prompt.of(QUESTION, scene)).text
        kept = relay.stream(Prompt.of(QUESTION, scene))
        assert isinstance(next(kept), Started)
    assert [*kept] == [], "closing the pool has closed the answer that its own thread had left open"


def test_an_exception_in_the_reader_does_not_hang_the_pool(scene: Path) -> None:
    kept = []

    def read() -> None:
        with Pool.open("tiny", members=["tiny-internvl"]) as pool:
            kept.append(Relay(pool, strategy="single").stream(QUESTION))
            for _ in kept[0]:
                raise KeyError("the reader's own")

    with pytest.raises(KeyError, match="the reader's own"):
        read()


def test_a_member_of_a_closed_pool_says_so_and_crashes_nothing() -> None:
    with Pool.open("tiny", members=["tiny-internvl"]) as pool:
        (member,) = pool.members
    assert member.info.n_vocab == 640
    for use in (
        lambda: member.prepare(Prompt("x")),
        lambda: member.propose(lambda: 0.5),
        lambda: member.branch(3),
        lambda: member.submit(lambda: None),
    ):
        with pytest.raises(EngineError, match="tiny-internvl is closed"):
            use()
    member.interrupt()
    member.close()


def test_closing_a_stream_that_another_thread_reads_cancels_it(tiny: Pool, scene: Path) -> None:
    stream, events, reading = Relay(tiny).stream(Prompt.of(QUESTION, scene)), [], threading.Event()

    def read() -> None:
        for event in stream:
            events.append(event)
            reading.set()

    thread = threading.Thread(target=read)
    thread.start()
    reading.wait(timeout=10)
    while thread.is_alive():
        stream.close()
        time.sleep(0.001)
    assert Relay(tiny).ask(Prompt.of(QUESTION, scene)).finish_reason == "end"


def test_a_question_that_never_began_has_no_counters_of_the_one_before(tiny: Pool, scene: Path) -> None:
    assert Relay(tiny).ask(Prompt.of(QUESTION, scene)).total.decoded > 0
    late = Relay(tiny, replace(tiny.spec.settings, deadline=1e-9)).ask(Prompt.of(QUESTION, scene))
    assert late.finish_reason == "deadline"
    assert late.total.decoded == late.total.least
    assert late.total.images_encoded == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_pool_is_refused_in_a_forked_child() -> None:
    script = (
        "import os, sys, warnings\n"
        "from macr_local import MacrError, Pool, Relay\n"
        "warnings.simplefilter('ignore')\n"
        "pool = Pool.open('tiny', members=['tiny-internvl'])\n"
        "relay = Relay(pool, strategy='single')\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    try:\n"
        "        relay.ask('x')\n"
        "    except MacrError as error:\n"
        "        os._exit(7 if 'another process' in str(error) else 1)\n"
        "    os._exit(2)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), relay.ask('x').finish_reason)\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert run.stdout == "7 end\n", run.stderr


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_at_any_step_leaves_the_pool_usable(tiny: Pool, scene: Path) -> None:
    """KeyboardInterrupt comes where Python looks for signals: at the entry of every function of ours."""
    relay, prompt = Relay(tiny), Prompt.of(QUESTION, scene)
    expected = relay.ask(prompt).text
    package = str(Path(macr_local.__file__).parent)
    entries: dict[CodeType, int] = {}

    def count(frame: FrameType, event: str, _: object) -> None:
        if frame.f_code.co_filename.startswith(package):
            entries[frame.f_code] = entries.get(frame.f_code, 0) + 1

    sys.settrace(count)
    try:
        relay.ask(prompt)
    finally:
        sys.settrace(None)
    assert len(entries) > 60
    for code, calls in entries.items():
        sys.settrace(_interrupting(code, max(1, calls // 2)))
        try:
            relay.ask(prompt)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        answers: list[str] = []
        thread = threading.Thread(
            target=lambda answers=answers: answers.append(relay.ask(prompt).text), daemon=True
        )
        thread.start()
        thread.join(timeout=20)
        assert answers == [expected], f"after an interrupt in {code.co_qualname}"


def _interrupting(code: CodeType, call: int) -> Callable[[FrameType, str, object], None]:
    """A trace function that raises KeyboardInterrupt at one call of a function."""
    left = [call]

    def interrupt(frame: FrameType, event: str, _: object) -> None:
        if frame.f_code is code:
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt

    return interrupt
