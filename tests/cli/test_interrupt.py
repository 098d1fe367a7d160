"""Ctrl-C, in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time


def interrupted(script: str, signals: int = 1) -> tuple[int, str, float]:
    """Run a script, interrupt it when it has written a line; exit code, further output, seconds."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    started = time.monotonic()
    for _ in range(signals):
        os.kill(process.pid, signal.SIGINT)
        time.sleep(0.2)
    output, _ = process.communicate(timeout=30)
    return process.returncode, output, time.monotonic() - started


def test_a_question_is_cancelled_and_the_program_goes_on_to_show_it() -> None:
    script = """
        import threading
        from macr_local.cli.interrupt import Interrupts
        stop = threading.Event()
        with Interrupts() as interrupts:
            interrupts.cancel = stop.set
            print("ready", flush=True)
            stop.wait()
            print("partial", interrupts.happened)
        raise SystemExit(130)
    """
    assert interrupted(script)[:2] == (130, "partial True\n")


def test_before_the_question_runs_it_is_an_ordinary_interrupt() -> None:
    script = """
        import time
        from macr_local.cli.interrupt import Interrupts
        try:
            with Interrupts():
                print("ready", flush=True)
                time.sleep(20)
        except KeyboardInterrupt:
            print("interrupted")
    """
    assert interrupted(script)[:2] == (0, "interrupted\n")


# time.sleep in C through ctypes: the main thread runs no Python until it returns, as in a long decode.
HANGING = """
    import ctypes
    from macr_local.cli.interrupt import Interrupts
    with Interrupts() as interrupts:
        interrupts.cancel = lambda: None
        interrupts.give_up = lambda: print("last words", flush=True)
        print("ready", flush=True)
        for _ in range(100):
            ctypes.CDLL(None).usleep(900_000)
"""


def test_a_program_that_hangs_is_ended_with_what_there_is() -> None:
    assert interrupted(HANGING)[:2] == (130, "last words\n")


def test_a_second_interrupt_does_not_wait() -> None:
    code, output, _ = interrupted(HANGING.replace("usleep(900_000)", "sleep(20)"), signals=2)
    assert (code, output) == (130, "last words\n")


def test_a_stuck_writer_does_not_keep_the_program_alive() -> None:
    stuck = HANGING.replace('print("last words", flush=True)', "__import__('time').sleep(20)")
    assert interrupted(stuck)[:2] == (130, "")


def test_handlers_are_as_before_afterwards() -> None:
    from macr_local.cli.interrupt import Interrupts

    before = signal.getsignal(signal.SIGINT)
    with Interrupts():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
    assert signal.set_wakeup_fd(-1) == -1
