"""Writing tensors in the types that llama.cpp's operations want."""

from __future__ import annotations

from typing import Literal

import gguf
from gguf import GGMLQuantizationType
from torch import Tensor, nn

Quantization = Literal["f16", "q8_0"]
_TYPES = {"f16": GGMLQuantizationType.F16, "q8_0": GGMLQuantizationType.Q8_0}
_FILE_TYPES = {"f16": gguf.LlamaFileType.MOSTLY_F16, "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0}


class TensorWriter:
    """A GGUF writer that puts matrices in one type and everything else in F32.

    Norms, biases and all other operands of additions must be F32; only matrix products take other types.
    """

    def __init__(self, path: str, architecture: str, quantization: Quantization) -> None:
        self.gguf = gguf.GGUFWriter(path, architecture)
        self._type = _TYPES[quantization]
        self.gguf.add_file_type(_FILE_TYPES[quantization])

    def matrix(self, name: str, tensor: Tensor) -> None:
        """A weight of a matrix product."""
        data = gguf.quants.quantize(tensor.detach().float().numpy(), self._type)
        self.gguf.add_tensor(name, data, raw_dtype=self._type)

    def exact(self, name: str, tensor: Tensor) -> None:
        """Anything else, in F32."""
        self.gguf.add_tensor(name, tensor.detach().float().contiguous().numpy())

    def linear(self, name: str, layer: nn.Module) -> None:
        """A linear layer, with its bias where it has one."""
        assert isinstance(layer, nn.Linear)
        self.matrix(f"{name}.weight", layer.weight)
        if layer.bias is not None:
            self.exact(f"{name}.bias", layer.bias)

    def norm(self, name: str, layer: nn.Module) -> None:
        """A layer norm."""
        assert isinstance(layer, nn.LayerNorm)
        self.exact(f"{name}.weight", layer.weight)
        self.exact(f"{name}.bias", layer.bias)

    def close(self) -> None:
        """Write the file."""
        self.gguf.write_header_to_file()
        self.gguf.write_kv_data_to_file()
        self.gguf.write_tensors_to_file()
        self.gguf.close()
