"""The whole path from a world to GGUF files, with a hundredth of the steps; it needs PyTorch.

PyTorch is no dependency of the package or of its tests: ``pip install -r training/requirements.txt``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="training/requirements.txt is not installed")
pytest.importorskip("tokenizers", reason="training/requirements.txt is not installed")

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


def make(world: str, out: Path, *options: str) -> None:
    command = [sys.executable, "-m", "training.make", world, "--out", str(out), "--steps-scale", "0.01"]
    environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}
    subprocess.run([*command, *options], cwd=ROOT, check=True, env=environment, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="module", params=["easy-vqa", "scenes"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    out = tmp_path_factory.mktemp("training")
    make(request.param, out)
    return request.param, out


def test_a_pool_that_was_just_made_opens_and_its_members_agree_with_their_twins(
    made: tuple[str, Path],
) -> None:
    from macr_local.config import load_pool
    from macr_local.engine.member import LlamaMember
    from training.parity import compare, load_twin
    from training.worlds.registry import open_world
    from training.worlds.world import ARCHITECTURES

    name, out = made
    world = open_world(name, scale=0.0)
    exam = world.exam(4, seed=1)
    pool = load_pool(out / name / "models.toml")
    assert len(pool.members) == len(ARCHITECTURES)
    for spec, architecture in zip(pool.members, ARCHITECTURES, strict=True):
        assert spec.name.endswith(architecture)
        member = LlamaMember(spec)
        try:
            found = compare(member, *load_twin(world, architecture, out / name), exam)
        finally:
            member.close()
        # f16 and llama.cpp's table for GELU cost a few thousandths; q8_0 a few hundredths.
        assert found.tokens >= len(exam)
        assert found.largest < (0.3 if name == "easy-vqa" else 0.05)
        assert found.same >= 0.9 * found.tokens


def test_the_same_seed_makes_the_same_files(made: tuple[str, Path], tmp_path: Path) -> None:
    name, out = made
    make(name, tmp_path, "--member", "internvl")
    for file in ("internvl.gguf", "internvl-mmproj.gguf", "internvl-tokenizer.json"):
        assert (tmp_path / name / file).read_bytes() == (out / name / file).read_bytes()


def test_another_seed_makes_other_weights(made: tuple[str, Path], tmp_path: Path) -> None:
    name, out = made
    make(name, tmp_path, "--member", "internvl", "--seed", "1")
    assert (tmp_path / name / "internvl.gguf").read_bytes() != (out / name / "internvl.gguf").read_bytes()
