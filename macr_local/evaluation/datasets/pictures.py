"""A folder of images, each with its question in a text file of the same name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from macr_local.evaluation.datasets.dataset import DataSet
from macr_local.evaluation.item import Item

SUFFIXES = frozenset((".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff"))


class Pictures(DataSet):
    """Images and text files side by side; there are no right answers.

    Args:
        folder: Where they lie.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder.absolute().name)
        self.folder = folder

    def items(self) -> Iterator[Item]:
        """See `DataSet`; in the order of the names."""
        for image in sorted(self.folder.iterdir()):
            if image.suffix.lower() in SUFFIXES:
                question, problem = _question(image.with_suffix(".txt"))
                yield Item(
                    id=image.name,
                    where=image.name,
                    question=question,
                    images=() if problem else (image,),
                    answer="",
                    answer_type="text",
                    problem=problem,
                )

    def identity(self) -> Mapping[str, Any]:
        """The folder."""
        return {"folder": str(self.folder)}


def _question(file: Path) -> tuple[str, str]:
    """The question in a file, or what is wrong with it."""
    try:
        return file.read_text("utf-8-sig").strip(), ""
    except FileNotFoundError:
        return "", f"there is no {file.name} with its question"
    except (OSError, UnicodeDecodeError) as error:
        return "", f"{file.name} cannot be read ({error})"
