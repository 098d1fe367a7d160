"""The reference command refuses what it cannot do in one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("wrong", ["count 0", "count -4", "out"])
def test_what_the_command_cannot_do_is_one_clear_line(wrong: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    arguments = {
        "count 0": ["--count=0", "--out", str(tmp_path / "a")],
        "count -4": ["--count=-4", "--out", str(tmp_path / "b")],
        "out": ["--count=4", "--out", str(file)],
    }[wrong]
    command = [sys.executable, "-m", "training.worlds.tiny.reference", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
