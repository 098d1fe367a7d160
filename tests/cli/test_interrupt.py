"""Ctrl-C, in processes of their own."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

QUESTION = "how many white circles are there?"
ASK = ["ask", "--pool", "tiny"]


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


def program(script: str, *args: str | Path) -> list[str]:
    """The program, with something prepared before it starts."""
    start = "\nfrom macr_local.cli.main import main\nmain()"
    return [sys.executable, "-c", textwrap.dedent(script) + start, *map(str, args)]


def outcome(command: list[str]) -> tuple[int, str, str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


WHEN_IMPORTING = """
    import os, signal, sys
    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name == "{module}":
                os.kill(os.getpid(), signal.SIGINT)
    sys.meta_path.insert(0, Finder())
"""


@pytest.mark.parametrize(
    "module", ["click", "macr_local.cli.ask", "macr_local.config", "numpy", "PIL.Image", "llama_cpp"]
)
def test_an_interrupt_while_importing_shows_no_traceback(scene: Path, module: str) -> None:
    code, _, err = outcome(program(WHEN_IMPORTING.format(module=module), *ASK, scene, QUESTION))
    assert code == 130
    assert "Traceback" not in err


def test_an_interrupt_of_a_command_that_asks_nothing_is_quiet() -> None:
    assert outcome(program(WHEN_IMPORTING.format(module="macr_local.cli.pool"), "pool", "list")) == (
        130,
        "",
        "",
    )


# Each interrupts the program itself, at a moment after the answer.
LATE = {
    "left": """
        import os, signal
        from macr_local.cli.interrupt import Interrupts
        leave = Interrupts.__exit__
        def left(*given):
            leave(*given)
            os.kill(os.getpid(), signal.SIGINT)
        Interrupts.__exit__ = left
    """,
    "atexit": """
        import atexit, os, signal
        atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
    """,
    "teardown": """
        import os, signal, sys
        class Last:
            def __del__(self, kill=os.kill, us=os.getpid(), what=signal.SIGINT):
                kill(us, what)
        sys.kept_to_the_end = Last()
    """,
}


@pytest.mark.parametrize("moment", LATE)
def test_an_interrupt_after_the_answer_is_no_death_by_signal(scene: Path, moment: str) -> None:
    whole = outcome(program("", *ASK, scene, QUESTION))
    code, out, err = outcome(program(LATE[moment], *ASK, scene, QUESTION))
    assert (code, out) == (130 if moment == "left" else 0, whole[1])
    assert "Traceback" not in err


# Says "ready" when the program itself, not yet anything heavy, has begun.
READY = """
    import os, sys
    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name == "macr_local.cli.program":
                os.write(2, b"ready\\n")
    sys.meta_path.insert(0, Finder())
"""


@pytest.mark.slow
@pytest.mark.parametrize("asked", ["scenes", "gemma"])
def test_an_interrupt_at_any_moment_ends_it_in_order(
    tmp_path: Path, scene: Path, gemma_file: Path, asked: str
) -> None:
    pools = tmp_path / "models.toml"
    member = f"[models.gemma]\nmodel = '{gemma_file}'\nn_ctx = 1024\n"
    pools.write_text(f'[pools.g]\ndescription = "one"\nmembers = ["gemma"]\n{member}', "utf-8")
    alone = ["ask", "--pool", f"{pools}#g", "--strategy", "single", "Tell a very long story."]
    command = program(READY, *([*ASK, str(scene), QUESTION] if asked == "scenes" else alone))
    moments = random.Random(0)
    codes = set()
    for _ in range(12):
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stderr is not None
        assert process.stderr.readline() == "ready\n"
        time.sleep(moments.uniform(0, 0.6 if asked == "scenes" else 1.5))
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        assert "Traceback" not in err
        codes.add(process.returncode)
    assert 130 in codes
    assert codes <= {0, 130}


def test_a_full_disk_at_the_last_words_is_no_traceback() -> None:
    script = HANGING.replace('print("last words", flush=True)', 'open("/no/such/folder")')
    assert interrupted(script)[:2] == (130, "")
