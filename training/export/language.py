"""The language model, its vocabulary and its chat template as GGUF."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf

from training.chat import END, PAD, TEMPLATES, Chat
from training.export.tensors import Quantization, TensorWriter
from training.networks.model import TinyModel
from training.networks.sizes import (
    CONTEXT,
    FFN,
    HEAD_WIDTH,
    HEADS,
    KV_HEADS,
    LAYERS,
    M_ROPE_SECTIONS,
    RMS_EPS,
    ROPE_BASE,
    WIDTH,
)
from training.vocabulary import BYTES, UNKNOWN
from training.worlds.world import Architecture

ARCHITECTURE: dict[Architecture, str] = {"qwen3vl": "qwen3vl", "internvl": "qwen3", "minicpmv": "qwen3"}


def export_language(model: TinyModel, chat: Chat, name: str, path: Path, quantization: Quantization) -> None:
    """Write the language model.

    Args:
        model: The trained twin.
        chat: Its tokenizer and template.
        name: `general.name`.
        path: The file to write.
        quantization: Of the matrices.
    """
    architecture = ARCHITECTURE[model.member]
    out = TensorWriter(str(path), architecture, quantization)
    meta = out.gguf
    meta.add_name(name)
    meta.add_description("trained from scratch on a toy world, for tests and demonstrations only")
    meta.add_license("mit")
    meta.add_context_length(CONTEXT)
    meta.add_embedding_length(WIDTH)
    meta.add_block_count(LAYERS)
    meta.add_feed_forward_length(FFN)
    meta.add_head_count(HEADS)
    meta.add_head_count_kv(KV_HEADS)
    meta.add_key_length(HEAD_WIDTH)
    meta.add_value_length(HEAD_WIDTH)
    meta.add_rope_dimension_count(HEAD_WIDTH)
    meta.add_rope_freq_base(ROPE_BASE)
    meta.add_layer_norm_rms_eps(RMS_EPS)
    if architecture == "qwen3vl":
        meta.add_rope_dimension_sections(M_ROPE_SECTIONS)
        meta.add_uint32("qwen3vl.n_deepstack_layers", 1)
    _add_vocabulary(meta, chat)
    out.matrix("token_embd.weight", model.embed.weight)
    out.exact("output_norm.weight", model.norm.weight)
    for layer, block in enumerate(model.blk):
        for tensor_name, tensor in block.named_parameters():
            write = out.matrix if tensor.dim() == 2 else out.exact
            write(f"blk.{layer}.{tensor_name}", tensor)
    out.close()


def _add_vocabulary(meta: gguf.GGUFWriter, chat: Chat) -> None:
    stored = json.loads(chat.tokenizer.to_str())
    special = {token["content"]: token["id"] for token in stored["added_tokens"]}
    texts = [f"[PAD{number}]" for number in range(chat.n_vocab)]
    types = [gguf.TokenType.UNUSED] * chat.n_vocab
    for text, number in stored["model"]["vocab"].items():
        texts[number], types[number] = text, gguf.TokenType.NORMAL
    for text, number in special.items():
        texts[number], types[number] = text, gguf.TokenType.CONTROL
    add = _add_sentence_pieces if stored["model"]["byte_fallback"] else _add_merges
    add(meta, stored["model"], types)
    meta.add_token_list(texts)
    meta.add_token_types(types)
    meta.add_eos_token_id(special[END])
    meta.add_pad_token_id(special[PAD])
    meta.add_bos_token_id(special[PAD])
    meta.add_add_bos_token(False)
    meta.add_chat_template(TEMPLATES[chat.member])


def _add_merges(meta: gguf.GGUFWriter, stored: dict[str, Any], types: list[gguf.TokenType]) -> None:
    meta.add_tokenizer_model("gpt2")
    meta.add_tokenizer_pre("qwen2")
    # tokenizers saves merges as pairs since 0.20; GGUF wants "a b".
    meta.add_token_merges([pair if isinstance(pair, str) else " ".join(pair) for pair in stored["merges"]])


def _add_sentence_pieces(meta: gguf.GGUFWriter, stored: dict[str, Any], types: list[gguf.TokenType]) -> None:
    meta.add_tokenizer_model("llama")
    meta.add_tokenizer_pre("default")
    unknown = stored["vocab"][UNKNOWN]
    types[unknown] = gguf.TokenType.UNKNOWN
    for text in BYTES:
        types[stored["vocab"][text]] = gguf.TokenType.BYTE
    # llama.cpp merges the pair with the highest score first: an earlier piece before a later one.
    meta.add_token_scores([-float(number) for number in range(len(types))])
    meta.add_unk_token_id(unknown)
    meta.add_add_space_prefix(False)
