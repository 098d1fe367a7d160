"""Tokenizers that llama.cpp reads: `gpt2` with the `qwen2` pre-tokenizer, and `llama` (SentencePiece)."""

from __future__ import annotations

import json
from collections.abc import Iterable

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from training.chat import SPECIAL
from training.worlds.world import Architecture, TokenizerKind

QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
BLANK = "▁"
"""SentencePiece's mark for a blank."""
UNKNOWN = "<unk>"
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
_SYSTEM_TEXT = "system\nLook at the image.\n"
_LETTERS = "".join(map(chr, range(33, 127)))


def train_tokenizer(kind: TokenizerKind, member: Architecture, texts: Iterable[str], size: int) -> Tokenizer:
    """Train a tokenizer.

    These small languages have fewer merges than some sizes ask for; the rest of the ids is padded at export,
    as in real vocabularies.

    Args:
        kind: How it splits.
        member: Decides the special tokens.
        texts: The corpus.
        size: Entries, special tokens included.
    """
    special = [AddedToken(text, special=True, normalized=False) for text in SPECIAL[member]]
    corpus = [*texts, *[_SYSTEM_TEXT] * 50]
    train = _byte_level if kind == "gpt2" else _sentence_pieces
    tokenizer = train(corpus, size - len(special))
    tokenizer.add_special_tokens(special)
    return tokenizer


def _byte_level(corpus: list[str], size: int) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN2), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[],
        show_progress=False,
        min_frequency=1,
    )
    tokenizer.train_from_iterator(corpus, trainer)
    return tokenizer


def _sentence_pieces(corpus: list[str], size: int) -> Tokenizer:
    """Pieces of words with the blank before them; a letter that is none of them falls apart into bytes."""
    learner = Tokenizer(models.BPE())
    # SentencePiece does not learn pieces of letters and punctuation together.
    learner.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(BLANK, prepend_scheme="never"), pre_tokenizers.Punctuation("isolated")]
    )
    reserved = [UNKNOWN, *BYTES]
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        initial_alphabet=[*_LETTERS, BLANK],
        special_tokens=reserved,
        show_progress=False,
        min_frequency=1,
    )
    # A line break is a byte in SentencePiece's vocabularies, no letter that could be merged.
    learner.train_from_iterator([line for text in corpus for line in text.split("\n") if line], trainer)
    ids: dict[str, int] = json.loads(learner.to_str())["model"]["vocab"]
    tokenizer = Tokenizer(
        models.BPE(vocab=ids, merges=_merges(ids), unk_token=UNKNOWN, byte_fallback=True, fuse_unk=False)
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(BLANK, prepend_scheme="never")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace(BLANK, " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    return tokenizer


def _merges(ids: dict[str, int]) -> list[tuple[str, str]]:
    """All ways to put a piece together from two others, the earliest pieces first, as SentencePiece does."""
    pieces = sorted((text for text in ids if text not in {UNKNOWN, *BYTES}), key=ids.__getitem__)
    return [
        (text[:cut], text[cut:])
        for text in pieces
        for cut in range(1, len(text))
        if text[:cut] in ids and text[cut:] in ids
    ]
