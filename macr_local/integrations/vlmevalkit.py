"""A pool as a model of VLMEvalKit, which has no plug-ins: `register` puts it into its table of models.

``python -m macr_local.integrations.vlmevalkit --data MMStar --model macr-local`` registers the default pool
and then runs VLMEvalKit with the arguments that follow; the environment variables MACR_LOCAL_POOL and
MACR_LOCAL_STRATEGY choose another pool or method.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from vlmeval import config
from vlmeval.vlm.base import BaseModel

from macr_local.errors import ConfigError
from macr_local.integrations.asker import Asker, Part

NAME = "macr-local"


class MacrLocal(BaseModel):  # type: ignore[misc]
    """Answers with a pool.

    Args:
        pool: A pool's name or file.
        strategy: A method as ``macr-local eval`` names it.
        settings: Settings of the relay and of sampling.
    """

    INTERLEAVE = True

    def __init__(self, pool: str | None = None, strategy: str = "macr", **settings: Any) -> None:
        super().__init__()
        self._asker = Asker(pool, strategy, **settings)

    def build_prompt(self, line: Any, dataset: str | None = None) -> Any:
        """Not used: the harness's own prompt is asked.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError

    def generate_inner(self, message: list[dict[str, str]], dataset: str | None = None) -> str:
        """Answer one message: texts and paths of images, in order.

        Raises:
            ConfigError: It holds video.
            MacrError: It cannot be answered.
        """
        kinds = {part["type"] for part in message}
        if others := sorted(kinds - {"text", "image"}):
            raise ConfigError(
                f"{dataset} holds {', '.join(others)}", "Choose data with texts and images only"
            )
        parts = [Part("image" if part["type"] == "image" else "text", part["value"]) for part in message]
        return self._asker.ask(parts).text


def register(name: str = NAME, **arguments: Any) -> None:
    """Let VLMEvalKit find a pool as ``--model NAME``; the arguments are `MacrLocal`'s."""
    config.supported_VLM[name] = partial(MacrLocal, **arguments)


def main() -> None:
    """Register the default pool, and run VLMEvalKit."""
    from vlmeval.run import main as run

    register(pool=os.environ.get("MACR_LOCAL_POOL"), strategy=os.environ.get("MACR_LOCAL_STRATEGY", "macr"))
    run()


if __name__ == "__main__":
    main()
