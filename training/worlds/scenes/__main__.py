"""Write a reference or test set of scenes.

``python -m training.worlds.scenes --seed 501 --count 200 --out DIR``
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from random import Random

from training.worlds.scenes.question import FAMILIES, ask
from training.worlds.scenes.scene import draw, random_scene


def write_set(out: Path, seed: int, count: int) -> Path:
    """Write ``count`` PNG files and ``questions.jsonl`` into ``out``; return the latter's path.

    Every line has ``image`` (relative to the file), ``question``, ``answer``, and, for analysis, ``family``
    and ``scene`` (what is at the four places: [color, shape] or null).
    """
    out.mkdir(parents=True, exist_ok=True)
    rng = Random(seed)
    lines = []
    for number in range(count):
        scene = random_scene(rng)
        name = f"{number:04d}.png"
        draw(scene, rng).save(out / name)
        family = FAMILIES[number // 2 % len(FAMILIES)]
        question = ask(scene, family, rng)
        lines.append(
            json.dumps(
                {
                    "image": name,
                    "question": question.text,
                    "answer": question.answer(scene),
                    "family": family,
                    "scene": [thing and [thing.color, thing.shape] for thing in scene],
                }
            )
        )
    path = out / "questions.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def main() -> None:
    summary = "Write a reference or test set of scenes."
    parser = argparse.ArgumentParser(prog="python -m training.worlds.scenes", description=summary)
    parser.add_argument("--seed", type=int, required=True, help="the same seed gives the same set")
    parser.add_argument("--count", type=int, default=200, help="questions, one image each (default 200)")
    parser.add_argument("--out", type=Path, required=True, help="folder for the images and questions.jsonl")
    options = parser.parse_args()
    print(write_set(options.out, options.seed, options.count))


if __name__ == "__main__":
    main()
