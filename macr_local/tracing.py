"""The head of a trace: who was asked what, with which settings and calibrations."""

from __future__ import annotations

from contextlib import suppress

from macr_local import __version__
from macr_local.engine.library import build
from macr_local.errors import CalibrationError
from macr_local.prompt import Prompt
from macr_local.relay.trace import TraceHeader
from macr_local.session import Relay


def header(relay: Relay, prompt: Prompt) -> TraceHeader:
    """What a trace of this question begins with."""
    pool, settings = relay.pool, relay.settings
    calibrations = {}
    for member in pool.members:
        with suppress(CalibrationError):  # not every strategy needs one
            calibrations[member.name] = pool.calibration(member.name).at(settings.judged)
    return TraceHeader(
        settings=settings,
        members=tuple(member.name for member in pool.members),
        question=prompt.text,
        calibrations=calibrations,
        images=tuple(image.sha256 for image in prompt.images),
        system=prompt.system,
        think=prompt.think,
        versions={"macr-local": __version__, "engine": build()},
    )
