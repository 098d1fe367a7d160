"""Write the questions that the pool is calibrated on: ``python -m training.worlds.tiny.reference --out DIR``.

Scenes of the reference split and easy-VQA training images, three to one; no test set shares a scene or an
image with them.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from random import Random

from PIL import Image

from macr_local.evaluation.datasets import easy_vqa_records as records
from macr_local.tiny.scenes.__main__ import count
from macr_local.tiny.scenes.examination import examination
from macr_local.tiny.scenes.examination import write as write_scenes
from training.worlds.tiny.variant import VARIANTS, variant


def write(folder: Path, count: int, seed: int, name: str = "friendly") -> Path:
    """Write PNG files and ``questions.jsonl``; return the latter's path.

    Args:
        folder: Made if it is not there.
        count: Questions in all.
        seed: The same gives the same.
        name: The variant of the world, which decides the words.
    """
    language = variant(name).language
    path = write_scenes(folder, examination("reference", seed, count * 3 // 4, language))
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        line["question"], line["answer"] = language.rename(line["question"]), language.rename(line["answer"])
    rng = Random(seed)
    questions = rng.sample(records.questions("train"), count - len(lines))
    pixels = records.images("train")
    for question in questions:
        image = f"easy-{question.image}.png"
        Image.fromarray(pixels[question.image]).save(folder / image)
        lines.append(
            {"image": image, "question": question.text, "answer": question.answer, "family": question.kind}
        )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def main() -> None:
    """Write what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m training.worlds.tiny.reference", description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--count", type=count, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--variant", choices=VARIANTS, default="friendly")
    options = parser.parse_args()
    try:
        print(write(options.out, options.count, options.seed, options.variant))
    except OSError as error:
        where, why = error.filename or options.out, error.strerror or error
        parser.error(f"argument --out: {where} cannot be written: {why}; name a folder that can")


if __name__ == "__main__":
    main()
