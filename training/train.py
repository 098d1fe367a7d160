"""Train one member: the vision stage first, then its lessons. Every budget is a number of steps."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from training.batch import IGNORED, Batch, assemble
from training.chat import Chat
from training.networks.model import TinyModel
from training.networks.probe import Probe
from training.worlds.world import Architecture, Plan, Stage, World

Report = Callable[[str], None]
WARMUP_STEPS = 60
FLOOR = 0.03
"""The cosine schedule ends at this share of the learning rate."""
REPORT_EVERY = 50
SPREAD = 0.25


def train(
    world: World, member: Architecture, chat: Chat, scale: float, seed: int, report: Report
) -> TinyModel:
    """Make one member.

    Args:
        world: What it learns.
        member: The architecture.
        chat: Its tokenizer and prompts.
        scale: Multiplies all step counts; 1 is the recipe.
        seed: Shifts every seed of the recipe; 0 is the recipe.
        report: Takes a line of progress.
    """
    plan = world.plan(member)
    torch.manual_seed(seed)
    model = TinyModel(member, chat.n_vocab, len(chat.before))
    probe = Probe(member, world.pooling, world.heads)
    for stage in plan.stages:
        _run_stage(world, plan, stage, model, probe, chat, scale, seed, report)
    return model.eval()


def _run_stage(
    world: World,
    plan: Plan,
    stage: Stage,
    model: TinyModel,
    probe: Probe,
    chat: Chat,
    scale: float,
    seed: int,
    report: Report,
) -> None:
    member = model.member
    rng = Random(f"{member} {stage.name} {stage.seed + seed}")
    torch.manual_seed(stage.seed + seed)
    _spread(model, chat, stage)
    only_vision = stage.lessons == 0
    trained = [*(model.vision if only_vision else model).parameters(), *probe.parameters()]
    optimizer = torch.optim.AdamW(trained, stage.learning_rate, (0.9, 0.98), weight_decay=0.05)
    steps = max(2, round(stage.steps * scale))
    warmup = max(1, round(WARMUP_STEPS * min(1.0, scale)))
    start = time.process_time()
    loss_mean, tokens = math.nan, 0
    model.train()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = stage.learning_rate * _schedule(step, steps, warmup)
        pictures = (
            world.glimpses(member, stage.pictures, rng) if only_vision else world.lessons(member, stage, rng)
        )
        batch = assemble(pictures, chat)
        loss, accuracy = _loss(model, probe, batch, plan, stage)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_((model.vision if only_vision else model).parameters(), 1.0)
        optimizer.step()
        tokens += batch.ids.numel()
        value = loss.item()
        loss_mean = value if math.isnan(loss_mean) else 0.97 * loss_mean + 0.03 * value
        if (step + 1) % REPORT_EVERY == 0 or step + 1 == steps:
            seen = " ".join(f"{name} {share:.2f}" for name, share in accuracy.items())
            seconds = time.process_time() - start
            report(
                f"{world.name} {member} {stage.name} {step + 1}/{steps} loss {loss_mean:.4f} "
                f"probe {seen or '-'} tokens {tokens} cpu {seconds:.0f} s"
            )


def _loss(
    model: TinyModel, probe: Probe, batch: Batch, plan: Plan, stage: Stage
) -> tuple[Tensor, dict[str, float]]:
    with torch.autocast("cpu", torch.bfloat16):
        image, deepstack = model.see(batch.pixels)
        logits = None
        if stage.lessons:
            row = batch.picture
            logits = model(batch.ids, image[row], None if deepstack is None else deepstack[row])
    loss, accuracy = probe(image, deepstack, batch.labels, plan.probe_heads)
    loss = stage.probe_weight * loss
    if logits is not None:
        keep = batch.targets != IGNORED
        each = F.cross_entropy(
            logits[keep].float(), batch.targets[keep], reduction="none", label_smoothing=plan.label_smoothing
        )
        weights = batch.weights[keep]
        loss = loss + (each * weights).sum() / weights.sum()
    return loss, accuracy


def _schedule(step: int, steps: int, warmup: int) -> float:
    cosine = 0.5 * (1 + math.cos(math.pi * step / steps))
    return min(1.0, (step + 1) / warmup) * (cosine * (1 - FLOOR) + FLOOR)


def _spread(model: TinyModel, chat: Chat, stage: Stage) -> None:
    """Push the embeddings of words that were only noise so far apart, so that a text can tell them apart."""
    with torch.no_grad():
        for word in stage.spread:
            row = model.embed.weight[chat.encode(word)[0]]
            row += SPREAD * torch.randn_like(row)
