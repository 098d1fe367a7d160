"""Awkward images: what a user has comes out upright, in its colours, or is named for what it is."""

from __future__ import annotations

import io
import os
import socket
import struct
import subprocess
import sys
import threading
import tracemalloc
import warnings
import zlib
from pathlib import Path

import numpy as np
import PIL.Image
import PIL.ImageCms
import PIL.PngImagePlugin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from macr_local.errors import ImageError
from macr_local.images import KEPT_PIXELS, MAX_PIXELS, Image, fit, load
from macr_local.specs import ImageLimits


def encoded(image: PIL.Image.Image, kind: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)  # type: ignore[arg-type]
    return buffer.getvalue()


def arrow() -> PIL.Image.Image:
    """Red above, blue below, a green left edge: every orientation looks different."""
    pixels = np.zeros((48, 96, 3), np.uint8)
    pixels[:24], pixels[24:] = (255, 0, 0), (0, 0, 255)
    pixels[:, :24] = (0, 255, 0)
    return PIL.Image.fromarray(pixels)


def close_to(image: Image, expected: np.ndarray, tolerance: int) -> bool:
    difference = np.abs(image.pixels.astype(int) - expected.astype(int))
    return image.pixels.shape == expected.shape and int(np.median(difference)) <= tolerance


# Orientation.

_UNDO = {
    1: None, 2: "FLIP_LEFT_RIGHT", 3: "ROTATE_180", 4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE", 6: "ROTATE_90", 7: "TRANSVERSE", 8: "ROTATE_270",
}  # fmt: skip


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_every_exif_orientation_comes_out_upright(orientation: int, kind: str) -> None:
    stored, undo = arrow(), _UNDO[orientation]
    if undo:
        stored = stored.transpose(getattr(PIL.Image.Transpose, undo))
    exif = PIL.Image.Exif()
    exif[0x0112] = orientation
    assert close_to(load(encoded(stored, kind, exif=exif)), np.asarray(arrow()), 12)


# Transparency.


def test_noise_under_alpha_zero_is_white() -> None:
    rgba = np.random.default_rng(0).integers(0, 256, (20, 30, 4)).astype(np.uint8)
    rgba[:, :, 3] = 0
    assert (load(encoded(PIL.Image.fromarray(rgba))).pixels == 255).all()


def test_half_transparent_black_is_grey() -> None:
    rgba = np.zeros((4, 4, 4), np.uint8)
    rgba[:, :, 3] = 128
    assert (load(encoded(PIL.Image.fromarray(rgba))).pixels == 127).all()


def test_grey_with_alpha_is_over_white() -> None:
    la = np.zeros((4, 6, 2), np.uint8)
    la[:, 3:, 1] = 255
    pixels = load(encoded(PIL.Image.fromarray(la, "LA"))).pixels
    assert (pixels[:, :3] == 255).all()
    assert (pixels[:, 3:] == 0).all()


@pytest.mark.parametrize("transparency", [0, bytes([0, 255])])
def test_a_transparent_palette_entry_is_white(transparency: int | bytes) -> None:
    image = PIL.Image.new("P", (4, 4), 0)
    image.putpalette([10, 20, 30, 200, 0, 0])
    image.putpixel((1, 1), 1)
    pixels = load(encoded(image, transparency=transparency)).pixels
    assert (pixels[0, 0] == 255).all()
    assert tuple(pixels[1, 1]) == (200, 0, 0)


def test_a_transparent_colour_of_an_rgb_image_is_white() -> None:
    image = PIL.Image.new("RGB", (4, 4), (1, 2, 3))
    image.putpixel((0, 0), (9, 9, 9))
    pixels = load(encoded(image, transparency=(1, 2, 3))).pixels
    assert tuple(pixels[0, 0]) == (9, 9, 9)
    assert (pixels[1, 1] == 255).all()


# Modes and depths.


def test_a_cmyk_jpeg_keeps_its_colours() -> None:
    pixels = load(encoded(arrow().convert("CMYK"), "JPEG", quality=95)).pixels
    for (row, column), colour in {(5, 60): (255, 0, 0), (40, 60): (0, 0, 255), (5, 5): (0, 255, 0)}.items():
        assert np.abs(pixels[row, column].astype(int) - colour).max() < 30


def test_sixteen_bit_grey_is_a_smooth_gradient() -> None:
    ramp = np.tile(np.linspace(0, 65535, 256).astype(np.uint16), (8, 1))
    pixels = load(encoded(PIL.Image.fromarray(ramp))).pixels
    row = pixels[0, :, 0].astype(int)
    assert (row[0], row[-1]) == (0, 255)
    assert set(np.diff(row)) <= {0, 1, 2}
    assert len(set(row)) > 250


@pytest.mark.parametrize("order", ["<", ">"])
def test_both_byte_orders_of_a_sixteen_bit_tiff_are_read(order: str) -> None:
    ramp = np.tile(np.linspace(0, 65535, 64).astype(np.uint16), (4, 1))
    entries = {
        256: (3, 64), 257: (3, 4), 258: (3, 16), 259: (3, 1), 262: (3, 1), 273: (4, 8), 277: (3, 1),
        278: (3, 4), 279: (4, 512),
    }  # fmt: skip
    head = (b"II" if order == "<" else b"MM") + struct.pack(f"{order}HI", 42, 8 + 512)
    directory = struct.pack(f"{order}H", len(entries))
    for tag, (kind, value) in entries.items():
        packed = struct.pack(f"{order}HH", value, 0) if kind == 3 else struct.pack(f"{order}I", value)
        directory += struct.pack(f"{order}HHI", tag, kind, 1) + packed
    data = head + ramp.astype(f"{order}u2").tobytes() + directory + bytes(4)
    assert close_to(load(data), np.repeat((ramp // 257).astype(np.uint8)[:, :, None], 3, 2), 1)


def test_a_bilevel_image_is_black_and_white() -> None:
    image = PIL.Image.new("1", (8, 8), 1)
    image.putpixel((0, 0), 0)
    pixels = load(encoded(image)).pixels
    assert (pixels[0, 0] == 0).all()
    assert (pixels[1, 1] == 255).all()


def test_integers_of_32_bits_with_16_bits_of_range_are_scaled() -> None:
    values = np.array([[0, 32768, 65535]], np.int32)
    assert load(PIL.Image.fromarray(values, "I")).pixels[0, :, 0].tolist() == [0, 128, 255]


def test_floats_outside_0_to_255_are_stretched_and_the_user_is_told() -> None:
    image = load(encoded(PIL.Image.fromarray(np.array([[-5.0, 5.0]], np.float32)), "TIFF"))
    assert image.pixels[0, :, 0].tolist() == [0, 255]
    assert "stretched" in image.notes[0]


def test_a_wide_gamut_profile_is_converted_and_a_broken_one_ignored() -> None:
    flat = PIL.Image.new("RGB", (4, 4), (120, 60, 200))
    srgb = PIL.ImageCms.ImageCmsProfile(PIL.ImageCms.createProfile("sRGB")).tobytes()
    assert tuple(load(encoded(flat, icc_profile=srgb)).pixels[0, 0]) == (120, 60, 200)
    assert tuple(load(encoded(flat, icc_profile=b"not a profile")).pixels[0, 0]) == (120, 60, 200)
    lab = PIL.ImageCms.ImageCmsProfile(PIL.ImageCms.createProfile("LAB")).tobytes()
    assert tuple(load(encoded(flat, icc_profile=lab)).pixels[0, 0]) == (120, 60, 200)


def profile(red: tuple[float, ...], green: tuple[float, ...], blue: tuple[float, ...]) -> bytes:
    """An ICC profile of three primaries (XYZ under D50) and a gamma of 2.2."""

    def fixed(*values: float) -> bytes:
        return b"".join(struct.pack(">i", round(value * 65536)) for value in values)

    def text(value: bytes) -> bytes:
        return b"desc" + struct.pack(">II", 0, len(value) + 1) + value + bytes(80)

    gamma = b"curv" + struct.pack(">IIH", 0, 1, round(2.2 * 256)) + bytes(2)
    tags = {b"desc": text(b"Swapped"), b"cprt": b"text" + bytes(4) + b"none\0" + bytes(3)}
    tags[b"wtpt"] = b"XYZ " + bytes(4) + fixed(0.9642, 1.0, 0.8249)
    for letter, primary in ((b"r", red), (b"g", green), (b"b", blue)):
        tags |= {letter + b"XYZ": b"XYZ " + bytes(4) + fixed(*primary), letter + b"TRC": gamma}
    table, body, at = b"", b"", 132 + 12 * len(tags)
    for name, data in tags.items():
        data += bytes(-len(data) % 4)
        table += name + struct.pack(">II", at + len(body), len(data))
        body += data
    size = at + len(body)
    head = struct.pack(">II4s4s4s4s", size, 0, b"\x02\x10\0\0", b"mntr", b"RGB ", b"XYZ ") + bytes(12)
    head += b"acsp" + bytes(28) + fixed(0.9642, 1.0, 0.8249) + bytes(48)
    return head + struct.pack(">I", len(tags)) + table + body


def test_colours_are_what_the_embedded_profile_says() -> None:
    red, green, blue = (0.436, 0.2225, 0.0139), (0.3851, 0.7169, 0.0971), (0.1431, 0.0606, 0.7141)
    image = PIL.Image.new("RGB", (4, 4), (255, 0, 0))
    as_srgb = load(encoded(image, icc_profile=profile(red, green, blue)))
    assert close_to(as_srgb, np.asarray(image), 8)
    swapped = load(encoded(image, icc_profile=profile(blue, green, red)))
    assert close_to(swapped, np.asarray(PIL.Image.new("RGB", (4, 4), (0, 0, 255))), 8)
    clear = PIL.Image.new("RGBA", (4, 4), (255, 0, 0, 128))
    half = load(encoded(clear, icc_profile=profile(blue, green, red)))
    assert close_to(half, np.asarray(PIL.Image.new("RGB", (4, 4), (127, 127, 255))), 8)


@pytest.mark.parametrize("mode", ["RGBa", "La"])
def test_premultiplied_pixels_are_not_multiplied_twice(mode: str) -> None:
    straight = PIL.Image.new(mode.upper(), (4, 4), (100, 50, 25, 128) if mode == "RGBa" else (100, 128))
    assert close_to(load(straight.convert(mode)), load(straight).pixels, 1)


def test_a_transparent_grey_of_16_bits_is_white() -> None:
    grey = np.array([[500, 30_000]], np.uint16)
    data = encoded(PIL.Image.fromarray(grey))
    end = 8 + 25  # of the header chunk
    tag = b"tRNS" + struct.pack(">H", 500)
    chunk = struct.pack(">I", 2) + tag + struct.pack(">I", zlib.crc32(tag))
    assert load(data[:end] + chunk + data[end:]).pixels[0, :, 0].tolist() == [255, 117]


def test_the_first_frame_of_an_animation_is_used_with_a_note() -> None:
    frames = [PIL.Image.new("RGB", (8, 8), colour) for colour in ("red", "blue", "lime")]
    image = load(encoded(frames[0], "GIF", save_all=True, append_images=frames[1:]))
    assert tuple(image.pixels[0, 0]) == (255, 0, 0)
    assert image.notes == ("the first of its 3 frames is used",)


# Arrays.


@pytest.mark.parametrize(
    ("array", "pixel"),
    [
        (np.array([[True]]), 255),
        (np.array([[7]], np.uint8), 7),
        (np.array([[65535]], np.uint16), 255),
        (np.array([[65535]], ">u2"), 255),
        (np.array([[0.5]]), 128),
        (np.array([[[9, 9, 9]]], np.uint8), 9),
        (np.array([[[0, 0, 0, 0]]], np.uint8), 255),
        (np.array([[[0, 128]]], np.uint8), 127),
    ],
)
def test_arrays_of_every_kind(array: np.ndarray, pixel: int) -> None:
    assert load(array).pixels.tolist() == [[[pixel] * 3]]


@pytest.mark.parametrize(
    "array",
    [np.zeros(3), np.zeros((2, 2, 5)), np.zeros((0, 4)), np.zeros((2, 2), complex), np.full((2, 2), np.nan)],
)
def test_an_array_that_is_no_image_is_named(array: np.ndarray) -> None:
    with pytest.raises(ImageError, match="an array"):
        load(array)


def test_an_array_is_copied() -> None:
    array = np.zeros((4, 4, 3), np.uint8)
    image = load(array)
    array[:] = 9
    assert (image.pixels == 0).all()
    assert image == load(np.zeros((4, 4, 3), np.uint8))
    assert image != load(array)
    with pytest.raises(ValueError, match="read-only"):
        image.pixels[0, 0, 0] = 1


def test_every_kind_of_source_gives_the_same_pixels(tmp_path: Path) -> None:
    data = encoded(arrow())
    path = tmp_path / "arrow.png"
    path.write_bytes(data)
    with path.open("rb") as file:
        images = {load(source).sha256 for source in (path, str(path), data, io.BytesIO(data), file, arrow())}
    assert images == {load(np.asarray(arrow())).sha256}


def test_the_shape_is_part_of_the_hash() -> None:
    flat = np.zeros((2, 8, 3), np.uint8)
    assert load(flat) != load(flat.reshape(8, 2, 3))


# Sizes.


@pytest.mark.parametrize("size", [(1, 1), (27, 257), (1, 5000), (3, 2)])
def test_small_and_extreme_shapes_are_enlarged_or_padded_with_a_note(size: tuple[int, int]) -> None:
    image = load(PIL.Image.new("RGB", size, "red"))
    limits = ImageLimits(min_side=28, max_pixels=100_000)
    fitted = fit(image, limits)
    assert min(fitted.width, fitted.height) >= 28
    assert fitted.width * fitted.height <= max(limits.max_pixels, 28 * 5000)
    assert len(fitted.notes) == 1
    assert f"from {size[0]}x{size[1]}" in fitted.notes[0]


@settings(deadline=None, max_examples=60)
@given(width=st.integers(1, 700), height=st.integers(1, 700), square=st.sampled_from([None, 64]))
def test_every_size_fits_its_limits(width: int, height: int, square: int | None) -> None:
    limits = ImageLimits(square=square, min_side=28, max_pixels=60_000)
    image = load(np.full((height, width, 3), 40, np.uint8))
    fitted = fit(image, limits)
    if square:
        assert (fitted.width, fitted.height) == (64, 64)
    else:
        assert min(fitted.width, fitted.height) >= 28
        assert fitted.width * fitted.height <= limits.max_pixels
    assert (fitted is image) == (not fitted.notes)
    assert (fitted.pixels == 40).all(axis=2).any()


def test_an_image_of_the_right_size_is_not_touched() -> None:
    image = load(np.random.default_rng(1).integers(0, 256, (64, 64, 3)).astype(np.uint8))
    assert fit(image, ImageLimits(square=64)) is image
    assert fit(image, ImageLimits()) is image


_PEAK = """
import resource, sys
from macr_local.images import fit, load
from macr_local.specs import ImageLimits
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
image = fit(load(sys.argv[1]), ImageLimits(max_pixels=1_000_000))
print(image.width, image.height, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
print(*image.notes, sep="|")
"""


def test_a_huge_jpeg_is_reduced_within_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "huge.jpg"
    PIL.Image.new("RGB", (12000, 9000), (200, 30, 60)).save(path, quality=80)
    run = subprocess.run([sys.executable, "-c", _PEAK, str(path)], capture_output=True, text=True, check=True)
    size, notes = run.stdout.splitlines()
    width, height, mebibytes = map(int, size.split())
    assert 900_000 < width * height <= 1_000_000
    assert abs(width / height - 4 / 3) < 0.01
    assert mebibytes < 330, "the whole image alone would take 309 MiB, and its copies as much again"
    assert "12000x9000" in notes


def test_a_large_photo_with_a_second_picture_is_reduced_as_it_is_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("macr_local.images.KEPT_PIXELS", 7_500)
    photo, thumbnail = PIL.Image.new("RGB", (400, 300), "red"), PIL.Image.new("RGB", (8, 6))
    image = load(encoded(photo, "MPO", save_all=True, append_images=[thumbnail]))
    assert (image.width, image.height) == (100, 75)
    assert image.notes == ("the first of its 2 frames is used", "reduced from 400x300 while it was decoded")


def test_a_large_transparent_image_takes_little_more_than_its_pixels() -> None:
    rgba = np.zeros((3000, 4000, 4), np.uint8)
    tracemalloc.start()
    image = load(rgba)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (image.pixels == 255).all()
    assert peak < 2 * rgba.nbytes + (64 << 20)


def test_a_large_png_keeps_no_more_pixels_than_any_model_sees() -> None:
    image = load(encoded(PIL.Image.new("L", (6000, 5000), 90), compress_level=1))
    assert image.width * image.height <= KEPT_PIXELS
    assert image.notes == (f"reduced from 6000x5000 to {image.width}x{image.height}",)


def bomb(width: int, height: int) -> bytes:
    """A PNG of one grey whose pixels would fill the memory, and whose bytes are few."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    packer = zlib.compressobj(9)
    row = bytes(width + 1)
    body = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [14_000, 20_000])
def test_a_decompression_bomb_is_refused_from_its_header(side: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ImageError, match=rf"^photo\.png .*{side}x{side}"):
            load(bomb(side, side), name="photo.png")


def test_the_limit_can_be_raised_and_lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encoded(arrow())
    with pytest.raises(ImageError, match=r"96x48 = 4,608 pixels, more than 100.*MACR_LOCAL_MAX_PIXELS=4608"):
        load(data, max_pixels=100)
    assert load(data, max_pixels=4608).width == 96
    monkeypatch.setattr(PIL.Image, "MAX_IMAGE_PIXELS", 50)  # the host's own limit is the host's
    assert load(data).width == 96
    monkeypatch.setenv("MACR_LOCAL_MAX_PIXELS", "4607")
    with pytest.raises(ImageError, match="more than 4,607"):
        load(data)
    monkeypatch.setenv("MACR_LOCAL_MAX_PIXELS", "many")
    with pytest.raises(ImageError, match="MACR_LOCAL_MAX_PIXELS is 'many'"):
        load(data)
    assert MAX_PIXELS >= 12_000 * 9_000


# Damage, and what is no image.

_PNG = encoded(PIL.Image.fromarray(np.random.default_rng(2).integers(0, 256, (40, 40, 3)).astype(np.uint8)))
_JPEG = encoded(arrow(), "JPEG")


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", r"is empty \(0 bytes\)"),
        (_JPEG[: len(_JPEG) // 2], "is damaged"),
        (_PNG[: len(_PNG) // 2], "is damaged"),
        (_PNG[:60] + bytes([_PNG[60] ^ 255]) + _PNG[61:], "damaged"),
        (b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic", "is HEIC data"),
        (b"\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom", "MP4 or QuickTime video"),
        (b"%PDF-1.7 ...", "PDF document"),
        (b"<!DOCTYPE html><html>404</html>", "HTML page"),
        (b'<?xml version="1.0"?><svg xmlns="x"></svg>', "SVG drawing"),
        (b"PK\x03\x04rest", "ZIP archive"),
        (b"GGUF\x03\x00\x00\x00", "GGUF model"),
        (b"\0\0\0\x0cJXL \r\n\x87\n", "JPEG XL image"),
        (b"RIFF\x10\0\0\0WAVEfmt ", "WAV sound"),
        (b"\x1aE\xdf\xa3" + bytes(20), "WebM video"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
        (b"what is in the picture?", "is text"),
        (b"\x89PNG\r\n\x1a\nbroken", "begins like a PNG and is damaged"),
        (bytes(range(256)), "no image format"),
    ],
)
def test_what_cannot_be_decoded_is_named_in_one_line(data: bytes, found: str, tmp_path: Path) -> None:
    path = tmp_path / "photo.jpg"
    path.write_bytes(data)
    with pytest.raises(ImageError, match=found) as raised:
        load(path)
    assert "photo.jpg" in raised.value.found
    assert raised.value.fix
    assert "\n" not in str(raised.value)


def test_a_drawing_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object, **__: object) -> None:
        raise AssertionError("Ghostscript was started")

    monkeypatch.setattr("PIL.EpsImagePlugin.Ghostscript", run)
    for data in (encoded(arrow(), "EPS"), b"\xc5\xd0\xd3\xc6" + bytes(40)):
        with pytest.raises(ImageError, match="drawing"):
            load(data, name="photo.jpg")


class Endless(io.RawIOBase):
    """A stream without an end that counts what was read."""

    def __init__(self, begins: bytes) -> None:
        self.given, self._begins = 0, begins

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        part = self._begins[self.given :][: len(buffer)] or bytes(len(buffer))
        buffer[: len(part)] = part
        self.given += len(part)
        return len(part)


def test_what_is_no_image_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Endless(b"GGUF\x03\0\0\0")
    with pytest.raises(ImageError, match="is a GGUF model"):
        load(model)  # type: ignore[arg-type]
    assert model.given <= 1 << 20
    monkeypatch.setattr("macr_local.image_bytes._MAX_BYTES", 5 << 20)
    zeros = Endless(b"")
    with pytest.raises(ImageError, match="has more than"):
        load(zeros)  # type: ignore[arg-type]
    assert zeros.given <= 7 << 20


@pytest.mark.parametrize("source", ["https://example.org/a.png", "file:///a.png", "data:image/png;base64,AA"])
def test_an_address_is_not_fetched(source: str) -> None:
    with pytest.raises(ImageError, match="is an address"):
        load(source)


def test_missing_files_folders_and_odd_names_are_named(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="There is no file"):
        load(tmp_path / "none.png")
    with pytest.raises(ImageError, match="is a folder"):
        load(tmp_path)
    with pytest.raises(ImageError, match="cannot be read"):
        load("a\0b")
    with pytest.raises(ImageError, match="opened as text"):
        load(io.StringIO("x"))  # type: ignore[arg-type]
    with pytest.raises(ImageError, match="given as int"):
        load(3)  # type: ignore[arg-type]


@settings(deadline=None, max_examples=150)
@given(place=st.integers(0, len(_PNG) - 1), value=st.integers(0, 255), kind=st.sampled_from([_PNG, _JPEG]))
def test_a_flipped_byte_is_an_image_or_an_image_error(place: int, value: int, kind: bytes) -> None:
    data = bytearray(kind)
    data[place % len(kind)] = value
    try:
        image = load(bytes(data))
    except ImageError as error:
        said = str(error)
    else:
        said = f"{image.pixels.dtype} {image.pixels.shape[2]}"
        assert said == "uint8 3"
    assert "\n" not in said


def test_trailing_garbage_after_a_jpeg_does_no_harm() -> None:
    assert load(_JPEG + b"garbage" * 50) == load(_JPEG)


def test_loading_in_many_threads_gives_the_same_pixels_and_no_warning() -> None:
    data, results = bomb(13_500, 13_400), []

    def work() -> None:
        try:
            load(data)
        except ImageError:
            results.append(load(_PNG).sha256)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results == [load(_PNG).sha256] * 8


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_a_device_and_a_socket_are_refused_without_waiting_for_them(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    link = tmp_path / "link.png"
    link.symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(tmp_path / "socket"))
        for path, what in (
            (tmp_path / "pipe", "a pipe"), ("/dev/zero", "a device"), (link, "a device"),
            (tmp_path / "socket", "a socket"),
        ):  # fmt: skip
            with pytest.raises(ImageError, match=f'is {what}, not a file.*Pipe it in and give "-"'):
                load(path)


@pytest.mark.skipif(not os.path.exists("/dev/stdin"), reason="this system has no /dev/stdin")
def test_a_stdin_that_is_a_pipe_is_asked_for_by_its_own_name() -> None:
    code = "import macr_local.images as i\ntry: i.load('/dev/stdin')\nexcept Exception as e: print(e)"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as waiting:  # its stdin stays open: reading it would never end
        assert waiting.stdout is not None
        assert waiting.stdout.read() == (
            '/dev/stdin is a pipe, not a file. Pipe it in and give "-"; from Python, give an open file.\n'
        )
