"""GGUF files made from others with a few things changed, by the gguf package."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

Value = tuple[Any, gguf.GGUFValueType] | tuple[Any, gguf.GGUFValueType, gguf.GGUFValueType]
"""A value, its type, and for an array the type of its elements."""

TINY = Path(__file__).parents[2] / "macr_local" / "tiny"


def edit(
    source: Path,
    target: Path,
    keys: Mapping[str, Value | None] | None = None,
    tensors: Mapping[str, NDArray[Any] | None] | None = None,
) -> Path:
    """Write a copy of a GGUF file.

    Args:
        source: The file to copy.
        target: Where to.
        keys: New values; None leaves a key out.
        tensors: New contents (in numpy's order of dimensions); None leaves a tensor out.
    """
    keys, tensors = dict(keys or {}), dict(tensors or {})
    reader = gguf.GGUFReader(source)
    architecture = reader.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(target, keys.pop("general.architecture", (architecture,))[0])
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name == "general.architecture" or name in keys:
            continue
        sub_type = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, field.contents(), field.types[0], sub_type)
    for name, value in keys.items():
        if value is not None:
            writer.add_key_value(name, *value)
    for tensor in reader.tensors:
        if tensor.name not in tensors:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    for name, data in tensors.items():
        if data is not None:
            writer.add_tensor(name, np.ascontiguousarray(data))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target
