"""Make a pool: ``python -m training.make tiny --out training/out``."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import cast

import torch

from training.chat import Chat
from training.export.language import export_language
from training.export.projector import export_projector
from training.export.tensors import Quantization
from training.pool_file import member_name, write_pool_file
from training.train import Training
from training.vocabulary import train_tokenizer
from training.worlds.registry import NAMES, open_world
from training.worlds.world import ARCHITECTURES, Architecture, World


def make_member(
    world: World,
    member: Architecture,
    folder: Path,
    quantization: Quantization,
    scale: float,
    seed: int,
    compiled: bool,
) -> None:
    """Train one member; write its tokenizer, PyTorch weights and two GGUF files into ``folder``."""
    plan = world.plan(member)
    tokenizer = train_tokenizer(plan.tokenizer, member, world.corpus(member), plan.vocabulary)
    tokenizer.save(str(folder / f"{member}-tokenizer.json"))
    chat = Chat(member, tokenizer, plan.vocabulary)
    training = Training(world, member, chat, scale=scale, seed=seed, compiled=compiled)
    model = training.run(folder / f"{member}.log")
    torch.save(model.state_dict(), folder / f"{member}.pt")
    name = member_name(world, member)
    export_language(model, chat, name, folder / f"{member}.gguf", quantization)
    export_projector(model, f"{name}-mmproj", folder / f"{member}-mmproj.gguf")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m training.make", description="Make a pool.")
    parser.add_argument("world", choices=NAMES)
    parser.add_argument("--out", type=Path, required=True, help="the pool goes to OUT/WORLD")
    parser.add_argument("--member", action="append", choices=ARCHITECTURES, help="only this one (repeatable)")
    parser.add_argument("--steps-scale", type=float, default=1.0, help="0.01 runs every stage for a moment")
    parser.add_argument("--seed", type=int, default=0, help="0 is the recipe's own seeds")
    parser.add_argument("--threads", type=int, default=1, help="one thread per process is fastest when busy")
    parser.add_argument(
        "--no-compile", action="store_true", help="do without a C++ compiler, at half the speed"
    )
    parser.add_argument(
        "--quantization", choices=("f16", "q8_0"), default="f16", help="of the language model's matrices"
    )
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    folder = options.out / options.world
    folder.mkdir(parents=True, exist_ok=True)
    world = open_world(options.world, options.steps_scale)
    quantization = cast(Quantization, options.quantization)
    for member in options.member or ARCHITECTURES:
        start = time.monotonic()
        make_member(
            world,
            member,
            folder,
            quantization,
            options.steps_scale,
            options.seed,
            not options.no_compile,
        )
        print(f"{member} made in {time.monotonic() - start:.0f} s", file=sys.stderr)
        pool_file = write_pool_file(folder, world)
    print(pool_file)


if __name__ == "__main__":
    main()
