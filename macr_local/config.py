"""models.toml, read into frozen and validated specifications, and where it is looked for.

A pool is found by name in the first of these files that defines it: ``$MACR_LOCAL_MODELS``, ``models.toml``
in the current folder, ``macr-local/models.toml`` in the user's configuration folder, the one that comes with
the package, and the embedded pool. Or a file is given, as ``file.toml`` or ``file.toml#pool``.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from macr_local.errors import ConfigError
from macr_local.poolfile import MemberEntry, PoolEntry, read
from macr_local.specs import ImageLimits, KvType, MemberSpec, PoolSpec
from macr_local.tables import nearest

__all__ = [
    "ImageLimits", "KvType", "MemberEntry", "MemberSpec", "PoolEntry", "PoolSpec",
    "default_pool", "find_pool", "list_pools", "load_pool", "option_for", "pool_files",
]  # fmt: skip

_PACKAGE = Path(__file__).parent


def default_pool() -> str:
    """The pool that is taken where none is named: ``$MACR_LOCAL_POOL``, or else "default"."""
    return os.environ.get("MACR_LOCAL_POOL") or "default"


def pool_files() -> tuple[Path, ...]:
    """The pool files that exist, in the order in which a pool's name is looked for.

    Raises:
        ConfigError: ``$MACR_LOCAL_MODELS`` names no file.
    """
    from platformdirs import user_config_path

    files = [
        Path("models.toml").absolute(),
        user_config_path("macr-local", appauthor=False) / "models.toml",
        _PACKAGE / "models.toml",
        _PACKAGE / "tiny" / "models.toml",
    ]
    named = os.environ.get("MACR_LOCAL_MODELS")
    if named:
        path = Path(named).expanduser().absolute()
        if not path.is_file():
            raise ConfigError(
                f"MACR_LOCAL_MODELS is {named}, which is no file",
                "Set it to the path of a models.toml, or unset it",
            )
        files.insert(0, path)
    return tuple(dict.fromkeys(path for path in files if path.is_file()))


def find_pool(pool: str | Path | None = None) -> PoolEntry:
    """Find a pool and check what its file says; its models' files are not looked for.

    Args:
        pool: A pool's name, a path to a TOML file, or ``file.toml#name``; None is `default_pool`.

    Raises:
        ConfigError: No such pool or file, or a file that cannot be understood.
    """
    text = os.fspath(pool) if pool is not None else default_pool()
    head, _, name = text.rpartition("#")
    if head.endswith(".toml"):
        return _pool_of(Path(head).expanduser(), name)
    if isinstance(pool, Path) or text.endswith(".toml"):
        return _pool_of(Path(text).expanduser(), None)
    known: list[str] = []
    for path in pool_files():
        pools = read(path)
        if text in pools:
            return pools[text]
        known += pools
    raise ConfigError(
        f'No pool is called "{text}"', f"{nearest(text, known)} (macr-local pool list shows all)"
    )


def load_pool(pool: str | Path | None = None, members: Sequence[str] | None = None) -> PoolSpec:
    """A pool with the paths of its models' files, ready for `Pool.open`.

    Args:
        pool: As for `find_pool`.
        members: Only these members, in this order; the files of the others may be absent.

    Raises:
        ConfigError: As for `find_pool`; or a member is unknown.
        NotDownloaded: Files from the hub are not on this machine; the message has the command for them.
    """
    return find_pool(pool).select(members).resolve()


def option_for(pool: PoolSpec | PoolEntry) -> str:
    """What to write after ``--pool`` for this pool: its name, or ``FILE#NAME`` where that finds another."""
    with suppress(ConfigError):
        if pool.source is None or find_pool(pool.name).source == pool.source:
            return pool.name
    return shlex.quote(f"{pool.source}#{pool.name}")


def list_pools() -> tuple[PoolEntry, ...]:
    """Every pool that can be named, in the order of the files; the first of a name wins."""
    pools: dict[str, PoolEntry] = {}
    for path in pool_files():
        for name, entry in read(path).items():
            pools.setdefault(name, entry)
    return tuple(pools.values())


def _pool_of(path: Path, name: str | None) -> PoolEntry:
    pools = read(path)
    if name is None:
        name = next(iter(pools)) if len(pools) == 1 else default_pool()
        if name not in pools:
            raise ConfigError(
                f"{path} defines {len(pools)} pools: {', '.join(pools)}",
                f"Say which one, for instance {path}#{next(iter(pools))}",
            )
    if name not in pools:
        raise ConfigError(f'{path} has no pool "{name}"', nearest(name, pools))
    return pools[name]
