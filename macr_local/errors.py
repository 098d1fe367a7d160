"""What can go wrong, one class for each thing a user can mend.

An error says what was found and where; ``fix`` says what to do. The command line prints both on one
line and exits with ``exit_code``. Exit code 2 is click's own for wrong usage; 130 is an interrupt.
"""

from __future__ import annotations

from typing import ClassVar


class MacrError(Exception):
    """Base of every error this package raises on purpose.

    Args:
        found: What was found and where, without a full stop at the end.
        fix: What the user can do about it, without a full stop at the end.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, found: str, fix: str = "") -> None:
        super().__init__(found, fix)
        self.found = found
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.found}. {self.fix}." if self.fix else f"{self.found}."


class ImageError(MacrError):
    """An image that cannot be read, or that is larger than the limits allow."""

    exit_code = 3


class ConfigError(MacrError):
    """A models.toml, an option or a name that cannot be used."""

    exit_code = 4


class NotDownloaded(ConfigError):
    """A pool whose files are not on this machine."""


class ModelFileError(MacrError):
    """A GGUF file that is missing, damaged, or not what it is said to be."""

    exit_code = 5


class TemplateError(ModelFileError):
    """A chat template that is missing, broken, or refuses the conversation."""


class CapacityError(MacrError):
    """Something does not fit: a prompt into a context, or a pool into memory."""

    exit_code = 6


class CalibrationError(MacrError):
    """A calibration that is missing, damaged, or made for another model or setting."""

    exit_code = 7


class EngineError(MacrError):
    """llama.cpp failed while it ran; the member cannot go on with this question."""

    exit_code = 8


class ContextFull(EngineError):
    """A member has no cell left for the next token."""


class DataError(MacrError):
    """A reference set or a data file that cannot be read."""

    exit_code = 9


class DownloadError(MacrError):
    """The hub cannot be reached, refuses, or what came is not what it says it is."""

    exit_code = 10


class PoolBusy(MacrError):
    """The same thread asked again while its earlier answer is still open."""

    exit_code = 1


class Cancelled(MacrError):
    """The question was cancelled, from another thread or by an interrupt."""

    exit_code = 130
