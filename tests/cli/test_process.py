"""``macr-local`` as a process of its own: its streams, its pipes, and Ctrl-C in every phase."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

QUESTION = "how many white circles are there?"
ASK = ["ask", "--pool", "tiny"]


def environment(**more: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key not in ("FORCE_COLOR", "NO_COLOR")}
    return {**kept, **more}


def program(*args: str | Path, **more: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "macr_local", *map(str, args)],
        capture_output=True, check=False, stdin=subprocess.DEVNULL, env=environment(**more),
    )  # fmt: skip


def test_stderr_holds_no_noise_of_llama_cpp(scene: Path) -> None:
    done = program(*ASK, scene, QUESTION)
    assert done.returncode == 0
    closing = rb"\d+ tokens?, \d+ relays?, \d+ handovers?, [\d.]+ s\r?\n"
    assert re.fullmatch(closing, done.stderr), done.stderr


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_no_character_can_crash_a_terminal(tmp_path: Path, scene: Path, encoding: str) -> None:
    pools = tmp_path / "models.toml"
    pools.write_text(
        '[pools.p]\ndescription = "✓ 中"\nmembers = ["ä"]\n[models."ä"]\nmodel = "x"', encoding="utf-8"
    )
    done = program("pool", "list", MACR_LOCAL_MODELS=str(pools), PYTHONIOENCODING=encoding)
    shown = "✓ 中" if encoding == "utf-8" else "\\u2713 \\u4e2d"
    assert shown in done.stdout.decode(encoding)
    coloured = program(*ASK, scene, QUESTION, FORCE_COLOR="1", PYTHONIOENCODING=encoding)
    assert coloured.returncode == 0
    assert ("■" if encoding == "utf-8" else "\\u25a0") in coloured.stderr.decode(encoding)


@pytest.mark.parametrize("args", [[], ["--json"], ["--jsonl"]], ids=["text", "json", "jsonl"])
def test_a_reader_that_goes_away_ends_it_quietly(scene: Path, args: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "macr_local", *ASK, *args, str(scene), QUESTION],
        stdout=write, stderr=subprocess.PIPE, check=False, env=environment(),
    )  # fmt: skip
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


# Wraps one function of the program: at its nth call the process interrupts itself, and the call hangs in C
# code, like an encoder that nobody can stop.
INTERRUPTED = """
import ctypes, importlib, os, signal, sys, threading
module, owner, method, after, *args = sys.argv[1:]
kind = importlib.import_module(module)
kind = getattr(kind, owner) if owner else kind
original, calls = getattr(kind, method), [0]
def wrapped(*given, **named):
    calls[0] += 1
    if calls[0] == int(after):
        threading.Timer(0.05, os.kill, [os.getpid(), signal.SIGINT]).start()
        ctypes.CDLL(None).sleep(60)
    return original(*given, **named)
setattr(kind, method, wrapped)
sys.argv[1:] = args
from macr_local.cli.main import main
main()
"""

PHASES = {
    "image": ("macr_local.images", "", "load", "1"),
    "load": ("macr_local.engine.model", "Model", "__init__", "2"),
    "encode": ("macr_local.engine.vision", "Projector", "decode", "1"),
    "prefill": ("macr_local.engine.member", "LlamaMember", "_begin", "2"),
    "bid": ("macr_local.engine.member", "LlamaMember", "branch", "5"),
    "decode": ("macr_local.engine.member", "LlamaMember", "_propose", "15"),
}


def interrupted(phase: str, *args: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", INTERRUPTED, *PHASES[phase], *ASK, *map(str, args)]
    # Far less than the minute for which the interrupted call hangs.
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=30, env=environment())


@pytest.mark.parametrize("phase", PHASES)
def test_ctrl_c_ends_every_phase_and_keeps_what_was_written(scene: Path, phase: str) -> None:
    whole = json.loads(program(*ASK, "--json", scene, QUESTION).stdout)["text"]
    done = interrupted(phase, "--json", scene, QUESTION)
    assert (done.returncode, done.stderr) == (130, "")
    partial = json.loads(done.stdout)
    assert partial["finish_reason"] == "cancelled"
    assert whole.startswith(partial["text"])
    assert len(partial["text"]) < len(whole)
    assert bool(partial["text"]) is (phase in ("bid", "decode"))


@pytest.mark.parametrize("phase", ["load", "decode"])
def test_ctrl_c_shows_the_partial_answer_as_text(scene: Path, phase: str) -> None:
    whole = program(*ASK, scene, QUESTION).stdout.decode()
    done = interrupted(phase, scene, QUESTION)
    assert done.returncode == 130
    assert "cancelled" in done.stderr
    if phase == "load":
        assert done.stdout == ""
    else:
        assert done.stdout.endswith("\n")
        assert whole.startswith(done.stdout.rstrip("\n"))
        assert len(done.stdout) > 1


def test_a_fault_of_the_program_is_one_line(scene: Path) -> None:
    script = textwrap.dedent("""
        import sys
        import macr_local.images
        def broken(*args, **named): raise RuntimeError("unforeseen")
        macr_local.images.load = broken
        from macr_local.cli.main import main
        main()
    """)
    done = subprocess.run(
        [sys.executable, "-c", script, *ASK, str(scene), QUESTION],
        capture_output=True, text=True, check=False, env=environment(),
    )  # fmt: skip
    assert done.returncode == 70
    assert done.stderr.splitlines() == [
        "macr-local: error: this is a bug in macr-local (RuntimeError: unforeseen)",
        "  Run it again with MACR_LOCAL_DEBUG=1 and report what it prints",
    ]
