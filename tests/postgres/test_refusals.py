"""Servers that cannot keep what a store promises are refused when it is opened, and nothing is written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from outlive._kernel.store.postgres import PostgresStore
from outlive._kernel.store.postgres.connection import Session
from outlive.errors import StoreUnavailableError
from outlive.errors.store import NotADatabaseError, SchemaTooNewError, SchemaTooOldError, UnfitServerError
from outlive.testing.clock import ManualClock
from outlive_conformance.servers.postgres import PostgresServer
from tests.postgres.support import connected


@pytest.fixture
def database(postgres_server: PostgresServer) -> Iterator[str]:
    """A database of one test's own."""
    name = postgres_server.create_database()
    yield name
    postgres_server.drop_database(name)


async def open_and_close(url: str) -> None:
    """Open a store."""
    store = PostgresStore(url, clock=ManualClock())
    await store.open()
    await store.close()


async def tables_in(url: str) -> int:
    """How many schemas of ours there are."""
    async with connected(url) as connection:
        count = await connection.fetchval("SELECT count(*) FROM pg_namespace WHERE nspname = 'outlive'")
        assert isinstance(count, int)
        return count


async def test_server_without_fsync_is_refused(postgres_server: PostgresServer, database: str) -> None:
    """Unless the address says that this does not matter."""
    with pytest.raises(UnfitServerError, match=r"fsync is off.*allow_unsafe=true") as caught:
        await open_and_close(postgres_server.url(database))

    assert caught.value.remedy.startswith("set fsync=on")
    assert await tables_in(postgres_server.url(database)) == 0
    await open_and_close(postgres_server.store_url(database))


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("default_transaction_read_only=on", "read-only"),
        ("synchronous_commit=off", "synchronous_commit is off"),
    ],
)
async def test_database_that_forgets_or_takes_nothing_is_refused(
    durable_server: PostgresServer, setting: str, reason: str
) -> None:
    """A database that is read-only or commits asynchronously is refused, even if only this database is set so."""
    database = durable_server.create_database()
    durable_server.execute(f"ALTER DATABASE {database} SET {setting}")

    with pytest.raises(UnfitServerError, match=reason):
        await open_and_close(durable_server.store_url(database))
    durable_server.drop_database(database)


@pytest.fixture(scope="module")
def durable_server(postgres_server: PostgresServer) -> Iterator[PostgresServer]:
    """A server with fsync."""
    assert postgres_server.is_running
    with PostgresServer() as server:
        yield server


async def test_database_of_another_encoding_is_refused(postgres_server: PostgresServer) -> None:
    """It could not hold what users write."""
    postgres_server.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")

    with pytest.raises(UnfitServerError, match="encoding is LATIN1"):
        await open_and_close(postgres_server.store_url("latin"))
    postgres_server.drop_database("latin")


async def test_replica_is_refused() -> None:
    """It takes no writes."""
    with PostgresServer(fsync=False) as server:
        folder = Path(server.execute("SELECT current_setting('data_directory')")[0][0])
        server.stop()
        (folder / "standby.signal").touch()
        if os.geteuid() == 0:
            owner = folder.stat()
            os.chown(folder / "standby.signal", owner.st_uid, owner.st_gid)
        server.start()

        with pytest.raises(UnfitServerError, match="replica"):
            await open_and_close(server.store_url())


async def test_old_server_is_refused(
    postgres_server: PostgresServer, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the version that is needed."""
    fetch = Session.fetch

    async def fetch_old(session: Session, name: str, *values: object) -> object:
        rows = await fetch(session, name, *values)
        return [dict(rows[0]) | {"version": 130_022}] if name == "read_server" else rows

    monkeypatch.setattr(Session, "fetch", fetch_old)

    with pytest.raises(UnfitServerError, match=r"PostgreSQL 13; use PostgreSQL 14 or later"):
        await open_and_close(postgres_server.store_url(database))


async def test_schema_of_another_program_is_refused(postgres_server: PostgresServer, database: str) -> None:
    """A schema with tables of another program is refused."""
    async with connected(postgres_server.url(database)) as connection:
        await connection.execute("CREATE TABLE public.runs (id int)")

    with pytest.raises(NotADatabaseError, match="tables of another program"):
        await open_and_close(postgres_server.store_url(database, schema="public"))


async def test_newer_schema_is_refused(postgres_server: PostgresServer, database: str) -> None:
    """A later release was here; this one would not understand it."""
    await open_and_close(postgres_server.store_url(database))
    async with connected(postgres_server.url(database)) as connection:
        await connection.execute("INSERT INTO outlive.migrations VALUES (99, '0099_pre_later', 0)")

    with pytest.raises(SchemaTooNewError):
        await open_and_close(postgres_server.store_url(database))


async def test_older_schema_is_left_as_it_is_by_those_who_only_read(
    postgres_server: PostgresServer, database: str
) -> None:
    """No schema is an older one too: nothing is created."""
    with pytest.raises(SchemaTooOldError) as caught:
        await PostgresStore(postgres_server.store_url(database), clock=ManualClock()).open(migrate=False)

    assert caught.value.found == 0
    assert await tables_in(postgres_server.url(database)) == 0


async def test_migration_that_is_cut_off_leaves_nothing(
    postgres_server: PostgresServer, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one who opens begins again, and finds no lock."""
    fetch = Session.fetch

    async def die(session: Session, name: str, *values: object) -> object:
        if name == "record_migration":
            session.connection.terminate()
        return await fetch(session, name, *values)

    with monkeypatch.context() as patch:
        patch.setattr(Session, "fetch", die)
        with pytest.raises(StoreUnavailableError):
            await open_and_close(postgres_server.store_url(database))

    await open_and_close(postgres_server.store_url(database))
    assert await tables_in(postgres_server.url(database)) == 1


async def test_an_admin_may_have_made_the_schema(postgres_server: PostgresServer, database: str) -> None:
    """The user of a store needs no right to create schemas."""
    server = postgres_server
    async with connected(server.url(database)) as connection:
        await connection.execute("DROP ROLE IF EXISTS humble")
        await connection.execute("CREATE ROLE humble LOGIN; CREATE SCHEMA outlive AUTHORIZATION humble")

    await open_and_close(server.store_url(database).replace("outlive@", "humble@"))
    server.drop_database(database)
    server.execute("DROP ROLE humble")


@pytest.mark.parametrize(("user", "reason"), [("few", "too many connections"), ("nobody_at_all", "does not exist")])
async def test_server_that_lets_us_not_in_is_unavailable(
    postgres_server: PostgresServer, database: str, user: str, reason: str
) -> None:
    """Whatever it says; the engine keeps trying."""
    if user == "few":
        postgres_server.execute("CREATE ROLE few LOGIN CONNECTION LIMIT 0")

    with pytest.raises(StoreUnavailableError, match=reason):
        await open_and_close(postgres_server.store_url(database).replace("outlive@", f"{user}@"))
    if user == "few":
        postgres_server.execute("DROP ROLE few")


async def test_address_without_a_server_is_unavailable() -> None:
    """Nothing listens there."""
    with pytest.raises(StoreUnavailableError, match=r"127\.0\.0\.1:1"):
        await open_and_close("postgresql://outlive@127.0.0.1:1/db")


ROLE = "DO $$ BEGIN CREATE ROLE guest LOGIN; EXCEPTION WHEN duplicate_object THEN END $$"


def as_guest(url: str) -> str:
    """The same place for a user without rights."""
    return url.replace("//outlive@", "//guest@")


async def test_user_who_may_not_create_the_schema_reads_what_to_grant(
    postgres_server: PostgresServer, database: str
) -> None:
    """Ready to be pasted, and it helps."""
    postgres_server.execute(ROLE)
    url = as_guest(postgres_server.store_url(database))

    with pytest.raises(UnfitServerError, match="may not create the schema") as caught:
        await open_and_close(url)

    postgres_server.execute(caught.value.remedy.partition(": ")[2], database=database)
    await open_and_close(url)


async def test_user_without_rights_on_the_tables_reads_what_to_grant(
    postgres_server: PostgresServer, database: str
) -> None:
    """Another user has made the schema."""
    postgres_server.execute(ROLE)
    await open_and_close(postgres_server.store_url(database))
    url = as_guest(postgres_server.store_url(database))

    with pytest.raises(UnfitServerError, match="may not use the schema") as caught:
        await open_and_close(url)

    async with connected(postgres_server.url(database)) as connection:
        await connection.execute(caught.value.remedy.partition(": ")[2])
    await open_and_close(url)
