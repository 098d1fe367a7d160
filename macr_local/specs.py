"""Frozen specifications: what a member and a pool are made of, checked where they are built."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from macr_local.errors import ConfigError
from macr_local.settings import RelaySettings
from macr_local.tuning import Tuning

KvType = Literal["f16", "q8_0", "q4_0"]


@dataclass(frozen=True, slots=True)
class ImageLimits:
    """How an image is fitted to what one member was made for."""

    square: int | None = None
    """Letterbox every image to exactly this side (the embedded pool: 64)."""
    min_side: int = 28
    """Smaller images are enlarged, or padded where their shape is extreme."""
    max_pixels: int = 1_600_000
    """Larger images are reduced, keeping their shape."""

    def __post_init__(self) -> None:
        _check("square", self.square, self.square is None or self.square >= 1, "1 or more pixels")
        _check("min_side", self.min_side, self.min_side >= 1, "1 or more pixels")
        _check(
            "max_pixels",
            self.max_pixels,
            self.max_pixels >= self.min_side**2,
            f"at least min_side squared, {self.min_side**2}",
        )


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

    def __post_init__(self) -> None:
        _check("n_ctx", self.n_ctx, self.n_ctx >= 1, "1 or more tokens")
        _check("n_batch", self.n_batch, self.n_batch >= 1, "1 or more tokens")
        _check("n_gpu_layers", self.n_gpu_layers, self.n_gpu_layers >= -1, "-1 for all layers, or 0 or more")
        _check("threads", self.threads, self.threads is None or self.threads >= 1, "1 or more")
        _check("kv_type", self.kv_type, self.kv_type in get_args(KvType), '"f16", "q8_0" or "q4_0"')
        _check("stop", self.stop, all(self.stop), "strings that are not empty")
        for key in ("model_sha256", "projector_sha256"):
            value = getattr(self, key)
            ok = value is None or (len(value) == 64 and set(value) <= set("0123456789abcdef"))
            _check(key, value, ok, "the 64 lower-case hexadecimal digits that sha256sum prints")


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
    tuning: Tuning | None = None
    """What `settings` have from ``macr-local tune``; None where nothing was tuned."""


def _check(name: str, value: object, ok: bool, want: str) -> None:
    if not ok:
        raise ConfigError(f"{name} is {value!r}", f"Use {want}")
