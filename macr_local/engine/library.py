"""llama.cpp, started once: its environment, its log routed to Python's, its build and devices."""

from __future__ import annotations

import ctypes
import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

# Both are read once, when libgomp and ggml are loaded. A short spin keeps idle OpenMP threads from
# starving the other members' threads; ggml's own backtrace would fork a debugger in the host's process.
os.environ.setdefault("GOMP_SPINCOUNT", "2000")
os.environ.setdefault("GGML_NO_BACKTRACE", "1")

import llama_cpp
from llama_cpp import llama_cpp as api
from llama_cpp import mtmd_cpp as mtmd

__all__ = [
    "Device", "api", "build", "complaints", "devices", "gpu_memory", "has_gpu", "mtmd", "system_info",
]  # fmt: skip

logger = logging.getLogger("macr_local.llama")
logging.getLogger("macr_local").addHandler(logging.NullHandler())

# ggml's levels; the table inside llama-cpp-python is of an older ggml and would swallow errors.
_LEVELS = {1: logging.DEBUG, 2: logging.INFO, 3: logging.WARNING, 4: logging.ERROR}
_CONTINUE = 5


class _Lines(threading.local):
    """One thread's unfinished log line, and the complaints someone is collecting on that thread."""

    level: int = logging.INFO
    text: str = ""
    complaints: list[str] | None = None


_lines = _Lines()


def _log(level: int, text: bytes, _data: int) -> None:
    if level != _CONTINUE:
        _lines.level = _LEVELS.get(level, logging.INFO)
    *whole, _lines.text = (_lines.text + text.decode("utf-8", "replace")).split("\n")
    for line in filter(str.strip, whole):
        logger.log(_lines.level, "%s", line)
        if _lines.level >= logging.ERROR and _lines.complaints is not None:
            _lines.complaints.append(line.strip())


# C keeps the pointer for as long as the process lives, so must we.
_LOG_CALLBACK = api.llama_log_callback(_log)
api.llama_log_set(_LOG_CALLBACK, ctypes.c_void_p(0))
mtmd.mtmd_helper_log_set(_LOG_CALLBACK, ctypes.c_void_p(0))
api.llama_backend_init()


@contextmanager
def complaints() -> Iterator[list[str]]:
    """Collect what llama.cpp logs as errors on this thread, to say why a load failed."""
    found: list[str] = []
    _lines.complaints = found
    try:
        yield found
    finally:
        _lines.complaints = None


def build() -> str:
    """The one version this engine is written for, as calibrations and reports name it."""
    return f"llama-cpp-python {version('llama-cpp-python')}"


def system_info() -> str:
    """What llama.cpp was compiled with (CPU features, back ends)."""
    return str(api.llama_print_system_info().decode("utf-8", "replace")).strip()


@dataclass(frozen=True, slots=True)
class Device:
    """One device that llama.cpp can compute on; sizes in bytes, None where it cannot say."""

    name: str
    description: str
    kind: str
    free: int | None
    total: int | None

    @property
    def is_gpu(self) -> bool:
        """Whether layers can be offloaded to it."""
        return self.kind in ("gpu", "integrated gpu")


_KINDS = {0: "cpu", 1: "gpu", 2: "integrated gpu", 3: "accelerator"}


def devices() -> tuple[Device, ...]:
    """Every device of this build, the CPU included.

    The binding leaves ggml's device functions out, so they are called in the libraries beside it.
    """
    registry, base = _ggml("ggml"), _ggml("ggml-base")
    if registry is None or base is None:
        return ()
    registry.ggml_backend_dev_count.restype = ctypes.c_size_t
    registry.ggml_backend_dev_get.restype = ctypes.c_void_p
    registry.ggml_backend_dev_get.argtypes = [ctypes.c_size_t]
    for name, result in (("name", ctypes.c_char_p), ("description", ctypes.c_char_p), ("type", ctypes.c_int)):
        function = getattr(base, f"ggml_backend_dev_{name}")
        function.restype, function.argtypes = result, [ctypes.c_void_p]
    size = ctypes.POINTER(ctypes.c_size_t)
    base.ggml_backend_dev_memory.argtypes = [ctypes.c_void_p, size, size]
    found = []
    for i in range(registry.ggml_backend_dev_count()):
        device = registry.ggml_backend_dev_get(i)
        kind = _KINDS.get(base.ggml_backend_dev_type(device), "other")
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        base.ggml_backend_dev_memory(device, ctypes.byref(free), ctypes.byref(total))
        # The CPU reports its total as free, which would be a wrong number; psutil knows better.
        known = kind != "cpu" and total.value > 0
        found.append(
            Device(
                name=base.ggml_backend_dev_name(device).decode("utf-8", "replace"),
                description=base.ggml_backend_dev_description(device).decode("utf-8", "replace"),
                kind=kind,
                free=free.value if known else None,
                total=total.value if known else None,
            )
        )
    return tuple(found)


def has_gpu() -> bool:
    """Whether any device of this build can take layers."""
    return bool(api.llama_supports_gpu_offload()) and any(device.is_gpu for device in devices())


def gpu_memory() -> int:
    """Bytes free for layers beside the main memory; 0 where no GPU has memory of its own."""
    if not has_gpu() or sys.platform == "darwin":
        return 0
    return sum(device.free or 0 for device in devices() if device.kind == "gpu")


def _ggml(stem: str) -> ctypes.CDLL | None:
    folder = Path(llama_cpp.__file__).parent / "lib"
    for name in (f"lib{stem}.so", f"lib{stem}.dylib", f"{stem}.dll"):
        if (path := folder / name).exists():
            return ctypes.CDLL(str(path))
    return None
