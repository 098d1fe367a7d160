"""From logits to the next token and its log-probability."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from macr_local.errors import EngineError
from macr_local.protocol import Draw
from macr_local.settings import Sampling

_FIRST = 256
"""Candidates that are sorted to begin with; the draw nearly always falls among them."""
_BLOCK = 32_768
"""Logits that are looked at together: 128 KiB."""
_PLAIN = 32.0
"""Logits up to this size are exponentiated as they are: no sum of theirs leaves float32."""
_COLDEST = np.finfo(np.float32).tiny
_HIGHEST = float(np.finfo(np.float32).max)


class Sampler:
    """Chooses tokens by llama.cpp's filters in llama.cpp's order, and says how sure the model was.

    The log-probability it reports is the model's own: over the full vocabulary, at temperature 1, before any
    filter (Eq. 1). Not thread-safe: the buffers are reused.

    Attributes:
        sampling: The settings in use; may be set at any time.
    """

    def __init__(self, sampling: Sampling, n_vocab: int) -> None:
        self.sampling = sampling
        self._n_vocab = n_vocab
        self._block = np.empty(min(_BLOCK, n_vocab), np.float32)
        self._weights = np.empty(n_vocab, np.float32)
        self._scores = np.empty(n_vocab, np.float32)

    def sample(
        self,
        logits: NDArray[np.float32],
        draw: Draw,
        recent: Sequence[int] = (),
        forbid: Collection[int] = (),
    ) -> tuple[int, float]:
        """Choose the next token.

        Args:
            logits: Shape (n_vocab,), as the model gives them; they are not changed.
            draw: Called once where the temperature is above 0, else never.
            recent: The latest tokens, oldest first, for the repeat penalty.
            forbid: Tokens that must not be chosen.

        Returns:
            The token and its natural-log probability, at most 0.

        Raises:
            EngineError: The logits are not finite, or every token is forbidden.
        """
        if logits.shape != (self._n_vocab,):
            raise EngineError(f"{logits.shape} logits for a vocabulary of {self._n_vocab:,}")
        likeliest, logprob_of_top = self._survey(logits)
        scores = self._penalised(logits, recent, forbid)
        if self.sampling.temperature > 0:
            token = self._choose(scores, draw)
        else:
            token = likeliest if scores is logits else int(scores.argmax())
        return token, min(0.0, float(logits[token]) - float(logits[likeliest]) + logprob_of_top)

    def _survey(self, logits: NDArray[np.float32]) -> tuple[int, float]:
        """The likeliest token and its log-probability, in one pass.

        It goes block by block, each small enough to stay in the cache while it is read, scaled and summed:
        over the whole vocabulary at once, memory would be the slowest part of a token.

        Raises:
            EngineError: A logit is not finite.
        """
        blocks = []
        with np.errstate(over="ignore", under="ignore"):
            for start in range(0, self._n_vocab, _BLOCK):
                part = logits[start : start + _BLOCK]
                place = int(part.argmax())  # of a NaN, if there is one
                top = float(part[place])
                if not (math.isfinite(top) and part.min() > -np.inf):
                    raise EngineError(
                        "the model computed logits that are not finite",
                        "The file may be damaged: check its sha256, or download it again",
                    )
                out = self._block[: len(part)]
                shift = top if abs(top) > _PLAIN else 0.0
                weights = np.exp(np.subtract(part, shift, out=out) if shift else part, out=out)
                blocks.append((top, start + place, shift, float(weights.sum())))
        highest, likeliest, *_ = max(blocks, key=lambda block: (block[0], -block[1]))
        total = math.fsum(weight * math.exp(shift - highest) for _, _, shift, weight in blocks)
        return likeliest, -math.log(total)

    def _weigh(self, scores: NDArray[np.float32], top: float, temperature: float = 1) -> NDArray[np.float32]:
        """Probabilities up to a common factor, into the one buffer there is for them."""
        # The lowest logits a model may give (-FLT_MAX) leave float32 here, to the probability 0 they mean.
        with np.errstate(over="ignore", under="ignore"):
            np.subtract(scores, top, out=self._weights)
            if temperature != 1:
                np.divide(self._weights, max(np.float32(temperature), _COLDEST), out=self._weights)
            return np.exp(self._weights, out=self._weights)

    def _penalised(
        self, logits: NDArray[np.float32], recent: Sequence[int], forbid: Collection[int]
    ) -> NDArray[np.float32]:
        """The logits, or a copy in which what was written lately counts less and the forbidden nothing."""
        penalty, last = self.sampling.repeat_penalty, self.sampling.repeat_last_n
        lately = np.unique(np.asarray(recent[-last:] if last and penalty != 1 else (), np.intp))
        if not len(lately) and not forbid:
            return logits
        scores = self._scores
        np.copyto(scores, logits)
        if len(lately):
            # float64 holds every quotient and product; what float32 cannot hold stays its largest or lowest.
            old, by = scores[lately].astype(np.float64), float(np.float32(penalty))
            scores[lately] = np.clip(np.where(old > 0, old / by, old * by), -_HIGHEST, _HIGHEST)
        if forbid:
            scores[np.fromiter(forbid, np.intp)] = -np.inf
            if scores.max() == -np.inf:
                raise EngineError("every token is forbidden")
        return scores

    def _choose(self, scores: NDArray[np.float32], draw: Draw) -> int:
        order = _Descending(scores)
        top = scores.max()
        kept = self._kept(order, top)
        weights = self._weigh(scores, top, self.sampling.temperature)
        whole = kept == len(scores)
        size = min(_FIRST, kept)
        mass = float((weights if whole else weights[order.first(kept)]).sum(dtype=np.float64))
        # One number picks a place on the candidates' probabilities, laid end to end from the likeliest on.
        place = draw() * mass
        while True:
            candidates = order.first(size)
            reach = np.cumsum(weights[candidates], dtype=np.float64)
            if place < reach[-1] or size == kept:
                # Rounding may put the place past the end; then the last candidate that has any weight is it.
                found = np.searchsorted(reach, min(place, np.nextafter(reach[-1], 0)), side="right")
                return int(candidates[found])
            size = min(size * 8, kept)

    def _kept(self, order: _Descending, top: float) -> int:
        """How many of the likeliest tokens top-k, top-p and min-p leave; at least one."""
        sampling, kept = self.sampling, len(order.scores)
        if sampling.top_k:
            kept = min(kept, sampling.top_k)
        if sampling.top_p < 1:
            weights = self._weigh(order.scores, top)
            whole = kept == len(order.scores)
            mass = float((weights if whole else weights[order.first(kept)]).sum(dtype=np.float64))
            size = min(_FIRST, kept)
            while True:
                reach = np.cumsum(weights[order.first(size)], dtype=np.float64)
                if reach[-1] >= sampling.top_p * mass or size == kept:
                    break
                size = min(size * 8, kept)
            kept = min(kept, int(np.searchsorted(reach, sampling.top_p * mass)) + 1)
        if sampling.min_p > 0:
            least = np.float32(top) + np.float32(math.log(sampling.min_p))
            kept = max(1, min(kept, int(np.count_nonzero(order.scores >= least))))
        return kept


class _Descending:
    """Tokens from the highest score down, equal scores by id, sorted no further than asked for."""

    def __init__(self, scores: NDArray[np.float32]) -> None:
        self.scores = scores
        self._sorted = np.empty(0, np.intp)

    def first(self, count: int) -> NDArray[np.intp]:
        """The ``count`` first."""
        if count > len(self._sorted):
            self._sorted = self._sort(count)
        return self._sorted[:count]

    def _sort(self, count: int) -> NDArray[np.intp]:
        scores = self.scores
        if count == len(scores):
            return np.argsort(-scores, kind="stable")
        least = np.partition(scores, len(scores) - count)[len(scores) - count]
        above = np.flatnonzero(scores > least)
        # Of the tokens that tie for the last places, those with the lowest ids are in.
        ids = np.concatenate((above, np.flatnonzero(scores == least)[: count - len(above)]))
        return ids[np.argsort(-scores[ids], kind="stable")]
