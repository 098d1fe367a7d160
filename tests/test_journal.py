"""A journal is taken up only where it holds what a run has written, and by one run at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

from macr_local.errors import CalibrationError
from macr_local.journal import Journal
from macr_local.lock import alone_in

ALONE = """
import os, pathlib
from macr_local.errors import CalibrationError
from macr_local.lock import alone_in
def alone(folder):
    return alone_in(folder, doing="calibrating", error=CalibrationError)
"""
alone = partial(alone_in, doing="calibrating", error=CalibrationError)

FINE = [-0.5, -0.0, 0.0, -1e300, -1]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    where = tmp_path / "m.partial.jsonl"
    with Journal.open(where, "run") as journal:
        journal.write("one", FINE)
    return where


def answers(path: Path, run: str = "run") -> dict[str, list[float]]:
    with Journal.open(path, run) as journal:
        return journal.answers


def test_what_was_written_is_taken_up(path: Path) -> None:
    assert answers(path) == {"one": FINE}


@pytest.mark.parametrize(
    "logprobs",
    ["[NaN]", "[-Infinity]", "[Infinity]", "[0.1]", "[]", "3", '"-1"', '{"0": -1}', '["-1"]', "[true]",
     "[null]", "[[-1]]", "null"],
)  # fmt: skip
def test_what_are_no_log_probabilities_is_damage_on_its_line(path: Path, logprobs: str) -> None:
    line = f'{{"key": "two", "logprobs": {logprobs}}}\n'
    good = path.read_bytes()
    path.write_bytes(good + line.encode() + b'{"key": "three", "logprobs": [-1.0]}\n')
    with pytest.raises(CalibrationError, match=r"m\.partial\.jsonl, line 3 is damaged.*--restart"):
        answers(path)
    assert path.read_bytes().startswith(good), "nothing is lost"


@pytest.mark.parametrize(
    "line", [b"", b"{", b"\xff\xfe", b"[]", b"7", b'{"key": "x"}', b'{"key": 3, "logprobs": [-1]}', b"\0" * 9,
             b"[" * 100_000],
    ids=range(9),
)  # fmt: skip
def test_what_is_no_row_is_damage_on_its_line(path: Path, line: bytes) -> None:
    path.write_bytes(path.read_bytes() + line + b"\n")
    with pytest.raises(CalibrationError, match=r"line 3 is damaged"):
        answers(path)


@pytest.mark.parametrize("first", [b"garbage\n", b"\n", b"\xff\n", b"{}\n", b"no line end", b'{"key": "x"'])
def test_a_first_line_that_is_garbage_is_damage_and_left_alone(path: Path, first: bytes) -> None:
    path.write_bytes(first)
    with pytest.raises(CalibrationError, match=r"line 1 is damaged.*--restart"):
        answers(path)
    assert path.read_bytes() == first
    with Journal.open(path, "run", restart=True) as journal:
        assert journal.answers == {}


def test_a_first_line_of_another_run_is_no_damage(path: Path) -> None:
    with pytest.raises(CalibrationError, match="interrupted run with other"):
        answers(path, "another")


def test_a_file_torn_anywhere_is_taken_up(path: Path) -> None:
    whole = path.read_bytes()
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        assert answers(path) == {}
        assert json.loads(path.read_bytes()) == {"macr_calibrating": "run"}


def test_a_second_run_in_a_folder_is_refused_with_the_first_ones_pid(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    with alone(folder):
        code = f"{ALONE}with alone(pathlib.Path({str(folder)!r})): pass"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert f"Another run (pid {os.getpid()}) is calibrating into {folder}." in done.stderr
        with pytest.raises(CalibrationError, match="Another run"), alone(folder):
            pass
    with alone(folder):
        pass
    assert list(folder.iterdir()) == []


def test_a_run_that_was_killed_keeps_nobody_out(tmp_path: Path) -> None:
    code = f"{ALONE}with alone(pathlib.Path({str(tmp_path)!r})): print('in', flush=True); os._exit(9)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).stdout == b"in\n"
    with alone(tmp_path):
        assert (tmp_path / ".calibrating.lock").read_text() == f"{os.getpid()}\n"


def test_of_many_runs_that_begin_together_one_is_in_at_a_time(tmp_path: Path) -> None:
    inside, most, entered = [0], [0], [0]
    count = threading.Lock()

    def work() -> None:
        for _ in range(200):
            try:
                with alone(tmp_path):
                    with count:
                        inside[0] += 1
                        entered[0] += 1
                        most[0] = max(most[0], inside[0])
                    with count:
                        inside[0] -= 1
            except CalibrationError:
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most[0] == 1
    assert entered[0] > 0


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CalibrationError, match=r"cannot be written.*--out"), alone(tmp_path / "file"):
        pass
