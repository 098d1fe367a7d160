"""The models.toml of a pool that was just made, so that `macr-local` can use it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from training.export.language import ARCHITECTURE
from training.export.projector import PROJECTOR
from training.worlds.world import ARCHITECTURES, Architecture, World


def member_name(world: World, member: Architecture) -> str:
    """The name of a member in pools and answers."""
    return f"{world.pool}-{member}"


def write_pool_file(folder: Path, world: World) -> Path:
    """Write ``models.toml`` for the members whose two files lie in ``folder``; return its path."""
    members = [
        member
        for member in ARCHITECTURES
        if (folder / f"{member}.gguf").exists() and (folder / f"{member}-mmproj.gguf").exists()
    ]
    path = folder / "models.toml"
    path.write_text(_text(folder, world, members), encoding="utf-8")
    return path


def _text(folder: Path, world: World, members: Sequence[Architecture]) -> str:
    names = ", ".join(f'"{member_name(world, member)}"' for member in members)
    settings = ", ".join(f"{key} = {value}" for key, value in world.settings.items())
    parts = [
        "# Made by training/; paths are relative to this file.\n"
        f"[pools.{world.pool}]\n"
        f'description = "{world.description}"\n'
        f"members = [{names}]\n"
        'calibration = "calibration"\n'
        f"settings = {{ {settings} }}\n"
        "sampling = { temperature = 0.0 }\n"
    ]
    for member in members:
        model, projector = f"{member}.gguf", f"{member}-mmproj.gguf"
        parts.append(
            f"[models.{member_name(world, member)}]\n"
            f'model = "{model}"\n'
            f'projector = "{projector}"\n'
            f'architecture = "{ARCHITECTURE[member]}"\n'
            f'projector_type = "{PROJECTOR[member]}"\n'
            f'model_sha256 = "{_sha256(folder / model)}"\n'
            f'projector_sha256 = "{_sha256(folder / projector)}"\n'
            "n_ctx = 512\n"
            "n_gpu_layers = 0\n"
            "threads = 1\n"
            "images = { square = 64 }\n"
        )
    return "\n".join(parts)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
