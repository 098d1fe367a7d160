"""A member alone writes what llama-cpp-python's own MTMDChatHandler writes with the same files.

Both must do the same arithmetic, or a near tie between two words falls otherwise: flash attention is on, as
llama.cpp chooses by itself for this package.
"""

from __future__ import annotations

import base64
from contextlib import closing
from typing import Any

import pytest
from llama_cpp import Llama
from llama_cpp.llama_chat_format import MTMDChatHandler

from macr_local import Pool, Prompt, Relay
from macr_local.config import MemberSpec
from tests.oracles.questions import Asked, easy_vqa


def stock_answers(spec: MemberSpec, asked: list[Asked], max_tokens: int) -> list[str]:
    """What the stock handler says, greedily. Without `close` it would raise at the interpreter's exit."""
    handler = MTMDChatHandler(clip_model_path=str(spec.projector), verbose=False, use_gpu=False)
    model = Llama(
        str(spec.model),
        chat_handler=handler,
        n_ctx=spec.n_ctx,
        n_threads=spec.threads,
        n_threads_batch=spec.threads,
        flash_attn=True,
        verbose=False,
    )
    with closing(model):
        return [_stock_answer(model, one, max_tokens) for one in asked]


def _stock_answer(model: Any, asked: Asked, max_tokens: int) -> str:
    url = "data:image/png;base64," + base64.b64encode(asked.picture.read_bytes()).decode()
    content = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": asked.text}]
    reply = model.create_chat_completion(
        messages=[{"role": "user", "content": content}],
        temperature=0.0,
        repeat_penalty=1.0,
        max_tokens=max_tokens,
    )
    return str(reply["choices"][0]["message"]["content"])


@pytest.mark.parametrize("name", ["tiny-qwen3vl", "tiny-internvl", "tiny-minicpmv"])
def test_fifty_images_alone_and_greedy(name: str) -> None:
    asked = easy_vqa(50)
    assert len({one.picture for one in asked}) == 50
    with Pool.open("tiny", members=[name]) as pool:
        relay = Relay(pool, strategy="single")
        ours = [relay.ask(Prompt.of(one.text, one.picture)) for one in asked]
        assert {answer.finish_reason for answer in ours} == {"end"}
        expected = stock_answers(pool.spec.members[0], asked, relay.settings.max_tokens)
    assert [answer.text for answer in ours] == expected
    assert len(set(expected)) > 5, "equal answers to all would prove little"
