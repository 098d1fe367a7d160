"""How far an evaluation is: a bar on a terminal, and otherwise a line now and then."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from macr_local.cli.console import report, say
from macr_local.cli.interrupt import Interrupts
from macr_local.errors import Cancelled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from macr_local.evaluation.runner import Evaluation, Progress
    from macr_local.pool import Pool
    from macr_local.specs import PoolSpec


def run_all(
    spec: PoolSpec, evaluations: Callable[[Pool], Iterable[tuple[str, Evaluation]]], interrupted: str
) -> None:
    """Open a pool and run evaluations on it, one after the other; Ctrl-C ends after what is written.

    Args:
        spec: The pool.
        evaluations: Gives names, as they are shown, and evaluations.
        interrupted: What to say after Ctrl-C.

    Raises:
        Cancelled: There was one.
        MacrError: What `Pool.open` and `Evaluation.run` raise.
    """
    from macr_local.pool import Pool

    stopped = Cancelled(interrupted, "Run the same command again to go on where it stopped")
    with Interrupts() as interrupts:
        interrupts.give_up = lambda: report(stopped)
        try:
            with Pool.open(spec) as pool:
                for name, evaluation in evaluations(pool):
                    interrupts.cancel = evaluation.stop
                    run(evaluation, name)
                    if interrupts.happened:
                        raise stopped
        except KeyboardInterrupt:
            raise stopped from None


def run(evaluation: Evaluation, name: str) -> None:
    """Ask what is missing, and show how far it is, on a terminal or in a log."""
    with ExitStack() as stack:
        evaluation.run(stack.enter_context(_Bar(name)) if sys.stderr.isatty() else _Lines(name))


class _Tally:
    """How many answers so far are right, by the strict reading."""

    def __init__(self) -> None:
        self._right = self._judged = self._failed = 0

    def take(self, progress: Progress) -> None:
        from macr_local.evaluation.scoring import score

        record = progress.record
        if record is None:
            return
        if record.error:
            self._failed += 1
        else:
            self._judged += 1
            self._right += score(record.item, record.text, "strict").right

    def __str__(self) -> str:
        right = f"{self._right / self._judged:.3f} right" if self._judged else ""
        return ", ".join(filter(None, (right, f"{self._failed} failed" if self._failed else "")))


class _Bar:
    """A progress bar on the terminal, with the time that is left and the share of right answers."""

    def __init__(self, name: str) -> None:
        self._name, self._tally, self._stack = name, _Tally(), ExitStack()
        self._bar: Any = None

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def __call__(self, progress: Progress) -> None:
        self._tally.take(progress)
        if self._bar is None:
            bar: Any = click.progressbar(
                length=progress.total,
                label=self._name,
                file=sys.stderr,
                show_pos=True,
                show_eta=True,
                item_show_func=lambda _: str(self._tally),
            )
            self._bar = self._stack.enter_context(bar)
        self._bar.update(progress.done - self._bar.pos, str(self._tally))


class _Lines:
    """Without a terminal: a line now and then, so that a log shows that it lives."""

    def __init__(self, name: str) -> None:
        self._name, self._tally, self._last = name, _Tally(), 0.0

    def __call__(self, progress: Progress) -> None:
        self._tally.take(progress)
        if progress.done < progress.total and time.monotonic() - self._last < 10:
            return
        self._last = time.monotonic()
        new = progress.done - progress.resumed
        left = f", {_time((progress.total - progress.done) * progress.seconds / new)} left" if new else ""
        more = f", {self._tally}" if str(self._tally) else ""
        say(f"{self._name}: {progress.done} of {progress.total}{left}{more}", err=True)


def _time(seconds: float) -> str:
    hours, rest = divmod(round(seconds), 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"
