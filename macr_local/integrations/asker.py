"""What the harnesses' model classes share: a pool, and how their words for settings become ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from itertools import count
from typing import Any, Literal, NamedTuple

from macr_local.config import load_pool
from macr_local.errors import ConfigError
from macr_local.evaluation.method import Method, methods
from macr_local.images import ImageSource
from macr_local.pool import Pool
from macr_local.prompt import Prompt
from macr_local.relay.answer import Answer
from macr_local.session import Relay
from macr_local.settings import RelaySettings, Sampling

_SAMPLING = tuple(field.name for field in fields(Sampling))
_RELAY = tuple(field.name for field in fields(RelaySettings) if field.name not in ("sampling", "stop"))


class Part(NamedTuple):
    """A piece of a message as harnesses write them."""

    kind: Literal["text", "image"]
    value: ImageSource
    """The text, or an image in any form that `macr_local.images.load` takes."""


def laid_out(parts: Sequence[Part]) -> tuple[str, list[ImageSource]]:
    """A message's text and its images.

    Members see images before the question. Where a message has one behind a text, as MMMU's do, ``<image N>``
    stands at the place of each, so that it is still known which one is meant.
    """
    images = [part.value for part in parts if part.kind == "image"]
    if all(part.kind == "image" for part in parts[: len(images)]):
        return "\n".join(str(part.value) for part in parts[len(images) :]), images
    numbers = count(1)
    pieces = (str(p.value) if p.kind == "text" else f"<image {next(numbers)}>" for p in parts)
    return "\n".join(pieces), images


class Asker:
    """A pool that is opened once and asked by one method.

    Args:
        pool: A pool's name or file, as everywhere.
        strategy: A method as `macr-local eval` names it: "macr", "single:MEMBER", "vote".
        settings: Settings of the relay and of sampling, by name; harnesses pass text, which is read.

    Raises:
        ConfigError: No such pool, method or setting.
    """

    def __init__(self, pool: str | None = None, strategy: str = "macr", **settings: Any) -> None:
        spec = load_pool(pool)
        found = methods([strategy], [member.name for member in spec.members])
        if len(found) > 1:
            raise ConfigError(
                f'"{strategy}" names {len(found)} methods', f"Say which one, such as {found[0].name}"
            )
        (self._method,) = found
        self._settings = self._method.settings(_with(spec.settings, settings))
        self._pool = Pool.open(spec)

    @property
    def method(self) -> Method:
        """The method."""
        return self._method

    def ask(
        self, parts: Sequence[Part], given: Mapping[str, Any] | None = None, system: str | None = None
    ) -> Answer:
        """Ask one question.

        Args:
            parts: Its texts and images, in order.
            given: Settings of this question alone, in a harness's words: max_new_tokens, temperature, top_p,
                top_k, do_sample, until, seed. Others are passed over.
            system: A system prompt instead of the members' own.

        Raises:
            MacrError: It cannot be answered.
        """
        settings = _as_harness_says(self._settings, given or {})
        relay = Relay(self._pool, settings, strategy=self._method.strategy, leader=self._method.leader)
        text, images = laid_out(parts)
        return relay.ask(Prompt.of(text, images, system=system))

    def close(self) -> None:
        """Free the models."""
        self._pool.close()


def _with(settings: RelaySettings, given: Mapping[str, Any]) -> RelaySettings:
    unknown = sorted(set(given) - set(_RELAY) - set(_SAMPLING))
    if unknown:
        raise ConfigError(f'There is no setting "{unknown[0]}"', f"Use {', '.join((*_RELAY, *_SAMPLING))}")
    read = {name: _read(value) for name, value in given.items()}
    sampling = replace(settings.sampling, **{name: read[name] for name in read if name in _SAMPLING})
    return replace(settings, sampling=sampling, **{name: read[name] for name in read if name in _RELAY})


def _as_harness_says(settings: RelaySettings, given: Mapping[str, Any]) -> RelaySettings:
    sampling: dict[str, Any] = {
        name: given[name] for name in ("temperature", "top_p", "top_k") if given.get(name) is not None
    }
    if given.get("do_sample") is False:
        sampling["temperature"] = 0.0
    changed: dict[str, Any] = {"sampling": replace(settings.sampling, **sampling)}
    if given.get("max_new_tokens"):
        changed["max_tokens"] = int(given["max_new_tokens"])
    if given.get("seed") is not None:
        changed["seed"] = int(given["seed"])
    until = given.get("until") or ()
    stops = (until,) if isinstance(until, str) else tuple(until)
    changed["stop"] = tuple(dict.fromkeys((*settings.stop, *filter(None, stops))))
    return replace(settings, **changed)


def _read(value: Any) -> Any:
    """Harnesses pass settings as text."""
    if not isinstance(value, str):
        return value
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return None if value.lower() == "none" else value
