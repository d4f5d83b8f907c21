"""The schema: the same from whichever version it comes, and two releases on one schema."""

from __future__ import annotations

import asyncio
import gzip
import re
from typing import Any

import pytest

from outlive._kernel.store.postgres import PostgresStore, query
from outlive.testing.clock import ManualClock
from outlive_conformance.servers.postgres import PostgresServer
from outlive_conformance.suite.builders import begin, get_run
from tests.golden.database import DUMP
from tests.postgres.support import connected

RELATIONS = """
SELECT 'column', class.relname, part.attname, format_type(part.atttypid, part.atttypmod), part.attnotnull,
    part.attcollation::regcollation::text, part.attidentity::text, part.attgenerated::text,
    pg_get_expr(initial.adbin, initial.adrelid)
FROM pg_attribute AS part
JOIN pg_class AS class ON class.oid = part.attrelid AND class.relkind = 'r'
LEFT JOIN pg_attrdef AS initial ON initial.adrelid = part.attrelid AND initial.adnum = part.attnum
WHERE class.relnamespace = 'outlive'::regnamespace AND part.attnum > 0 AND NOT part.attisdropped
UNION ALL
SELECT 'options', relname, array_to_string(reloptions, ' '), '', NULL, '', '', '', ''
FROM pg_class WHERE relnamespace = 'outlive'::regnamespace AND relkind = 'r'
UNION ALL
SELECT 'index', indexname, indexdef, '', NULL, '', '', '', '' FROM pg_indexes WHERE schemaname = 'outlive'
UNION ALL
SELECT 'function', proname, pg_get_functiondef(oid), '', NULL, '', '', '', ''
FROM pg_proc WHERE pronamespace = 'outlive'::regnamespace
"""


async def schema_of(url: str) -> set[Any]:
    """Columns, options, indexes and functions."""
    async with connected(url) as connection:
        return {tuple(row) for row in await connection.fetch(RELATIONS)}


async def open_and_close(url: str) -> None:
    """As a process of this release does."""
    store = PostgresStore(url, clock=ManualClock())
    await store.open()
    await begin(store, "new")
    await get_run(store, "new")
    await store.close()


@pytest.fixture
def url(postgres_server: PostgresServer, postgres_database: str) -> str:
    """A database without a schema of ours."""
    postgres_server.execute("DROP SCHEMA IF EXISTS outlive CASCADE", database=postgres_database)
    return postgres_server.store_url(postgres_database)


@pytest.fixture(scope="module")
def fresh(postgres_server: PostgresServer) -> set[Any]:
    """The schema that this release makes."""
    url = postgres_server.store_url(postgres_server.create_database())
    asyncio.run(open_and_close(url))
    return asyncio.run(schema_of(url))


@pytest.mark.parametrize("version", range(1, len(query.migrations())))
async def test_schema_is_the_same_from_every_version(url: str, fresh: set[Any], version: int) -> None:
    """A database of an earlier version and a new database cannot be distinguished."""
    async with connected(url) as connection:
        await connection.execute("CREATE SCHEMA outlive; SET search_path TO outlive")
        for number, file in enumerate(query.migrations()[:version], 1):
            await connection.execute(file.read_text("utf-8"))
            await connection.execute("INSERT INTO migrations VALUES ($1, $2, 0)", number, file.stem)

    await open_and_close(url)

    assert await schema_of(url) == fresh


async def test_schema_is_the_same_from_the_code_before_functions_had_versions(url: str, fresh: set[Any]) -> None:
    """Its migrations held functions, and had today's columns filled in."""
    async with connected(url) as connection:
        await connection.execute("SET check_function_bodies = off")
        await connection.execute(gzip.decompress(DUMP.read_bytes()).decode())

    await open_and_close(url)

    assert await schema_of(url) == fresh


async def test_two_releases_with_other_functions_share_a_schema(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The later one adds its functions, and the earlier one goes on with its own."""
    url = postgres_server.store_url(postgres_server.create_database(), schema="shared")
    early = PostgresStore(url, clock=ManualClock())
    await early.open()
    monkeypatch.setattr(query, "functions_version", lambda: "1a7e0000")
    query.statements.cache_clear()
    late = PostgresStore(url, clock=ManualClock())
    await late.open()
    monkeypatch.undo()
    query.statements.cache_clear()

    tree = await begin(late, "run-1")
    await tree.twin(early).step()
    await begin(early, "run-2")

    assert (await get_run(late, "run-2")).id == "run-2"
    await early.close()
    await late.close()


def test_migrations_are_literal() -> None:
    """Nothing is filled in, and they hold no functions but those of triggers and indexes, which belong to a table: what
    was released never changes."""
    functions = []
    for file in query.migrations():
        text = file.read_text("utf-8")
        assert "{" not in text
        functions += re.findall(r"CREATE FUNCTION (\w+)", text)
    names = ["wait_names", "index_waits", "error_in", "asked_names", "index_waits_and_approvals", "error_in"]
    assert functions == names
