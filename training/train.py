"""Train one member, stage by stage. Budgets are steps, never seconds, so a run repeats to the byte."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, BinaryIO

import torch
import torch.nn.functional as F
from torch import Tensor

from training.batch import Batch, assemble
from training.chat import Chat
from training.checkpoint import Checkpoint, Progress
from training.networks.model import TinyModel
from training.networks.probe import Probe
from training.worlds.world import Architecture, Stage, World

WARMUP_STEPS = 60
FLOOR = 0.03
"""The cosine schedule ends at this share of the learning rate."""
REPORT_EVERY = 50
SAVE_EVERY = 200


class Training:
    """The training of one member.

    Args:
        world: What it learns.
        member: The architecture.
        chat: Its tokenizer and prompts.
        scale: Multiplies all step counts; 1 is the recipe.
        seed: Shifts every seed of the recipe; 0 is the recipe.
        compiled: Whether PyTorch compiles the networks, which more than halves the time of a long run.
    """

    def __init__(
        self,
        world: World,
        member: Architecture,
        chat: Chat,
        *,
        scale: float = 1.0,
        seed: int = 0,
        compiled: bool = True,
    ) -> None:
        self.world, self.member, self.chat, self.plan = world, member, chat, world.plan(member)
        self.scale, self.seed = scale, seed
        torch.manual_seed(seed)
        self.model = TinyModel(member, chat.n_vocab, len(chat.before))
        self.probe = Probe(member, world.pooling, world.heads)
        self._see: Callable[..., Any] = self.model.see
        self._write: Callable[..., Tensor] = self.model
        if compiled:
            self._see = torch.compile(self.model.see)
            self._write = torch.compile(self.model, dynamic=True)
        self._recipe = {
            "world": world.name, "member": member, "scale": scale, "seed": seed, "plan": repr(self.plan)
        }  # fmt: skip

    def run(self, log: Path) -> TinyModel:
        """Train, or go on where an earlier run was interrupted.

        Args:
            log: A line of JSON for every 50 steps; beside it lies a checkpoint until the end.
        """
        checkpoint = Checkpoint(log.with_suffix(".checkpoint"), self._recipe)
        state = checkpoint.load()
        progress = Progress(*state["progress"]) if state else Progress()
        with log.open("r+b" if state and log.exists() else "wb") as lines:
            lines.truncate(state["log_size"] if state else 0)
            lines.seek(0, 2)
            for number in range(progress.stage, len(self.plan.stages)):
                resumed = state if number == progress.stage else None
                if resumed is None:
                    progress = Progress(number)
                self._stage(self.plan.stages[number], progress, checkpoint, resumed, lines)
        checkpoint.remove()
        return self.model.eval()

    def _stage(
        self,
        stage: Stage,
        progress: Progress,
        checkpoint: Checkpoint,
        state: dict[str, Any] | None,
        log: BinaryIO,
    ) -> None:
        rng = Random(f"{self.member} {stage.name} {stage.seed + self.seed}")
        torch.manual_seed(stage.seed + self.seed)
        only_vision = stage.lessons == 0
        tuned = self.model.vision if only_vision else self.model
        optimizer = torch.optim.AdamW(
            [*tuned.parameters(), *self.probe.parameters()],
            stage.learning_rate,
            (0.9, 0.98),
            weight_decay=0.05,
        )
        parts = {"model": self.model, "probe": self.probe, "optimizer": optimizer}
        self.model.train()
        # What the compiler makes depends on the sizes it meets first, so a resumed run meets the same.
        self._loss(self._batch(stage, Random(0)), stage)[0].backward()  # type: ignore[no-untyped-call]
        if state is not None:
            for name, part in parts.items():
                part.load_state_dict(state["parts"][name])
            rng.setstate(state["rng"])
        steps = max(2, round(stage.steps * self.scale))
        warmup, save_every = (max(1, round(n * min(1.0, self.scale))) for n in (WARMUP_STEPS, SAVE_EVERY))
        start = time.process_time()
        while progress.step < steps:
            for group in optimizer.param_groups:
                group["lr"] = stage.learning_rate * _schedule(progress.step, steps, warmup)
            batch = self._batch(stage, rng)
            optimizer.zero_grad()
            loss, accuracy = self._loss(batch, stage)
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(tuned.parameters(), 1.0)
            optimizer.step()
            progress.step += 1
            progress.tokens += sum(sheet.ids.numel() for sheet in batch.sheets)
            value = loss.item()
            progress.loss = value if progress.loss is None else 0.97 * progress.loss + 0.03 * value
            if progress.step % REPORT_EVERY == 0 or progress.step == steps:
                self._report(stage, progress, steps, accuracy, log, time.process_time() - start)
            if progress.step % save_every == 0:
                checkpoint.save(progress, parts, rng, log.tell())

    def _batch(self, stage: Stage, rng: Random) -> Batch:
        world, member = self.world, self.member
        if stage.lessons:
            return assemble(world.lessons(member, stage, rng), self.chat)
        return assemble(world.glimpses(member, stage.pictures, rng), self.chat)

    def _loss(self, batch: Batch, stage: Stage) -> tuple[Tensor, dict[str, float]]:
        told = torch.zeros(())
        weight = sum((sheet.weights.sum() for sheet in batch.sheets), torch.zeros(()))
        with torch.autocast("cpu", torch.bfloat16):
            image, deepstack = self._see(batch.pixels)
            for sheet in batch.sheets:
                row = sheet.picture
                logits = self._write(
                    sheet.ids, image[row], None if deepstack is None else deepstack[row], sheet.at
                )
                each = F.cross_entropy(
                    logits.float(),
                    sheet.targets,
                    reduction="none",
                    label_smoothing=self.plan.label_smoothing,
                )
                told = told + (each * sheet.weights).sum() / weight
        if stage.probe_weight == 0:
            return told, {}
        seen, accuracy = self.probe(image, deepstack, batch.labels, self.plan.probe_heads)
        return stage.probe_weight * seen + told, accuracy

    def _report(
        self,
        stage: Stage,
        progress: Progress,
        steps: int,
        accuracy: dict[str, float],
        log: BinaryIO,
        seconds: float,
    ) -> None:
        assert progress.loss is not None
        line = {
            "stage": stage.name,
            "step": progress.step,
            "steps": steps,
            "loss": round(progress.loss, 4),
            "probe": {name: round(share, 3) for name, share in accuracy.items()},
            "tokens": progress.tokens,
        }
        log.write(json.dumps(line).encode() + b"\n")
        log.flush()
        shown = " ".join(f"{name} {share:.2f}" for name, share in accuracy.items())
        print(
            f"{self.world.name} {self.member} {stage.name} {progress.step}/{steps} "
            f"loss {progress.loss:.4f} {shown} cpu {seconds:.0f} s",
            file=sys.stderr,
            flush=True,
        )


def _schedule(step: int, steps: int, warmup: int) -> float:
    cosine = 0.5 * (1 + math.cos(math.pi * step / steps))
    return min(1.0, (step + 1) / warmup) * (cosine * (1 - FLOOR) + FLOOR)
