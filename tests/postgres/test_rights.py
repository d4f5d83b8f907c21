"""A user who may read and write rows, and create nothing: what it can do, and which rights it has to ask for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

import outlive
from outlive._kernel.store.diagnosis import Level
from outlive._kernel.store.postgres import PostgresStore
from outlive._kernel.store.postgres.diagnosis import diagnose_server
from outlive._kernel.store.postgres.query import functions_version, migrations
from outlive.errors.store import UnfitServerError
from outlive.testing.clock import ManualClock
from outlive_conformance.servers.postgres import PostgresServer
from tests.postgres.support import connected

WORKER = "rows_only"
ROLE = f"DO $$ BEGIN CREATE ROLE {WORKER} LOGIN; EXCEPTION WHEN duplicate_object THEN END $$"


@pytest.fixture(scope="module")
def server(postgres_server: PostgresServer) -> PostgresServer:
    """The server, with the user."""
    postgres_server.execute(ROLE)
    return postgres_server


@pytest.fixture
def database(server: PostgresServer) -> Iterator[str]:
    """A database of one test's own."""
    name = server.create_database()
    yield name
    server.drop_database(name)


@pytest.fixture
def owner_url(server: PostgresServer, database: str) -> str:
    """The address of the store for who owns it."""
    return server.store_url(database)


@pytest.fixture
def url(owner_url: str) -> str:
    """The same for who may create nothing."""
    return owner_url.replace("//outlive@", f"//{WORKER}@")


async def open_and_close(url: str) -> None:
    """Open a store."""
    store = PostgresStore(url, clock=ManualClock())
    await store.open()
    await store.close()


async def refusal_of(url: str) -> UnfitServerError:
    """The error of who opens a store."""
    with pytest.raises(UnfitServerError) as caught:
        await open_and_close(url)
    return caught.value


async def run_sql(url: str, *statements: str) -> None:
    """Do what an owner does."""
    async with connected(url) as connection:
        for statement in statements:
            await connection.execute(statement)


async def grant(owner_url: str, url: str) -> None:
    """Make the store, and give the user what the error names."""
    await open_and_close(owner_url)
    await run_sql(owner_url, (await refusal_of(url)).remedy.partition(": ")[2])


@outlive.step
async def price(order: int) -> int:
    """A step."""
    return order * 100


@outlive.step(transaction=True)
async def note_sale(connection: Any, order: int) -> None:
    """A step that writes in a transaction of the store."""
    await connection.execute("INSERT INTO public.notes VALUES ($1)", order)


@outlive.workflow
async def sell(order: int) -> int:
    """A bit of everything that is stored."""
    await note_sale(order)
    outlive.set_tags(order=str(order))
    return await outlive.wait_for_signal("paid", int) + await price(order)


async def test_a_user_who_may_only_read_and_write_rows_runs_an_engine(owner_url: str, url: str) -> None:
    """A user with no more rights than the error asks for runs an engine, starts, signals and audits. [S49]"""
    await grant(owner_url, url)
    await run_sql(owner_url, "CREATE TABLE public.notes (n int)", f"GRANT INSERT ON public.notes TO {WORKER}")

    async with outlive.Engine(url) as engine:
        with engine.audit.acting("ann"):
            await engine.keys.create("ci", scope="viewer")
            run = await engine.start(sell, 1, id="order-1")
        connection = await asyncpg.connect(url.partition("?")[0])
        async with connection.transaction():
            other = await engine.start(sell, 2, id="order-2", connection=connection)
            await engine.signal("order-2", "paid", 2, connection=connection)
        await connection.close()
        await engine.signal("order-1", "paid", 1)
        assert [await run.result(), await other.result()] == [101, 202]
        assert (await engine.audit.verify()).is_whole
        assert await engine.purge(older_than=timedelta(0), status="succeeded") is not None

    async with connected(url) as connection:
        assert not await connection.fetchval("SELECT has_schema_privilege('outlive', 'CREATE')")
        for statement in ("CREATE TABLE outlive.more (n int)", "DROP TABLE outlive.runs", "TRUNCATE outlive.events"):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(statement)


async def test_an_audit_log_may_be_one_that_workers_only_add_to(owner_url: str, url: str) -> None:
    """Who takes over a worker, and so its user of the database, changes no row of the log. [S37 S49]"""
    await grant(owner_url, url)
    await run_sql(owner_url, f"REVOKE UPDATE, DELETE ON outlive.audit FROM {WORKER}")

    async with outlive.Engine(url, worker=False) as engine:
        with engine.audit.acting("ann"):
            await engine.keys.create("ci", scope="viewer")
        assert [entry.verb for entry in await engine.audit.list()] == ["key.create"]
    async with connected(url) as connection:
        for statement in ("UPDATE outlive.audit SET actor = 'bob'", "DELETE FROM outlive.audit"):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(statement)


@pytest.mark.parametrize(
    "revoked",
    [
        "USAGE ON SCHEMA outlive",
        "SELECT ON outlive.migrations",
        "DELETE ON outlive.inbox",
        "INSERT ON outlive.audit",
        "USAGE ON SEQUENCE outlive.runs_key_seq",
        "EXECUTE ON ALL FUNCTIONS IN SCHEMA outlive",
    ],
)
async def test_a_right_that_is_missing_is_named_when_the_store_is_opened(
    owner_url: str, url: str, revoked: str
) -> None:
    """A missing right is reported when the store is opened, with the statement that grants it. [S49]"""
    await grant(owner_url, url)
    await run_sql(owner_url, f"REVOKE {revoked} FROM {WORKER}, public")

    error = await refusal_of(url)

    assert error.reason == f"user {WORKER} may not use the schema"
    await run_sql(owner_url, error.remedy.partition(": ")[2])
    await open_and_close(url)


async def test_tables_of_others_in_the_schema_need_no_right(owner_url: str, url: str) -> None:
    """A store needs no right on tables of other programs in its schema. [S49]"""
    await grant(owner_url, url)
    await run_sql(owner_url, "CREATE TABLE outlive.theirs (id serial)", "REVOKE ALL ON outlive.theirs FROM public")

    await open_and_close(url)


FORGET_FUNCTIONS = f"""
DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT oid::regprocedure FROM pg_proc WHERE proname LIKE '%\\_{functions_version()}' LOOP
        EXECUTE 'DROP FUNCTION ' || name;
    END LOOP;
END $$
"""


@pytest.mark.parametrize("right", ["USAGE", "CREATE"])
async def test_a_user_who_may_not_migrate_reads_who_may(owner_url: str, url: str, right: str) -> None:
    """A user who may not migrate the schema reads that its owner may, even with the right to create. [S49]"""
    await grant(owner_url, url)
    await run_sql(owner_url, f"DELETE FROM outlive.migrations WHERE version = {len(migrations())}")
    await run_sql(owner_url, f"GRANT {right} ON SCHEMA outlive TO {WORKER}")

    error = await refusal_of(url)

    assert error.reason == f"user {WORKER} may not bring the schema up to this release"
    assert error.remedy == "let its owner (outlive) run `outlive migrate`"


async def test_functions_of_another_release_are_made_by_the_owner(owner_url: str, url: str) -> None:
    """Every release has its own; no new right is needed for them. [S49]"""
    await grant(owner_url, url)
    await run_sql(owner_url, FORGET_FUNCTIONS)
    assert "outlive migrate" in (await refusal_of(url)).remedy

    await open_and_close(owner_url)

    await open_and_close(url)


async def test_a_doctor_finds_nothing_wrong_with_who_may_create_nothing(owner_url: str, url: str) -> None:
    """It says what is missing to work, and no more. [S49]"""
    await grant(owner_url, url)
    *_, schema = await diagnose_server(url, now=ManualClock())
    assert schema.level is Level.OK, schema

    await run_sql(owner_url, f"REVOKE UPDATE ON outlive.runs FROM {WORKER}")
    *_, schema = await diagnose_server(url, now=ManualClock())

    assert schema.said == f"user {WORKER} may not use the schema"
    assert "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA" in schema.advice


async def test_the_user_of_a_given_connection_needs_to_ask_and_no_more(owner_url: str, url: str) -> None:
    """It writes a request, which an engine makes a run of; the rights are the listed rights of the guide. [S49]"""
    await open_and_close(owner_url)
    await run_sql(
        owner_url,
        f"GRANT USAGE ON SCHEMA outlive TO {WORKER}",
        f"GRANT SELECT ON outlive.runs, outlive.requests TO {WORKER}",
        f"GRANT INSERT ON outlive.requests TO {WORKER}",
    )

    async with outlive.Engine(owner_url) as engine, connected(url) as connection:
        async with connection.transaction():
            run = await engine.start(wait, id="asked", connection=connection)
            await engine.signal("asked", "paid", 7, connection=connection)
        assert await run.result() == 7
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute("DELETE FROM outlive.runs")


@outlive.workflow
async def wait() -> int:
    """It ends with a signal."""
    return await outlive.wait_for_signal("paid", int)
