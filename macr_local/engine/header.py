"""What a GGUF header says, once it has been read: keys, vocabulary, tensors."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, overload

import numpy as np
from numpy.typing import NDArray

_U64: Final = struct.Struct("<Q")


class Strings(Sequence[bytes]):
    """An array of strings as it lies in the file: a vocabulary of 262,144 tokens is one object."""

    def __init__(self, data: bytes, starts: NDArray[np.int64]) -> None:
        """Args: the bytes, each string behind its 8-byte length; and where the lengths begin, ascending."""
        self._data, self._starts = data, starts

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        start = int(self._starts[index])
        return self._data[start + 8 : start + 8 + _U64.unpack_from(self._data, start)[0]]

    def __iter__(self) -> Iterator[bytes]:
        data, ends = self._data, [*self._starts[1:].tolist(), len(self._data)]
        return (data[start + 8 : end] for start, end in zip(self._starts.tolist(), ends, strict=True))

    def __contains__(self, text: object) -> bool:
        return isinstance(text, bytes) and self.find(text) is not None

    def find(self, text: bytes) -> int | None:
        """The index of the first string that is exactly this; None if there is none."""
        entry, at = _U64.pack(len(text)) + text, -1
        while (at := self._data.find(entry, at + 1)) >= 0:
            index = int(np.searchsorted(self._starts, at))
            if index < len(self) and self._starts[index] == at:
                return index
        return None

    @cached_property
    def repeated(self) -> tuple[int, int] | None:
        """The indices of two tokens that llama.cpp would take for one; None where all differ.

        It reads a text up to its first zero byte, and names an empty one ``[EMPTY_index]``.
        """
        texts = [text if b"\0" not in text else text[: text.index(b"\0")] for text in self]
        distinct = set(texts)
        if len(distinct) == len(texts) and b"" not in distinct:
            return None
        seen: dict[bytes, int] = {}
        for index, text in enumerate(texts):
            first = seen.setdefault(text or b"[EMPTY_%d]" % index, index)
            if first != index:
                return first, index
        return None


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor as the header describes it.

    Attributes:
        name: Its name, unique in the file.
        shape: Elements along each dimension, the fastest-running first, as ggml counts them.
        type: The name of its ggml type, for instance ``Q4_K``.
        offset: Where its bytes begin, from the start of the file.
        size: Its bytes.
    """

    name: str
    shape: tuple[int, ...]
    type: str
    offset: int
    size: int


@dataclass(frozen=True)
class Header:
    """What a GGUF file says about itself; all tensors are known to lie inside the file.

    Attributes:
        path: The file.
        version: Of the format: 2 or 3.
        metadata: Keys to int, float, bool, str, numpy arrays (read-only) or `Strings`.
        kinds: Keys to the kind the file stores them as, for instance ``u32``, ``str`` or ``[f32]``.
        tensors: In file order.
        size: Bytes of the file.
        siblings: The headers of the other files, where a model is split into several.
    """

    path: Path
    version: int
    metadata: Mapping[str, Any]
    tensors: tuple[TensorInfo, ...]
    size: int
    siblings: tuple[Header, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)

    @property
    def architecture(self) -> str:
        """`general.architecture`; empty where the header names none."""
        name = self.metadata.get("general.architecture")
        return name if isinstance(name, str) else ""

    @property
    def tokens(self) -> Strings | None:
        """The vocabulary's texts; None where the header has none."""
        texts = self.metadata.get("tokenizer.ggml.tokens")
        return texts if isinstance(texts, Strings) else None

    @cached_property
    def by_name(self) -> Mapping[str, TensorInfo]:
        """All tensors by name, those of the siblings included."""
        headers = (self, *self.siblings)
        return MappingProxyType({tensor.name: tensor for header in headers for tensor in header.tensors})

    @property
    def weights(self) -> int:
        """Bytes of all tensors, those of the siblings included."""
        return sum(tensor.size for header in (self, *self.siblings) for tensor in header.tensors)

    def number(self, key: str, default: int = 0) -> int:
        """A whole number of the metadata; the default where it is absent or of another kind."""
        value = self.metadata.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else default
