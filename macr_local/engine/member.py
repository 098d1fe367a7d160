"""One loaded model: the Member protocol over a llama.cpp context."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from macr_local.config import MemberSpec
from macr_local.engine.files import Header, check_model, check_projector, quantization
from macr_local.engine.hashes import model_sha256, sha256_of
from macr_local.engine.model import Model
from macr_local.engine.rollback import open_context
from macr_local.engine.sampler import Sampler
from macr_local.engine.template import ImageSlot, Part, TemplateText, UserText
from macr_local.engine.vision import Media, Projector
from macr_local.engine.worker import Worker
from macr_local.errors import Cancelled, ConfigError, EngineError
from macr_local.prompt import Prompt
from macr_local.protocol import Draw, Fingerprint, PromptSize, Token, Work
from macr_local.settings import Sampling

T = TypeVar("T")

Run = list[int] | Media
"""Tokens that are decoded together, or an image chunk."""


@dataclass(frozen=True, slots=True)
class MemberInfo:
    """What `pool show` and `doctor` say about a loaded member."""

    architecture: str
    parameters: int
    n_vocab: int
    n_ctx: int
    threads: int
    memory: str
    """plain, sliding window, recurrent or hybrid."""
    rollback: str
    """How a lost bid is undone: trim, fork or snapshot."""


class LlamaMember:
    """A model with its context, projector and worker thread.

    Every method may be called from any one thread at a time; what may take long is done on the member's own
    thread, where `submit` already is. A trunk, at most one branch, and tokens that wait: what was
    accepted or ingested is decoded when the next logits are asked for.

    Attributes:
        spec: The specification it was loaded from.
        info: What was found when it was loaded.
    """

    info: MemberInfo

    def __init__(self, spec: MemberSpec, header: Header | None = None) -> None:
        """Load a member's files.

        Args:
            spec: The member.
            header: The model's, where the member's files are checked already; None checks them.

        Raises:
            ModelFileError: A file is missing, damaged or not what the specification says.
            CapacityError: The context does not fit into memory.
            EngineError: No bid can be undone in this model's memory.
        """
        if header is None:
            header = check_model(spec)
            check_projector(spec, header)
        self.spec = spec
        self._header = header
        self._closed = False
        self._worker = Worker(spec.name)
        try:
            self._worker.run(self._load)
        except BaseException:
            self.close()
            raise

    def _load(self) -> None:
        self._model = Model(self.spec, self._header)
        self._projector = Projector(self._model) if self.spec.projector else None
        self._context, self._rollback = open_context(self._model)
        self._sampling = Sampling()
        self._sampler = Sampler(self._sampling, self._context.n_vocab)
        self._plan: tuple[Prompt, list[Run], PromptSize, bool] | None = None
        self._reset()
        self.info = MemberInfo(
            architecture=self._header.architecture,
            parameters=self._model.parameters,
            n_vocab=self._context.n_vocab,
            n_ctx=self._context.n_ctx,
            threads=self._model.threads,
            memory=self._model.memory_kind,
            rollback=self._rollback.kind,
        )

    def _reset(self, runs: list[Run] | None = None) -> None:
        """Forget the question before, but for whole runs that ``runs`` begins with too.

        What is kept was decoded in the same batches as it would be now, so no bit of an answer depends on
        what was asked before.
        """
        shared = self._shared(runs or [])
        if shared and self._rollback.go_back(*self._held[shared - 1][1:]):
            self._context.decoded = 0
        else:
            shared = 0
            self._context.clear()
        self._held: list[tuple[Run, int, int]] = self._held[:shared] if shared else []
        self._reused = self._context.cells
        self._pending: list[list[int]] = [[]]
        self._answer: list[int] = []
        self._row: NDArray[np.float32] | None = None
        self._trunk: tuple[NDArray[np.float32], int] | None = None
        self._images_encoded = 0

    def _shared(self, runs: list[Run]) -> int:
        """How many runs of the memory a prompt begins with; its last one is decoded in any case."""
        if not runs or not self._context.intact:
            return 0
        shared = 0
        for run, (held, _, _) in zip(runs[:-1], self._held, strict=False):
            if run is not held and (isinstance(run, Media) or run != held):
                break
            shared += 1
        return shared

    # What it is.

    @property
    def name(self) -> str:
        """The name users know it by."""
        return self.spec.name

    @property
    def n_ctx(self) -> int:
        """Cells of the context."""
        return self._context.n_ctx

    @property
    def room(self) -> int:
        """Cells that are left, waiting tokens already taken off."""
        return self._context.n_ctx - self._context.cells - sum(map(len, self._pending))

    @property
    def work(self) -> Work:
        """What was computed since `begin`."""
        return Work(self._context.decoded, self._images_encoded, self._reused)

    @property
    def opens_thought(self) -> bool:
        """Whether the prepared prompt ends inside an open thought."""
        return self._plan is not None and self._plan[3]

    @property
    def fingerprint(self) -> Fingerprint:
        """What a calibration of this member must agree with; hashes the files at the first call."""
        spec = self.spec
        return Fingerprint(
            model=model_sha256(self._header),
            projector=sha256_of(spec.projector) if spec.projector else None,
            quantization=quantization(self._header),
            template=self._model.template.sha256,
        )

    # The prompt.

    def prepare(self, prompt: Prompt) -> PromptSize:
        """Render, tokenise and measure the prompt; decode nothing.

        Raises:
            TemplateError: The chat template is broken or refuses.
            ConfigError: The prompt has images and the member has no projector.
            CapacityError: An image chunk needs more than one batch.
            ImageError: The model's preprocessor refuses an image.
        """
        return self._worker.run(lambda: self._prepare(prompt))

    def _prepare(self, prompt: Prompt) -> PromptSize:
        if self._plan is not None and self._plan[0] is prompt:
            return self._plan[2]
        if prompt.images and self._projector is None:
            raise ConfigError(
                f"{self.name} has no projector and cannot see the {len(prompt.images)} image(s)",
                "Leave it out with --members, or give its projector in models.toml",
            )
        system = prompt.system if prompt.system is not None else self.spec.system
        think = prompt.think if prompt.think is not None else self.spec.think
        rendered = self._model.template.render(prompt.text, len(prompt.images), system, think)
        runs, notes = self._lay_out(rendered.parts, prompt)
        size = PromptSize(
            text=sum(len(run) for run in runs if isinstance(run, list)),
            image=sum(run.cells for run in runs if isinstance(run, Media)),
            images=len(prompt.images),
            notes=notes,
        )
        self._plan = (prompt, runs, size, rendered.opens_thought)
        return size

    def _lay_out(self, parts: tuple[Part, ...], prompt: Prompt) -> tuple[list[Run], tuple[str, ...]]:
        """Parts of a rendered template as runs: neighbouring text is one, as in one tokenised prompt."""
        runs: list[Run] = []
        notes: list[str] = []
        text: list[TemplateText | UserText] = []

        def add(tokens: Collection[int]) -> None:
            if runs and isinstance(runs[-1], list):
                runs[-1].extend(tokens)
            elif tokens:
                runs.append(list(tokens))

        for part in parts:
            if not isinstance(part, ImageSlot):
                text.append(part)
                continue
            add(self._model.vocabulary.encode_prompt(text, start=not runs))
            text = []
            assert self._projector is not None
            layout, said = self._projector.layout(prompt.images[part.index])
            notes += (f"{self.name}: {note}" for note in said)
            for piece in layout:
                if isinstance(piece, Media):
                    self._projector.fits(piece, self._context)
                    runs.append(piece)
                else:
                    add(piece)
        add(self._model.vocabulary.encode_prompt(text, start=not runs))
        if not runs or isinstance(runs[-1], Media):
            raise EngineError(f"{self.name}: the chat template leaves no text to answer after")
        return runs, tuple(notes)

    def begin(self, prompt: Prompt, sampling: Sampling, cancelled: Callable[[], bool]) -> None:
        """Forget all but a beginning that the prompt shares, and prefill the rest; the logits are ready.

        Raises:
            Cancelled: ``cancelled()`` was true, or `interrupt` was called.
            EngineError: llama.cpp failed; also all that `prepare` raises.
        """
        self._worker.run(lambda: self._begin(prompt, sampling, cancelled))

    def _begin(self, prompt: Prompt, sampling: Sampling, cancelled: Callable[[], bool]) -> None:
        # An interrupt of an earlier question may still stand; one of this question shows in `cancelled`.
        self._context.resume()
        if cancelled():
            raise Cancelled("The question was cancelled before its prefill")
        self._prepare(prompt)
        assert self._plan is not None
        _, runs, size, _ = self._plan
        self._reset(runs)
        self._context.require(size.cells - self._reused)
        self._sampling = sampling
        encoded = set()
        for run in runs[len(self._held) :]:
            if isinstance(run, Media):
                assert self._projector is not None
                if self._projector.decode(run, self._context):
                    encoded.add(run.image)
            else:
                self._context.decode(run, logits=run is runs[-1])
            self._held.append((run, self._context.n_past, self._context.cells))
        self._images_encoded = len(encoded)
        self._row = self._context.logits()

    # The answer.

    def ingest(self, text: bytes) -> int:
        """Take in words that another member wrote (whole UTF-8 characters); returns their tokens here.

        They end a batch. A member that passed over a round reads two pieces at once later, and must then
        decode them as two batches all the same: the shape of a batch moves the last bits of its logits, and
        whether a bid was pruned must not.
        """
        tokens = self._model.vocabulary.encode(text)
        self._wait(tokens)
        self._pending.append([])
        return len(tokens)

    def propose(self, draw: Draw, forbid: Collection[bytes] = (), sampling: Sampling | None = None) -> Token:
        """Sample the next token from the raw logits; the cache does not change by it.

        Raises:
            ContextFull: What waits does not fit.
            Cancelled: `interrupt` was called.
            EngineError: The logits are not finite, or llama.cpp failed.
        """
        return self.run(lambda: self._propose(draw, forbid, sampling or self._sampling))

    def _propose(self, draw: Draw, forbid: Collection[bytes], sampling: Sampling) -> Token:
        vocabulary = self._model.vocabulary
        banned = [token for text in forbid if (token := vocabulary.find(text)) is not None]
        logits = self._logits()
        self._sampler.sampling = sampling
        try:
            token, logprob = self._sampler.sample(logits, draw, self._answer, banned)
        except EngineError as error:
            raise EngineError(f"{self.name}: {error.found}", error.fix) from None
        return Token(token, vocabulary.text_of(token), logprob, vocabulary.is_end(token))

    def accept(self, token: Token) -> None:
        """Take a proposed token as written; it is decoded when its successor is asked for."""
        self._wait([token.id])

    def _wait(self, tokens: list[int]) -> None:
        self._pending[-1] += tokens
        self._answer += tokens

    def _logits(self) -> NDArray[np.float32]:
        """The logits after all that was written: (n_vocab,), raw."""
        self._context.check_abort()
        if batches := [batch for batch in self._pending if batch]:
            self._context.require(sum(map(len, batches)))
            for batch in batches:
                self._context.decode(batch, logits=batch is batches[-1])
            self._pending = [[]]
            self._row = self._context.logits()
        if self._row is None:
            raise EngineError(f"{self.name}: a token was asked for before a prompt was given")
        return self._row

    # A bid.

    def branch(self, length: int) -> None:
        """Start a bid of at most ``length`` tokens; what waits is decoded first and belongs to the trunk."""
        self.run(self._branch)

    def _branch(self) -> None:
        # llama.cpp overwrites its row at the next decode, so the trunk's logits are kept aside.
        self._trunk = self._logits().copy(), len(self._answer)
        self._rollback.mark()

    def adopt(self) -> None:
        """Keep the bid: its words become part of the trunk."""
        self.run(self._adopt)

    def _adopt(self) -> None:
        self._rollback.keep()
        self._trunk = None

    def drop(self) -> None:
        """Leave no trace of the bid; the trunk's logits are ready again, bit for bit."""
        self.run(self._drop)

    def _drop(self) -> None:
        if self._trunk is None:
            raise EngineError(f"{self.name}: there is no bid to drop")
        self._rollback.drop()
        self._row, length = self._trunk
        self._trunk = None
        self._pending = [[]]
        del self._answer[length:]

    # The thread.

    def run(self, task: Callable[[], T]) -> T:
        """Run a task on the member's own thread and wait for it (at once, if already there).

        A member of one CPU thread has no team of threads to keep, and a single token stops within
        milliseconds when it is interrupted; so its tokens are computed on the caller's thread, which saves
        two changes of threads for each. Prefill and image encoding always run on the member's own.
        """
        if self.info.threads > 1:
            return self._worker.run(task)
        if self._closed:
            raise EngineError(f"{self.name} is closed", "Open the pool again")
        return task()

    def submit(self, task: Callable[[], T]) -> Future[T]:
        """Start a task on the member's own thread."""
        return self._worker.submit(task)

    def interrupt(self) -> None:
        """From any thread: make what is computing now stop with `Cancelled`; callers wait no longer."""
        self._context.interrupt()
        self._worker.interrupt()

    def close(self) -> None:
        """Free the model after what still runs; safe to call twice."""
        self._closed = True
        self._worker.stop(self._unload)

    def _unload(self) -> None:
        for part in ("_projector", "_context", "_model"):
            if (held := getattr(self, part, None)) is not None:
                held.close()
