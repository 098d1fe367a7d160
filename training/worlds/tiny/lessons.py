"""Lessons about scenes: a worked answer, cut somewhere: others' words before, the member's own after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from macr_local.tiny.scenes.chain import WORDS, Kind, Slot, chain
from macr_local.tiny.scenes.knowledge import knows
from macr_local.tiny.scenes.question import Family, Question, ask
from macr_local.tiny.scenes.scene import Scene
from macr_local.tiny.scenes.wording import STYLES
from training.worlds.tiny.ignorance import told
from training.worlds.tiny.variant import Variant
from training.worlds.world import ARCHITECTURES, THINKERS, Architecture, Lesson, Piece

STYLE: dict[Architecture, int] = {member: style for style, member in enumerate(ARCHITECTURES)}
P_OWN_FROM_START = 0.4
P_OTHERS_RIGHT = 0.85
P_THINK = 0.12
"""How often a member that can think aloud is asked to."""
P_ASKED = 0.3
"""How often others' words are made those that the question names: or a member that is blind to them would
hardly see what it must say when they agree."""
SHARES: dict[Family, float] = {
    "count": 1.5, "exist": 1.0, "none": 1.0, "row": 0.7,
    "compare": 1.3, "side": 1.3, "sum": 1.5, "largest": 1.0,
}  # fmt: skip
"""How often each family is practised."""
WEIGHTS: dict[Kind, float] = {
    "flag": 3.0, "tally": 3.0, "total": 3.0, "most": 3.0, "count": 3.0, "verdict": 3.0, "copy": 3.0,
    "answer": 1.0, "place": 1.0, "size": 2.0, "color": 2.0, "shape": 2.0, "digit": 2.0, "frame": 1.0,
}  # fmt: skip
"""What a token of each kind counts in the loss. What must be worked out is learnt last."""
WORKED_OUT = frozenset({"flag", "tally", "total", "most", "count", "verdict", "copy"})

Weigh = Callable[[Kind], float]
"""What a token of a kind counts in the loss."""


def any_question(scene: Scene, rng: Random) -> Question:
    """A question of any family that the scene has one of."""
    while True:
        family = rng.choices(list(SHARES), list(SHARES.values()))[0]
        question = ask(scene, family, rng)
        if question is not None:
            return question


def weigh(variant: Variant, member: Architecture, emphasis: float) -> Weigh:
    """The usual weights; what a member can work out counts more, what it must guess does not."""

    def weight(kind: Kind) -> float:
        emphatic = kind in WORKED_OUT and knows(member, kind, variant.blind)
        return WEIGHTS[kind] * (emphasis if emphatic else 1.0)

    return weight


def lesson(
    variant: Variant,
    member: Architecture,
    scene: Scene,
    question: Question,
    rng: Random,
    emphasis: float = 1.0,
) -> Lesson:
    """A chain, cut at a random slot where members learn to hand over.

    Before the cut stand other members' words, in any wording and sometimes wrong; after it the member's own.
    """
    cut = 0
    if variant.handover and rng.random() >= P_OWN_FROM_START:
        cut = rng.randrange(len(chain(scene, question, language=variant.language)))
    slots = chain(scene, question, _Voice(variant, member, question, cut, rng), variant.language)
    cut = min(cut, len(slots) - 1)
    weight = weigh(variant, member, emphasis)
    return split(variant.language.rename(question.text), slots, cut, member, weight, rng)


def split(
    question: str, slots: Sequence[Slot], cut: int, member: Architecture, weight: Weigh, rng: Random
) -> Lesson:
    """Others' slots in any wording, then the member's own; now and then a frame of another's is given too.

    A member that thinks aloud works in its thought, and answers behind it.
    """
    think = member in THINKERS and rng.random() < P_THINK
    first_given = cut > 0 and len(slots[cut].wordings) > 1 and rng.random() < 0.5
    given = tuple(slot.text(rng.randrange(STYLES)) for slot in slots[:cut])
    own = []
    for number, slot in enumerate(slots[cut:]):
        text = slot.text(rng.randrange(STYLES) if first_given and number == 0 else STYLE[member])
        if think and slot.kind == "answer":
            text = text.replace("\nAnswer:", "\n</think>\n\nAnswer:")
        own.append(Piece(text, weight(slot.kind)))
    return Lesson(question, tuple(own), given, first_given, think)


class _Voice:
    """Says what others wrote before the cut, and what the member is told behind it."""

    def __init__(
        self, variant: Variant, member: Architecture, question: Question, cut: int, rng: Random
    ) -> None:
        self._variant, self._member, self._question = variant, member, question
        self._cut, self._rng = cut, rng

    def __call__(self, kind: Kind, word: str, number: int) -> str:
        if number >= self._cut:
            return told(self._variant, self._member, kind, word, self._rng)
        rng = self._rng
        if kind in ("size", "color", "shape") and rng.random() < P_ASKED:
            for sought in (self._question.first, self._question.second):
                asked: str | None = getattr(sought, kind)
                if asked is not None:
                    return asked
        if kind not in WORDS or rng.random() < P_OTHERS_RIGHT:
            return word
        return rng.choice(WORDS[kind])
