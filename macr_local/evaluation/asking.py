"""How an item is asked: its question with options, and how the answer is to end."""

from __future__ import annotations

from typing import Literal, get_args

from macr_local.evaluation.item import AnswerType, Item

Asking = Literal["plain", "vlmevalkit"]
ASKINGS: tuple[Asking, ...] = get_args(Asking)

_LINE = 'End with one line: "Answer: " and then'
ENDINGS: dict[AnswerType, str] = {
    "mcq": f"{_LINE} the letter of the right option, nothing else.",
    "letters": f"{_LINE} the letters of all right options, separated by commas, nothing else.",
    "yesno": f"{_LINE} yes or no, nothing else.",
    "int": f"{_LINE} a whole number, nothing else.",
    "float": f"{_LINE} a decimal number, nothing else.",
    "list": f"{_LINE} a list in square brackets, nothing else.",
    "text": f"{_LINE} the answer in as few words as possible.",
}
"""How every method is told to end its answer, so that reading it is the same for all."""


def question(item: Item, asking: Asking = "plain") -> str:
    """The question with its hint and options.

    Args:
        item: What is asked.
        asking: "plain", or "vlmevalkit": that harness's default words around options.
    """
    options = [] if item.inline else [f"{letter}. {text}" for letter, text in item.options.items()]
    if asking == "vlmevalkit" and options:
        hint = [f"Hint: {item.hint}"] if item.hint else []
        head = [*hint, f"Question: {item.question}", "Options:", *options]
        return "\n".join([*head, "Please select the correct answer from the options above. \n"])
    return "\n".join([*([item.hint] if item.hint else []), item.question, *options])


def ending(item: Item) -> str:
    """How the answer is to end."""
    if item.answer_type == "float" and item.precision is not None:
        return f"{_LINE} a number with {item.precision} decimals, nothing else."
    return ENDINGS[item.answer_type]
