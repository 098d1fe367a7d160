"""mtmd: pixels to embeddings, each image encoded once per model, and embeddings into the context."""

from __future__ import annotations

import ctypes
import os
import weakref
from collections import OrderedDict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from macr_local.engine.context import Context
from macr_local.engine.library import api, complaints, has_gpu, mtmd
from macr_local.engine.model import Model
from macr_local.errors import CapacityError, EngineError, ImageError, ModelFileError
from macr_local.images import Image, fit

CACHE_BYTES = 256 << 20
"""Embeddings kept per projector, least recently used first out."""


class Media:
    """One image chunk (a whole image, a tile or a slice) as mtmd cut it.

    Attributes:
        cells: Cells it fills in the context.
        positions: Positions it takes; fewer than cells under M-RoPE.
    """

    def __init__(self, chunk: Any, image: str) -> None:
        self._own(mtmd.mtmd_input_chunk_copy(chunk))
        self.cells = int(mtmd.mtmd_input_chunk_get_n_tokens(chunk))
        self.positions = int(mtmd.mtmd_input_chunk_get_n_pos(chunk))
        self.image = image
        self.embedding: NDArray[np.float32] | None = None

    def _own(self, pointer: Any) -> None:
        if not pointer:
            raise EngineError("llama.cpp could not copy an image chunk", "Free memory and ask again")
        self.pointer = pointer
        self._free = weakref.finalize(self, mtmd.mtmd_input_chunk_free, pointer)
        self._free.atexit = False

    def settle(self, embedding: NDArray[np.float32]) -> None:
        """Keep the embedding and let the pixels go."""
        self.embedding = embedding
        release = self._free
        self._own(mtmd.mtmd_input_chunk_get_placeholder(self.pointer))
        release()


Layout = tuple[tuple[int, ...] | Media, ...]
"""An image in a prompt: runs of marker tokens and media chunks, in order."""


class Projector:
    """A vision encoder beside its language model. Not thread-safe; the member's worker drives it."""

    def __init__(self, model: Model) -> None:
        """Load the projector file that the member's specification names.

        Raises:
            ModelFileError: llama.cpp cannot load it, or it takes no images.
        """
        spec = model.spec
        assert spec.projector is not None
        gpu = has_gpu() and spec.n_gpu_layers != 0
        params = mtmd.mtmd_context_params_default()
        params.use_gpu, params.n_threads = gpu, model.threads
        # The warm-up encodes an image of full size, which for a small pool costs more than all questions.
        params.print_timings = params.warmup = False
        with complaints() as said:
            self._pointer: Any = mtmd.mtmd_init_from_file(os.fsencode(spec.projector), model.pointer, params)
        if not self._pointer:
            raise ModelFileError(
                f"{spec.name}: llama.cpp cannot load {spec.projector}" + (f" ({said[0]})" if said else ""),
                "Use the projector that was made for this model",
            )
        if not mtmd.mtmd_support_vision(self._pointer):
            self.close()
            raise ModelFileError(f"{spec.name}: {spec.projector} takes no images", "Use a vision projector")
        self._name, self._limits, self._cores = spec.name, spec.images, model.cores
        self._width, self._n_vocab = model.embedding_width, model.vocabulary.n_tokens
        self._layouts: OrderedDict[str, tuple[Layout, tuple[str, ...]]] = OrderedDict()
        self.encoded = 0
        """Images this projector has encoded since it was loaded; cached ones are not counted again."""

    def layout(self, image: Image) -> tuple[Layout, tuple[str, ...]]:
        """Cut an image into chunks, encoding nothing; also what was done to make it fit.

        Raises:
            ImageError: The preprocessor refuses it.
        """
        if image.sha256 not in self._layouts:
            fitted = fit(image, self._limits)
            notes = fitted.notes[len(image.notes) :]
            self._layouts[image.sha256] = self._cut(fitted), notes
            self._evict()
        self._layouts.move_to_end(image.sha256)
        return self._layouts[image.sha256]

    def _cut(self, image: Image) -> Layout:
        # The image is tokenised alone, so that nothing a user typed is ever near the media marker.
        pixels = np.ascontiguousarray(image.pixels)
        bitmap = mtmd.mtmd_bitmap_init(
            image.width, image.height, pixels.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
        )
        chunks = mtmd.mtmd_input_chunks_init()
        try:
            marker = mtmd.mtmd_default_marker()
            text = mtmd.mtmd_input_text()
            text.text, text.text_len, text.add_special, text.parse_special = marker, len(marker), False, True
            bitmaps = (mtmd.mtmd_bitmap_p_ctypes * 1)(bitmap)
            if code := mtmd.mtmd_tokenize(self._pointer, chunks, ctypes.byref(text), bitmaps, 1):
                raise ImageError(
                    f"{self._name}: {image.name} ({image.width}x{image.height}) was refused by the model's "
                    f"preprocessor (code {code})",
                    "Use another size of this image",
                )
            count = mtmd.mtmd_input_chunks_size(chunks)
            return tuple(self._part(mtmd.mtmd_input_chunks_get(chunks, i), image) for i in range(count))
        finally:
            mtmd.mtmd_input_chunks_free(chunks)
            mtmd.mtmd_bitmap_free(bitmap)

    def _part(self, chunk: Any, image: Image) -> tuple[int, ...] | Media:
        if mtmd.mtmd_input_chunk_get_type(chunk) != mtmd.MTMD_INPUT_CHUNK_TYPE_TEXT:
            return Media(chunk, image.name)
        count = ctypes.c_size_t()
        tokens = mtmd.mtmd_input_chunk_get_tokens_text(chunk, ctypes.byref(count))
        ids = tuple(int(tokens[i]) for i in range(count.value)) if tokens else ()
        if not all(0 <= token < self._n_vocab for token in ids):
            raise ModelFileError(
                f"{self._name}: the projector needs marker tokens that the model's vocabulary does not have",
                "Use the projector that was made for this model",
            )
        return ids

    def fits(self, media: Media, context: Context) -> None:
        """Refuse a chunk that the context cannot take in one batch although its attention needs that.

        Raises:
            CapacityError: Names both sizes. llama.cpp would abort the process, or compute something else.
        """
        if mtmd.mtmd_decode_use_non_causal(self._pointer, media.pointer) and media.cells > context.n_ubatch:
            raise CapacityError(
                f"{self._name}: {media.image} needs {media.cells} cells in one batch of {context.n_ubatch}",
                f"Set n_batch = {media.cells} or more for this model",
            )

    def decode(self, media: Media, context: Context) -> bool:
        """Put a chunk into the context; True if it had to be encoded first.

        Raises:
            EngineError: Encoding or decoding failed.
            Cancelled: The context was interrupted.
        """
        self.fits(media, context)
        context.require(media.cells)
        fresh = media.embedding is None
        if fresh:
            media.settle(self._encode(media))
        context.check_abort()
        assert media.embedding is not None
        past = api.llama_pos(context.n_past)
        with context.cores:
            code = mtmd.mtmd_helper_decode_image_chunk(
                self._pointer,
                context.pointer,
                media.pointer,
                media.embedding.ctypes.data_as(ctypes.POINTER(ctypes.c_float)),
                api.llama_pos(context.n_past),
                api.llama_seq_id(context.sequence),
                context.n_batch,
                ctypes.byref(past),
                mtmd.mtmd_helper_post_decode_callback(0),
                None,
            )
        context.raise_for(int(code))
        context.advance(positions=media.positions, cells=media.cells)
        return fresh

    def _encode(self, media: Media) -> NDArray[np.float32]:
        with self._cores:
            code = mtmd.mtmd_encode_chunk(self._pointer, media.pointer)
        if code:
            raise EngineError(f"{self._name}: {media.image} could not be encoded (code {code})")
        output = mtmd.mtmd_get_output_embd(self._pointer)
        embedding = np.ctypeslib.as_array(output, shape=(media.cells * self._width,)).copy()
        if not np.isfinite(embedding).all():
            raise EngineError(
                f"{self._name}: the projector made numbers that are not finite of {media.image}",
                "The projector file may be damaged; compare its sha256",
            )
        return embedding

    def _evict(self) -> None:
        def held() -> int:
            parts = (part for layout, _ in self._layouts.values() for part in layout)
            return sum(part.cells * self._width * 4 for part in parts if isinstance(part, Media))

        while len(self._layouts) > 1 and held() > CACHE_BYTES:
            self._layouts.popitem(last=False)

    def close(self) -> None:
        """Free the encoder; safe to call twice."""
        if self._pointer:
            mtmd.mtmd_free(self._pointer)
            self._pointer = None
