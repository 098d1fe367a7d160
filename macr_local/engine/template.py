"""A member's chat template: from what the user asks to the text its model was trained to see.

What the user and the pool's owner type never passes through Jinja. The template is rendered over stand-ins,
and the rendering is then taken apart where they landed. So no template logic can be steered by a question,
and everything downstream knows which text is the template's own, whose control tokens count, and which is
the user's, in which nothing is one.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from traceback import extract_tb
from typing import Any

import jinja2

from macr_local.engine.sandbox import OverBudget, TemplateEnvironment, budget
from macr_local.errors import TemplateError

LONGEST = 1 << 18
"""Characters of a template's source; the longest of llama.cpp's collection has 16,448."""
CHATML = """\
{% for message in messages %}
{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}
{%- endfor %}
{{ '<|im_start|>assistant\\n' }}"""
PLAIN = """\
{% for message in messages %}
{{ ('' if message['role'] == 'system' else 'User: ') + message['content'] + '\\n' }}
{%- endfor %}
{{ 'Assistant:' }}"""

_FIX = "Give the member a chat_template that works in models.toml, or another GGUF file"
# Stand-ins are padded with a blank that no template writes and every .strip() takes: where it is gone, the
# template trims its content, and the user's text is trimmed as it would have been.
_PAD = "\u2005"
# Content that a template did not take apart but printed as a list of dictionaries.
_PRINTED_LIST = re.compile(r"""['"]type['"]\s*:\s*['"]text['"]""")

_log = logging.getLogger("macr_local")


@dataclass(frozen=True, slots=True)
class TemplateText:
    """The template's own words, control tokens among them."""

    text: str


@dataclass(frozen=True, slots=True)
class UserText:
    """Words of the user or of the system prompt: text, whatever they look like."""

    text: str


@dataclass(frozen=True, slots=True)
class ImageSlot:
    """Where an image goes, by its index in the prompt."""

    index: int


Part = TemplateText | UserText | ImageSlot


@dataclass(frozen=True, slots=True)
class Rendered:
    """A prompt, taken apart.

    Attributes:
        parts: In order; no two of the template's own follow each other, none is empty.
        opens_thought: The template's last ``<think>`` is not closed, so the answer begins inside a thought.
    """

    parts: tuple[Part, ...]
    opens_thought: bool


class _Unfit(Exception):
    """A rendering from which something is missing."""


class ChatTemplate:
    """A compiled chat template. Rendering changes nothing, so threads may share one.

    A model without a template is asked in ChatML where its vocabulary has ``<|im_start|>`` and
    ``<|im_end|>`` as single tokens, and otherwise as ``User: ...`` and ``Assistant:`` lines, with a warning
    through the logger ``macr_local``.

    Attributes:
        sha256: Of the template's text, in hex; part of what a calibration must agree with.
    """

    def __init__(
        self, source: str | None, *, bos: str, eos: str, tokens: Callable[[str], bool], name: str
    ) -> None:
        """Compile a template.

        Args:
            source: Jinja text, or None for a model without a template.
            bos: Text of the beginning-of-sequence token, "" without one.
            eos: Text of the end-of-sequence token, "" without one.
            tokens: Whether the vocabulary has a text as one token.
            name: The member's name, for messages.

        Raises:
            TemplateError: The source does not compile.
        """
        if source is None or not source.strip():
            source = _stand_in(tokens, name)
        if len(source) > LONGEST:
            raise TemplateError(
                f"{name}: the chat template has {len(source):,} characters, more than {LONGEST:,}", _FIX
            )
        self._name = name
        self._given = {"bos_token": bos, "eos_token": eos, "add_generation_prompt": True}
        self.sha256 = hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()
        # Taken from the template's own hash, so that no template can contain it.
        self._nonce = "x" + self.sha256[:20] + "x"
        self._marks = re.compile(
            f"(?P<left>{_PAD}?){self._nonce}(?P<text>[us])x(?P<right>{_PAD}?)"
            f"|{self._nonce}i(?P<image>[0-9]+)x"
        )
        try:
            with budget():
                self._template = TemplateEnvironment().from_string(source)
        except Exception as error:
            found = f"{name}: the chat template does not compile: {_said(error)}"
            raise TemplateError(found, _FIX) from error

    @cached_property
    def knows_thinking(self) -> bool:
        """Whether asking for thinking, or for none, changes the prompt."""
        try:
            return self.render("", think=True) != self.render("", think=False)
        except TemplateError:
            return False

    def render(
        self, question: str, images: int = 0, system: str | None = None, think: bool | None = None
    ) -> Rendered:
        """Lay out one question, its images before it.

        Args:
            question: The user's text.
            images: How many images there are.
            system: A system prompt; where the template has no place for one, it begins the user's message.
            think: Passed to the template as ``enable_thinking`` and ``thinking``; None passes neither.

        Raises:
            TemplateError: The template fails, refuses, does not end, or leaves out what it was given.
        """
        given = self._given if think is None else {**self._given, "enable_thinking": think, "thinking": think}
        texts = {"u": question, "s": system or ""}
        refusal: Exception | None = None
        # Templates written for tools alone go through a list of them without asking whether there is one.
        for tools, messages in product((None, ()), self._ways(images, bool(system))):
            try:
                with budget():
                    text = self._template.render(messages=messages, tools=tools, functions=tools, **given)
                return self._take_apart(text, images, texts)
            except OverBudget as error:
                raise TemplateError(f"{self._name}: the chat template does not end: {error}", _FIX) from error
            except Exception as error:
                # Of several complaints the one about the plainest form is about the template, not the form.
                if refusal is None or (tools is None and isinstance(messages[-1]["content"], str)):
                    refusal = error
        assert refusal is not None
        raise TemplateError(f"{self._name}: the chat template fails: {_said(refusal)}", _FIX) from refusal

    def _ways(self, images: int, system: bool) -> list[list[dict[str, Any]]]:
        """The forms a conversation can be handed over in, the most usual first.

        Some templates take content as a list of parts and some only as one string, and some have no system
        role; nothing but rendering them shows which.
        """
        user, rules = self._mark("u"), self._mark("s")
        slots = [self._mark(f"i{index}") for index in range(images)]

        def listed(*texts: str) -> list[dict[str, str]]:
            return [{"type": "text", "text": text} for text in texts]

        def chat(content: object, rules: object = None) -> list[dict[str, Any]]:
            first = [{"role": "system", "content": rules}] if rules else []
            return [*first, {"role": "user", "content": content}]

        parts, line = listed(*slots, user), "".join((*slots, user))
        forms = [parts, line] if images else [line, parts]
        if not system:
            return [chat(form) for form in forms]
        merged = [chat(f"{rules}\n\n{line}"), chat(listed(f"{rules}\n\n", *slots, user))]
        return [*(chat(form, rules) for form in forms), chat(parts, listed(rules)), *merged]

    def _mark(self, kind: str) -> str:
        mark = f"{self._nonce}{kind}x"
        return f"{_PAD}{mark}{_PAD}" if kind in ("u", "s") else mark

    def _take_apart(self, rendered: str, images: int, texts: dict[str, str]) -> Rendered:
        parts: list[Part] = []
        own: list[str] = []
        slots: list[int] = []
        seen: set[str] = set()
        end = 0
        for match in self._marks.finditer(rendered):
            own.append(rendered[end : match.start()])
            end = match.end()
            _add(parts, TemplateText(own[-1]))
            if match["image"]:
                slots.append(int(match["image"]))
                parts.append(ImageSlot(slots[-1]))
                continue
            kind = match["text"]
            seen.add(kind)
            text = texts[kind] if match["left"] else texts[kind].lstrip()
            _add(parts, UserText(text if match["right"] else text.rstrip()))
        own.append(rendered[end:])
        _add(parts, TemplateText(own[-1]))
        there = {
            "question": "u" in seen,
            "system prompt": "s" in seen or not texts["s"],
            "images": slots == list(range(images)),
        }
        if lost := [what for what, found in there.items() if not found]:
            raise _Unfit(f"it loses the {' and the '.join(lost)}")
        if _PRINTED_LIST.search(rendered):
            raise _Unfit("it prints a list of parts as it is")
        words = "\0".join(own)
        return Rendered(tuple(parts), words.rfind("<think>") > words.rfind("</think>"))


def _add(parts: list[Part], part: TemplateText | UserText) -> None:
    if not part.text:
        return
    last = parts[-1] if parts else None
    if isinstance(part, TemplateText) and isinstance(last, TemplateText):
        parts[-1] = TemplateText(last.text + part.text)
    else:
        parts.append(part)


def _stand_in(tokens: Callable[[str], bool], name: str) -> str:
    if tokens("<|im_start|>") and tokens("<|im_end|>"):
        _log.info("%s has no chat template; its vocabulary is that of ChatML, which is used", name)
        return CHATML
    _log.warning(
        "%s has no chat template; it is asked in plain lines, which few models were trained on. "
        "Set chat_template in models.toml",
        name,
    )
    return PLAIN


def _said(error: BaseException) -> str:
    """What an error in a template says, and the template's line where it happened."""
    if isinstance(error, jinja2.TemplateSyntaxError):
        return f"{error.message} (line {error.lineno})"
    text = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == "<template>"]
    return f"{text} (line {lines[-1]})" if lines else text
