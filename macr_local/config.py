"""models.toml, read into frozen and validated specifications."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from macr_local.settings import RelaySettings

KvType = Literal["f16", "q8_0", "q4_0"]


@dataclass(frozen=True, slots=True)
class ImageLimits:
    """How an image is fitted to what one member was made for."""

    square: int | None = None
    """Letterbox every image to exactly this side (the embedded pools: 64)."""
    min_side: int = 28
    """Smaller images are enlarged, or padded where their shape is extreme."""
    max_pixels: int = 1_600_000
    """Larger images are reduced, keeping their shape."""


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """One member as a pool file describes it; paths are absolute."""

    name: str
    model: Path
    projector: Path | None = None
    architecture: str | None = None
    """What `general.architecture` must say; None takes any."""
    projector_type: str | None = None
    """What `clip.projector_type` must say; None takes any that fits the vocabulary."""
    model_sha256: str | None = None
    projector_sha256: str | None = None
    n_ctx: int = 4096
    n_batch: int = 512
    n_gpu_layers: int = -1
    kv_type: KvType = "f16"
    threads: int | None = None
    """CPU threads of one decode; None is every core."""
    system: str | None = None
    think: bool | None = None
    chat_template: str | None = None
    """Jinja text that replaces the template in the GGUF file."""
    stop: tuple[str, ...] = ()
    images: ImageLimits = field(default_factory=ImageLimits)


@dataclass(frozen=True, slots=True)
class PoolSpec:
    """A pool: its members in order, its default settings, where its calibration lies."""

    name: str
    members: tuple[MemberSpec, ...]
    settings: RelaySettings = field(default_factory=RelaySettings)
    description: str = ""
    calibration: Path | None = None
    """A folder of `NAME.json` and `NAME.npz` files, one pair per member."""
    source: Path | None = None
    """The file that defines it."""
