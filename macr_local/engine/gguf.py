"""The header of a GGUF file, read and bounded before llama.cpp sees the file.

What llama.cpp's own reader refuses is refused here by name, and nothing that a header claims is believed
before the file is known to hold it: a flipped length byte costs an error, never gigabytes or minutes.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from macr_local.engine.ggml import TYPES
from macr_local.engine.header import Header, Strings, TensorInfo
from macr_local.engine.strangers import describe
from macr_local.errors import ModelFileError

_MAX_HEADER = 256 << 20
_MAX_STRING = 16 << 20
_MAX_KEY = 65_535
_MAX_ELEMENTS = 1 << 22
_MAX_ENTRIES = 1 << 17
"""Keys, and tensors; the largest real files have some 45,000 tensors."""
_MAX_NAME = 63
_MAX_DIMS = 4
_STEP = 1 << 20
_DAMAGED = "Download the file again and compare its sha256 with the publisher's"

_U32: Final = struct.Struct("<I")
_U64: Final = struct.Struct("<Q")
_STRING, _ARRAY = 8, 9
_KINDS = ("u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "str", "[]", "u64", "i64", "f64")
_NUMBERS: dict[int, np.dtype[Any]] = {
    number: np.dtype("?" if kind == "bool" else f"<{kind[0]}{int(kind[1:]) // 8}")
    for number, kind in enumerate(_KINDS)
    if number not in (_STRING, _ARRAY)
}


def read_header(path: str | os.PathLike[str]) -> Header:
    """Read a GGUF file's header; the last few are kept until their file changes.

    Raises:
        ModelFileError: The file is missing, is not GGUF (says what it is instead), is damaged, or ends before
            its last tensor (says how many bytes are missing).
    """
    path = Path(path)
    try:
        stat = path.stat()
        if path.is_dir():
            raise ModelFileError(f"{path} is a folder, not a GGUF file", "Name the file in it")
        return _read(path, stat.st_size, stat.st_mtime_ns)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None


def unreadable(path: Path, error: OSError | ValueError) -> ModelFileError:
    """The error for a model file that cannot be opened or read."""
    if isinstance(error, FileNotFoundError):
        return ModelFileError(f"There is no file {path}", "Check the path, or download the model")
    if isinstance(error, PermissionError):
        return ModelFileError(f"{path} may not be read by this user", "Change its permissions")
    return ModelFileError(
        f"{path} cannot be read ({getattr(error, 'strerror', None) or error})", "Check the path and the disk"
    )


@lru_cache(maxsize=16)
def _read(path: Path, size: int, mtime_ns: int) -> Header:
    with path.open("rb") as file:
        return _Reader(file, path, size).header()


class _Reader:
    """A cursor over the beginning of a file, which grows as it is needed."""

    def __init__(self, file: BinaryIO, path: Path, size: int) -> None:
        self._file, self._path, self._size = file, path, size
        self._data = bytearray()
        self._at = 0

    def header(self) -> Header:
        version = self._version()
        n_tensors, n_keys = self._u64(), self._u64()
        for count, what in ((n_tensors, "tensors"), (n_keys, "keys")):
            if count > _MAX_ENTRIES:
                raise self._damaged(f"claims {count:,} {what}")
        metadata: dict[str, Any] = {}
        kinds: dict[str, str] = {}
        for _ in range(n_keys):
            key = self._text(_MAX_KEY, "a key")
            if not key or key in metadata:
                raise self._damaged(f"has the key {shown(key)} twice" if key else "has a key without a name")
            kinds[key], metadata[key] = self._value(key)
        tensors = self._tensors(n_tensors, self._alignment(metadata, kinds))
        return Header(
            self._path,
            version,
            MappingProxyType(metadata),
            tensors,
            self._size,
            kinds=MappingProxyType(kinds),
        )

    def _version(self) -> int:
        head = self._file.read(min(self._size, 4096))
        self._file.seek(0)
        if head[:4] != b"GGUF":
            found, fix = describe(head)
            raise ModelFileError(f"{self._path} {found}", fix)
        self._at = 4
        version = self._u32()
        if version & 0xFFFF == 0 and version:
            raise ModelFileError(
                f"{self._path} is a big-endian GGUF file", "Download the little-endian file of this model"
            )
        if version not in (2, 3):
            raise ModelFileError(
                f"{self._path} is GGUF version {version}; versions 2 and 3 are known",
                "Convert the model again with a present llama.cpp",
            )
        return version

    # Values.

    def _value(self, key: str) -> tuple[str, Any]:
        kind = self._u32()
        if kind == _STRING:
            return "str", self._text(_MAX_STRING, key)
        if kind == _ARRAY:
            return self._array(key)
        value = self._numbers(key, kind, 1)[0].item()
        return _KINDS[kind], value

    def _array(self, key: str) -> tuple[str, NDArray[Any] | Strings]:
        kind, count = self._u32(), self._u64()
        if kind == _ARRAY:
            raise self._damaged(f"has an array of arrays in {shown(key)}, which llama.cpp does not read")
        if count > _MAX_ELEMENTS:
            raise self._damaged(f"claims {count:,} elements in {shown(key)}")
        if kind == _STRING:
            return "[str]", self._strings(count)
        values = self._numbers(key, kind, count)
        return f"[{_KINDS[kind]}]", values

    def _numbers(self, key: str, kind: int, count: int) -> NDArray[Any]:
        dtype = _NUMBERS.get(kind)
        if dtype is None:
            raise self._damaged(f"has a value of the unknown kind {kind} in {shown(key)}")
        start = self._advance(count * dtype.itemsize)
        raw = bytes(self._data[start : self._at])
        return np.frombuffer(raw, np.uint8) != 0 if dtype.kind == "b" else np.frombuffer(raw, dtype)

    def _strings(self, count: int) -> Strings:
        first = self._at
        starts = []
        data, unpack = self._data, _U64.unpack_from
        at, end = first, len(data)
        for _ in range(count):
            if at + 8 > end:
                self._fill(at + 8)
                end = len(data)
            starts.append(at)
            at += 8 + unpack(data, at)[0]
            if at > end:
                self._fill(at)
                end = len(data)
        self._at = at
        return Strings(bytes(data[first:at]), np.array(starts, np.int64) - first)

    def _text(self, limit: int, what: str) -> str:
        length = self._u64()
        if length > limit:
            raise self._damaged(f"claims {length:,} bytes for the text of {shown(what)}")
        start = self._advance(length)
        return self._data[start : self._at].decode("utf-8", "backslashreplace")

    def _u32(self) -> int:
        return int(_U32.unpack_from(self._data, self._advance(4))[0])

    def _u64(self) -> int:
        return int(_U64.unpack_from(self._data, self._advance(8))[0])

    def _advance(self, count: int) -> int:
        start = self._at
        if start + count > len(self._data):
            self._fill(start + count)
        self._at += count
        return start

    def _fill(self, end: int) -> None:
        """Have the file's bytes up to ``end``, or say why not."""
        if end > self._size:
            raise ModelFileError(
                f"{self._path} is cut or damaged: its header goes on behind the end of the file, "
                f"which has {self._size:,} bytes",
                _DAMAGED,
            )
        if end > _MAX_HEADER:
            raise self._damaged(f"claims a header of more than {_MAX_HEADER >> 20} MiB")
        have = len(self._data)
        self._file.seek(have)
        self._data += self._file.read(min(self._size - have, max(end - have, _STEP)))
        if len(self._data) < end:
            raise ModelFileError(f"{self._path} became shorter as it was read", "Wait until it is complete")

    # Tensors.

    def _alignment(self, metadata: Mapping[str, Any], kinds: Mapping[str, str]) -> int:
        alignment = metadata.get("general.alignment", 32)
        if kinds.get("general.alignment", "u32") != "u32" or not alignment or alignment & (alignment - 1):
            raise self._damaged(f"has the alignment {shown(str(alignment))}, which is no power of two")
        return int(alignment)

    def _tensors(self, count: int, alignment: int) -> tuple[TensorInfo, ...]:
        described = [self._tensor() for _ in range(count)]
        start = _padded(self._at, alignment)
        tensors: dict[str, TensorInfo] = {}
        expected = 0
        for name, shape, kind, offset in described:
            if name in tensors:
                raise self._damaged(f"has the tensor {shown(name)} twice")
            size = self._bytes_of(name, shape, kind)
            if offset != expected:
                raise self._damaged(f"puts the tensor {shown(name)} at {offset:,} instead of {expected:,}")
            tensors[name] = TensorInfo(name, shape, TYPES[kind].name, start + offset, size)
            expected += _padded(size, alignment)
        if tensors:
            self._must_reach(max(tensor.offset + tensor.size for tensor in tensors.values()))
        return tuple(tensors.values())

    def _tensor(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self._text(_MAX_NAME, "a tensor's name")
        dims = self._u32()
        if dims > _MAX_DIMS:
            raise self._damaged(f"gives the tensor {shown(name)} {dims:,} dimensions")
        shape = tuple(self._u64() for _ in range(dims))
        return name, shape, self._u32(), self._u64()

    def _bytes_of(self, name: str, shape: tuple[int, ...], kind: int) -> int:
        """Bytes of a tensor; a size that no file has is left to `_must_reach`."""
        type_ = TYPES.get(kind)
        if type_ is None:
            raise self._damaged(f"gives the tensor {shown(name)} the unknown type {kind}")
        row = shape[0] if shape else 1
        elements = 1
        for side in shape:
            elements *= side
        if row % type_.block or elements >= 1 << 63:
            raise self._damaged(
                f"gives the tensor {shown(name)} of type {type_.name} the shape {'x'.join(map(str, shape))}"
            )
        return elements // type_.block * type_.bytes

    def _must_reach(self, end: int) -> None:
        if end > self._size:
            missing = end - self._size
            raise ModelFileError(
                f"{self._path} is cut: it has {self._size:,} of {end:,} bytes, "
                f"{missing:,} ({missing / end:.1%}) are missing",
                "Download it again, or wait until the download is complete",
            )

    def _damaged(self, how: str) -> ModelFileError:
        return ModelFileError(f"{self._path} is damaged: its header {how}", _DAMAGED)


def _padded(value: int, to: int) -> int:
    return -(-value // to) * to


def shown(text: str, limit: int = 60) -> str:
    """A text out of a file as a message can show it: on one line, short, nothing a terminal obeys."""
    clean = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text[: limit + 1])
    return f'"{clean[:limit]}..."' if len(clean) > limit else f'"{clean}"'
