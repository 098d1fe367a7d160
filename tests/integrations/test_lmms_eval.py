"""A pool inside the real lmms-eval; skipped where it is not installed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("lmms_eval.api.model", exc_type=ImportError)

from lmms_eval.models.registry_v2 import ModelRegistryV2
from PIL import Image

from macr_local.errors import ConfigError
from macr_local.integrations import lmms_eval
from macr_local.integrations.lmms_eval_model import MacrLocal


@pytest.fixture(scope="module")
def model() -> MacrLocal:
    made = MacrLocal(pool="tiny", strategy="macr", window="2")
    made.task_dict = {"scenes": {"test": {0: {}}}}
    return made


def asked(*messages: dict[str, Any], **kwargs: Any) -> Any:
    return SimpleNamespace(args=("text", lambda _doc: list(messages), kwargs, 0, "scenes", "test"))


def said(role: str, *content: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "content": list(content)}


def test_it_is_found_by_its_names() -> None:
    registry = ModelRegistryV2()
    registry.register_manifest(lmms_eval.manifest())
    for name in ("macr_local", "macr-local", "macr"):
        assert registry.resolve(name).class_path.endswith("lmms_eval_model.MacrLocal")


def test_it_answers_with_the_tokens_counted(model: MacrLocal, scene: Path) -> None:
    picture = {"type": "image", "url": Image.open(scene)}
    question = {"type": "text", "text": "how many triangles are there?"}
    (result,) = model.generate_until(
        [asked(said("user", picture, question), max_new_tokens=48, temperature=0)]
    )
    assert result.text
    assert result.token_counts.output_tokens > 0
    assert result.token_counts.input_tokens > 64  # the image's


def test_it_refuses_what_a_relay_cannot_be_asked(model: MacrLocal) -> None:
    words = {"type": "text", "text": "red?"}
    with pytest.raises(ConfigError, match="turns of an assistant"):
        model.generate_until([asked(said("user", words), said("assistant", words))])
    with pytest.raises(ConfigError, match="holds video"):
        model.generate_until([asked(said("user", {"type": "video", "url": "a.mp4"}, words))])
