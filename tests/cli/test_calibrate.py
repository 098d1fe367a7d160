"""`macr-local calibrate` on the embedded pool."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from macr_local.cli.main import cli


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
    assert "(w = 8, in nats)" in result.stdout
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
    assert "1 of 2 questions could not be used, such as set.jsonl:2: there is no image" in result.stderr
    assert (out / "tiny-internvl.json").exists()


def test_a_set_that_does_not_exist_is_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    result = run(tmp_path / "none.jsonl", "--pool", "tiny")
    assert result.exit_code == 9
    assert "There is no reference set" in result.stderr
