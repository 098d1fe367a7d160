"""The worked answer to an easy-VQA question: a first look, a second look, what follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from training.worlds.easy_vqa.records import VALUES, Attribute, Question

P_SLIP = 0.12
"""Share of answers whose first look is wrong and is mended by the second: so that a member can recover from
what another one wrote."""


def chain(
    question: Question, facts: Mapping[Attribute, str], rng: Random, style: Sequence[float]
) -> str | None:
    """Work through a question.

    Args:
        question: The question.
        facts: What is known about its image.
        rng: Draws the wording of each sentence and the slips.
        style: How likely each of the three wordings is.

    Returns:
        The answer, or None where the attribute in question is not known.
    """
    what = question.attribute
    truth = facts.get(what)
    if truth is None:
        return None

    def say(value: str) -> str:
        return value if what == "color" else f"a {value}"

    def pick(*wordings: str) -> str:
        return rng.choices(wordings, style)[0]

    first = truth
    if rng.random() <= P_SLIP:
        first = rng.choice([value for value in VALUES[what] if value != truth])
    second = "yes" if first == truth else "no"
    target = question.named(what) if question.yes_no else None
    sentences = []
    if target is None:
        sentences.append(
            pick(
                f"The question asks about the {what}.",
                f"I need to name the {what}.",
                f"This is about the {what} in the image.",
            )
        )
    else:
        thing = ("no " if question.negated else "a ") + (f"{target} shape" if what == "color" else target)
        sentences.append(
            pick(
                f"The question asks if there is {thing}.",
                f"I need to check if there is {thing}.",
                f"This is about whether {thing} is there.",
            )
        )
    sentences.append(
        pick(
            f"At first glance it looks like {say(first)}.",
            f"My first look says it is {say(first)}.",
            f"First I see {say(first)}.",
        )
    )
    sentences.append(
        pick(
            f"Looking again at the image, {second}, the {what} I see is {truth}.",
            f"A second look says {second}, the {what} here is {truth}.",
            f"I look once more and {second}, the {what} is {truth}.",
        )
    )
    if target is not None:
        same = "the same as" if truth == target else "not"
        sentences.append(
            pick(
                f"That is {same} {target}, so the answer must be {question.answer}.",
                f"This is {same} {target}, which means {question.answer}.",
                f"It is {same} {target}, therefore I say {question.answer}.",
            )
        )
    return " ".join(sentences) + f"\nAnswer: {question.answer}"
