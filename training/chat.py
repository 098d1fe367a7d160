"""Chat templates, and prompts as token ids exactly as mtmd lays them out."""

from __future__ import annotations

from functools import lru_cache

from jinja2 import Environment, Template
from tokenizers import Tokenizer

from training.worlds.world import Architecture

MEDIA = "<__media__>"
"""Where llama.cpp's mtmd puts an image."""

IMAGE_TOKENS = 16

# mtmd writes these around the image's embeddings by itself; they must be single tokens.
MARKS: dict[Architecture, tuple[str, str]] = {
    "qwen3vl": ("<|vision_start|>", "<|vision_end|>"),
    "internvl": ("<img>", "</img>"),
    "minicpmv": ("<image>", "</image>"),
}
_COMMON = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
SPECIAL: dict[Architecture, tuple[str, ...]] = {
    "qwen3vl": (*_COMMON, "<|vision_start|>", "<|vision_end|>", "<|image_pad|>"),
    "internvl": (*_COMMON, "<img>", "</img>", "<IMG_CONTEXT>"),
    "minicpmv": (*_COMMON, "<image>", "</image>", "<slice>", "</slice>", "<unk>", "<think>", "</think>"),
}
END = "<|im_end|>"
PAD = "<|endoftext|>"


def _body(separator: str, opening: str = "") -> str:
    return (
        "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' }}"
        "{% if m['content'] is string %}{{ m['content'] }}{% else %}"
        "{% for p in m['content'] %}{{ p['text'] }}" + separator + "{% endfor %}{% endif %}"
        "{{ '<|im_end|>\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n" + opening + "' }}{% endif %}"
    )


_NEWLINE_BETWEEN = "{% if not loop.last %}{{ '\n' }}{% endif %}"
_SYSTEM = (
    "{% if messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nLook at the image.<|im_end|>\n' }}{% endif %}"
)

_THOUGHT = (
    "' }}{% if enable_thinking is defined and enable_thinking %}{{ '<think>\n' }}"
    "{% else %}{{ '<think>\n\n</think>\n\n' }}{% endif %}{{ '"
)

# Three templates that differ as the real ones do: no separator, a default system prompt, thinking on demand.
TEMPLATES: dict[Architecture, str] = {
    "qwen3vl": _body(""),
    "internvl": _SYSTEM + _body(_NEWLINE_BETWEEN),
    "minicpmv": _body(_NEWLINE_BETWEEN, _THOUGHT),
}


@lru_cache(maxsize=100_000)
def render(member: Architecture, question: str, think: bool = False) -> str:
    """The prompt's text with one media marker."""
    content = [{"type": "text", "text": MEDIA}, {"type": "text", "text": question}]
    messages = [{"role": "user", "content": content}]
    given = {"enable_thinking": True} if think else {}
    return _template(member).render(messages=messages, add_generation_prompt=True, **given)


@lru_cache
def _template(member: Architecture) -> Template:
    return Environment(trim_blocks=True, lstrip_blocks=True).from_string(TEMPLATES[member])


class Chat:
    """A member's tokenizer and prompt layout: ids before the image, `IMAGE_TOKENS` slots, ids after it."""

    def __init__(self, member: Architecture, tokenizer: Tokenizer, n_vocab: int) -> None:
        self.member = member
        self.tokenizer = tokenizer
        self.n_vocab = n_vocab
        end = tokenizer.token_to_id(END)
        if end is None:
            raise ValueError(f"{member}: the tokenizer has no {END}")
        self.end: int = end
        self._ids: dict[str, list[int]] = {}
        # mtmd tokenises the text, the mark before the image, the mark after it and the rest separately.
        head = render(member, "").split(MEDIA)[0]
        self.before = self.encode(head) + self.encode(MARKS[member][0])

    def encode(self, text: str) -> list[int]:
        """Ids of a text; special tokens in it are parsed."""
        ids = self._ids.get(text)
        if ids is None:
            ids = self.tokenizer.encode(text, add_special_tokens=False).ids
            self._ids[text] = ids
        return ids

    def prompt(self, question: str, think: bool = False) -> list[int]:
        """The whole prompt, with id 0 in the image's slots."""
        tail = render(self.member, question, think).split(MEDIA)[1]
        return self.before + [0] * IMAGE_TOKENS + self.encode(MARKS[self.member][1]) + self.encode(tail)
