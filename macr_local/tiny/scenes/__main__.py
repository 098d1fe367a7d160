"""Write a set of questions: ``python -m macr_local.tiny.scenes --out DIR``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import get_args

from macr_local.tiny.scenes.examination import examination, write
from macr_local.tiny.scenes.scene import Split


def main() -> None:
    """Write what the command line asks for."""
    summary = "Write a set of questions about scenes, with their images."
    parser = argparse.ArgumentParser(prog="python -m macr_local.tiny.scenes", description=summary)
    parser.add_argument("--split", choices=get_args(Split), default="test", help="whose scenes")
    parser.add_argument("--seed", type=int, default=1, help="the same gives the same")
    parser.add_argument("--count", type=count, default=1000, help="questions, two an image")
    parser.add_argument("--out", type=Path, required=True, help="folder for the images and questions.jsonl")
    options = parser.parse_args()
    try:
        print(write(options.out, examination(options.split, options.seed, options.count)))
    except OSError as error:
        where, why = error.filename or options.out, error.strerror or error
        parser.error(f"argument --out: {where} cannot be written: {why}; name a folder that can")


def count(text: str) -> int:
    """A number of questions, from the command line."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of questions; use a whole number from 1 up")
    return number


if __name__ == "__main__":
    main()
