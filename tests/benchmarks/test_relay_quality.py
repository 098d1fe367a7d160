"""The experiment as its users run it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.quality.run import load
from benchmarks.quality.summary import ANY
from benchmarks.relay_quality import main

ROOT = Path(__file__).parents[2]
SMALL = ("--count", "16", "--tasks", "scenes")


def strict(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    return json.loads(text, parse_constant=refuse)


def report(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    main([*map(str, arguments), "--json"])
    return strict(capsys.readouterr().out)


def test_every_method_is_reported_with_intervals_and_what_it_wrote(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    kept = tmp_path / "kept.gz"
    found = report(capsys, *SMALL, "--save", kept)["scenes"]
    lines = {line["method"]: line for line in found["methods"]}
    members = ["tiny-qwen3vl", "tiny-internvl", "tiny-minicpmv"]
    assert list(lines) == [*members, "vote", "best-of", "relay", ANY]
    for line in lines.values():
        assert line["questions"] == 16
        assert line["right"]["low"] <= line["right"]["value"] <= line["right"]["high"]
    alone = sum(lines[name]["generated"]["value"] for name in members)
    for name in ("vote", "best-of", ANY):
        assert lines[name]["generated"]["value"] == pytest.approx(alone), "all tokens are counted"
    assert lines[ANY]["right"]["value"] >= max(lines[name]["right"]["value"] for name in members)
    assert found["relay"]["lot"]["value"] == pytest.approx(1 / 3)
    assert set(found["surer_when_right"]) == set(members)
    assert found["between_members"][0]["questions"] > 50
    assert report(capsys, "--load", kept)["scenes"] == found
    (run,) = load(kept)
    assert {outcome.method for outcome in run.outcomes} == set(lines)


def test_two_runs_are_reported_together(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for seed in (0, 1):
        report(capsys, *SMALL, "--temperature", 1, "--sampling-seed", seed, "--save", tmp_path / f"{seed}.gz")
    both = report(capsys, "--load", tmp_path / "0.gz", tmp_path / "1.gz")["scenes"]["methods"]
    for line in both:
        assert line["questions"] == 32
        assert line["right"]["value"] == pytest.approx(sum(line["by_run"]) / 2)
        assert line["spread"] == pytest.approx(abs(line["by_run"][0] - line["by_run"][1]) / 2**0.5)


@pytest.mark.slow
def test_a_sweep_holds_the_pool_s_own_setting(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = ("--count", "4", "--tasks", "scenes", "--split", "tuning", "--sweep")
    lines = {line["method"]: line for line in report(capsys, *arguments)["scenes"]["methods"]}
    assert {"w=16 tau=-0.3", "first-doubt w=8 tau=-0.3", "boundary=word", "order", "no relay"} <= set(lines)
    assert lines["no relay"]["relays"] == 0


def test_it_runs_by_its_path_from_anywhere(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "relay_quality.py"), "--help"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "--quick" in done.stdout
