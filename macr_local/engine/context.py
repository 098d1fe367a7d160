"""One llama.cpp context: every decode goes through here."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from macr_local.engine.library import api, complaints
from macr_local.engine.model import Model
from macr_local.errors import Cancelled, CapacityError, ContextFull, EngineError

_KV_TYPES = {"f16": 1, "q8_0": 8, "q4_0": 2}

_OUTPUTS = 8
"""Rows of logits a context can hold. We only ever ask for one; llama.cpp's default would be n_batch rows of
the whole vocabulary (514 MiB for a vocabulary of 262,144)."""


class Context:
    """A KV cache (or another memory), the position in it, and the logits of its last token.

    Positions and cells are apart: `n_past` is what RoPE and `seq_rm` see, `cells` is what fills `n_ctx`;
    an M-RoPE image takes fewer positions than cells. `intact` is False from a decode that failed or was
    stopped until the next `clear`. Not thread-safe; one worker thread drives it.
    """

    def __init__(self, model: Model, *, sequences: int = 1) -> None:
        """Create the context.

        Args:
            model: A loaded model; must outlive the context.
            sequences: 2 where bids are undone by a forked sequence.

        Raises:
            CapacityError: llama.cpp could not make it, usually for want of memory.
        """
        spec = model.spec
        params = api.llama_context_default_params()
        params.n_ctx = spec.n_ctx
        params.n_batch = params.n_ubatch = min(spec.n_batch, spec.n_ctx)
        params.n_seq_max, params.kv_unified = sequences, True
        params.n_outputs_max = _OUTPUTS
        params.n_threads = params.n_threads_batch = model.threads
        params.type_k = params.type_v = _KV_TYPES[spec.kv_type]
        # A ring of the window's size would save memory, but a lost bid that wraps around its end leaves the
        # cells in another order, and every later sum over them then differs in its last bits.
        params.swa_full = True
        params.no_perf = True
        with complaints() as said:
            self._pointer: Any = api.llama_init_from_model(model.pointer, params)
        if not self._pointer:
            raise CapacityError(
                f"{spec.name}: llama.cpp could not make a context of {spec.n_ctx} cells"
                + (f" ({said[-1]})" if said else ""),
                "Lower n_ctx for this model, or free memory",
            )
        self.n_ctx = int(api.llama_n_ctx(self._pointer))
        self.n_batch = int(api.llama_n_batch(self._pointer))
        self.n_ubatch = int(api.llama_n_ubatch(self._pointer))
        self.n_vocab = model.vocabulary.n_tokens
        self.name = spec.name
        self.cores = model.cores
        self.sequence = 0
        self.n_past = 0
        self.cells = 0
        self.decoded = 0
        self.intact = True
        self._memory = api.llama_get_memory(self._pointer)
        self._batch = api.llama_batch_init(self.n_batch, 0, 1)
        self._row = np.empty(0, np.float32)
        self._row_address: int | None = None
        self._abort = _AbortFlag()
        api.llama_set_abort_callback(self._pointer, self._abort.callback, self._abort.data)

    @property
    def pointer(self) -> Any:
        """The `llama_context` pointer, for the projector's decode."""
        return self._pointer

    def decode(self, tokens: Sequence[int], *, logits: bool) -> None:
        """Decode tokens at the present position, in batches, with logits for the last one or for none.

        Raises:
            ContextFull: They do not fit; nothing was decoded.
            Cancelled: The abort flag was raised; the sequence is unfinished and must be cleared.
            EngineError: llama.cpp refused, or a token is not in the vocabulary.
        """
        if not all(0 <= token < self.n_vocab for token in tokens):
            raise EngineError(f"{self.name}: a token is not in the vocabulary of {self.n_vocab}")
        self.require(len(tokens))
        batch = self._batch
        for start in range(0, len(tokens), self.n_batch):
            part = tokens[start : start + self.n_batch]
            for i, token in enumerate(part):
                batch.token[i] = token
                batch.pos[i] = self.n_past + i
                batch.n_seq_id[i] = 1
                batch.seq_id[i][0] = self.sequence
                batch.logits[i] = 0
            if logits and start + len(part) == len(tokens):
                batch.logits[len(part) - 1] = 1
            batch.n_tokens = len(part)
            self.check_abort()
            with self.cores:
                code = int(api.llama_decode(self._pointer, batch))
            self.raise_for(code)
            self.advance(positions=len(part), cells=len(part))

    def advance(self, *, positions: int, cells: int) -> None:
        """Count what a decode has put into the memory."""
        self.n_past += positions
        self.cells += cells
        self.decoded += cells

    def require(self, cells: int) -> None:
        """Refuse before llama.cpp would: it keeps the batches that still fitted.

        Raises:
            ContextFull: Fewer than ``cells`` cells are left.
        """
        if self.cells + cells > self.n_ctx:
            left = self.n_ctx - self.cells
            raise ContextFull(
                f"{self.name}: {cells} more tokens do not fit, {left} of {self.n_ctx} cells are left",
                "Raise n_ctx for this model, or ask for a shorter answer",
            )

    def raise_for(self, code: int) -> None:
        """Turn a return code of `llama_decode` into its error; 0 is none."""
        if code == 0:
            return
        self.intact = False
        if code == 1:
            raise ContextFull(f"{self.name}: llama.cpp found no free cell", "Raise n_ctx for this model")
        if code == 2:
            raise Cancelled(f"{self.name}: the decode was stopped")
        meaning = {-1: "an invalid batch", -2: "no memory for the computation", -3: "a failed computation"}
        raise EngineError(
            f"{self.name}: llama.cpp reported {meaning.get(code, 'an unknown error')} (code {code})",
            "Ask again; run `macr-local doctor` if it persists",
        )

    def logits(self) -> NDArray[np.float32]:
        """The raw logits (n_vocab,) of the last decoded token.

        They are llama.cpp's own memory, valid until the next decode.

        Raises:
            EngineError: The last decode asked for none.
        """
        row = api.llama_get_logits_ith(self._pointer, -1)
        if not row:
            raise EngineError(f"{self.name}: llama.cpp has no logits for the last token")
        # llama.cpp keeps its few rows in place, and to wrap one anew costs more than to recognise it.
        address = ctypes.cast(row, ctypes.c_void_p).value
        if address != self._row_address:
            self._row, self._row_address = np.ctypeslib.as_array(row, shape=(self.n_vocab,)), address
        return self._row

    def clear(self) -> None:
        """Forget every sequence, and any half-done decode with it."""
        api.llama_memory_clear(self._memory, True)
        self.sequence = self.n_past = self.cells = self.decoded = 0
        self.intact = True

    # What rollback.py builds on: thin, checked, no policy.

    def remove(self, sequence: int, start: int) -> bool:
        """Cut a sequence at a position; False when this memory cannot, and then nothing has changed."""
        return bool(api.llama_memory_seq_rm(self._memory, sequence, start, -1))

    def copy(self, source: int, target: int) -> None:
        """Let another sequence share all cells of this one."""
        api.llama_memory_seq_cp(self._memory, source, target, -1, -1)

    def first_position(self) -> int:
        """The smallest position that is still in the memory (-1: empty); above 0 in a sliding window."""
        return int(api.llama_memory_seq_pos_min(self._memory, self.sequence))

    def last_position(self) -> int:
        """The largest position in the memory (-1: empty)."""
        return int(api.llama_memory_seq_pos_max(self._memory, self.sequence))

    def state(self) -> bytes:
        """The present sequence, complete, as bytes for this very context."""
        size = int(api.llama_state_seq_get_size_ext(self._pointer, self.sequence, 0))
        buffer = (ctypes.c_uint8 * size)()
        written = int(api.llama_state_seq_get_data_ext(self._pointer, buffer, size, self.sequence, 0))
        if written != size:
            raise EngineError(f"{self.name}: llama.cpp wrote {written} of {size} bytes of a snapshot")
        return bytes(buffer)

    def restore(self, state: bytes) -> None:
        """Put a snapshot of this context back in place of the present sequence."""
        self.remove(self.sequence, -1)
        buffer = (ctypes.c_uint8 * len(state)).from_buffer_copy(state)
        if not api.llama_state_seq_set_data_ext(self._pointer, buffer, len(state), self.sequence, 0):
            # A refused snapshot leaves a broken mix behind; an empty memory is at least an honest one.
            self.clear()
            raise EngineError(f"{self.name}: llama.cpp refused its own snapshot", "Ask again")

    # The abort flag.

    def interrupt(self) -> None:
        """From any thread: stop the decode that runs, and any later one until `resume`."""
        self._abort.raised = True

    def resume(self) -> None:
        """Let decodes run again."""
        self._abort.raised = False

    def check_abort(self) -> None:
        """Stop here if asked to.

        llama.cpp reads the flag on the CPU only, and never while it encodes an image.

        Raises:
            Cancelled: `interrupt` was called.
        """
        if self._abort.raised:
            raise Cancelled(f"{self.name}: the decode was stopped")

    def close(self) -> None:
        """Free the context; safe to call twice."""
        if self._pointer:
            api.llama_batch_free(self._batch)
            api.llama_free(self._pointer)
            self._pointer = None


class _AbortFlag:
    """An abort callback that needs no GIL: libc's `strlen` over a buffer that we fill.

    llama.cpp calls it at every node of the graph. A Python callback would wait for the GIL each time, which
    made a decode 50 times slower whenever another Python thread was busy.
    """

    def __init__(self) -> None:
        libc = ctypes.cdll.msvcrt if sys.platform == "win32" else ctypes.CDLL(None)
        self._text = ctypes.create_string_buffer(b"", 2)
        self.callback = ctypes.cast(libc.strlen, api.ggml_abort_callback)
        self.data = ctypes.cast(self._text, ctypes.c_void_p)

    @property
    def raised(self) -> bool:
        return bool(self._text.value)

    @raised.setter
    def raised(self, value: bool) -> None:
        self._text.value = b"x" if value else b""
