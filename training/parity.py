"""Compare the PyTorch twins with llama.cpp: ``python -m training.parity tiny --out training/out``.

Each member answers questions greedily through the project's own engine; the twin is then led along the same
tokens. Where the chosen tokens are the twin's own first choice and their log-probabilities (which take in the
whole vocabulary) agree, so do prompt layout, image, positions and weights.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from macr_local.config import load_pool
from macr_local.engine.member import LlamaMember
from macr_local.prompt import Prompt
from macr_local.settings import Sampling
from training.chat import Chat
from training.networks.model import TinyModel
from training.worlds.registry import NAMES, open_world
from training.worlds.world import ARCHITECTURES, Architecture, World

LONGEST = 160


@dataclass(frozen=True, slots=True)
class Parity:
    """How well one member and its twin agree."""

    tokens: int
    same: int
    """Tokens that are the twin's most probable ones too."""
    largest: float
    """Largest difference of a log-probability, in nats."""


def compare(
    member: LlamaMember, twin: TinyModel, chat: Chat, exam: list[tuple[NDArray[np.uint8], str, str]]
) -> Parity:
    """Let a member answer, and its twin judge every token of the answers."""
    tokens, same, largest = 0, 0, 0.0
    for pixels, question, _ in exam:
        ids, logprobs = _answer(member, pixels, question)
        prompt = chat.prompt(question)
        with torch.no_grad():
            image, deepstack = twin.see(torch.from_numpy(pixels.copy())[None])
            logits = twin(torch.tensor([prompt + ids[:-1]]), image, deepstack)[0, len(prompt) - 1 :]
        own = logits.log_softmax(-1)
        chosen = own.gather(1, torch.tensor(ids)[:, None])[:, 0]
        tokens += len(ids)
        same += int((own.argmax(-1) == torch.tensor(ids)).sum())
        largest = max(largest, float((chosen - torch.tensor(logprobs)).abs().max()))
    return Parity(tokens, same, largest)


def _answer(member: LlamaMember, pixels: NDArray[np.uint8], question: str) -> tuple[list[int], list[float]]:
    """Greedy ids, the end token included, and their log-probabilities."""
    member.begin(Prompt.of(question, [pixels]), Sampling(), lambda: False)
    ids: list[int] = []
    logprobs: list[float] = []
    while len(ids) < LONGEST:
        token = member.propose(lambda: 0.0)
        ids.append(token.id)
        logprobs.append(token.logprob)
        if token.is_end:
            break
        member.accept(token)
    return ids, logprobs


def load_twin(world: World, architecture: Architecture, folder: Path) -> tuple[TinyModel, Chat]:
    """The PyTorch weights and the tokenizer that `training.make` left in ``folder``."""
    tokenizer = Tokenizer.from_file(str(folder / f"{architecture}-tokenizer.json"))
    chat = Chat(architecture, tokenizer, world.plan(architecture).vocabulary)
    twin = TinyModel(architecture, chat.n_vocab, len(chat.before))
    twin.load_state_dict(torch.load(folder / f"{architecture}.pt", weights_only=True))
    return twin.eval(), chat


def main(arguments: list[str] | None = None) -> None:
    summary = "Compare the PyTorch twins with llama.cpp."
    parser = argparse.ArgumentParser(prog="python -m training.parity", description=summary)
    parser.add_argument("world", choices=NAMES)
    parser.add_argument("--out", type=Path, required=True, help="where training.make put the pool")
    parser.add_argument("--questions", type=int, default=20)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    folder = options.out / options.world
    world = open_world(options.world, scale=0.0)
    exam = world.exam(options.questions, seed=9)
    for spec in load_pool(folder / "models.toml").members:
        architecture = next(name for name in ARCHITECTURES if spec.name.endswith(name))
        member = LlamaMember(spec)
        try:
            found = compare(member, *load_twin(world, architecture, folder), exam)
        finally:
            member.close()
        print(
            f"{spec.name}: {found.same} of {found.tokens} tokens are the twin's first choice, "
            f"log-probabilities differ by at most {found.largest:.4f}"
        )


if __name__ == "__main__":
    main()
