"""The whole path from a world to GGUF files, with a hundredth of the steps; it needs PyTorch.

PyTorch is no dependency of the package or of its tests: ``pip install -r training/requirements.txt``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="training/requirements.txt is not installed")
pytest.importorskip("tokenizers", reason="training/requirements.txt is not installed")

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
WORLD = "tiny"
FILES = ("internvl.gguf", "internvl-mmproj.gguf", "internvl-tokenizer.json", "internvl.log")


def started(out: Path, *options: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "training.make", WORLD, "--out", str(out), "--no-compile"]
    environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([*command, "--steps-scale", "0.01", *options], cwd=ROOT, env=environment, **quiet)


def make(out: Path, *options: str) -> None:
    assert started(out, *options).wait() == 0


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("training")
    make(out)
    return out / WORLD


def contents(folder: Path) -> list[bytes]:
    return [(folder / file).read_bytes() for file in FILES]


def test_a_pool_that_was_just_made_opens_and_its_members_agree_with_their_twins(made: Path) -> None:
    from macr_local.config import load_pool
    from macr_local.engine.member import LlamaMember
    from training.parity import compare, load_twin
    from training.worlds.registry import open_world
    from training.worlds.world import ARCHITECTURES

    world = open_world(WORLD, scale=0.0)
    exam = world.exam(4, seed=1)
    pool = load_pool(made / "models.toml")
    assert len(pool.members) == len(ARCHITECTURES)
    for spec, architecture in zip(pool.members, ARCHITECTURES, strict=True):
        assert spec.name.endswith(architecture)
        member = LlamaMember(spec)
        try:
            found = compare(member, *load_twin(world, architecture, made), exam)
        finally:
            member.close()
        # f16 and llama.cpp's table for GELU cost a few thousandths.
        assert found.tokens >= len(exam)
        assert found.largest < 0.05
        assert found.same >= 0.9 * found.tokens


def test_the_same_seed_makes_the_same_files(made: Path, tmp_path: Path) -> None:
    make(tmp_path, "--member", "internvl")
    assert contents(tmp_path / WORLD) == contents(made)


def test_another_seed_makes_other_weights(made: Path, tmp_path: Path) -> None:
    make(tmp_path, "--member", "internvl", "--seed", "1")
    assert (tmp_path / WORLD / "internvl.gguf").read_bytes() != (made / "internvl.gguf").read_bytes()


def test_a_run_that_was_killed_goes_on_and_ends_with_the_same_bytes(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / WORLD
    process = started(tmp_path, "--member", "internvl")
    lines = 0
    while lines < 1:  # The log's first line ends the first stage; kill it somewhere in the second.
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.05)
        log = folder / "internvl.log"
        lines = log.read_bytes().count(b"\n") if log.exists() else 0
    time.sleep(2)
    process.kill()
    assert process.wait() < 0
    assert (folder / "internvl.checkpoint").exists()
    assert not (folder / "internvl.gguf").exists()
    make(tmp_path, "--member", "internvl")
    assert contents(folder) == contents(made)
    assert not (folder / "internvl.checkpoint").exists()


def test_a_checkpoint_of_another_recipe_is_not_taken_up(made: Path, tmp_path: Path) -> None:
    process = started(tmp_path, "--member", "internvl", "--seed", "1")
    while not (tmp_path / WORLD / "internvl.checkpoint").exists():
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.05)
    process.kill()
    process.wait()
    make(tmp_path, "--member", "internvl")
    assert contents(tmp_path / WORLD) == contents(made)
