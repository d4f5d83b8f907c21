"""A database nobody has used before, for one measurement, and gone after it."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from outlive_conformance.servers.postgres import PostgresServer
from outlive_conformance.servers.postgres_programs import find_versions


@contextmanager
def fresh(store: str, *, directory: Path, postgres_url: str | None) -> Iterator[str]:
    """Lend the URL of an empty database of this store."""
    match store:
        case "sqlite":
            with fresh_file(directory) as url:
                yield url
        case "postgresql":
            assert postgres_url is not None, "--stores postgresql needs --postgres-url"
            with fresh_postgres(postgres_url) as url:
                yield url
        case _:
            raise ValueError(f"no store is called {store}; there are sqlite and postgresql")


@contextmanager
def postgres(url: str | None, *, is_needed: bool) -> Iterator[str | None]:
    """Lend the URL of a server that keeps its promises: the one that was given, or one of our own with fsync on."""
    if url is not None or not is_needed:
        yield url
        return
    server = counting_server()
    try:
        yield server.url("postgres")
    finally:
        server.remove()


def counting_server() -> PostgresServer:
    """A running server that counts its statements, if any of those found can; else the newest one."""
    settings = {"max_connections": "300"}
    for programs in find_versions().values():
        server = PostgresServer(
            fsync=True, programs=programs, settings=settings | {"shared_preload_libraries": "pg_stat_statements"}
        )
        try:
            server.start()
            server.execute("SELECT FROM pg_available_extensions WHERE name = 'pg_stat_statements'")
        except Exception:  # It has no such library.
            server.remove()
        else:
            return server
    server = PostgresServer(fsync=True, settings=settings)
    server.start()
    return server


@contextmanager
def fresh_file(directory: Path) -> Iterator[str]:
    home = Path(tempfile.mkdtemp(prefix="outlive-bench-", dir=directory))
    try:
        yield f"sqlite:{home / 'bench.db'}"
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def fresh_postgres(admin_url: str) -> Iterator[str]:
    import psycopg

    name = f"outlive_bench_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(admin_url, autocommit=True) as admin:
        for setting in (b"SHOW fsync", b"SHOW synchronous_commit"):
            assert admin.execute(setting).fetchone() == ("on",), f"the server has it off: {setting.decode()}"
        admin.execute(f'CREATE DATABASE "{name}"'.encode())
        url = f"{admin_url.rsplit('/', 1)[0]}/{name}"
        with psycopg.connect(url, autocommit=True) as own, suppress(psycopg.Error):
            own.execute("CREATE EXTENSION pg_stat_statements")
        try:
            yield url
        finally:
            admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())
