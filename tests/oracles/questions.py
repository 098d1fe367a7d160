"""Questions with pictures, for tests and benchmarks that need many of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random

from easy_vqa import get_test_image_paths, get_test_questions

from training.worlds.scenes.question import FAMILIES, ask
from training.worlds.scenes.scene import draw, random_scene


@dataclass(frozen=True)
class Asked:
    """A question about a picture of 64 by 64 pixels."""

    text: str
    picture: Path


def easy_vqa(count: int) -> list[Asked]:
    """Questions of the easy-VQA test split, evenly spread over it."""
    texts, _, images = get_test_questions()
    paths = get_test_image_paths()
    step = len(texts) // count
    return [Asked(texts[i], Path(paths[images[i]])) for i in range(0, step * count, step)]


def scenes(count: int, folder: Path, seed: int = 8128) -> list[Asked]:
    """Questions about random scenes, each drawn into a file of the folder."""
    rng = Random(seed)
    asked = []
    for i in range(count):
        scene = random_scene(rng)
        path = folder / f"scene-{i}.png"
        draw(scene, rng).save(path)
        asked.append(Asked(ask(scene, FAMILIES[i % len(FAMILIES)], rng).text, path))
    return asked
