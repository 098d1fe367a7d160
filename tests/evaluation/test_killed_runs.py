"""A run that is killed again and again ends as one that nothing has disturbed."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

KILLS = 20


def command(out: Path) -> list[str]:
    words = ["eval", "scenes", "--pool", "tiny", "--strategy", "macr", "--strategy", "vote", "--limit", "40"]
    sampled = ["--temperature", "0.7", "--seeds", "2", "--max-tokens", "80"]
    return [sys.executable, "-m", "macr_local", *words, *sampled, "--ending", "", "--out", str(out)]


def answers(out: Path) -> dict[tuple[str, str, int], dict[str, Any]]:
    found: dict[tuple[str, str, int], dict[str, Any]] = {}
    for path in sorted(out.rglob("answers*.jsonl")):
        for line in path.read_bytes().splitlines():
            record = json.loads(line)
            key = (path.parent.name, record["item"]["id"], record["seed"])
            assert key not in found, "an answer was written twice"
            record.pop("seconds")
            # What a member still held of the question before is no part of an answer.
            for counters in record["counters"].values():
                for name in ("decoded", "least", "reused", "images_encoded"):
                    counters.pop(name)
            found[key] = record
    return found


def written(out: Path) -> int:
    """Answers so far, a torn one left out."""
    return sum(path.read_bytes().count(b"\n") for path in out.rglob("answers*.jsonl"))


def table(out: Path) -> list[dict[str, Any]]:
    report = [sys.executable, "-m", "macr_local", "report", str(out), "--json"]
    done = subprocess.run(report, capture_output=True, text=True, check=True, timeout=120)
    rows: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    return rows


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_twenty_kills_at_random_moments_change_nothing(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    subprocess.run(command(whole), capture_output=True, check=True, timeout=600)
    rng, kills = random.Random(20), 0
    out = tmp_path / "killed"
    for _ in range(KILLS):
        # Up to seven more of 160 answers, whatever the machine's speed, so that there is always one to kill.
        wanted = written(out) + rng.randrange(8)
        process = subprocess.Popen(command(out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and written(out) < wanted:
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.1))
        kills += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
    subprocess.run(command(out), capture_output=True, check=True, timeout=600)
    assert kills == KILLS
    assert len(answers(whole)) == 160
    assert answers(out) == answers(whole)
    assert table(out) == table(whole)
