"""Questions about a scene, and their right answers."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Literal

from training.worlds.scenes.scene import COLORS, PLACES, SHAPES, Scene, Thing, random_thing

Family = Literal["count_shape", "count_color", "exist", "what"]
FAMILIES: tuple[Family, ...] = ("count_shape", "count_color", "exist", "what")
_PLURAL = {"circle": "circles", "square": "squares", "triangle": "triangles", "cross": "crosses"}


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked for: things of a color and a shape (None takes any), or what is at one place."""

    text: str
    family: Family
    color: str | None = None
    shape: str | None = None
    place: int | None = None

    def fits(self, thing: Thing | None, place: int) -> bool:
        """Whether this thing at this place is (among) what is asked for."""
        if thing is None:
            return False
        if self.place is not None:
            return place == self.place
        return self.color in (None, thing.color) and self.shape in (None, thing.shape)

    def answer(self, scene: Scene) -> str:
        """The right answer for a scene; for what somebody says of it, the answer that follows."""
        if self.place is not None:
            thing = scene[self.place]
            return "nothing" if thing is None else f"{thing.color} {thing.shape}"
        count = sum(self.fits(thing, place) for place, thing in enumerate(scene))
        if self.family == "exist":
            return "yes" if count else "no"
        return str(count)


def ask(scene: Scene, family: Family, rng: Random) -> Question:
    """A question of a family about a scene, more often than not about something in it."""
    if family == "what":
        place = rng.randrange(len(PLACES))
        return Question(f"what is in the {PLACES[place]}?", family, place=place)
    things = [thing for thing in scene if thing is not None]
    thing = rng.choice(things) if things and rng.random() < 0.65 else random_thing(rng)
    if family == "count_shape":
        return Question(f"how many {_PLURAL[thing.shape]} are there?", family, shape=thing.shape)
    if family == "count_color":
        return Question(f"how many {thing.color} objects are there?", family, color=thing.color)
    if things and rng.random() < 0.5:
        thing = rng.choice(things)
    elif things:
        thing = _near_miss(rng.choice(things), rng)
    return Question(
        f"is there a {thing.color} {thing.shape}?", family, color=thing.color, shape=thing.shape
    )


def _near_miss(thing: Thing, rng: Random) -> Thing:
    if rng.random() < 0.5:
        return Thing(rng.choice(COLORS), thing.shape)
    return Thing(thing.color, rng.choice(SHAPES))
