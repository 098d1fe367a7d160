"""A scene: what is at four places, and the drawing of it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

from PIL import Image, ImageDraw

Split = Literal["train", "reference", "tuning", "test"]

RGB = {
    "red": (215, 45, 45),
    "green": (60, 190, 80),
    "blue": (50, 85, 230),
    "yellow": (240, 215, 60),
    "purple": (150, 55, 190),
    "white": (250, 250, 250),
}
COLORS = tuple(RGB)
SHAPES = ("circle", "square", "triangle", "cross")
SIZES = ("small", "large")
DIGITS = ("one", "two", "three", "four", "five")
"""As words: a vocabulary of letters cuts them alike everywhere. The images show numerals."""
P_ALIKE = 0.35
"""How often a thing takes an attribute from an earlier one: or there was seldom more than one of anything."""
PLACES = ("top left", "top right", "bottom left", "bottom right")
"""In reading order; place 2 * row + column."""

SIDE = 64
_OVERSAMPLING = 4
_WHITE_ON = ("blue", "purple", "red")
_RADIUS = {"small": (9.5, 10.5), "large": (13.0, 14.0)}
_GLYPHS = {
    "one": (".#.", "##.", ".#.", ".#.", "###"),
    "two": ("##.", "..#", ".#.", "#..", "###"),
    "three": ("##.", "..#", ".#.", "..#", "##."),
    "four": ("#.#", "#.#", "###", "..#", "..#"),
    "five": ("###", "#..", "##.", "..#", "##."),
}
_CELL = 1.7
"""Pixels of one cell of a glyph."""


@dataclass(frozen=True, slots=True)
class Thing:
    """A coloured shape with a digit on it."""

    size: str
    color: str
    shape: str
    digit: str


Scene = tuple[Thing | None, ...]
"""What is at the four `PLACES`; None where nothing is."""


def split_of(scene: Scene) -> Split:
    """The one split that a scene belongs to, so that what is asked in one is never seen in another.

    70 % of all scenes are for training, 10 % each for calibration, for the choice of settings, and for tests.
    """
    text = "|".join("-" if t is None else f"{t.size} {t.color} {t.shape} {t.digit}" for t in scene)
    part = hashlib.sha256(text.encode()).digest()[0] % 10
    splits: tuple[Split, ...] = ("reference", "tuning", "test")
    return splits[part] if part < len(splits) else "train"


def random_thing(rng: Random) -> Thing:
    """A thing with any attributes."""
    return Thing(rng.choice(SIZES), rng.choice(COLORS), rng.choice(SHAPES), rng.choice(DIGITS))


def random_scene(rng: Random, split: Split) -> Scene:
    """A scene of a split: two, three or four things at random places, with some attributes in common."""
    while True:
        things: list[Thing] = []
        for _ in range(rng.choice((2, 2, 3, 3, 4))):
            thing = random_thing(rng)
            for attribute in ("size", "color", "shape", "digit"):
                if things and rng.random() < P_ALIKE:
                    thing = replace(thing, **{attribute: getattr(rng.choice(things), attribute)})
            things.append(thing)
        places: list[Thing | None] = [*things, *[None] * (len(PLACES) - len(things))]
        rng.shuffle(places)
        scene = tuple(places)
        if split_of(scene) == split:
            return scene


def draw(scene: Scene, rng: Random) -> Image.Image:
    """Draw a scene at 64x64 pixels; background, tints, exact sizes and places vary with ``rng``."""
    k = _OVERSAMPLING
    gray = rng.randint(95, 150)
    image = Image.new("RGB", (SIDE * k, SIDE * k), (gray, gray, gray))
    canvas = ImageDraw.Draw(image)
    for place, thing in enumerate(scene):
        if thing is None:
            continue
        radius = rng.uniform(*_RADIUS[thing.size])
        slack = 15.5 - radius
        x = 16 + 32 * (place % 2) + rng.uniform(-slack, slack)
        y = 16 + 32 * (place // 2) + rng.uniform(-slack, slack)
        tint = [max(0, min(255, value + rng.randint(-12, 12))) for value in RGB[thing.color]]
        _draw_shape(canvas, thing.shape, x * k, y * k, radius * k, (tint[0], tint[1], tint[2]))
        lower = 0.25 * radius if thing.shape == "triangle" else 0.0
        ink = (255, 255, 255) if thing.color in _WHITE_ON else (0, 0, 0)
        _draw_digit(canvas, thing.digit, x * k, (y + lower) * k, _CELL * k, ink)
    return image.resize((SIDE, SIDE), Image.Resampling.LANCZOS)


def _draw_shape(
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
        t = 0.45 * r
        canvas.rectangle((x - r, y - t, x + r, y + t), fill=fill)
        canvas.rectangle((x - t, y - r, x + t, y + r), fill=fill)


def _draw_digit(
    canvas: ImageDraw.ImageDraw, digit: str, x: float, y: float, cell: float, ink: tuple[int, int, int]
) -> None:
    for row, cells in enumerate(_GLYPHS[digit]):
        for column, mark in enumerate(cells):
            if mark == "#":
                left, top = x + (column - 1.5) * cell, y + (row - 2.5) * cell
                canvas.rectangle((left, top, left + cell - 1, top + cell - 1), fill=ink)
