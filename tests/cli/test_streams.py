"""Standard streams that are closed, full, or of the wrong direction, in processes of their own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from macr_local.cli.streams import Guarded, StdoutError
from macr_local.relay.trace import read_trace

QUESTION = "how many white circles are there?"
ASK = ["ask", "--pool", "tiny"]
NO_SPACE = "macr-local: error: stdout cannot be written: No space left on device\n"
SHELL = 'exec "$@" '


@pytest.fixture(autouse=True)
def _posix() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")


def program(redirections: str, *args: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run the program as a shell would, with redirections after it."""
    command = ["sh", "-c", SHELL + redirections, "sh", sys.executable, "-m", "macr_local", *map(str, args)]
    kept = {key: value for key, value in os.environ.items() if key not in ("FORCE_COLOR", "MACR_LOCAL_DEBUG")}
    return subprocess.run(
        command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, env={**kept, **more}
    )


@pytest.fixture(scope="module")
def whole() -> str:
    """The answer where nothing is wrong."""
    scene = Path(__file__).parents[2] / "examples" / "scene.png"
    done = program("", *ASK, scene, QUESTION)
    assert done.returncode == 0
    return done.stdout


@pytest.mark.parametrize(
    "closed", [["<&-"], [">&-"], ["2>&-"], [">&-", "2>&-"], ["<&-", ">&-", "2>&-"]], ids=" ".join
)
def test_a_closed_stream_is_like_the_null_device(
    tmp_path: Path, scene: Path, whole: str, closed: Sequence[str]
) -> None:
    # With a trace, and with logs: neither may be given the number of a standard stream.
    trace = tmp_path / "trace.jsonl"
    done = program(" ".join(closed), *ASK, "--verbose", "--trace", trace, scene, QUESTION)
    assert done.returncode == 0
    assert done.stdout == ("" if ">&-" in closed else whole)
    assert bool(done.stderr) is ("2>&-" not in closed)
    assert read_trace(trace).complete


@pytest.mark.parametrize("redirection", ["<&-", "</dev/null"])
def test_no_image_on_stdin_is_said(redirection: str) -> None:
    done = program(redirection, *ASK, "-", QUESTION)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("macr-local: error: No image came from stdin\n")


def test_a_stdin_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    done = program(f"0>{tmp_path / 'new'}", *ASK, "-", QUESTION)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("macr-local: error: stdin cannot be read: Bad file descriptor\n")


@pytest.mark.parametrize(
    "args",
    [
        ["--help"],
        ["--version"],
        ["ask", "--help"],
        ["pool", "list"],
        ["pool", "list", "--json"],
        ["pool", "show", "tiny"],
        ["doctor", "--pool", "tiny"],
        ["doctor", "--pool", "tiny", "--json"],
        [*ASK, "examples/scene.png", QUESTION],
        [*ASK, "--json", "examples/scene.png", QUESTION],
        [*ASK, "--jsonl", "examples/scene.png", QUESTION],
    ],
    ids=lambda args: " ".join(args[:3]) + (" " + args[3] if len(args) > 4 else ""),
)
@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
def test_a_full_stdout_has_its_own_error(scene: Path, args: list[str], unbuffered: str) -> None:
    there = [str(scene) if arg == "examples/scene.png" else arg for arg in args]
    done = program(">/dev/full", *there, PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 74
    assert done.stderr.startswith(NO_SPACE)
    assert len(done.stderr.splitlines()) == 2


def test_calibrating_into_a_full_stdout_keeps_the_calibration(tmp_path: Path, scene: Path) -> None:
    rows = [{"image": str(scene), "question": f"how many {c} shapes are there?"} for c in ("red", "blue")]
    reference = tmp_path / "questions.jsonl"
    reference.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    done = program(
        ">/dev/full", "calibrate", reference, "--pool", "tiny", "--members", "tiny-qwen3vl",
        "--out", tmp_path / "out",
    )  # fmt: skip
    assert done.returncode == 74
    assert NO_SPACE in done.stderr
    assert any((tmp_path / "out").iterdir())


def test_a_full_stderr_costs_nothing(scene: Path, whole: str) -> None:
    done = program("2>/dev/full", *ASK, "--verbose", scene, QUESTION)
    assert (done.returncode, done.stdout) == (0, whole)


def test_where_both_are_full_the_exit_code_tells(scene: Path) -> None:
    assert program(">/dev/full 2>/dev/full", *ASK, scene, QUESTION).returncode == 74


@pytest.mark.parametrize("args", [[], ["--json"], ["--jsonl"]], ids=["text", "json", "jsonl"])
def test_a_trace_that_cannot_be_written_on_costs_only_the_trace(
    scene: Path, whole: str, args: list[str]
) -> None:
    done = program("", *ASK, *args, "--trace", "/dev/full", scene, QUESTION)
    assert done.returncode == 74
    warning = "macr-local: warning: the trace /dev/full cannot be written on: No space left on device\n"
    assert done.stderr.count("warning") == 1
    assert done.stderr.startswith(warning)
    if not args:
        assert done.stdout == whole
    elif args == ["--json"]:
        assert json.loads(done.stdout)["text"] + "\n" == whole
    else:
        assert json.loads(done.stdout.splitlines()[-1])["type"] == "Finished"


class Filling(io.RawIOBase):
    """Takes some bytes, then none."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.taken = b""
        self._room = room

    def writable(self) -> bool:
        return True

    def write(self, data: object, /) -> int:
        piece = bytes(data)[: self._room - len(self.taken)]  # type: ignore[call-overload]
        if not piece:
            raise OSError(28, "No space left on device")
        self.taken += piece
        return len(piece)


def test_a_stream_fails_once_and_then_is_silent() -> None:
    raw = Filling(room=5)
    stream = io.TextIOWrapper(io.BufferedWriter(Guarded(raw, fatal=True)))
    stream.write("more than five")
    with pytest.raises(StdoutError, match="No space left") as caught:
        stream.flush()
    assert caught.value.exit_code == 74
    stream.write("again")
    stream.flush()
    stream.close()
    assert raw.taken == b"more "


def test_a_full_pipe_that_does_not_block_is_waited_for() -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    reader = subprocess.Popen(["sh", "-c", "sleep 0.2; wc -c"], stdin=read, stdout=subprocess.PIPE, text=True)
    os.close(read)
    with os.fdopen(write, "wb", buffering=0) as raw:
        stream = io.BufferedWriter(Guarded(raw, fatal=True))
        stream.write(b"x" * 300_000)
        stream.flush()
    assert reader.communicate()[0].strip() == "300000"


def test_pillows_warnings_stay_off_the_terminal(tmp_path: Path, scene: Path) -> None:
    from PIL import Image

    path = tmp_path / "corrupt-exif.jpg"
    # A directory that says it has nine entries, and holds none.
    Image.open(scene).convert("RGB").save(path, exif=b"Exif\0\0II*\0\x08\0\0\0\x09\0")
    done = program("", *ASK, path, QUESTION)
    assert done.returncode == 0
    assert "Warning" not in done.stderr
