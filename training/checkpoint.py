"""Where training stands, on disk, so that an interrupted run goes on and ends with the same bytes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer


@dataclass(slots=True)
class Progress:
    """How far a stage is."""

    stage: int = 0
    """Its number in the plan."""
    step: int = 0
    """Steps that are done."""
    tokens: int = 0
    loss: float | None = None
    """Running mean; None before the first step."""


class Checkpoint:
    """One file with everything that the next step depends on.

    Args:
        path: The file.
        recipe: What the run is: a checkpoint of another recipe is not taken up.
    """

    def __init__(self, path: Path, recipe: Mapping[str, object]) -> None:
        self.path, self._recipe = path, dict(recipe)

    def save(
        self, progress: Progress, parts: Mapping[str, nn.Module | Optimizer], rng: Random, log_size: int
    ) -> None:
        """Replace the file; an interruption leaves the old one or the new one."""
        state = {
            "recipe": self._recipe,
            "progress": [progress.stage, progress.step, progress.tokens, progress.loss],
            "parts": {name: part.state_dict() for name, part in parts.items()},
            "rng": rng.getstate(),
            "log_size": log_size,
        }
        new = self.path.with_name(f"{self.path.name}.new")
        torch.save(state, new)
        os.replace(new, self.path)

    def load(self) -> dict[str, Any] | None:
        """What was saved, or None where nothing was, or something else was trained."""
        if not self.path.exists():
            return None
        state: dict[str, Any] = torch.load(self.path, weights_only=True)
        return state if state["recipe"] == self._recipe else None

    def remove(self) -> None:
        """The run is complete."""
        self.path.unlink(missing_ok=True)
