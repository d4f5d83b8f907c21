"""Store URLs and lease URLs: the one place that names concrete backends."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
from collections.abc import Callable
from functools import partial
from pathlib import PurePath

from outlive._kernel.lease.contract import Leases
from outlive._kernel.lease.sessions import NoLeases, StoreLeases
from outlive._kernel.runtime.clock import Clock
from outlive._kernel.store.contract import Store
from outlive._kernel.store.memory import MemoryStore
from outlive.errors import ConfigurationError
from outlive.errors.program import MissingExtraError
from outlive.errors.store import LeaseUrlError, StoreUrlError

SERVERS = ("postgresql", "postgres")
"""Schemes of stores that are servers."""

OpenStore = Callable[[str, Callable[[], int]], Store]
"""Makes a store of the part of a URL behind its scheme, and of a clock."""
OTHERS = "outlive.stores"
"""The group of entry points by which installed packages offer stores: the name is the scheme."""
_others: dict[str, OpenStore] = {}

_PASSWORD = re.compile(r"(//[^:/@]*:).*@")


def register_store(scheme: str, make: OpenStore) -> None:
    """Let URLs of this scheme name a store of another author.

    A package that is installed needs no call: an entry point in the group `outlive.stores`, whose name is the scheme,
    does the same.

    Args:
        make: called with the part of the URL behind the scheme and with a clock; the store is not open yet.

    Raises:
        ConfigurationError: the scheme is one of Outlive's own, or cannot be one.
    """
    if scheme in ("memory", "sqlite", *SERVERS) or not re.fullmatch(r"[a-z][a-z0-9+.-]*", scheme):
        raise ConfigurationError(
            f"{scheme!r} cannot be the scheme of another store; give a word of its own, like 'log'"
        )
    _others[scheme] = make


def _other(scheme: str) -> OpenStore | None:
    """The function that makes stores of this scheme; None if no package offers one."""
    if scheme not in _others:
        for entry in importlib.metadata.entry_points(group=OTHERS, name=scheme):
            register_store(scheme, entry.load())
    return _others.get(scheme)


def store_for(url: object, *, clock: Callable[[], int], is_test_clock: bool = False) -> Store:
    """The store that a URL names; nothing is opened yet.

    With a test clock every store judges by that clock; else a store that has a clock of its own judges by its own.

    Raises:
        StoreUrlError: the URL names no store we have.
        MissingExtraError: its driver is not installed.
    """
    if not isinstance(url, str) or ":" not in url:
        raise StoreUrlError(url, "it has no scheme")
    scheme, rest = url.split(":", 1)
    if scheme == "memory":
        if rest.strip("/"):
            raise StoreUrlError(url, f"a store in memory has no name, and {rest!r} looks like one")
        return MemoryStore(clock=clock)
    if scheme == "sqlite":
        return _sqlite(path_in(url), clock)
    if scheme in SERVERS:
        return _postgres(url, clock, is_test_clock=is_test_clock)
    if (make := _other(scheme)) is not None:
        return make(rest, clock)
    # Without the password: the error ends up in logs.
    raise StoreUrlError(_PASSWORD.sub(r"\1***@", url), f"no store has the scheme {scheme!r}")


def leases_for(lease: object, *, clock: Clock) -> Callable[[Store], Leases]:
    """The keeper of the leases, given the store; nothing is opened yet.

    Raises:
        LeaseUrlError: it names nothing that we have.
    """
    if lease == "store":
        return StoreLeases
    if lease == "none":
        return NoLeases
    if isinstance(lease, str) and lease.startswith(("etcd:", "etcds:")):
        # Imported here, so that a process without etcd loads nothing of it.
        from outlive._kernel.lease.etcd import EtcdLeases, parse_address

        return partial(EtcdLeases, address=parse_address(lease), clock=clock)
    raise LeaseUrlError(lease, "that keeps no leases")


def is_server(url: str) -> bool:
    """Whether the store is a server: it has a clock and processors of its own."""
    return url.partition(":")[0] in SERVERS


def shown(url: str) -> str:
    """A store for people: without a password."""
    if not is_server(url):
        return url
    from outlive._kernel.store.postgres.address import parse_address

    return str(parse_address(url))


def path_in(url: str) -> str:
    """The file that the URL of a SQLite store names.

    Raises:
        StoreUrlError: it names none.
    """
    path = url.partition(":")[2]
    if mark := next((mark for mark in "?#" if mark in path), ""):
        found = mark + path.partition(mark)[2]
        raise StoreUrlError(
            url, f"{found!r} is not part of a file; settings are options of Engine(...): leave {found} out"
        )
    if path.startswith("//") and not path.startswith("///"):
        raise StoreUrlError(url, f"{path[2:].partition('/')[0]!r} stands where a host would")
    if PurePath(path).name in ("", ".."):
        raise StoreUrlError(url, "it names no file")
    if path.startswith("//"):
        # For some tools "sqlite:///x.db" is a file in the current folder, for others one in the root.
        name = path.lstrip("/")
        raise StoreUrlError(
            url,
            f"'//' after 'sqlite:' can mean two things: {f'sqlite:{name}'!r} in this folder or {f'sqlite:/{name}'!r}",
        )
    if path == ":memory:":
        raise StoreUrlError(url, 'a store in memory is "memory:"')
    return path


def _sqlite(path: str, clock: Callable[[], int]) -> Store:
    # Imported here, so that a process that never opens a file never loads SQLite.
    from outlive._kernel.store.sqlite import SqliteStore

    return SqliteStore(path, clock=clock)


def _postgres(url: str, clock: Callable[[], int], *, is_test_clock: bool) -> Store:
    if importlib.util.find_spec("asyncpg") is None:
        raise MissingExtraError("a PostgreSQL store", "asyncpg", "postgres")
    # Imported here, so that a process without PostgreSQL needs no driver.
    from outlive._kernel.store.postgres import PostgresStore

    return PostgresStore(url, clock=clock) if is_test_clock else PostgresStore(url, local_clock=clock)
