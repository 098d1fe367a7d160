"""Byte-level BPE tokenizers that llama.cpp reads as ``gpt2`` with the ``qwen2`` pre-tokenizer."""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from training.chat import SPECIAL
from training.worlds.world import Architecture

QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_SYSTEM_TEXT = "system\nLook at the image.\n"


def train_tokenizer(member: Architecture, texts: Iterable[str], size: int) -> Tokenizer:
    """Train a tokenizer.

    These small languages have fewer merges than some sizes ask for; the rest of the ids is padded at export,
    as in real vocabularies.

    Args:
        member: Decides the special tokens.
        texts: The corpus.
        size: Entries, special tokens included.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN2), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = SPECIAL[member]
    trainer = trainers.BpeTrainer(
        vocab_size=size - len(special),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[],
        show_progress=False,
        min_frequency=1,
    )
    tokenizer.train_from_iterator([*texts, *[_SYSTEM_TEXT] * 50], trainer)
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in special])
    return tokenizer
