"""Small models with random weights, written as GGUF files.

The weights are drawn large enough that every token moves the logits visibly: a rollback that forgets a little
must show.
"""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

import gguf
import numpy as np
from numpy.typing import NDArray

from tests.oracles.architectures import (
    ARCHITECTURES,
    FEED_FORWARD,
    HEADS,
    KV_HEADS,
    LAYERS,
    VOCABULARY,
    WIDTH,
    Architecture,
    Shape,
    Tensors,
)  # fmt: skip

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MERGES = ("t h", "h e", "i n", "e r", "a n", "th e", "o n", "r e", "an d", "in g")


def tokens() -> list[str]:
    """The vocabulary: 256 bytes in GPT-2's alphabet, the merges, the special tokens."""
    return [*_byte_alphabet(), *(merge.replace(" ", "") for merge in MERGES), *SPECIAL]


def _byte_alphabet() -> list[str]:
    """GPT-2's printable stand-ins for the 256 bytes."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = iter(range(0x100, 0x200))
    return [chr(byte if byte in printable else next(rest)) for byte in range(256)]


def write_model(path: Path, name: str, seed: int = 0) -> Path:
    """Write a model of that architecture, the same bytes for the same seed.

    Args:
        path: The file to write.
        name: One of `ARCHITECTURES`.
        seed: Of the weights.
    """
    arch = ARCHITECTURES[name]
    writer = gguf.GGUFWriter(path, arch.name)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    _write_keys(writer, arch)
    _write_vocabulary(writer)
    for tensor, shape in _tensors(arch):
        writer.add_tensor(tensor, _draw(tensor, shape, seed))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _write_keys(writer: gguf.GGUFWriter, arch: Architecture) -> None:
    writer.add_context_length(8192)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(10_000.0)
    if arch.memory == "recurrent":
        writer.add_head_count(0)
    elif arch.attention_layers is not None and arch.name != "qwen35":
        writer.add_head_count(HEADS)
        writer.add_head_count_kv([KV_HEADS if i in arch.attention_layers else 0 for i in range(LAYERS)])
    else:
        writer.add_head_count(HEADS)
        writer.add_head_count_kv(KV_HEADS)
    for key, value in arch.keys.items():
        key = f"{arch.name}.{key}"
        if isinstance(value, list):
            writer.add_array(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        else:
            writer.add_uint32(key, value)


def _write_vocabulary(writer: gguf.GGUFWriter) -> None:
    texts = tokens()
    kinds = [gguf.TokenType.CONTROL if text in SPECIAL else gguf.TokenType.NORMAL for text in texts]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(texts)
    writer.add_token_types(kinds)
    writer.add_token_merges(list(MERGES))
    writer.add_bos_token_id(texts.index("<|endoftext|>"))
    writer.add_eos_token_id(texts.index("<|im_end|>"))
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)


def _tensors(arch: Architecture) -> Tensors:
    yield "token_embd.weight", (VOCABULARY, WIDTH)
    yield f"{arch.final_norm}.weight", (WIDTH,)
    yield from arch.extra()
    for number in range(LAYERS):
        attention = arch.attention_layers is None or number in arch.attention_layers
        for name, shape in arch.layer(attention):
            yield f"blk.{number}.{name}", shape


def _draw(name: str, shape: Shape, seed: int) -> NDArray[np.float32]:
    rng = np.random.default_rng([seed, crc32(name.encode())])
    values = rng.standard_normal(shape, dtype=np.float32)
    if ("norm" in name and name.endswith("weight")) or "_ln.weight" in name:
        return 1 + 0.1 * values
    if name.endswith("ssm_a"):  # a state decays
        return -np.abs(values) - np.float32(0.05)
    return values * np.float32(1.5 / np.sqrt(shape[-1]))
