"""A bare runner over llama.cpp's C interface: the other path that the engine is compared with.

It knows nothing of this package. A session is a fresh context; it is written to and thrown away.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

os.environ.setdefault("GOMP_SPINCOUNT", "2000")  # read when libgomp loads; the engine sets the same

import jinja2
import numpy as np
from llama_cpp import llama_cpp as api
from llama_cpp import mtmd_cpp as mtmd
from numpy.typing import NDArray
from PIL import Image

GEMMA_TEMPLATE = (
    "{% for message in messages %}<start_of_turn>{{ message.role }}\n{{ message.content }}<end_of_turn>\n"
    "{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
"""For gemma3-270m, whose file has no template: one turn as its family writes it."""


class Bare:
    """A model, and its projector if it has one."""

    def __init__(
        self,
        model: Path,
        projector: Path | None = None,
        *,
        template: str | None = None,
        n_ctx: int = 512,
        n_batch: int = 512,
        threads: int = 1,
    ) -> None:
        api.llama_backend_init()
        self.n_ctx, self.n_batch, self.threads = n_ctx, n_batch, threads
        self.model: Any = api.llama_model_load_from_file(os.fsencode(model), api.llama_model_default_params())
        assert self.model, model
        self.vocab = api.llama_model_get_vocab(self.model)
        self.n_vocab = int(api.llama_vocab_n_tokens(self.vocab))
        self.template = template or api.llama_model_chat_template(self.model, None).decode()
        self.projector: Any = None
        if projector is not None:
            params = mtmd.mtmd_context_params_default()
            params.use_gpu = params.print_timings = params.warmup = False
            params.n_threads = threads
            self.projector = mtmd.mtmd_init_from_file(os.fsencode(projector), self.model, params)
            assert self.projector, projector

    def render(self, question: str, *, images: int = 0) -> str:
        """The prompt in the model's own chat template, a marker where each image goes."""
        content = [{"type": "text", "text": mtmd.mtmd_default_marker().decode()}] * images
        content += [{"type": "text", "text": question}]
        template = jinja2.Environment(trim_blocks=True, lstrip_blocks=True).from_string(self.template)
        message = {"role": "user", "content": content if images else question}
        bos = api.llama_vocab_get_text(self.vocab, api.llama_vocab_bos(self.vocab)) or b""
        return template.render(messages=[message], add_generation_prompt=True, bos_token=bos.decode())

    def tokenize(self, text: bytes, *, prompt: bool = False) -> list[int]:
        """Tokens of a text; of a prompt, with its beginning-of-sequence token and control tokens parsed."""
        tokens = (api.llama_token * (len(text) + 8))()
        count = api.llama_tokenize(self.vocab, text, len(text), tokens, len(tokens), prompt, prompt)
        assert count >= 0, count
        return list(tokens[:count])

    def piece(self, token: int) -> bytes:
        """The bytes of a token; none for control tokens."""
        buffer = ctypes.create_string_buffer(256)
        count = api.llama_token_to_piece(self.vocab, token, buffer, len(buffer), 0, False)
        assert count >= 0, count
        return buffer.raw[:count]

    def is_end(self, token: int) -> bool:
        return bool(api.llama_vocab_is_eog(self.vocab, token))

    def fresh(self) -> Session:
        """A new, empty context."""
        return Session(self)

    def close(self) -> None:
        if self.projector:
            mtmd.mtmd_free(self.projector)
        api.llama_model_free(self.model)
        self.projector = self.model = None


class Session:
    """One context, from empty to thrown away."""

    def __init__(self, bare: Bare) -> None:
        self.bare = bare
        params = api.llama_context_default_params()
        params.n_ctx = bare.n_ctx
        params.n_batch = params.n_ubatch = min(bare.n_batch, bare.n_ctx)
        params.n_threads = params.n_threads_batch = bare.threads
        # After a lost bid a ring would lie in another order, and sums over it differ in their last bits.
        params.n_outputs_max, params.swa_full = 8, True
        self.context: Any = api.llama_init_from_model(bare.model, params)
        assert self.context
        self.n_past = 0
        self.n_batch = int(params.n_batch)
        self._batch = api.llama_batch_init(self.n_batch, 0, 1)

    def prompt(self, question: str, images: Sequence[Path] = ()) -> None:
        """Prefill a question; the logits after it are ready."""
        text = self.bare.render(question, images=len(images)).encode()
        if self.bare.projector is None:
            self.decode(self.bare.tokenize(text, prompt=True))
        else:
            self._chunks(text, [np.asarray(Image.open(path).convert("RGB")) for path in images])

    def _chunks(self, text: bytes, pictures: Sequence[NDArray[np.uint8]]) -> None:
        whole = mtmd.mtmd_input_text()
        whole.text, whole.text_len, whole.add_special, whole.parse_special = text, len(text), True, True
        bitmaps = (mtmd.mtmd_bitmap_p_ctypes * len(pictures))(*(_bitmap(picture) for picture in pictures))
        chunks = mtmd.mtmd_input_chunks_init()
        code = mtmd.mtmd_tokenize(self.bare.projector, chunks, ctypes.byref(whole), bitmaps, len(pictures))
        assert code == 0, code
        count = mtmd.mtmd_input_chunks_size(chunks)
        for i in range(count):
            chunk = mtmd.mtmd_input_chunks_get(chunks, i)
            start, sequence = api.llama_pos(self.n_past), api.llama_seq_id(0)
            past = api.llama_pos(self.n_past)  # in and out: text chunks add to it, image chunks set it
            code = mtmd.mtmd_helper_eval_chunk_single(
                self.bare.projector, self.context, chunk, start, sequence, self.n_batch, i == count - 1,
                ctypes.byref(past),
            )  # fmt: skip
            assert code == 0, code
            self.n_past = past.value
        mtmd.mtmd_input_chunks_free(chunks)
        for bitmap in bitmaps:
            mtmd.mtmd_bitmap_free(bitmap)

    def decode(self, tokens: Sequence[int]) -> None:
        """Decode tokens together (split by n_batch only); the logits after the last one are ready."""
        batch = self._batch
        for start in range(0, len(tokens), self.n_batch):
            part = tokens[start : start + self.n_batch]
            for i, token in enumerate(part):
                batch.token[i], batch.pos[i] = token, self.n_past + i
                batch.n_seq_id[i], batch.seq_id[i][0] = 1, 0
                batch.logits[i] = start + i == len(tokens) - 1
            batch.n_tokens = len(part)
            code = api.llama_decode(self.context, batch)
            assert code == 0, code
            self.n_past += len(part)

    def logits(self) -> NDArray[np.float32]:
        """A copy of the logits after the last token: (n_vocab,)."""
        row = api.llama_get_logits_ith(self.context, -1)
        assert row
        return np.ctypeslib.as_array(row, shape=(self.bare.n_vocab,)).copy()

    def close(self) -> None:
        api.llama_batch_free(self._batch)
        api.llama_free(self.context)
        self.context = None

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _bitmap(picture: NDArray[np.uint8]) -> Any:
    pixels = np.ascontiguousarray(picture)
    height, width, _ = pixels.shape
    return mtmd.mtmd_bitmap_init(width, height, pixels.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8)))
