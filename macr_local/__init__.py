"""Several quantized vision-language models answer one question together, by relay, on this machine.

from macr_local import Pool, Prompt, Relay

with Pool.open("tiny") as pool:
print(Relay(pool).ask(Prompt.of("how many white circles are there?", "scene.png")).text)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from macr_local.errors import (
        CalibrationError,
        Cancelled,
        CapacityError,
        ConfigError,
        ContextFull,
        DataError,
        EngineError,
        ImageError,
        MacrError,
        ModelFileError,
        PoolBusy,
        TemplateError,
    )
    from macr_local.pool import Pool
    from macr_local.prompt import Prompt
    from macr_local.relay.answer import Answer
    from macr_local.relay.events import (
        Answered,
        Bid,
        BidOpened,
        Chosen,
        Event,
        Finished,
        MemberFailed,
        Relayed,
        Started,
        Text,
        Token,
    )
    from macr_local.session import Relay, Stream
    from macr_local.settings import RelaySettings, Sampling

__version__ = "0.1.0"

_HOME = {
    "macr_local.errors": (
        "CalibrationError", "Cancelled", "CapacityError", "ConfigError", "ContextFull", "DataError",
        "EngineError", "ImageError", "MacrError", "ModelFileError", "PoolBusy", "TemplateError",
    ),
    "macr_local.pool": ("Pool",),
    "macr_local.prompt": ("Prompt",),
    "macr_local.relay.answer": ("Answer",),
    "macr_local.relay.events": (
        "Answered", "Bid", "BidOpened", "Chosen", "Event", "Finished", "MemberFailed", "Relayed", "Started",
        "Text", "Token",
    ),
    "macr_local.session": ("Relay", "Stream"),
    "macr_local.settings": ("RelaySettings", "Sampling"),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [  # noqa: RUF022  (in the order of _HOME, which a test holds equal)
    "CalibrationError", "Cancelled", "CapacityError", "ConfigError", "ContextFull", "DataError",
    "EngineError", "ImageError", "MacrError", "ModelFileError", "PoolBusy", "TemplateError",
    "Pool", "Prompt", "Answer",
    "Answered", "Bid", "BidOpened", "Chosen", "Event", "Finished", "MemberFailed", "Relayed", "Started",
    "Text", "Token", "Relay", "Stream", "RelaySettings", "Sampling", "__version__",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: `import macr_local` itself costs nothing."""
    if name in _MODULE_OF:
        value = getattr(import_module(_MODULE_OF[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
