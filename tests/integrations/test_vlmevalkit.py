"""A pool inside the real VLMEvalKit; skipped where it is not installed."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("vlmeval.vlm.base", exc_type=ImportError)

from vlmeval import config

from macr_local.errors import ConfigError
from macr_local.integrations import vlmevalkit


@pytest.fixture(scope="module")
def model() -> object:
    vlmevalkit.register("a-pool", pool="tiny", temperature=0)
    return config.supported_VLM["a-pool"]()


def test_it_answers_an_interleaved_message(model: vlmevalkit.MacrLocal, scene: Path) -> None:
    message = [
        {"type": "image", "value": str(scene)},
        {"type": "text", "value": "how many triangles are there?"},
    ]
    assert "Answer:" in model.generate(message, dataset="Scenes")


def test_it_refuses_video(model: vlmevalkit.MacrLocal) -> None:
    with pytest.raises(ConfigError, match="Videos holds video"):
        model.generate_inner([{"type": "video", "value": "a.mp4"}], dataset="Videos")
