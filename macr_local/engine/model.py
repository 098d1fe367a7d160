"""A GGUF model in memory: weights, vocabulary, chat template."""

from __future__ import annotations

import logging
import os
from typing import Any

from macr_local.config import MemberSpec
from macr_local.engine.cores import CORES
from macr_local.engine.files import Header
from macr_local.engine.library import api, complaints
from macr_local.engine.template import ChatTemplate
from macr_local.engine.vocabulary import Vocabulary
from macr_local.errors import ModelFileError

_log = logging.getLogger("macr_local")


class Model:
    """Weights that llama.cpp has loaded, and what their file says about text.

    Attributes:
        spec: The specification it was loaded from.
        header: The file's header, as checked before the load.
        pointer: The `llama_model` pointer.
        vocabulary: Bytes to tokens and back.
        template: The chat template, from the file or from the specification.
        threads: CPU threads of one decode; never more than there are cores.
        cores: What a decode holds while it runs.
    """

    def __init__(self, spec: MemberSpec, header: Header) -> None:
        """Load the weights.

        Raises:
            ModelFileError: llama.cpp cannot load the file, or it has no vocabulary.
            TemplateError: The chat template is broken.
        """
        params = api.llama_model_default_params()
        params.n_gpu_layers = spec.n_gpu_layers
        with complaints() as said:
            self.pointer: Any = api.llama_model_load_from_file(os.fsencode(spec.model), params)
        if not self.pointer:
            raise ModelFileError(
                f"{spec.name}: llama.cpp cannot load {spec.model}" + (f" ({said[0]})" if said else ""),
                "Check that this llama.cpp build knows the architecture, or download the file again",
            )
        self.spec, self.header = spec, header
        self.threads = min(spec.threads or CORES.total, CORES.total)
        if spec.threads is not None and spec.threads > CORES.total:
            text = "%s: threads is %d; %d are used, as many as there are cores"
            _log.warning(text, spec.name, spec.threads, self.threads)
        self.cores = CORES.lend(self.threads)
        try:
            self.vocabulary = Vocabulary(api.llama_model_get_vocab(self.pointer))
            if self.vocabulary.n_tokens == 0:
                raise ModelFileError(f"{spec.name}: {spec.model} has no vocabulary", "Use a text model")
            self.template = ChatTemplate(
                spec.chat_template or self._own_template(),
                bos=self.vocabulary.bos,
                eos=self.vocabulary.eos,
                tokens=lambda text: self.vocabulary.find(text.encode()) is not None,
                name=spec.name,
            )
        except BaseException:
            self.close()
            raise

    def _own_template(self) -> str | None:
        text = api.llama_model_chat_template(self.pointer, None)
        return text.decode("utf-8", "replace") if text else None

    @property
    def window(self) -> int:
        """Positions of the sliding attention window; 0 where all layers see everything."""
        return int(api.llama_model_n_swa(self.pointer))

    @property
    def memory_kind(self) -> str:
        """What the context remembers with: plain, sliding window, recurrent or hybrid."""
        if api.llama_model_is_hybrid(self.pointer):
            return "hybrid"
        if api.llama_model_is_recurrent(self.pointer):
            return "recurrent"
        return "sliding window" if self.window > 0 else "plain"

    @property
    def embedding_width(self) -> int:
        """Floats per cell that an image embedding must have (deepstack layers included)."""
        return int(api.llama_model_n_embd_inp(self.pointer))

    @property
    def parameters(self) -> int:
        """How many weights it has."""
        return int(api.llama_model_n_params(self.pointer))

    def close(self) -> None:
        """Free the weights; safe to call twice."""
        if self.pointer:
            api.llama_model_free(self.pointer)
            self.pointer = None
