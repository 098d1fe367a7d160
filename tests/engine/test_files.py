"""Wrong, mixed-up and damaged model files are named before llama.cpp sees them."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from macr_local.config import MemberSpec, find_pool, list_pools
from macr_local.engine import hashes
from macr_local.engine.files import check_model, check_projector, quantization, read_header
from macr_local.engine.ggml import FILE_TYPES
from macr_local.engine.hashes import model_sha256, sha256_of
from macr_local.engine.header import Header
from macr_local.engine.projectors import PROJECTOR_TYPES
from macr_local.errors import ModelFileError
from tests.oracles.gguf_edit import TINY, Value, edit
from tests.oracles.gguf_models import write_model

U16, U32, I32 = gguf.GGUFValueType.UINT16, gguf.GGUFValueType.UINT32, gguf.GGUFValueType.INT32
F32, BOOL, STRING = gguf.GGUFValueType.FLOAT32, gguf.GGUFValueType.BOOL, gguf.GGUFValueType.STRING
ARRAY = gguf.GGUFValueType.ARRAY
MEMBERS = ("qwen3vl", "internvl", "minicpmv")


def member(name: str, projector: str | Path | None = None, **options: object) -> MemberSpec:
    if isinstance(projector, str):
        projector = TINY / f"{projector}-mmproj.gguf"
    return MemberSpec(f"the {name}", TINY / f"{name}.gguf", projector, **options)  # type: ignore[arg-type]


def check(spec: MemberSpec) -> Header | None:
    return check_projector(spec, check_model(spec))


def refuses(spec: MemberSpec, found: str) -> str:
    with pytest.raises(ModelFileError, match=found) as raised:
        check(spec)
    assert raised.value.found.startswith(f"{spec.name}: ")
    assert raised.value.fix
    assert str(raised.value).isprintable()
    return raised.value.found


# Pairs.


def test_every_member_of_the_embedded_pool_is_in_order() -> None:
    assert "tiny" in {entry.name for entry in list_pools()}
    for spec in find_pool("tiny").resolve().members:
        projector = check(spec)
        assert projector is not None
        assert projector.path == spec.projector


@pytest.mark.parametrize("model", MEMBERS)
@pytest.mark.parametrize("projector", MEMBERS)
def test_the_projector_of_another_member_is_refused_by_name(model: str, projector: str) -> None:
    spec = member(model, projector)
    if model == projector:
        assert check(spec) is not None
        return
    kinds = {"qwen3vl": "qwen3vl_merger", "internvl": "internvl", "minicpmv": "resampler"}
    found = refuses(spec, f'"{kinds[projector]}"')
    assert str(spec.model) in found
    assert str(spec.projector) in found


def test_the_projector_type_of_the_pool_file_is_held() -> None:
    found = refuses(member("internvl", "internvl", projector_type="resampler"), "is a projector of type")
    assert '"internvl"' in found
    assert '"resampler"' in found


def test_the_architecture_of_the_pool_file_is_held() -> None:
    assert check(member("internvl", architecture="qwen3")) is None
    found = refuses(member("internvl", architecture="qwen3vl"), "is of the architecture")
    assert '"qwen3"' in found
    assert '"qwen3vl"' in found


def test_a_projector_as_model_and_a_model_as_projector_are_named() -> None:
    spec = member("internvl", "internvl")
    refuses(replace(spec, model=TINY / "qwen3vl-mmproj.gguf"), r"is a projector \(qwen3vl_merger\)")
    refuses(replace(spec, projector=spec.model), "is not a projector but a model of the architecture")


def test_a_projector_of_another_width_is_named(tmp_path: Path) -> None:
    wide = {
        "mm.model.mlp.3.weight": np.zeros((192, 128), np.float16),
        "mm.model.mlp.3.bias": np.zeros(192, np.float32),
    }
    path = edit(TINY / "internvl-mmproj.gguf", tmp_path / "wide.gguf", tensors=wide)
    assert "192" in refuses(member("internvl", path), "embeddings of 192 numbers, and .* takes 128")


def test_the_layers_of_a_deepstack_count_in_the_width(tmp_path: Path) -> None:
    parts = ("norm.weight", "norm.bias", "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias")
    path = edit(
        TINY / "qwen3vl-mmproj.gguf", tmp_path / "flat.gguf",
        tensors={f"v.deepstack.0.{part}": None for part in parts},
    )  # fmt: skip
    refuses(member("qwen3vl", path), "embeddings of 128 numbers, and .* takes 256")


def test_every_mark_of_a_projector_type_is_a_text() -> None:
    for kind, (width, markers) in PROJECTOR_TYPES.items():
        assert all(isinstance(mark, str) and mark for marks in markers for mark in marks), kind
        assert width is None or width.dimension in (0, 1), kind


def test_one_of_several_sets_of_marks_is_enough(tmp_path: Path) -> None:
    vocabulary = [one.decode() for one in check_model(member("internvl")).tokens or ()]
    string: Value = ("kimik25", STRING)
    mlp = {"mm.2.weight": np.zeros((128, 128), np.float32)}
    projector = edit(TINY / "internvl-mmproj.gguf", tmp_path / "k.gguf", {"clip.projector_type": string}, mlp)
    for count, marks in enumerate([(), ("<|media_begin|>",), ("<|begin_of_image|>", "<|end_of_image|>")]):
        texts = [*vocabulary[: len(vocabulary) - len(marks)], *marks]
        keys: dict[str, Value | None] = {"tokenizer.ggml.tokens": (texts, ARRAY, STRING)}
        path = edit(TINY / "internvl.gguf", tmp_path / f"{count}.gguf", keys)
        spec = replace(member("internvl", projector), model=path)
        if len(marks) == 2:
            assert check(spec) is not None
        else:
            found = refuses(spec, "marks images by")
            assert ("<|media_begin|>" in found, "<|media_end|>" in found) == (not marks, True)


# Models.


def test_damaged_vocabularies_are_named(tmp_path: Path) -> None:
    texts = [one.decode() for one in check_model(member("internvl")).tokens or ()]
    cases: dict[str, tuple[dict[str, Value | None], str]] = {
        "same": ({"tokenizer.ggml.tokens": ([*texts[:-1], texts[0]], ARRAY, STRING)}, "are the same text"),
        "types": ({"tokenizer.ggml.token_type": ([1, 1, 1], ARRAY, I32)}, "640 tokens and 3 token types"),
        "scores": ({"tokenizer.ggml.scores": (1.0, F32)}, "640 tokens and 1 scores"),
        "none": ({"tokenizer.ggml.tokens": None}, "has no vocabulary"),
        "numbers": ({"tokenizer.ggml.tokens": ([1, 2], ARRAY, I32)}, "has no vocabulary"),
    }
    for name, (keys, found) in cases.items():
        path = edit(TINY / "internvl.gguf", tmp_path / f"{name}.gguf", keys)
        refuses(replace(member("internvl"), model=path), found)


def test_a_vocabulary_without_weights_is_named(tmp_path: Path) -> None:
    names = [tensor.name for tensor in read_header(TINY / "internvl.gguf").tensors]
    path = edit(TINY / "internvl.gguf", tmp_path / "v.gguf", tensors=dict.fromkeys(names))
    refuses(replace(member("internvl"), model=path), "a vocabulary without weights")


def test_the_sha256_of_the_pool_file_is_held(tmp_path: Path) -> None:
    right = sha256_of(TINY / "internvl.gguf")
    assert right == hashlib.sha256((TINY / "internvl.gguf").read_bytes()).hexdigest()
    seen = sha256_of(TINY / "internvl-mmproj.gguf")
    assert check(member("internvl", "internvl", model_sha256=right, projector_sha256=seen)) is not None
    found = refuses(member("internvl", model_sha256="a" * 64), "has the sha256")
    assert right[:12] in found
    assert "aaaaaaaaaaaa" in found
    refuses(member("internvl", "internvl", projector_sha256="b" * 64), "internvl-mmproj.gguf has the sha256")


def test_a_sha256_is_computed_again_when_the_file_changes(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"one")
    assert sha256_of(path) == hashlib.sha256(b"one").hexdigest()
    path.write_bytes(b"two")
    os.utime(path, ns=(7, 7))
    assert sha256_of(path) == hashlib.sha256(b"two").hexdigest()
    path.write_bytes(b"")
    assert sha256_of(path) == hashlib.sha256(b"").hexdigest()
    with pytest.raises(ModelFileError, match="There is no file"):
        sha256_of(tmp_path / "none")


def test_a_large_file_s_sha256_is_remembered_for_the_next_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hashes, "_REMEMBERED", 4)
    monkeypatch.setattr(hashes, "user_cache_path", lambda *_, **__: tmp_path / "cache")
    path = tmp_path / "large.bin"
    path.write_bytes(b"weights")
    right = hashlib.sha256(b"weights").hexdigest()
    for damage in (None, b"{", b"[]"):
        hashes._sha256.cache_clear()
        if damage is not None:
            (tmp_path / "cache" / "sha256.json").write_bytes(damage)
        assert sha256_of(path) == right
    hashes._sha256.cache_clear()
    monkeypatch.setattr(hashes, "computed", lambda *_: "computed again")
    assert sha256_of(path) == right
    os.utime(path, ns=(9, 9))
    assert sha256_of(path) == "computed again"


def test_a_split_model_s_fingerprint_covers_all_its_parts(tmp_path: Path) -> None:
    header = read_header(TINY / "internvl.gguf")
    assert model_sha256(header) == sha256_of(TINY / "internvl.gguf")
    whole = replace(header, siblings=(read_header(TINY / "qwen3vl.gguf"),))
    other = replace(header, siblings=(read_header(TINY / "minicpmv.gguf"),))
    assert len({model_sha256(header), model_sha256(whole), model_sha256(other)}) == 3


def test_shapes_are_not_checked_where_the_pool_file_vouches_for_the_projector(tmp_path: Path) -> None:
    keys = {"clip.vision.attention.layer_norm_epsilon": (2.0, F32)}
    path = edit(TINY / "internvl-mmproj.gguf", tmp_path / "p.gguf", keys)
    odd = replace(member("internvl", "internvl"), projector=path)
    refuses(odd, "epsilon 2")
    assert check(replace(odd, projector_sha256=sha256_of(path))) is not None


def test_the_quantization_has_the_name_that_users_know(tmp_path: Path) -> None:
    header = read_header(TINY / "internvl.gguf")
    assert quantization(header) == "F16"
    for value, name in ((15, "Q4_K_M"), (7, "Q8_0"), (0, "F32")):
        path = edit(TINY / "internvl.gguf", tmp_path / f"{value}.gguf", {"general.file_type": (value, U32)})
        assert quantization(read_header(path)) == name
    for keys in ({"general.file_type": None}, {"general.file_type": (999, U32)}):
        path = edit(TINY / "internvl.gguf", tmp_path / "none.gguf", keys)
        os.utime(path, ns=(len(str(keys)), 1))
        assert quantization(read_header(path)) == "F16", "most of its bytes are"
    named = {kind.value: kind.name.partition("_")[2] for kind in gguf.LlamaFileType}
    assert {number: FILE_TYPES[number] for number in named if number in FILE_TYPES} == {
        number: name for number, name in named.items() if number in FILE_TYPES
    }


# Split models.


@pytest.fixture
def parts(tmp_path: Path) -> list[Path]:
    names = [tensor.name for tensor in read_header(TINY / "internvl.gguf").tensors]
    paths = []
    for number in range(3):
        keys: dict[str, Value | None] = {"split.no": (number, U16), "split.count": (3, U16)}
        elsewhere = [name for i, name in enumerate(names) if i % 3 != number]
        path = tmp_path / f"m-{number + 1:05}-of-00003.gguf"
        paths.append(edit(TINY / "internvl.gguf", path, keys, dict.fromkeys(elsewhere)))
    return paths


def test_a_split_model_is_read_whole(parts: list[Path]) -> None:
    header = check_model(MemberSpec("split", parts[0]))
    whole = read_header(TINY / "internvl.gguf")
    assert header.weights == whole.weights
    assert set(header.by_name) == set(whole.by_name)


def test_a_split_model_with_a_missing_or_cut_part_is_named(parts: list[Path]) -> None:
    spec = MemberSpec("split", parts[0])
    data = parts[2].read_bytes()
    parts[2].write_bytes(data[: len(data) // 2])
    refuses(spec, "m-00003-of-00003.gguf is cut")
    parts[2].unlink()
    refuses(spec, r"part 3 is missing \(m-00003-of-00003.gguf\)")
    shutil.copy(parts[1], parts[2])
    refuses(spec, "is not part 3 of")
    refuses(MemberSpec("split", parts[1]), "is part 2 of 3 of a split model")
    other = parts[0].with_name("other.gguf")
    parts[0].rename(other)
    refuses(MemberSpec("split", other), "is part 1 of 3 of a split model, and its name does not say so")


# Projectors that would end the process.


def _key(name: str) -> str:
    return f"clip.vision.{name}"


@pytest.mark.parametrize(
    ("name", "keys", "found"),
    [
        ("internvl", {"clip.has_vision_encoder": None}, "without a vision encoder"),
        ("internvl", {"clip.has_vision_encoder": (1, U32)}, "without a vision encoder"),
        ("internvl", {"clip.projector_type": None}, "which this llama.cpp does not know"),
        ("internvl", {"clip.projector_type": ("some_new_merger", STRING)}, '"some_new_merger", which'),
        ("internvl", {_key("image_size"): None}, "has no clip.vision.image_size"),
        ("internvl", {_key("image_size"): (64, I32)}, "stores clip.vision.image_size as i32 instead of u32"),
        ("internvl", {_key("image_size"): (80, U32)}, "65 positions of type F32 instead of 101"),
        ("internvl", {_key("image_size"): (72, U32)}, "merges 2 of 9 patches"),
        ("internvl", {_key("patch_size"): (0, U32)}, "in patches of 0"),
        ("internvl", {_key("attention.head_count"): (5, U32)}, "5 heads in a width of 96"),
        ("internvl", {_key("attention.head_count"): (0, U32)}, "0 heads"),
        ("internvl", {_key("block_count"): (4, U32)}, 'has no tensor "v.blk.3.ln1.weight"'),
        ("internvl", {_key("block_count"): (1 << 30, U32)}, "has 1073741824 layers"),
        ("internvl", {_key("embedding_length"): (93, U32)}, "does not fit the rest"),
        ("internvl", {_key("attention.layer_norm_epsilon"): (float("nan"), F32)}, "the epsilon nan"),
        ("internvl", {_key("image_mean"): ([0.5, 0.5], ARRAY, F32)}, "the image_mean"),
        ("internvl", {_key("image_std"): ([0.5, 0.0, 0.5], ARRAY, F32)}, "the image_std"),
        ("internvl", {_key("projector.scale_factor"): (3, U32)}, "does not fit the rest"),
        ("internvl", {_key("preproc_max_tiles"): (1 << 31, U32)}, "into 1 to 2147483648 tiles"),
        ("internvl", {_key("preproc_min_tiles"): (2, U32)}, "into 2 to 1 tiles"),
        ("qwen3vl", {_key("spatial_merge_size"): (1, U32)}, "does not fit the rest"),
        ("minicpmv", {"clip.minicpmv_version": (6, U32)}, "as u32 instead of i32"),
        ("minicpmv", {"clip.minicpmv_version": (7, I32)}, "of MiniCPM-V version 7"),
        ("minicpmv", {"clip.minicpmv_query_num": (17, U32)}, "has 16 queries and says 17"),
        ("minicpmv", {"clip.minicpmv_query_num": None}, "has 16 queries and says 64"),
        ("minicpmv", {_key("image_size"): (1024, U32)}, "has 128 patches a side"),
    ],
)
def test_keys_that_would_end_the_process_are_named(
    name: str, keys: dict[str, Value | None], found: str, tmp_path: Path
) -> None:
    path = edit(TINY / f"{name}-mmproj.gguf", tmp_path / "p.gguf", keys)
    refuses(member(name, path), re.escape(found))


@pytest.mark.parametrize(
    ("name", "tensor", "change"),
    [
        ("internvl", "v.patch_embd.weight", None),
        ("internvl", "v.class_embd", None),
        ("internvl", "v.position_embd.weight", (66, 96)),
        ("internvl", "v.blk.1.ln2.weight", None),
        ("internvl", "v.blk.1.ln2.weight", (64,)),
        ("internvl", "v.blk.0.attn_qkv.weight", (280, 96)),
        ("internvl", "v.blk.2.ffn_down.bias", (97,)),
        ("internvl", "mm.model.mlp.1.weight", (128, 380)),
        ("qwen3vl", "v.patch_embd.bias", None),
        ("qwen3vl", "v.patch_embd.weight.1", None),
        ("qwen3vl", "v.position_embd.weight", (63, 96)),
        ("qwen3vl", "v.blk.0.attn_qkv.bias", None),
        ("qwen3vl", "v.class_embd", (96,)),
        ("qwen3vl", "v.deepstack.0.norm.weight", (96,)),
        ("minicpmv", "v.position_embd.weight", (4096, 96)),
        ("minicpmv", "resampler.pos_embed_k", None),
        ("minicpmv", "resampler.attn.k.bias", None),
        ("minicpmv", "resampler.kv.weight", (128, 64)),
        ("minicpmv", "v.class_embd", (96,)),
    ],
)
def test_tensors_that_would_end_the_process_are_named(
    name: str, tensor: str, change: tuple[int, ...] | None, tmp_path: Path
) -> None:
    data = None if change is None else np.zeros(change, np.float32)
    path = edit(TINY / f"{name}-mmproj.gguf", tmp_path / "p.gguf", tensors={tensor: data})
    refuses(member(name, path), "is damaged or unknown")


def test_tensors_in_types_that_are_not_computed_with_are_named(tmp_path: Path) -> None:
    for name, data in (
        ("v.blk.0.ln1.weight", np.zeros(96, np.float16)),
        ("v.blk.0.attn_out.weight", np.zeros((96, 96), np.int32)),
        ("v.position_embd.weight", np.zeros((65, 96), np.float16)),
    ):
        path = edit(TINY / "internvl-mmproj.gguf", tmp_path / f"{name}.gguf", tensors={name: data})
        refuses(member("internvl", path), "F16|I32")


def test_attention_in_three_parts_and_swapped_feed_forward_layers_are_in_order(tmp_path: Path) -> None:
    apart: dict[str, np.ndarray | None] = {}
    for layer in range(3):
        at = f"v.blk.{layer}."
        apart |= {f"{at}attn_qkv.weight": None, f"{at}attn_qkv.bias": None}
        for part in "qkv":
            apart[f"{at}attn_{part}.weight"] = np.zeros((96, 96), np.float16)
            apart[f"{at}attn_{part}.bias"] = np.zeros(96, np.float32)
        # As old converters of MiniCPM-V wrote them.
        apart[f"{at}ffn_up.weight"] = np.zeros((96, 256), np.float16)
        apart[f"{at}ffn_up.bias"] = np.zeros(96, np.float32)
        apart[f"{at}ffn_down.weight"] = np.zeros((256, 96), np.float16)
        apart[f"{at}ffn_down.bias"] = np.zeros(256, np.float32)
    path = edit(TINY / "minicpmv-mmproj.gguf", tmp_path / "old.gguf", tensors=apart)
    assert check(member("minicpmv", path)) is not None


def test_a_projector_of_another_known_type_needs_its_patches(tmp_path: Path) -> None:
    keys: dict[str, Value | None] = {"clip.projector_type": ("mlp", STRING)}
    path = edit(TINY / "internvl-mmproj.gguf", tmp_path / "mlp.gguf", keys)
    assert check(member("internvl", path)) is not None
    bare = edit(path, tmp_path / "bare.gguf", tensors={"v.patch_embd.weight": None})
    refuses(member("internvl", bare), 'has no tensor "v.patch_embd.weight"')


@settings(deadline=None, max_examples=150)
@given(data=st.data(), name=st.sampled_from(MEMBERS), which=st.sampled_from(["model", "projector"]))
def test_flipped_bytes_pass_the_checks_or_give_one_named_error(
    data: st.DataObject, name: str, which: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    spec = member(name, name)
    source = spec.model if which == "model" else TINY / f"{name}-mmproj.gguf"
    file = bytearray(source.read_bytes())
    place = st.integers(0, read_header(source).tensors[0].offset - 1)
    for at, bit in data.draw(st.lists(st.tuples(place, st.integers(0, 7)), min_size=1, max_size=3)):
        file[at] ^= 1 << bit
    path = tmp_path_factory.mktemp("flip") / "some.gguf"
    path.write_bytes(file)
    spec = replace(spec, **{which: path})
    said = f"{spec.name}: "
    try:
        check(spec)
    except ModelFileError as error:
        said = str(error)
    assert said.startswith(f"{spec.name}: ")
    assert said.isprintable()


@pytest.mark.parametrize("name", ["llama", "mamba", "jamba"])
def test_other_architectures_are_in_order(name: str, tmp_path: Path) -> None:
    spec = MemberSpec(name, write_model(tmp_path / "m.gguf", name))
    header = check_model(spec)
    assert (header.architecture, quantization(header)) == (name, "F32")
    assert check_projector(spec, header) is None
