"""`macr-local calibrate` on the embedded pool."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from macr_local.cli.program import cli
from macr_local.config import find_pool


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(cli, ["calibrate", *map(str, args)])


@pytest.fixture
def examples() -> Path:
    return Path(__file__).parent.parent.parent / "examples"


def test_a_table_a_pair_of_files_and_progress_on_stderr(tmp_path: Path) -> None:
    result = run(
        "easy-vqa", "--pool", "tiny", "--members", "tiny-qwen3vl,tiny-internvl", "--limit", 20,
        "--out", tmp_path,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "tiny-qwen3vl" in result.stdout
    assert f"(w = {find_pool('tiny').settings.window}, in nats)" in result.stdout
    assert "standardised (held out)" in result.stdout
    assert "tiny-internvl: 20 of 20" in result.stderr
    assert {path.name for path in tmp_path.iterdir()} == {
        f"{name}.{suffix}" for name in ("tiny-qwen3vl", "tiny-internvl") for suffix in ("json", "npz")
    }


def test_json_is_one_object(tmp_path: Path) -> None:
    result = run(
        "easy-vqa", "--pool", "tiny", "--members", "tiny-internvl", "--limit", 5, "--out", tmp_path,
        "--window", 4, "--json",
    )  # fmt: skip
    answer = json.loads(result.stdout)
    assert answer["window"] == 4
    assert answer["members"]["tiny-internvl"]["questions"] == 5
    assert answer["shift"] is None


def test_rows_with_problems_are_counted_and_the_exit_code_says_so(tmp_path: Path, examples: Path) -> None:
    rows = [
        {"image": str(examples / "shape.png"), "question": "what shape is in the image?"},
        {"image": "none.png", "question": "what?"},
    ]
    path = tmp_path / "set.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    out = tmp_path / "out"
    result = run(path, "--pool", "tiny", "--members", "tiny-internvl", "--out", out, "--window", 2)
    assert result.exit_code == 9
    assert "1 of 2 questions could not be used, such as set.jsonl, line 2: there is no image" in result.stderr
    assert (out / "tiny-internvl.json").exists()


# Of the 12th line that is written to a line file (after two heads, eight answers of the first member and one
# of the second) a part is written, and the process sends itself a signal.
SIGNALLED = """
import os, signal, sys
from macr_local.linefile import LineFile
whole, lines, name = LineFile.append, [], sys.argv.pop(1)
def append(self, line):
    lines.append(line)
    if len(lines) != 12:
        return whole(self, line)
    self._file.write(line[:30])
    os.kill(os.getpid(), getattr(signal, name))
LineFile.append = append
from macr_local.cli.main import main
main()
"""


@pytest.mark.parametrize(("signal", "code"), [("SIGKILL", -9), ("SIGINT", 130)])
def test_a_signal_at_any_time_loses_no_finished_answer(signal: str, code: int, tmp_path: Path) -> None:
    args = ["easy-vqa", "--pool", "tiny", "--members", "tiny-qwen3vl,tiny-internvl", "--limit", "8"]
    command = [sys.executable, "-c", SIGNALLED, signal, "calibrate", *args, "--out", str(tmp_path / "a")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == code, done.stderr
    if signal == "SIGINT":
        assert "Calibrating was interrupted\n  Run the same command again" in done.stderr
    again = run(*args, "--out", tmp_path / "a")
    assert again.exit_code == 0, again.output
    assert "(8 from the run before)" in again.stdout
    assert "(1 from the run before)" in again.stdout
    assert run(*args, "--out", tmp_path / "b").exit_code == 0
    for name in ("tiny-qwen3vl.npz", "tiny-internvl.npz"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_how_tokens_are_drawn_can_be_given_and_is_recorded(tmp_path: Path) -> None:
    result = run(
        "easy-vqa", "--pool", "tiny", "--members", "tiny-internvl", "--limit", 3, "--out", tmp_path,
        "--temperature", 0.7, "--top-k", 5, "--top-p", 0.9, "--max-tokens", 6,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    origin = json.loads((tmp_path / "tiny-internvl.json").read_text())["origin"]
    assert origin["sampling"]["temperature"] == 0.7
    assert (origin["sampling"]["top_k"], origin["sampling"]["top_p"]) == (5, 0.9)
    assert origin["max_tokens"] == 6
    assert run("easy-vqa", "--pool", "tiny", "--top-p", 0, "--out", tmp_path).exit_code == 4


def test_a_set_that_does_not_exist_is_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    result = run(tmp_path / "none.jsonl", "--pool", "tiny")
    assert result.exit_code == 9
    assert "There is no data set" in result.stderr
