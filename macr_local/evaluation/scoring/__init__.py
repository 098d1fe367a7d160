"""How answers are read and judged."""

from __future__ import annotations

from macr_local.evaluation.item import Item
from macr_local.evaluation.score import NO_LABEL, Score, Scorer
from macr_local.evaluation.scoring import mathvista, strict, vlmevalkit

_JUDGES = {
    "strict": strict.score,
    "compat:vlmevalkit": vlmevalkit.score,
    "compat:mathvista": mathvista.score,
}


def score(item: Item, text: str, scorer: Scorer) -> Score:
    """Judge one answer.

    Args:
        item: What was asked.
        text: The answer.
        scorer: Who judges.

    Returns:
        The rule is "no-label" where the data set does not publish the right answer.
    """
    if not item.answer:
        return Score(False, None, NO_LABEL)
    return _JUDGES[scorer](item, text)
