"""Vocabularies to test with: real ones where they are at hand, the embedded pools', and some written here."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import gguf

from macr_local.engine.library import api
from macr_local.engine.template import ChatTemplate
from macr_local.engine.vocabulary import Vocabulary
from tests.oracles.gguf_models import MERGES, _byte_alphabet

REPOSITORY = Path(__file__).parents[2]
REAL = Path(os.environ.get("MACR_LOCAL_VOCAB", REPOSITORY.parent / "shared" / "vocab"))
"""Folder of llama.cpp's vocabularies without weights, ggml-vocab-NAME.gguf, each with .inp and .out."""

CONTROL, USER_DEFINED = gguf.TokenType.CONTROL, gguf.TokenType.USER_DEFINED
Kinds = Mapping[str, gguf.TokenType]

# Kept for the whole run: a vocabulary points into its model.
_models: dict[Path, Any] = {}


def real() -> dict[str, Path]:
    return {path.stem.removeprefix("ggml-vocab-"): path for path in sorted(REAL.glob("ggml-vocab-*.gguf"))}


def everywhere() -> dict[str, Path]:
    """Every vocabulary there is on this machine, by a short name."""
    tiny = sorted((REPOSITORY / "macr_local" / "tiny").rglob("*.gguf"))
    return real() | {f"{p.parent.name}-{p.stem}": p for p in tiny if "mmproj" not in p.name}


@cache
def load(path: Path) -> Vocabulary:
    params = api.llama_model_default_params()
    params.vocab_only = True
    model = api.llama_model_load_from_file(os.fsencode(path), params)
    assert model, path
    _models[path] = model
    return Vocabulary(api.llama_model_get_vocab(model))


def chat_template(path: Path) -> ChatTemplate | None:
    """The template in a vocabulary's file."""
    vocabulary = load(path)
    text = api.llama_model_chat_template(_models[path], None)
    if not text:
        return None
    return ChatTemplate(
        text.decode(),
        bos=vocabulary.bos,
        eos=vocabulary.eos,
        tokens=lambda text: vocabulary.find(text.encode()) is not None,
        name=path.stem,
    )


def llama_cpp_tokens(vocabulary: Vocabulary, text: str | bytes, *, bos: bool, marks: bool) -> list[int]:
    """What llama.cpp itself makes of a text, BOS and control tokens as asked for."""
    data = text.encode() if isinstance(text, str) else text
    room = len(data) + 8
    tokens = (api.llama_token * room)()
    count = api.llama_tokenize(vocabulary._vocab, data, len(data), tokens, room, bos, marks)
    assert count >= 0
    return list(tokens[:count])


def attributes(vocabulary: Vocabulary, token: int) -> int:
    return int(api.llama_vocab_get_attr(vocabulary._vocab, token))


def pieces(vocabulary: Vocabulary, tokens: list[int]) -> bytes:
    """The texts of tokens, joined, those of control tokens too."""
    return b"".join(vocabulary._piece(token) for token in tokens)


def samples(path: Path) -> list[tuple[str, list[int]]]:
    """The texts beside a vocabulary, and the ids that the original tokenizer gave for each."""
    texts = Path(f"{path}.inp").read_text("utf-8").split("\n__ggml_vocab_test__\n")
    lines = Path(f"{path}.out").read_text("utf-8").splitlines()
    return [(text, [int(token) for token in line.split()]) for text, line in zip(texts, lines, strict=False)]


def write_bpe(path: Path, kinds: Kinds, *, pre: str = "qwen2", without: bytes = b"") -> Vocabulary:
    """A byte-level vocabulary with tokens of these kinds, perhaps without some bytes."""
    letters = [letter for byte, letter in enumerate(_byte_alphabet()) if byte not in without]
    ordinary = [*letters, *(merge.replace(" ", "") for merge in MERGES)]
    writer = gguf.GGUFWriter(path, "qwen3")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_merges(list(MERGES))
    _write_tokens(writer, ordinary, [gguf.TokenType.NORMAL] * len(ordinary), kinds)
    writer.add_bos_token_id(len(ordinary))
    writer.add_eos_token_id(len(ordinary))
    writer.add_add_bos_token(False)
    return _finish(writer, path)


def write_spm(path: Path, kinds: Kinds, *, name: str = "test") -> Vocabulary:
    """A SentencePiece vocabulary that puts a blank before every text; ``phi-3`` eats blanks after marks."""
    words = ["▁", *map(chr, range(0x21, 0x7F)), "▁a", "th", "the", "▁the", "▁▁", "er"]
    ordinary = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *words]
    types = [gguf.TokenType.UNKNOWN, CONTROL, CONTROL, *[gguf.TokenType.BYTE] * 256]
    types += [gguf.TokenType.NORMAL] * len(words)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name(name)
    writer.add_tokenizer_model("llama")
    _write_tokens(writer, ordinary, types, kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    return _finish(writer, path)


def _write_tokens(writer: gguf.GGUFWriter, texts: list[str], types: list[Any], kinds: Kinds) -> None:
    writer.add_token_list([*texts, *kinds])
    writer.add_token_scores([-float(i) for i in range(len(texts) + len(kinds))])
    writer.add_token_types([int(kind) for kind in (*types, *kinds.values())])


def _finish(writer: gguf.GGUFWriter, path: Path) -> Vocabulary:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return load(path)
