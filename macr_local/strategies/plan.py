"""A plan: the calls by which one member comes to its answer."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace

from macr_local.prompt import Prompt
from macr_local.strategies.prompts import Prompts


@dataclass(frozen=True, slots=True)
class Step:
    """A call before the answer.

    Attributes:
        name: What it is for, as users see it.
        prompt: What is asked.
    """

    name: str
    prompt: Prompt


Plan = Generator[Step, str, Prompt]
"""Yields steps, is sent what the member says to each, and returns the prompt of the answer itself."""


@dataclass(frozen=True, slots=True)
class Brief:
    """What a plan is made from.

    Attributes:
        prompt: The user's question.
        prompts: The words of the methods.
        context: The question with what others have said about it; empty for the question alone.
    """

    prompt: Prompt
    prompts: Prompts
    context: str = ""

    @property
    def question(self) -> str:
        """What stands where a text says {question}."""
        return self.context or self.prompt.question

    def say(self, words: str, *, images: bool = True, **parts: str) -> Prompt:
        """A step's prompt: it asks for no answer, so it does not say how one is to end."""
        text = self.prompts.fill(words, **{"question": self.question, **parts})
        shown = self.prompt.images if images else ()
        return replace(self.prompt, question=text, images=shown, ending="")

    def ask(self, words: str, **parts: str) -> Prompt:
        """The answer's prompt; its ending is the user's."""
        return replace(self.prompt, question=self.prompts.fill(words, question=self.question, **parts))


Planner = Callable[[Brief], Plan]


def io(brief: Brief) -> Plan:
    """The question and nothing else: the paper's "IO"."""
    yield from ()
    return replace(brief.prompt, question=brief.context) if brief.context else brief.prompt
