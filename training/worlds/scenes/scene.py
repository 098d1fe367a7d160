"""A scene of four places, and its drawing."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from PIL import Image, ImageDraw

SHAPES = ("circle", "square", "triangle", "cross")
RGB = {
    "red": (220, 45, 45),
    "green": (45, 185, 70),
    "blue": (50, 85, 235),
    "yellow": (235, 215, 60),
    "purple": (165, 60, 200),
    "white": (240, 240, 240),
}
COLORS = tuple(RGB)
PLACES = ("top left", "top right", "bottom left", "bottom right")
SIDE = 64
P_EMPTY = 0.35
_OVERSAMPLING = 4


@dataclass(frozen=True, slots=True)
class Thing:
    """One coloured shape."""

    color: str
    shape: str


Scene = tuple[Thing | None, ...]
"""What is at the four `PLACES`; None where nothing is."""


def random_thing(rng: Random) -> Thing:
    """A thing with any color and any shape."""
    return Thing(rng.choice(COLORS), rng.choice(SHAPES))


def random_scene(rng: Random) -> Scene:
    """A scene whose places are empty with probability `P_EMPTY`, independently."""
    return tuple(None if rng.random() < P_EMPTY else random_thing(rng) for _ in PLACES)


def draw(scene: Scene, rng: Random) -> Image.Image:
    """Draw a scene at 64x64 pixels; background, sizes, places and tints vary with ``rng``."""
    k = _OVERSAMPLING
    gray = rng.randint(15, 60)
    image = Image.new("RGB", (SIDE * k, SIDE * k), (gray, gray, gray))
    canvas = ImageDraw.Draw(image)
    for place, thing in enumerate(scene):
        if thing is None:
            continue
        radius = rng.uniform(8, 12.5)
        slack = 15.5 - radius
        x = (16 + 32 * (place % 2) + rng.uniform(-slack, slack)) * k
        y = (16 + 32 * (place // 2) + rng.uniform(-slack, slack)) * k
        tint = [max(0, min(255, value + rng.randint(-12, 12))) for value in RGB[thing.color]]
        _draw_thing(canvas, thing.shape, x, y, radius * k, (tint[0], tint[1], tint[2]))
    return image.resize((SIDE, SIDE), Image.Resampling.LANCZOS)


def _draw_thing(
    canvas: ImageDraw.ImageDraw, shape: str, x: float, y: float, r: float, fill: tuple[int, int, int]
) -> None:
    if shape == "circle":
        canvas.ellipse((x - r, y - r, x + r, y + r), fill=fill)
    elif shape == "square":
        s = 0.88 * r
        canvas.rectangle((x - s, y - s, x + s, y + s), fill=fill)
    elif shape == "triangle":
        canvas.polygon([(x, y - r), (x - r, y + 0.85 * r), (x + r, y + 0.85 * r)], fill=fill)
    else:
        t = 0.3 * r
        canvas.rectangle((x - r, y - t, x + r, y + t), fill=fill)
        canvas.rectangle((x - t, y - r, x + t, y + r), fill=fill)
