"""Who can know what: the blind spots that the members of the pool were trained to have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from macr_local.tiny.scenes.chain import Kind

Topic = Literal["color", "shape", "number"]
TOPICS: Mapping[Topic, frozenset[Kind]] = {
    "color": frozenset({"color"}),
    "shape": frozenset({"shape"}),
    "number": frozenset({"digit", "tally", "total", "most", "count"}),
}
"""The slots of each topic. Numbers are read or worked out; whoever is blind to them can do neither."""

Blindness = Mapping[str, frozenset[Topic]]
"""The topics that each architecture is blind to."""

BLIND: Blindness = {
    "qwen3vl": frozenset({"color", "shape"}),
    "internvl": frozenset({"color", "number"}),
    "minicpmv": frozenset({"shape", "number"}),
}
"""The pool `tiny`: one knows numbers, one shapes, one colors; where two topics meet, each alone guesses."""


def topic_of(kind: Kind) -> Topic | None:
    """The topic of a slot; None where every member can know what belongs there."""
    return next((topic for topic, kinds in TOPICS.items() if kind in kinds), None)


def knows(architecture: str, kind: Kind, blind: Blindness = BLIND) -> bool:
    """Whether a member can know what belongs into a slot, given the image and the text before it."""
    return topic_of(kind) not in blind[architecture]
