"""What a calibration was made with, and what of it has changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from macr_local.prompt import Prompt
from macr_local.protocol import Fingerprint
from macr_local.settings import Sampling
from macr_local.specs import MemberSpec


@dataclass(frozen=True, slots=True)
class Origin:
    """What a calibration was made with.

    Attributes:
        member: The member's name.
        fingerprint: Its files and template.
        sampling: How its tokens were drawn.
        conditions: The member's other settings that move log-probabilities, as `conditions_of` gives them.
        max_tokens: At most this many tokens an answer.
        seed: Where the draws came from.
        reference: Name of the reference set.
        reference_sha256: Hash over its questions and images, in order.
        reference_questions: Questions of the set, those that could not be used included.
        questions: Questions that were answered.
        llama_cpp: The build that computed it.
        date: When it was finished (ISO 8601, UTC).
    """

    member: str
    fingerprint: Fingerprint
    sampling: Sampling
    conditions: Mapping[str, Any]
    max_tokens: int
    seed: int
    reference: str
    reference_sha256: str
    reference_questions: int
    questions: int
    llama_cpp: str
    date: str

    def changes(self, sampling: Sampling, conditions: Mapping[str, Any] | None = None) -> list[str]:
        """What is set otherwise now, in words; conditions that are None are not compared."""
        mine, theirs = asdict(sampling), asdict(self.sampling)
        if conditions is not None:
            mine, theirs = {**mine, **conditions}, {**theirs, **self.conditions}
        changed = {key: value for key, value in mine.items() if theirs.get(key) != value}
        other = ["another system prompt"] if changed.pop("system", self) is not self else []
        return other + [f"{key} {_shown(theirs.get(key))}, not {_shown(now)}" for key, now in changed.items()]


def conditions_of(spec: MemberSpec, prompt: Prompt | None = None) -> dict[str, Any]:
    """What else moves a member's log-probabilities: system prompt, thinking, KV cache, image sizes.

    Args:
        spec: The member's settings.
        prompt: Its system prompt and thinking, where given, stand above the member's own.
    """
    system = prompt.system if prompt is not None else None
    think = prompt.think if prompt is not None else None
    return {
        "system": system if system is not None else spec.system,
        "think": think if think is not None else spec.think,
        "kv_type": spec.kv_type,
        **asdict(spec.images),
    }


def _shown(value: object) -> str:
    if value is None:
        return "unset"
    # Not rounded: two values that differ must not look the same.
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value).lower()
