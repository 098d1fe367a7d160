"""What a file is that should have been GGUF and is not."""

from __future__ import annotations

_MAGICS: tuple[tuple[bytes, str, str], ...] = (
    (b"version https://git-lfs", "is a Git LFS pointer, not the model itself", "Run: git lfs pull"),
    (b"FUGG", "is a big-endian GGUF file", "Download the little-endian file of this model"),
    (b"lmgg", "is a model in the old GGML format", "Download a GGUF file of this model"),
    (b"fmgg", "is a model in the old GGMF format", "Download a GGUF file of this model"),
    (b"tjgg", "is a model in the old GGJT format", "Download a GGUF file of this model"),
    (b"algg", "is an adapter in the old GGLA format", "Download a GGUF file of a whole model"),
    (b"\x1f\x8b", "is gzip data", "Unpack it first"),
    (b"\x28\xb5\x2f\xfd", "is Zstandard data", "Unpack it first"),
    (b"\xfd7zXZ", "is xz data", "Unpack it first"),
    (b"\x89HDF", "is an HDF5 file", "Convert the model with llama.cpp's convert_hf_to_gguf.py"),
    (b"\x89PNG", "is a PNG image, not a model", "Name the model's file"),
    (b"\xff\xd8\xff", "is a JPEG image, not a model", "Name the model's file"),
)
_CONVERT = "Download a GGUF file of this model, or convert it with llama.cpp's convert_hf_to_gguf.py"


def describe(head: bytes) -> tuple[str, str]:
    """Name what a file's first bytes show.

    Args:
        head: Its first bytes, up to 4096; all of them where it is shorter.

    Returns:
        What is found, to stand behind the file's name, and what to do.
    """
    if not head:
        return "is empty (0 bytes)", "Download it again"
    for magic, found, fix in _MAGICS:
        if head.startswith(magic):
            return found, fix
    if head.startswith(b"PK\x03\x04"):
        if b"data.pkl" in head:
            return "is a PyTorch checkpoint", _CONVERT
        return "is a ZIP archive", "Unpack it first"
    if head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return "is a Python pickle (an old PyTorch checkpoint)", _CONVERT
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 1 << 30:
        return "is a safetensors file", _CONVERT
    if head[257:262] == b"ustar":
        return "is a tar archive", "Unpack it first"
    return _text(head)


def _text(head: bytes) -> tuple[str, str]:
    low = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if low.startswith((b"<!doctype", b"<html", b"<?xml", b"<head")):
        return (
            "is a web page, not a model",
            "Download the file itself (on a hub page, the link with /resolve/, not /blob/)",
        )
    if b"\0" not in head:
        first = " ".join(head[:60].decode("utf-8", "replace").split())
        return f'is text, not a model (it begins with "{_printable(first)}")', "Download the file again"
    if not any(head):
        return "begins with zeros only, as an unfinished download does", "Download it again"
    return f"is not a GGUF file (it begins with {head[:4].hex(' ')})", "Download a GGUF file of this model"


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)
