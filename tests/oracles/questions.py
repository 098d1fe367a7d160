"""Questions with pictures, for tests and benchmarks that need many of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from easy_vqa import get_test_image_paths, get_test_questions

from macr_local.tiny.scenes.examination import examination


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
    """Questions about scenes of the tuning split, each drawn into a file of the folder."""
    asked = []
    for item in examination("tuning", seed, count):
        path = folder / f"scene-{item.image_number}.png"
        item.image.save(path)
        asked.append(Asked(item.question.text, path))
    return asked
