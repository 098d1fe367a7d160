"""A models.toml, parsed and validated, before its files are looked for."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar, get_type_hints

from macr_local.errors import ConfigError, NotDownloaded
from macr_local.hub import cache
from macr_local.settings import RelaySettings, Sampling
from macr_local.specs import ImageLimits, MemberSpec, PoolSpec
from macr_local.tables import Source, fields, nearest, table
from macr_local.tuning import Tuning

_PART = re.compile(r"-\d{5}-of-\d{5}\.gguf$")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_SAMPLING = get_type_hints(Sampling)
_SETTINGS = {key: kind for key, kind in get_type_hints(RelaySettings).items() if key != "sampling"}
_IMAGES = get_type_hints(ImageLimits)
_MODEL = {
    **{key: kind for key, kind in get_type_hints(MemberSpec).items() if key != "name"},
    "model": str,
    "projector": str,
    "images": dict,
    "repo": str,
    "revision": str,
}
_POOL = {
    "description": str,
    "members": tuple[str, ...],
    "calibration": str,
    "settings": dict,
    "sampling": dict,
}


@dataclass(frozen=True, slots=True)
class MemberEntry:
    """One member as a file names it.

    Attributes:
        spec: The specification; with ``repo``, its paths are still names or patterns in the repository.
        repo: The hub repository that holds the files; None for local files.
        revision: Its branch, tag or commit; None is the newest that was downloaded.
    """

    spec: MemberSpec
    repo: str | None = None
    revision: str | None = None

    @property
    def name(self) -> str:
        """The member's name."""
        return self.spec.name

    @property
    def files(self) -> tuple[str, ...]:
        """The model's file and the projector's, as the pool file names them."""
        return tuple(str(path) for path in (self.spec.model, self.spec.projector) if path is not None)

    def locate(self) -> tuple[MemberSpec, tuple[str, ...]]:
        """Look for the files.

        Returns:
            The specification with every path that was found made absolute and the sha256 that the hub
            publishes for it, and the names of those that are missing (none for local files, which nobody can
            download for the user).
        """
        if self.repo is None:
            return self.spec, ()
        found = {name: cache.find(self.repo, name, self.revision) for name in self.files}
        model, projector = found[str(self.spec.model)], found.get(str(self.spec.projector))
        spec = replace(
            self.spec,
            model=model or self.spec.model,
            projector=self.spec.projector and (projector or self.spec.projector),
            model_sha256=self.spec.model_sha256 or _published(model),
            projector_sha256=self.spec.projector_sha256 or _published(projector),
        )
        return spec, tuple(name for name, path in found.items() if path is None)

    def is_present(self) -> bool:
        """Whether every file of it is on this machine."""
        spec, missing = self.locate()
        files = (spec.model, spec.projector)
        return not missing and all(path.is_file() for path in files if path is not None)


def _published(path: Path | None) -> str | None:
    """What a downloaded file must be; None for a part of a split model, whose sha256 is made of all parts."""
    return None if path is None or _PART.search(path.name) else cache.published_sha256(path)


class Named(Protocol):
    """Anything with a member's name."""

    @property
    def name(self) -> str:
        """Unique in a pool."""
        ...


M = TypeVar("M", bound=Named)


def chosen(pool: str, members: Sequence[M], names: Sequence[str]) -> tuple[M, ...]:
    """The members of a pool that were named, in that order.

    Raises:
        ConfigError: A name is unknown or comes twice, or none is given.
    """
    by_name = {member.name: member for member in members}
    for name in names:
        if name not in by_name:
            raise ConfigError(f'Pool "{pool}" has no member "{name}"', nearest(name, by_name))
    if not names or len(set(names)) < len(names):
        raise ConfigError(
            f'Members {", ".join(names) or "(none)"} of pool "{pool}"',
            "Name each member once, and at least one",
        )
    return tuple(by_name[name] for name in names)


@dataclass(frozen=True, slots=True)
class PoolEntry:
    """A pool as a file describes it; its models' files may be absent."""

    name: str
    members: tuple[MemberEntry, ...]
    settings: RelaySettings
    description: str
    calibration: Path
    source: Path

    def select(self, names: Sequence[str] | None) -> PoolEntry:
        """The same pool with only these members, in this order; None keeps all.

        Raises:
            ConfigError: A name is unknown or comes twice, or none is given.
        """
        return self if names is None else replace(self, members=chosen(self.name, self.members, names))

    def resolve(self) -> PoolSpec:
        """The pool with the paths of its models' files.

        Raises:
            NotDownloaded: Files from the hub are not on this machine; the fix has the command for them.
        """
        located = [entry.locate() for entry in self.members]
        absent = [spec.name for spec, missing in located if missing]
        if absent:
            raise NotDownloaded(
                f'Pool "{self.name}" needs files that are not on this machine (for {", ".join(absent)})',
                f"Download them: {self.download_command()}\n"
                "or ask three tiny models that come along: --pool tiny",
            )
        tuning = self.tuning()
        return PoolSpec(
            self.name,
            tuple(spec for spec, _ in located),
            self.settings if tuning is None else tuning.applied(self.settings),
            self.description,
            self.calibration,
            self.source,
            tuning,
        )

    def download_command(self) -> str:
        """The command that brings what is missing."""
        from macr_local.config import option_for  # which looks for pools, and so reads files like this one

        return f"macr-local download {option_for(self)}"

    def tuning(self) -> Tuning | None:
        """What was chosen for these members by measurement, as long as their calibrations are the same.

        Raises:
            CalibrationError: It is damaged.
        """
        found = Tuning.load(self.calibration)
        names = [member.name for member in self.members]
        return found if found is not None and found.holds(self.calibration, names) else None


def read(path: Path) -> dict[str, PoolEntry]:
    """Read a pool file: its pools by name, in the file's order.

    Raises:
        ConfigError: The file cannot be read, is not TOML, or says something that is not understood.
    """
    path = path.absolute()
    source, values = Source.read(path)
    fields(source, values, (), {"pools": dict, "models": dict})
    models = table(source, values, ("models",))
    pools = table(source, values, ("pools",))
    if not pools:
        raise ConfigError(f"{path} defines no pool", 'Add [pools.NAME] with members = ["..."]')
    entries = {name: _member(source, name, table(source, models, ("models", name))) for name in models}
    return {name: _pool(source, name, table(source, pools, ("pools", name)), entries) for name in pools}


def _pool(source: Source, name: str, values: dict[str, Any], models: dict[str, MemberEntry]) -> PoolEntry:
    keys = ("pools", name)
    known = fields(source, values, keys, _POOL)
    names = known.get("members", ())
    at = (*keys, "members")
    if not names:
        source.fail(
            at, f'pool "{name}" has no members', 'Add members = ["..."], names of [models.NAME] tables'
        )
    for member in names:
        if member not in models:
            source.fail(
                at,
                f'pool "{name}" names "{member}", which no [models] table defines',
                nearest(member, models),
            )
        if names.count(member) > 1:
            source.fail(
                at, f'member "{member}" comes {names.count(member)} times in pool "{name}"', "Name it once"
            )
    settings = _settings(source, keys, known)
    if settings.initiation != "best" and settings.initiation not in names:
        source.fail(
            (*keys, "settings", "initiation"),
            f'initiation of pool "{name}" is "{settings.initiation}"',
            f'Use "best" or a member: {", ".join(names)}',
        )
    return PoolEntry(
        name,
        tuple(models[member] for member in names),
        settings,
        known.get("description", ""),
        _calibration(source, keys, known.get("calibration")),
        source.path,
    )


def _settings(source: Source, keys: tuple[str, ...], known: dict[str, Any]) -> RelaySettings:
    settings = known.get("settings", {})
    for key in settings:
        if key in _SAMPLING:
            source.fail(
                (*keys, "settings"),
                f'"{key}" stands in settings',
                f"Move it to sampling = {{ {key} = ... }} of the same pool",
            )
    sampling = _build(source, (*keys, "sampling"), Sampling, known.get("sampling", {}), _SAMPLING)
    built: RelaySettings = _build(
        source, (*keys, "settings"), RelaySettings, settings, _SETTINGS, sampling=sampling
    )
    return built


def _calibration(source: Source, keys: tuple[str, ...], text: str | None) -> Path:
    if text is not None:
        return _path(source, (*keys, "calibration"), text)
    # Made on the user's machine, and so kept with the user's data: the package's folder may be read-only.
    from platformdirs import user_data_path

    return user_data_path("macr-local", appauthor=False) / "calibration" / keys[-1]


def _member(source: Source, name: str, values: dict[str, Any]) -> MemberEntry:
    keys = ("models", name)
    known = fields(source, values, keys, _MODEL)
    repo, revision = known.pop("repo", None), known.pop("revision", None)
    if "model" not in known:
        source.fail(keys, f"[models.{name}] names no model", 'Add model = "....gguf"')
    if revision is not None and repo is None:
        source.fail(
            (*keys, "revision"), f"[models.{name}] has a revision and no repo", 'Add repo = "owner/name"'
        )
    if repo is not None and not re.fullmatch(r"[\w.-]+/[\w.-]+", repo):
        source.fail(
            (*keys, "repo"), f'repo of [models.{name}] is "{repo}"', 'Use "owner/name" as the hub writes it'
        )
    for key in ("model", "projector"):
        if key in known:
            known[key] = _path(source, (*keys, key), known[key]) if repo is None else Path(known[key])
    known["images"] = _build(source, (*keys, "images"), ImageLimits, known.get("images", {}), _IMAGES)
    try:
        return MemberEntry(MemberSpec(name, **known), repo, revision)
    except ConfigError as error:
        source.fail((*keys, error.found.split()[0]), f"[models.{name}]: {error.found}", error.fix)


def _build(
    source: Source,
    keys: tuple[str, ...],
    make: Any,
    values: dict[str, Any],
    types: dict[str, Any],
    **more: Any,
) -> Any:
    known = fields(source, values, keys, types)
    try:
        return make(**known, **more)
    except ConfigError as error:
        source.fail((*keys, error.found.split()[0]), f"{'.'.join(keys)}: {error.found}", error.fix)


def _path(source: Source, keys: tuple[str, ...], text: str) -> Path:
    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name not in os.environ:
            source.fail(keys, f'"{text}" uses ${name}, which is not set', f"Set {name} in the environment")
        return os.environ[name]

    path = Path(_VARIABLE.sub(value, text))
    try:
        path = path.expanduser()
    except RuntimeError:
        source.fail(keys, f'the home folder of "{text}" is not known', "Write the whole path")
    return Path(os.path.normpath(source.path.parent / path))
