"""Bytes to tokens and back, for one vocabulary of llama.cpp."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Sequence
from typing import Any

from macr_local.engine.library import api
from macr_local.engine.marks import Marks, is_control_like
from macr_local.engine.template import TemplateText, UserText
from macr_local.errors import EngineError

THINK = (b"<think>", b"</think>")
"""The markers of a thought: the only control tokens whose text is part of an answer."""

# A pretokeniser of llama.cpp may go through std::regex, which recurses once per character and overflows the
# stack on a long run without a break (deepseek-llm: 2,000 letters on a stack of 512 KiB).
_STRETCH = 512
_LONG = re.compile(rf"\s{{{_STRETCH}}}|\S{{{_STRETCH}}}")
_SPACE = b" \t\n\r\v\f"
# What a continuation is tokenised behind, where a vocabulary puts a blank before each text.
_ANCHORS = (b"\n", b"\t", b"|")


class Vocabulary:
    """What one model knows of text. Nothing here changes with use but caches; threads may share it.

    Attributes:
        n_tokens: How many tokens there are.
        bos: Text of the beginning-of-sequence token, "" without one.
        eos: Text of the end-of-sequence token, "" without one.
    """

    def __init__(self, vocab: Any) -> None:
        """Look through a vocabulary.

        Args:
            vocab: A ``llama_vocab`` pointer; its model must outlive this object.
        """
        self._vocab = vocab
        self.n_tokens: int = api.llama_vocab_n_tokens(vocab)
        self._pieces: dict[int, bytes] = {}
        self._texts: dict[int, bytes] = {}
        self._found: dict[bytes, int | None] = dict.fromkeys(THINK)
        self._bytes: dict[int, int] = {}
        self._bos: int = api.llama_vocab_bos(vocab)
        self._adds_bos = bool(api.llama_vocab_get_add_bos(vocab)) and self._bos >= 0
        self.bos, self.eos = self._name(self._bos), self._name(api.llama_vocab_eos(vocab))
        self._read_marks()
        self._anchors: tuple[tuple[bytes, list[int]], ...] = ()
        if self._join(self._tokenize(b"a")) != b"a":
            self._anchors = tuple((anchor, self._tokenize(anchor)) for anchor in _ANCHORS)
        self._thought = {token for text in THINK if (token := self.find(text)) is not None}
        # llama.cpp matches user-defined tokens in any text and puts a blank after each where it puts blanks.
        whole = {self._piece(token): token for token in self._thought}
        self._whole = Marks({**self._user_defined, **whole} if self._anchors else whole)

    def _read_marks(self) -> None:
        control = api.LLAMA_TOKEN_ATTR_CONTROL | api.LLAMA_TOKEN_ATTR_UNKNOWN
        marks: dict[bytes, int] = {}
        guarded: dict[bytes, int] = {}
        self._user_defined: dict[bytes, int] = {}
        self._eats_left: set[int] = set()
        self._eats_right: set[int] = set()
        for token in range(self.n_tokens):
            attr = api.llama_vocab_get_attr(self._vocab, token)
            text: bytes = api.llama_vocab_get_text(self._vocab, token)
            if text in THINK:
                self._found[text] = token
            if not attr & (control | api.LLAMA_TOKEN_ATTR_USER_DEFINED) or not text:
                continue
            if attr & control:
                marks[text] = token
            else:
                self._user_defined[text] = token
                if is_control_like(text):
                    marks[text] = guarded[text] = token
            if attr & api.LLAMA_TOKEN_ATTR_LSTRIP:
                self._eats_left.add(token)
            if attr & api.LLAMA_TOKEN_ATTR_RSTRIP:
                self._eats_right.add(token)
        self._marks, self._guarded = Marks(marks), Marks(guarded)

    # Prompts.

    def encode_prompt(self, parts: Sequence[TemplateText | UserText], *, start: bool) -> list[int]:
        """Tokens of a stretch of a prompt between images.

        Control tokens count in the template's text only. The text between them is tokenised in one piece, as
        in training, whoever wrote it; a user's text gives none of the tokens a template gives meaning to.

        Args:
            parts: The stretch, in order.
            start: Whether it is the beginning of the prompt, where a BOS token goes if the vocabulary asks
                for one and the template has not put it.
        """
        data = b""
        ours: list[tuple[int, int]] = []
        for part in parts:
            begin = len(data)
            # Half a surrogate pair, from a JSON string or an odd command line, has no bytes.
            data += part.text.encode("utf-8", "replace")
            if isinstance(part, TemplateText):
                if ours and ours[-1][1] == begin:
                    begin = ours.pop()[0]
                ours.append((begin, len(data)))
        tokens: list[int] = []
        at = 0
        for begin, end in ours:
            look = begin
            while found := self._marks.find(data, look, end):
                left, right, token = found
                run = data[at:left]
                if token in self._eats_left:
                    run = run[: max(begin - at, 0)] + run[max(begin - at, 0) :].rstrip(_SPACE)
                tokens += self._run(run)
                tokens.append(token)
                if token in self._eats_right:
                    right = end - len(data[right:end].lstrip(_SPACE))
                at = look = right
        tokens += self._run(data[at:])
        if start and self._adds_bos and tokens[:1] != [self._bos]:
            tokens.insert(0, self._bos)
        return tokens

    def _run(self, data: bytes) -> list[int]:
        """Ordinary text behind a control token, or at the beginning."""
        tokens: list[int] = []
        for cut, piece in enumerate(self._unmarked(data)):
            for more, stretch in enumerate(_stretches(piece)):
                tokens += self._continue(stretch) if cut or more else self._tokenize(stretch)
        return tokens

    def _unmarked(self, data: bytes) -> Iterator[bytes]:
        """Pieces of a run such that llama.cpp finds no marker in any: each is cut behind its first letter.

        llama.cpp leaves control tokens in such text alone, but not the user-defined ones, among which there
        are ``<think>`` and ``<tool_call>`` in Qwen's vocabularies.
        """
        at = look = 0
        while found := self._guarded.find(data, look, len(data)):
            look = found[0] + 1
            while data[look] & 0xC0 == 0x80:
                look += 1
            yield data[at:look]
            at = look
        if at < len(data):
            yield data[at:]

    # The answer.

    def encode(self, text: bytes) -> list[int]:
        """Tokens that continue a text by exactly these bytes, whatever the bytes are.

        Raises:
            EngineError: The vocabulary has no token for one of the bytes.
        """
        tokens: list[int] = []
        for piece, mark in self._whole.split(text):
            if mark is not None:
                tokens.append(mark)
                continue
            for stretch in _stretches(piece):
                tokens += self._sound(stretch)
        return tokens

    def _sound(self, data: bytes) -> list[int]:
        """Tokens of bytes that may be no UTF-8: llama.cpp sees only what is.

        A sequence beyond the last code point ends the process inside its tokenizer.
        """
        tokens: list[int] = []
        while data:
            try:
                data.decode("utf-8")
            except UnicodeDecodeError as error:
                tokens += self._exact(data[: error.start]) if error.start else []
                tokens += map(self._byte, data[error.start : error.end])
                data = data[error.end :]
            else:
                tokens += self._exact(data)
                break
        return tokens

    def _exact(self, data: bytes) -> list[int]:
        tokens = self._continue(data)
        if self._join(tokens) == data:
            return tokens
        # A letter that the vocabulary reads as another: halve until it is alone.
        letters = [at for at in range(1, len(data)) if data[at] & 0xC0 != 0x80]
        if not letters:
            return [self._byte(byte) for byte in data]
        half = letters[len(letters) // 2]
        return self._exact(data[:half]) + self._exact(data[half:])

    def _byte(self, byte: int) -> int:
        if not self._bytes:
            for token in range(self.n_tokens):
                piece = self._raw_piece(token, special=False)
                if len(piece) == 1:
                    self._bytes.setdefault(piece[0], token)
        try:
            return self._bytes[byte]
        except KeyError:
            raise EngineError(
                f"the vocabulary has no token for the byte 0x{byte:02X}",
                "Leave this member out; it cannot take in what the others write",
            ) from None

    def text_of(self, token: int) -> bytes:
        """The bytes a generated token adds to the answer: none for control tokens, but think markers do."""
        text = self._texts.get(token)
        if text is None:
            if token in self._thought:
                text = self._piece(token)
            else:
                text = b"" if self.is_end(token) else self._raw_piece(token, special=False)
            self._texts[token] = text
        return text

    def is_end(self, token: int) -> bool:
        """Whether a token ends the generation."""
        return bool(api.llama_vocab_is_eog(self._vocab, token))

    def find(self, text: bytes) -> int | None:
        """The one token whose text is exactly this, a control token before an ordinary one."""
        token = self._marks.get(text)
        if token is None:
            token = self._user_defined.get(text)
        if token is None:
            if text not in self._found:
                self._found[text] = self._search(text)
            token = self._found[text]
        return token

    def _search(self, text: bytes) -> int | None:
        tokens = self._continue(text)
        if len(tokens) == 1 and self._piece(tokens[0]) == text:
            return tokens[0]
        # Not every token can be reached by tokenising.
        return next((t for t in range(self.n_tokens) if self._raw_piece(t, special=True) == text), None)

    # llama.cpp.

    def _continue(self, data: bytes) -> list[int]:
        """Tokenise without the blank that some vocabularies put before a text."""
        for anchor, tokens in self._anchors:
            behind = self._tokenize(anchor + data)
            if behind[: len(tokens)] == tokens and self._join(behind[len(tokens) :]) == data:
                return behind[len(tokens) :]
        return self._tokenize(data)

    def _tokenize(self, data: bytes) -> list[int]:
        room = len(data) + 4
        while True:
            tokens = (api.llama_token * room)()
            count = api.llama_tokenize(self._vocab, data, len(data), tokens, room, False, False)
            if count >= 0:
                return list(tokens[:count])
            room = -count

    def _join(self, tokens: Sequence[int]) -> bytes:
        return b"".join(map(self._piece, tokens))

    def _piece(self, token: int) -> bytes:
        piece = self._pieces.get(token)
        if piece is None:
            piece = self._pieces[token] = self._raw_piece(token, special=True)
        return piece

    def _raw_piece(self, token: int, *, special: bool) -> bytes:
        if not 0 <= token < self.n_tokens:
            raise EngineError(f"token {token} is not in the vocabulary of {self.n_tokens:,}")
        room = 64
        while True:
            piece = ctypes.create_string_buffer(room)
            count = api.llama_token_to_piece(self._vocab, token, piece, room, 0, special)
            if count >= 0:
                return piece.raw[:count]
            room = -count

    def _name(self, token: int) -> str:
        return self._piece(token).decode("utf-8", "replace") if token >= 0 else ""


def _stretches(data: bytes) -> Iterator[bytes]:
    """A text in pieces none of which has a long run without a break; nearly always the text itself."""
    if len(data) <= _STRETCH:
        yield data
        return
    text, at = data.decode("utf-8", "surrogateescape"), 0
    while long := _LONG.search(text, at):
        yield text[at : long.end()].encode("utf-8", "surrogateescape")
        at = long.end()
    if at < len(text):
        yield text[at:].encode("utf-8", "surrogateescape")
