"""The entry point by which lmms-eval finds a pool: ``--model macr_local --model_args pool=tiny``."""

from __future__ import annotations

from typing import Any


def manifest() -> Any:
    """What lmms-eval's registry wants to know (entry-point group ``lmms_eval.models``)."""
    from lmms_eval.models.registry_v2 import ModelManifest

    return ModelManifest(
        model_id="macr_local",
        chat_class_path="macr_local.integrations.lmms_eval_model.MacrLocal",
        aliases=("macr-local", "macr"),
    )
