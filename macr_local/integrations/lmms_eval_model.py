"""A pool as a model of lmms-eval."""

from __future__ import annotations

from typing import Any

from lmms_eval.api.instance import GenerationResult, TokenCounts
from lmms_eval.api.model import lmms
from lmms_eval.protocol import ChatMessages

from macr_local.errors import ConfigError
from macr_local.integrations.asker import Asker, Part


class MacrLocal(lmms):  # type: ignore[misc]
    """Answers ``generate_until`` requests with a pool, one at a time.

    Args:
        pool: A pool's name or file.
        strategy: A method as ``macr-local eval`` names it.
        batch_size: 1; a pool answers one question at a time.
        device: Not used: models.toml says where each member lies.
        settings: Settings of the relay and of sampling; those of a task's ``generation_kwargs`` come first.
    """

    is_simple = False

    def __init__(
        self,
        pool: str | None = None,
        strategy: str = "macr",
        batch_size: int | str = 1,
        device: str | None = None,
        **settings: Any,
    ) -> None:
        super().__init__()
        if str(batch_size) != "1":
            raise ConfigError(f"batch_size is {batch_size}", "Use 1: a pool answers one question at a time")
        self._asker = Asker(pool, strategy, **settings)

    def generate_until(self, requests: list[Any]) -> list[Any]:
        """Answer each request; an answer that fails raises, as a wrong one would be counted."""
        return [self._generate(request) for request in requests]

    def generate_until_multi_round(self, requests: list[Any]) -> list[Any]:
        """Not offered.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError("macr-local answers one question at a time, not several rounds")

    def loglikelihood(self, requests: list[Any]) -> list[Any]:
        """Not offered.

        Raises:
            NotImplementedError: Always: a relay's answer has several authors, and no one probability.
        """
        raise NotImplementedError("macr-local writes answers; it does not rate given ones")

    def _generate(self, request: Any) -> Any:
        # Newer versions put the context's text before the five values that older ones give.
        to_messages, kwargs, doc_id, task, split = request.args[-5:]
        messages = ChatMessages(messages=to_messages(self.task_dict[task][split][doc_id])).messages
        if any(message.role == "assistant" for message in messages):
            raise ConfigError(f"{task} {doc_id} holds turns of an assistant", "Choose tasks of one question")
        asked = [part for message in messages if message.role == "user" for part in message.content]
        if others := sorted({part.type for part in asked} - {"text", "image"}):
            raise ConfigError(
                f"{task} {doc_id} holds {', '.join(others)}", "Choose tasks with texts and images only"
            )
        told = [part.text for message in messages if message.role == "system" for part in message.content]
        parts = [
            Part("image", part.url) if part.type == "image" else Part("text", part.text) for part in asked
        ]
        answer = self._asker.ask(parts, kwargs, system="\n".join(told) or None)
        total = answer.total
        counts = TokenCounts(
            input_tokens=total.prompt_text + total.prompt_image,
            output_tokens=total.written,
        )
        return GenerationResult(answer.text, counts)
