"""The relay: initiation, monitoring, bidding, relay, until the answer is done (Algorithm 1)."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence

from macr_local.errors import CalibrationError, Cancelled, ConfigError
from macr_local.prompt import Prompt
from macr_local.protocol import Member
from macr_local.relay.confidence import Calibration
from macr_local.relay.counters import Counters
from macr_local.relay.events import Event
from macr_local.relay.question import Question
from macr_local.settings import RelaySettings


class Controller:
    """Puts questions to a pool, one at a time.

    Args:
        members: The pool, in its order; names are unique.
        calibrations: mu and sigma of each member, for windows of ``settings.judged`` tokens. All are needed
            where confidences are compared; without a comparison they may be missing.
        settings: How to relay.
        cancelled: Looked at before every token, on any thread.
        clock: Seconds, for the deadline and for `Started.seconds` and `Finished.seconds`.

    Raises:
        ConfigError: No member, a name that stands twice, or ``settings.initiation`` is no member's name.
        CalibrationError: A calibration is missing, or is for another window.
    """

    def __init__(
        self,
        members: Sequence[Member],
        calibrations: Mapping[str, Calibration],
        settings: RelaySettings,
        cancelled: Callable[[], bool] = lambda: False,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._members = tuple(members)
        self._calibrations = dict(calibrations)
        self._settings = settings
        self._cancelled = cancelled
        self._clock = clock
        self._question: Question | None = None
        self._check()

    @property
    def counters(self) -> dict[str, Counters]:
        """What the latest question has cost each member so far, also if it failed or was closed."""
        return self._question.counters if self._question is not None else {}

    def run(self, prompt: Prompt) -> Generator[Event]:
        """Answer one question.

        The iterator may be closed at any event; no member computes between two events, and the next question
        begins by forgetting this one.

        Yields:
            `Started`, then rounds, tokens and text in the order in which they happen, then `Finished`.

        Raises:
            CapacityError: The prompt does not fit into a member's context; nothing was decoded.
            MacrError: The prompt cannot be put to a member at all (`Member.prepare`), or every member failed
                (the last one's error).
        """
        self._question = question = Question(
            prompt, self._members, self._calibrations, self._settings, self._cancelled, self._clock
        )
        try:
            yield from question.prefill()
            yield from question.initiation()
            while not question.done:
                alarm = yield from question.monitoring()
                if alarm is not None:
                    yield from question.bidding(alarm)
        except Cancelled:
            question.interrupted()
        yield from question.finish()

    def _check(self) -> None:
        names = [member.name for member in self._members]
        settings = self._settings
        if not names or len(set(names)) != len(names):
            raise ConfigError(f"A relay of {names} was asked for", "Name at least one member, and each once")
        if settings.initiation not in ("best", *names):
            raise ConfigError(
                f'initiation is "{settings.initiation}", which is no member of the pool',
                f'Use "best" or one of {", ".join(names)}',
            )
        for name in names if settings.compares else self._calibrations:
            calibration = self._calibrations.get(name)
            if calibration is None or calibration.window != settings.judged:
                what = f"is for w = {calibration.window}" if calibration else "is missing"
                raise CalibrationError(
                    f"The calibration of {name} for windows of {settings.judged} tokens {what}",
                    "Run: macr-local calibrate",
                )
