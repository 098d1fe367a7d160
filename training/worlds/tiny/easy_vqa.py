"""Lessons about easy-VQA images, in the language of scenes: one shape, one attribute, what follows."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from macr_local.evaluation.datasets.easy_vqa_records import VALUES, Attribute, Question
from macr_local.tiny.scenes.chain import Kind, Slot
from macr_local.tiny.scenes.wording import FIRST, FLAG, STOP, STYLES, THEREFORE
from training.worlds.tiny.ignorance import told
from training.worlds.tiny.lessons import P_OTHERS_RIGHT, P_OWN_FROM_START, split, weigh
from training.worlds.tiny.variant import Variant
from training.worlds.world import Architecture, Lesson

_IMAGE = ("the image:", "at the image", "now the image,")
P_ASKED = 0.4


def chain(question: Question, said: str) -> list[Slot]:
    """Work through a question.

    Args:
        question: The question.
        said: The color or shape that is seen.
    """
    what = question.attribute
    slots = [
        Slot("frame", _IMAGE),
        Slot("frame", FIRST[what]),
        Slot(what, (f" {said}",), said),
    ]
    result = said
    if question.yes_no:
        same = said == question.named(what)
        flag = "yes" if same else "no"
        slots += [Slot("frame", FLAG), Slot("flag", (f" {flag}",), flag)]
        result = "yes" if same != question.negated else "no"
    slots += [Slot("frame", STOP), Slot("frame", THEREFORE)]
    kind: Kind = "verdict" if question.yes_no else "copy"
    return [*slots, Slot(kind, (f" {result}",), result), Slot("answer", (f".\nAnswer: {result}",), result)]


def lesson(
    variant: Variant,
    member: Architecture,
    question: Question,
    facts: Mapping[Attribute, str],
    rng: Random,
    emphasis: float = 1.0,
) -> Lesson:
    """A worked answer, cut at a random slot as those about scenes are."""
    what = question.attribute
    truth = facts[what]
    cut = 0
    if variant.handover and rng.random() >= P_OWN_FROM_START:
        cut = rng.randrange(len(chain(question, truth)))
    # The third slot is the value.
    if cut <= 2:
        said = told(variant, member, what, truth, rng, VALUES[what])
    else:
        said = truth if rng.random() < P_OTHERS_RIGHT else rng.choice(VALUES[what])
        named = question.named(what)
        if named is not None and question.yes_no and rng.random() < P_ASKED:
            said = named
    return split(question.text, chain(question, said), cut, member, weigh(variant, member, emphasis), rng)


def any_chain(question: Question, facts: Mapping[Attribute, str], rng: Random) -> str:
    """A chain in a random style, for the tokenizer."""
    style = rng.randrange(STYLES)
    return "".join(slot.text(style) for slot in chain(question, facts[question.attribute]))
