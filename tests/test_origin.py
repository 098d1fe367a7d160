"""What has changed since a calibration is said so that it can be told apart."""

from __future__ import annotations

import pytest

from macr_local.origin import Origin
from macr_local.protocol import Fingerprint
from macr_local.settings import Sampling


@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        (1, 0.9999999999999999, "top_p 1, not 0.9999999999999999"),
        (0.8, 0.8000000000000002, "top_p 0.8, not 0.8000000000000002"),
        (1e-17, 1.0, "top_p 1e-17, not 1"),
    ],
)
def test_two_values_look_different_however_close_they_are(then: float, now: float, said: str) -> None:
    origin = Origin(
        member="m", fingerprint=Fingerprint("a", None, "Q8_0", "c"), sampling=Sampling(top_p=then),
        conditions={}, max_tokens=96, seed=0, reference="set", reference_sha256="d", reference_questions=3,
        questions=2, llama_cpp="", date="",
    )  # fmt: skip
    assert origin.changes(Sampling(top_p=now)) == [said]
    assert origin.changes(Sampling(top_p=then)) == []
