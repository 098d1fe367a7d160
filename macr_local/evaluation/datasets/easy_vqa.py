"""easy-VQA by name, from its package."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from macr_local.evaluation.datasets import easy_vqa_records as records
from macr_local.evaluation.datasets.dataset import DataSet
from macr_local.evaluation.item import AnswerType, Item

Part = Literal["test", "train", "all", "all-train"]
COUNT = 600
SEED = 0


class EasyVqa(DataSet):
    """easy-VQA: 64x64 images of one colored shape.

    Args:
        part: "test" is 600 balanced questions of its test half, "train" of its training half, each on its own
            image; "all" is the whole test half, of which two thirds can be answered without looking, and
            "all-train" the whole training half.
    """

    def __init__(self, part: Part = "test") -> None:
        super().__init__("easy-vqa" if part == "test" else f"easy-vqa-{part}")
        self.part = part
        records.folder()  # says at once that the package is missing

    def items(self) -> Iterator[Item]:
        """See `DataSet`."""
        split: records.Split = "train" if self.part in ("train", "all-train") else "test"
        whole = self.part.startswith("all")
        folder = records.folder() / split / "images"
        asked = records.questions(split) if whole else records.balanced(split, SEED, COUNT)
        for number, question in enumerate(asked):
            kind: AnswerType = "yesno" if question.yes_no else "text"
            name = f"{split}-{number}" if whole else f"{split}-{question.image}"
            yield Item(
                id=name,
                where=f"easy-vqa {name}",
                question=question.text,
                images=(folder / f"{question.image}.png",),
                answer=question.answer.capitalize() if question.yes_no else question.answer,
                answer_type=kind,
                cluster=f"{split}-{question.image}",
                groups={"kind": (question.kind,), "negated": (str(question.negated).lower(),)},
            )

    def identity(self) -> Mapping[str, Any]:
        """The part, and how the balanced subset is drawn."""
        drawn = {} if self.part.startswith("all") else {"seed": SEED, "count": COUNT}
        return {"package": "easy-vqa 1.0", "part": self.part, **drawn}
