"""The worked chain: what is at each place, whether it is asked for, and what follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from training.worlds.scenes.question import Question
from training.worlds.scenes.scene import PLACES, Scene
from training.worlds.world import ARCHITECTURES, Architecture

SlotKind = Literal["frame", "color", "shape", "flag", "final"]
STYLES: dict[Architecture, int] = {member: style for style, member in enumerate(ARCHITECTURES)}


@dataclass(frozen=True, slots=True)
class Slot:
    """One step of a chain: the same for all members, or worded by each in its own way."""

    kind: SlotKind
    wordings: tuple[str, ...]
    """One text, or one for each style."""
    place: int = -1

    def text(self, style: int) -> str:
        """The slot in one style."""
        return self.wordings[style] if len(self.wordings) > 1 else self.wordings[0]


def chain(scene: Scene, question: Question, final: str | None = None) -> list[Slot]:
    """Work through a scene.

    Args:
        scene: The scene, or what somebody says it is.
        question: The question; every thing carries a yes or no: is it what the question asks for?
        final: The answer, where it is not the one that follows.
    """
    slots: list[Slot] = []
    for place, thing in enumerate(scene):
        lead = " " if place else ""
        where = PLACES[place]
        slots.append(Slot("frame", (f"{lead}{where}:", f"{lead}at {where}", f"{lead}now {where},"), place))
        if thing is None:
            slots.append(Slot("frame", (" nothing", " there is nothing", " empty"), place))
        else:
            flag = " yes" if question.fits(thing, place) else " no"
            slots += [
                Slot("frame", (" color", " the color is", " paint"), place),
                Slot("color", (f" {thing.color}",), place),
                Slot("frame", (", shape", " and the shape is", " with the form"), place),
                Slot("shape", (f" {thing.shape}",), place),
                Slot("frame", (", match", " fits", " so"), place),
                Slot("flag", (flag,), place),
            ]
        slots.append(Slot("frame", (";", ".", ","), place))
    final = question.answer(scene) if final is None else final
    slots.append(Slot("frame", (" so it is", " that makes", " therefore")))
    slots.append(Slot("final", (f" {final}.\nAnswer: {final}",)))
    return slots


def write(slots: list[Slot], style: int) -> str:
    """The whole chain in one style."""
    return "".join(slot.text(style) for slot in slots)
