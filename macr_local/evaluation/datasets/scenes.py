"""The tiny pool's scenes by name, drawn as they are asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Any

from PIL import Image

from macr_local.evaluation.datasets.dataset import DataSet
from macr_local.evaluation.item import AnswerType, Item
from macr_local.tiny.scenes.examination import examination
from macr_local.tiny.scenes.scene import Split

COUNT = 1000
SEED = 1


class Scenes(DataSet):
    """1,000 questions about 500 scenes of one side of the tiny pool's world.

    Args:
        split: "test", or "tuning" for choosing settings; no scene is on two sides.
    """

    def __init__(self, split: Split = "test") -> None:
        super().__init__("scenes" if split == "test" else f"scenes-{split}")
        self.split = split

    def items(self) -> Iterator[Item]:
        """See `DataSet`."""
        for one in examination(self.split, SEED, COUNT):
            yes_no = one.answer in ("yes", "no")
            kind: AnswerType = "yesno" if yes_no else "text"
            name = f"{self.split}-{one.number}"
            yield Item(
                id=name,
                where=f"scenes {name}",
                question=one.question.text,
                images=(_png(one.image),),
                answer=one.answer.capitalize() if yes_no else one.answer,
                answer_type=kind,
                cluster=f"{self.split}-{one.image_number}",
                groups={"family": (one.question.family,)},
            )

    def ids(self) -> Iterator[str]:
        """See `DataSet`; nothing is drawn."""
        return (f"{self.split}-{number}" for number in range(COUNT))

    def identity(self) -> Mapping[str, Any]:
        """The side, and how its questions are drawn."""
        return {"world": "scenes", "split": self.split, "seed": SEED, "count": COUNT}


def _png(image: Image.Image) -> bytes:
    file = BytesIO()
    image.save(file, "PNG")
    return file.getvalue()
