"""Store URLs: the one place that names concrete backends."""

from __future__ import annotations

from collections.abc import Callable

from outlive._store.contract import Store
from outlive._store.memory import MemoryStore
from outlive.errors import StoreUrlError


def store_for(url: object, *, clock: Callable[[], int]) -> Store:
    """The store that a URL names; nothing is opened yet.

    Raises:
        StoreUrlError: the URL names no store we have.
    """
    if not isinstance(url, str) or ":" not in url:
        raise StoreUrlError(url, "it has no scheme")
    scheme, rest = url.split(":", 1)
    if scheme == "memory":
        if rest.strip("/"):
            raise StoreUrlError(url, f"a store in memory has no name, and {rest!r} looks like one")
        return MemoryStore(clock=clock)
    if scheme == "sqlite":
        return _sqlite(url, rest, clock)
    raise StoreUrlError(url, f"no store has the scheme {scheme!r}")


def _sqlite(url: str, rest: str, clock: Callable[[], int]) -> Store:
    # "sqlite:file", "sqlite:/path" and, as other tools write it, "sqlite:///path".
    path = rest[2:] if rest.startswith("//") else rest
    if not path or path == "/":
        raise StoreUrlError(url, "it names no file")
    if rest.startswith("//") and not rest.startswith("///"):
        raise StoreUrlError(url, f"{rest[2:].partition('/')[0]!r} stands where a host would")
    if path == ":memory:":
        raise StoreUrlError(url, 'a store in memory is "memory:"')
    # Imported here, so that a process that never opens a file never loads SQLite.
    from outlive._store.sqlite import SqliteStore

    return SqliteStore(path, clock=clock)
