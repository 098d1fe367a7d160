"""Asking a data set with several methods, each item by all of them before the next."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from macr_local.errors import CapacityError, DataError, EngineError, ImageError
from macr_local.evaluation.asking import Asking, ending, question
from macr_local.evaluation.item import Item
from macr_local.evaluation.manifest import Manifest
from macr_local.evaluation.method import Method
from macr_local.evaluation.record import Record
from macr_local.evaluation.run import Run, cannot_be_written
from macr_local.evaluation.selection import Selection
from macr_local.pool import Pool
from macr_local.prompt import Prompt
from macr_local.relay.answer import collect
from macr_local.relay.events import Event
from macr_local.relay.trace import TraceWriter
from macr_local.session import Relay, Stream
from macr_local.settings import RelaySettings
from macr_local.strategies import WORDS
from macr_local.strategies.prompts import Prompts, builtin
from macr_local.tracing import header

_ONE_ITEM = (ImageError, CapacityError, EngineError)
"""What goes wrong with one item and says nothing about the next."""


class Data(Protocol):
    """A data set, as far as a run needs it."""

    @property
    def name(self) -> str:
        """Its name; the run's folder has it."""
        ...

    def items(self) -> Iterator[Item]:
        """Its items, in order, read as they are asked."""
        ...

    def ids(self) -> Iterator[str]:
        """The ids of all items, in order; no image need be read."""
        ...

    def identity(self) -> Mapping[str, Any]:
        """What must be the same for answers to belong together: the files' hashes, a seed."""
        ...


@dataclass(frozen=True, slots=True)
class Plan:
    """How a data set is asked.

    Attributes:
        seeds: Each item is asked once with each.
        selection: Which items.
        asking: How the question is put.
        ending: How answers are to end, for all items; None says it by the kind of answer, "" not at all.
        traces: Whether every event is kept.
        prompts: The words in which methods of several calls ask.
    """

    seeds: Sequence[int] = (0,)
    selection: Selection = field(default_factory=Selection)
    asking: Asking = "plain"
    ending: str | None = None
    traces: bool = True
    prompts: Prompts = field(default_factory=builtin)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is.

    Attributes:
        done: Answers that are there, those of earlier runs included.
        total: Answers that there will be.
        record: The one that was just added; None at the beginning.
        method: The method it is of.
        resumed: Answers that were there at the beginning.
        seconds: Since the beginning.
    """

    done: int
    total: int
    record: Record | None
    method: str
    resumed: int
    seconds: float


class Evaluation:
    """Asks one data set with several methods, into one folder.

    Args:
        pool: An open pool.
        data: The data set.
        methods: The methods; answers of each go to ``out/DATA/METHOD``.
        settings: The pool's settings with what the user gave.
        plan: How it is asked.
        out: The folder of all runs.
    """

    def __init__(
        self,
        pool: Pool,
        data: Data,
        methods: Sequence[Method],
        settings: RelaySettings,
        plan: Plan,
        out: Path,
    ) -> None:
        self._pool, self._data, self._methods = pool, data, methods
        self._settings, self._plan, self._out = settings, plan, out
        self._stream: Stream | None = None
        self._stopped = False

    def run(self, progress: Callable[[Progress], None] = lambda _: None) -> dict[str, Run]:
        """Ask what is not answered yet.

        Every answer is on the disk before the next is asked. The same again goes on where it stopped, and
        asks again what has failed. An item that cannot be asked is kept as failed and stops nothing.

        Returns:
            The runs by the methods' names.

        Raises:
            DataError: A run there was begun with something else, or cannot be written.
            CalibrationError: A method needs a calibration that a member lacks.
            Cancelled: `stop` was called.
        """
        wanted = self._plan.selection.of(self._data.ids(), self._data.name)  # before a folder is made
        with ExitStack() as stack:
            runs = {method.name: stack.enter_context(self._open(method)) for method in self._methods}
            total = len(wanted) * len(self._methods) * len(self._plan.seeds)
            resumed = sum(
                item in wanted and seed in self._plan.seeds
                for run in runs.values()
                for item, seed in run.records
            )
            began, done = time.monotonic(), resumed
            progress(Progress(done, total, None, "", resumed, 0.0))
            for item in self._data.items():
                for method, seed in self._missing(item, wanted, runs):
                    record = self._ask(item, method, seed, runs[method.name])
                    if self._stopped:
                        return runs
                    runs[method.name].add(record)
                    done += 1
                    seconds = time.monotonic() - began
                    progress(Progress(done, total, record, method.name, resumed, seconds))
            return runs

    def stop(self) -> None:
        """From any thread: end after what is written; the answer that is being written is dropped."""
        self._stopped = True
        if (stream := self._stream) is not None:
            stream.cancel()

    def _open(self, method: Method) -> Any:
        asked = {
            "asking": self._plan.asking,
            "ending": self._plan.ending,
            "prompts": self._plan.prompts.of(WORDS.get(method.strategy, ())),
        }
        settings = method.settings(self._settings)
        manifest = Manifest.of(self._pool, method, settings, self._data.name, self._data.identity(), asked)
        folder = self._out / safe(self._data.name) / safe(method.name)
        return Run.open(folder, manifest, self._plan.selection.part)

    def _missing(
        self, item: Item, wanted: frozenset[str], runs: Mapping[str, Run]
    ) -> Iterable[tuple[Method, int]]:
        if item.id not in wanted:
            return ()
        # One image and one question after the other: what members hold of a prompt is read once.
        return [
            (method, seed)
            for method in self._methods
            for seed in self._plan.seeds
            if (item.id, seed) not in runs[method.name].records
        ]

    def _ask(self, item: Item, method: Method, seed: int, run: Run) -> Record:
        if item.problem:
            return Record.failed(item, seed, item.problem)
        settings = replace(method.settings(self._settings), seed=_seed(seed, item.id))
        relay = Relay(
            self._pool,
            settings,
            strategy=method.strategy,
            leader=method.leader,
            prompts=self._plan.prompts,
        )
        try:
            prompt = self._prompt(item)
            self._refuse_tuned(item, prompt)
            with ExitStack() as stack:
                stream = self._stream = stack.enter_context(relay.stream(prompt))
                if self._stopped:  # between two answers, when there was no stream to cancel
                    stream.cancel()
                events: Iterable[Event] = stream
                if self._plan.traces:
                    path = run.trace((item.id, seed))
                    events = _traced(stream, stack.enter_context(self._writer(path, relay, prompt)), path)
                return Record.of(item, seed, collect(events, settings))
        except _ONE_ITEM as error:
            return Record.failed(item, seed, str(error))
        finally:
            self._stream = None

    def _prompt(self, item: Item) -> Prompt:
        said = ending(item) if self._plan.ending is None else self._plan.ending
        asked = question(item, self._plan.asking)
        return Prompt.of(asked, list(item.images), ending=said)

    def _refuse_tuned(self, item: Item, prompt: Prompt) -> None:
        tuning = self._pool.spec.tuning
        if tuning is not None and any(image.sha256 in tuning.images for image in prompt.images):
            raise DataError(
                f"{item.where} shows an image that the pool's settings were tuned on ({tuning.data})",
                "Evaluate on other data, or tune again with --apart-from",
            )

    def _writer(self, path: Path, relay: Relay, prompt: Prompt) -> TraceWriter:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            return TraceWriter(path, header(relay, prompt))
        except OSError as error:
            raise cannot_be_written(path, error) from None


def safe(name: str) -> str:
    """A name as a folder can have it."""
    return "".join(char if char.isalnum() or char in "-_.+" else "_" for char in name)


def _traced(events: Iterable[Event], writer: TraceWriter, path: Path) -> Iterator[Event]:
    for event in events:
        try:
            writer.write(event)
        except OSError as error:
            raise cannot_be_written(path, error) from None
        yield event


def _seed(seed: int, item: str) -> int:
    """Each item draws from a stream of its own, so that neither order nor resumption changes an answer."""
    digest = hashlib.sha256(f"{seed} {item}".encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:8], "big")
