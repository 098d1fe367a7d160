"""A GGUF header is read as the gguf package reads it, or refused by name; damage costs one error."""

from __future__ import annotations

import ctypes
import os
import pickle
import struct
import tracemalloc
from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from macr_local.engine import library
from macr_local.engine.ggml import TYPES
from macr_local.engine.gguf import read_header
from macr_local.engine.header import Header, Strings
from macr_local.errors import ModelFileError
from tests.oracles.gguf_edit import TINY, edit

MODEL, PROJECTOR = TINY / "qwen3vl.gguf", TINY / "qwen3vl-mmproj.gguf"
U32, STRING, ARRAY = gguf.GGUFValueType.UINT32, gguf.GGUFValueType.STRING, gguf.GGUFValueType.ARRAY


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def raw(*keys: bytes, tensors: tuple[bytes, ...] = (), version: int = 3, data: bytes = b"") -> bytes:
    """A GGUF file by hand, with things in it that no writer writes."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(keys)) + b"".join((*keys, *tensors))
    return head + bytes(-len(head) % 32) + data


def key(name: str, kind: int, value: bytes) -> bytes:
    return text(name) + struct.pack("<I", kind) + value


def tensor(name: str, shape: tuple[int, ...] = (8,), kind: int = 0, offset: int = 0) -> bytes:
    dims = struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", side) for side in shape)
    return text(name) + dims + struct.pack("<IQ", kind, offset)


def read(tmp_path: Path, data: bytes) -> Header:
    path = tmp_path / "some.gguf"
    path.unlink(missing_ok=True)
    path.write_bytes(data)
    return read_header(path)


# What is right.


@pytest.mark.parametrize("path", sorted(TINY.glob("*.gguf")), ids=lambda path: path.stem)
def test_a_header_is_what_the_gguf_package_reads(path: Path) -> None:
    header, reader = read_header(path), gguf.GGUFReader(path)
    for name, field in reader.fields.items():
        if name.startswith("GGUF."):
            continue
        found, expected = header.metadata[name], field.contents()
        if isinstance(found, Strings):
            found = [one.decode() for one in found]
        assert (found.tolist() if isinstance(found, np.ndarray) else found) == expected, name
    assert [(t.name, t.shape, t.type, t.offset, t.size) for t in header.tensors] == [
        (t.name, tuple(map(int, t.shape)), t.tensor_type.name, t.data_offset, t.n_bytes)
        for t in reader.tensors
    ]
    assert header.size == path.stat().st_size
    assert header.weights == sum(t.n_bytes for t in reader.tensors)


def test_every_kind_of_value_is_read(tmp_path: Path) -> None:
    kinds = gguf.GGUFValueType
    values = {
        "u8": 200, "i8": -100, "u16": 60_000, "i16": -30_000, "u32": 4_000_000_000, "i32": -2_000_000_000,
        "u64": 1 << 63, "i64": -(1 << 62), "f32": 0.5, "f64": 0.1, "bool": True, "str": "schön\0",
    }  # fmt: skip
    names = {"u": "UINT", "i": "INT", "f": "FLOAT"}
    keys = {}
    for name, value in values.items():
        full = {"bool": "BOOL", "str": "STRING"}.get(name) or names[name[0]] + name[1:]
        keys[f"a.{name}"] = (value, kinds[full])
        keys[f"a.[{name}]"] = ([value, value], ARRAY, kinds[full])
    keys["a.none"] = None
    header = read_header(edit(MODEL, tmp_path / "kinds.gguf", keys))
    for name, value in values.items():
        found = header.metadata[f"a.[{name}]"]
        assert header.metadata[f"a.{name}"] == value
        assert type(header.metadata[f"a.{name}"]) is type(value)
        assert list(found) == ([value.encode()] * 2 if isinstance(value, str) else [value] * 2)
        assert (header.kinds[f"a.{name}"], header.kinds[f"a.[{name}]"]) == (name, f"[{name}]")


def test_the_tensor_types_are_those_of_the_library_that_loads_them() -> None:
    ggml = library._ggml("ggml-base")
    assert ggml is not None
    ggml.ggml_type_name.restype = ctypes.c_char_p
    ggml.ggml_type_size.restype, ggml.ggml_blck_size.restype = ctypes.c_size_t, ctypes.c_int64
    for number, kind in TYPES.items():
        assert ggml.ggml_type_name(number).decode().upper() == kind.name.upper()
        assert (ggml.ggml_blck_size(number), ggml.ggml_type_size(number)) == (kind.block, kind.bytes)
    removed = {number for number in range(max(TYPES)) if ggml.ggml_blck_size(number) == 0}
    assert removed.isdisjoint(TYPES)
    assert set(range(max(TYPES) + 1)) == removed | set(TYPES)


def test_a_vocabulary_of_262144_tokens_is_read_and_searched(gemma_file: Path) -> None:
    tokens = read_header(gemma_file).tokens
    assert tokens is not None
    assert len(tokens) == len(list(tokens)) == 262_144
    assert tokens.repeated is None
    assert (tokens[2], tokens[-1]) == (b"<bos>", list(tokens)[-1])
    for index in (0, 105, 106, 999, 262_143):
        assert tokens.find(tokens[index]) == index
    assert tokens.find(b"no token of any vocabulary") is None
    assert tokens[100:103] == [tokens[100], tokens[101], tokens[102]]


def test_a_text_that_only_looks_like_an_entry_is_not_found() -> None:
    inner = struct.pack("<Q", 2) + b"ab"
    data = struct.pack("<Q", len(inner)) + inner + struct.pack("<Q", 1) + b"c"
    strings = Strings(data, np.array([0, 8 + len(inner)]))
    assert list(strings) == [inner, b"c"]
    assert b"ab" not in strings
    assert strings.find(b"c") == 1


@pytest.mark.parametrize(
    ("texts", "pair"),
    [
        (["a", "b", "a"], (0, 2)),
        (["a", "b", ""], None),
        (["", "b", ""], None),
        (["x", "", "[EMPTY_1]"], (1, 2)),
        (["in", "er", "in\0ner"], (0, 2)),
    ],
)
def test_tokens_that_llama_cpp_takes_for_one_are_found(
    texts: list[str], pair: tuple[int, int] | None, tmp_path: Path
) -> None:
    array = struct.pack("<IQ", 8, len(texts)) + b"".join(map(text, texts))
    header = read(tmp_path, raw(key("tokenizer.ggml.tokens", 9, array)))
    assert header.tokens is not None
    assert header.tokens.repeated == pair


def test_a_header_is_kept_until_its_file_changes(tmp_path: Path) -> None:
    path = edit(MODEL, tmp_path / "a.gguf")
    first = read_header(path)
    assert read_header(str(path)) is first
    edit(PROJECTOR, path)
    os.utime(path, ns=(1, 1))
    assert read_header(path).architecture == "clip"


def test_a_tensor_without_dimensions_and_one_without_elements_are_read(tmp_path: Path) -> None:
    tensors = (tensor("scalar", ()), tensor("none", (0,), offset=32), tensor("row", (8,), offset=32))
    header = read(tmp_path, raw(tensors=tensors, data=bytes(64)))
    assert [(t.shape, t.size) for t in header.tensors] == [((), 4), ((0,), 0), ((8,), 32)]


# What is cut.


def test_a_file_cut_to_90_percent_says_how_much_is_missing(tmp_path: Path) -> None:
    data = MODEL.read_bytes()
    last = read_header(MODEL).tensors[-1]
    whole = last.offset + last.size
    cut = len(data) * 9 // 10
    with pytest.raises(ModelFileError, match="is cut") as raised:
        read(tmp_path, data[:cut])
    assert f"{cut:,} of {whole:,} bytes, {whole - cut:,}" in raised.value.found
    assert "Download it again" in raised.value.fix


@settings(deadline=None, max_examples=150)
@given(share=st.floats(0, 1, exclude_max=True), path=st.sampled_from([MODEL, PROJECTOR]))
def test_a_file_cut_anywhere_is_refused(
    share: float, path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = path.read_bytes()
    with pytest.raises(ModelFileError, match=r"some\.gguf (is cut|is empty|is not a GGUF|is text)"):
        read(tmp_path_factory.mktemp("cut"), data[: int(len(data) * share)])


# What is no GGUF file.


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", r"is empty \(0 bytes\)"),
        (b"<!DOCTYPE html><html><body>Sign in</body></html>", "is a web page"),
        (b"\n\n  <html>", "is a web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "is a Git LFS pointer"),
        (b'{"error": "Repository not found"}', r'is text.*begins with "\{"error"'),
        (struct.pack("<Q", 20) + b'{"__metadata__":{}}', "is a safetensors file"),
        (b"PK\x03\x04....archive/data.pkl....", "is a PyTorch checkpoint"),
        (b"PK\x03\x04....other", "is a ZIP archive"),
        (pickle.dumps({"a": 1}), "is a Python pickle"),
        (b"\x1f\x8b\x08", "is gzip"),
        (b"lmgg\x00\x00", "old GGML format"),
        (b"FUGG\x00\x00\x00\x03", "big-endian"),
        (b"GGUF\x00\x00\x00\x03" + bytes(64), "big-endian"),
        (b"GGUF\x01\x00\x00\x00" + bytes(64), "GGUF version 1"),
        (b"GGUF\x09\x00\x00\x00" + bytes(64), "GGUF version 9"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "is a PNG image"),
        (bytes(5000), "zeros only"),
        (b"\x01\x02\x00\x04", "is not a GGUF file.*01 02 00 04"),
        (b"GGUF", "is cut or damaged"),
        (b"\x1b[31mred\x1b[0m", r"is text.*\?\[31mred"),
    ],
)
def test_what_is_no_gguf_file_is_named(data: bytes, found: str, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=found) as raised:
        read(tmp_path, data)
    assert "some.gguf" in raised.value.found
    assert raised.value.fix
    assert str(raised.value).isprintable()


def test_missing_files_and_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="There is no file"):
        read_header(tmp_path / "none.gguf")
    with pytest.raises(ModelFileError, match="is a folder"):
        read_header(tmp_path)
    with pytest.raises(ModelFileError, match="cannot be read"):
        read_header("a\0b.gguf")


# What is damaged.

_PAIR = (tensor("a"), tensor("b", offset=32))


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (raw(key("a", 4, bytes(4)), key("a", 4, bytes(4))), 'the key "a" twice'),
        (raw(key("", 4, bytes(4))), "a key without a name"),
        (raw(key("a", 13, bytes(4))), 'unknown kind 13 in "a"'),
        (raw(key("a", 9, struct.pack("<IQ", 9, 1))), "an array of arrays"),
        (raw(key("a", 9, struct.pack("<IQ", 77, 1))), "unknown kind 77"),
        (raw(key("a", 9, struct.pack("<IQ", 8, 1 << 60))), "claims 1,152,921,504,606,846,976 elements"),
        (raw(key("a", 8, struct.pack("<Q", 1 << 40))), "claims 1,099,511,627,776 bytes"),
        (raw(key("a\x1b[2J", 13, b"")), r"\\x1b"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1 << 50, 0), "claims 1,125,899,906,842,624 tensors"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 50), "claims 1,125,899,906,842,624 keys"),
        (raw(key("general.alignment", 4, struct.pack("<I", 24))), "alignment"),
        (raw(key("general.alignment", 4, struct.pack("<I", 0))), "alignment"),
        (raw(key("general.alignment", 5, struct.pack("<i", 32))), "alignment"),
        (raw(tensors=(tensor("a"), tensor("a", offset=32)), data=bytes(64)), 'the tensor "a" twice'),
        (raw(tensors=(tensor("a"), tensor("b", offset=64)), data=bytes(96)), '"b" at 64 instead of 32'),
        (raw(tensors=(tensor("a", kind=4),), data=bytes(64)), "the unknown type 4"),
        (raw(tensors=(tensor("a", (33,), kind=8),), data=bytes(64)), "of type Q8_0 the shape 33"),
        (raw(tensors=(tensor("a", (1 << 40, 1 << 40)),)), "the shape 1099511627776x"),
        (raw(tensors=(tensor("a", (2,) * 5),)), "5 dimensions"),
        (raw(tensors=(tensor("n" * 64),)), "claims 64 bytes for the text of"),
        (raw(tensors=(tensor("a", (1 << 40,)),), data=bytes(64)), "is cut: it has"),
        (raw(key("a", 8, text("x" * 40)))[:50], "goes on behind the end"),
    ],
)
def test_damage_is_named(data: bytes, found: str, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=found) as raised:
        read(tmp_path, data)
    assert str(raised.value).isprintable()


def test_the_data_may_be_aligned_otherwise(tmp_path: Path) -> None:
    keys = (key("general.alignment", 4, struct.pack("<I", 64)),)
    tensors = (tensor("a"), tensor("b", offset=64))
    header = read(tmp_path, raw(*keys, tensors=tensors, data=bytes(256)))
    assert [t.offset % 64 for t in header.tensors] == [0, 0]
    assert header.tensors[1].offset - header.tensors[0].offset == 64


def test_a_claim_of_gigabytes_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "sparse.gguf"
    claims = (
        key("a", 9, struct.pack("<IQ", 10, 1 << 30)),
        key("a", 8, struct.pack("<Q", 3 << 30)),
        key("a", 9, struct.pack("<IQ", 8, 4) + struct.pack("<Q", 3 << 30)),
    )
    for claim in claims:
        path.unlink(missing_ok=True)
        with path.open("wb") as file:
            file.write(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + claim)
            file.truncate(8 << 30)
        tracemalloc.start()
        with pytest.raises(ModelFileError, match="damaged"):
            read_header(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 8 << 20


@settings(deadline=None, max_examples=200)
@given(data=st.data(), source=st.sampled_from([MODEL, PROJECTOR]))
def test_flipped_bytes_give_a_header_or_one_named_error(
    data: st.DataObject, source: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = bytearray(source.read_bytes())
    place = st.integers(0, read_header(source).tensors[0].offset - 1)
    for at, value in data.draw(st.lists(st.tuples(place, st.integers(0, 255)), min_size=1, max_size=4)):
        file[at] = value
    refused = None
    try:
        header = read(tmp_path_factory.mktemp("flip"), bytes(file))
    except ModelFileError as error:
        refused = error
    if refused is not None:
        assert "some.gguf" in refused.found
        assert str(refused).isprintable()
    else:
        assert all(t.offset + t.size <= header.size for t in header.tensors)
        assert len({t.name for t in header.tensors}) == len(header.tensors)
