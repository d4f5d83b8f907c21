"""Addresses of stores: what is ours is taken out, the rest is the driver's, and no password is shown."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from outlive._kernel.store.postgres import PostgresStore
from outlive._kernel.store.postgres.address import PostgresAddress, parse_address
from outlive._kernel.store.postgres.connection import connect
from outlive.engine.url import store_for
from outlive.errors.program import MissingExtraError
from outlive.errors.store import StoreUrlError
from outlive.testing.clock import ManualClock
from outlive_conformance.servers.postgres import PostgresServer
from outlive_conformance.suite.builders import begin, claim, hire, message, new_tree, read_names, send

WEIRD = """we"ird'; DROP {schema} $$ %s :x \\ é"""


def test_our_parameters_are_taken_out() -> None:
    """The driver would not know them."""
    place = parse_address("postgres://me@host:5433/db?sslmode=require&schema=x&pgbouncer=true&allow_unsafe=1")

    assert place == PostgresAddress(
        "postgresql://me@host:5433/db?sslmode=require", "x", pgbouncer=True, allow_unsafe=True
    )


def test_defaults_are_safe() -> None:
    """A plain address means a plain server."""
    assert parse_address("postgresql:///db") == PostgresAddress("postgresql:///db", "outlive")


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("schema=", "not a name for a schema"),
        ("schema=pg_x", "not a name for a schema"),
        ("schema=" + "x" * 64, "not a name for a schema"),
        ("pgbouncer=perhaps", "neither true nor false"),
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused(query: str, reason: str) -> None:
    """With what is wrong, and without the password. [S21]"""
    with pytest.raises(StoreUrlError, match=reason) as caught:
        parse_address(f"postgresql://me:secret@host/db?{query}")

    assert "secret" not in str(caught.value)


def test_no_error_shows_the_password() -> None:
    """Errors end up in logs. [S30]"""
    assert "secret" not in str(parse_address("postgresql://me:secret@host/db"))


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://host/db?password=s3cret&schema=",
        "postgresql://me@host/db?sslpassword=s3cret&pgbouncer=perhaps",
        "postgresql://me:s3cret#x@host/db",
        "postgresql://me:s3cret/x@host/db",
        "postgresql://me:s3cret?x@host/db",
        "postgresql://me:s3cret@[::1/db",
        "postgresql://me:first@s3cret@host/db",
        "postgresql://me:s3cret@@host/db",
    ],
)
def test_no_address_that_is_refused_shows_a_password(url: str) -> None:
    """The error of a malformed address shows no password; connecting elsewhere, or asking DNS for a part of it, would
    show one, too. [S30]"""
    with pytest.raises(StoreUrlError) as caught:
        parse_address(url)

    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:p%40%2F%23%3F@host/db",
        "postgresql://me@[::1]:5432/db",
        "postgresql://me@[::1]:5432,[::2]:5433/db?target_session_attrs=any",
        "postgresql://one:5432,two:5433/db?target_session_attrs=primary",
        "postgresql:///db?host=%2Fvar%2Frun%2Fpostgresql",
        "postgresql://host",
    ],
)
def test_an_address_for_the_driver_is_given_to_it_unchanged(url: str) -> None:
    """An address that the driver understands is given to it character by character."""
    assert parse_address(url).dsn == url


def test_address_of_another_tool_does_not_show_its_password() -> None:
    """An address with the scheme of SQLAlchemy is refused by name and without its password."""
    with pytest.raises(StoreUrlError, match="postgresql\\+asyncpg://me") as caught:
        store_for("postgresql+asyncpg://me:s3cr:e@t@host/db", clock=ManualClock())

    assert "s3cr" not in str(caught.value)
    assert "t@host" not in str(caught.value)


def test_address_of_another_database_is_refused() -> None:
    """It is named, and no password is shown."""
    with pytest.raises(StoreUrlError, match=r"has the scheme .mysql.") as caught:
        parse_address("mysql://user:secret@host/db")

    assert "secret" not in str(caught.value)


def test_engine_makes_a_store_of_both_schemes() -> None:
    """An address may begin with postgresql: or postgres:."""
    for scheme in ("postgresql", "postgres"):
        assert isinstance(store_for(f"{scheme}://host/db", clock=ManualClock()), PostgresStore)


def test_a_missing_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is tried."""
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "asyncpg" else find_spec(name))

    with pytest.raises(MissingExtraError, match=r"pip install 'outlive\[postgres\]'"):
        store_for("postgresql://host/db", clock=ManualClock())


@pytest.mark.parametrize("schema", [WEIRD, "Upper Case", "select"])
async def test_any_name_of_a_schema_works(
    postgres_server: PostgresServer, postgres_database: str, clock: ManualClock, schema: str
) -> None:
    """It is quoted everywhere: in tables, functions, sequences and channels. [S21]"""
    unsafe = f"{postgres_server.url(postgres_database)}?allow_unsafe=true"
    store = PostgresStore(unsafe, schema=schema, clock=clock)
    await store.open()
    try:
        tree = await begin(store, tags={"a": "b"})
        await hire(store, "worker-a")
        await send(store, message(store, "run-1"), start=new_tree(store, "run-2"))
        assert sorted(await claim(store, "worker-a")) == ["run-1", "run-2"]
        assert await read_names(store, tree) == ["go"]
        await store.end_session("worker-a")
    finally:
        await store.close()


def test_the_driver_is_not_loaded_without_a_server() -> None:
    """A process that never opens one needs none."""
    program = "import outlive, sys; sys.exit('asyncpg' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_an_address_with_several_hosts_wants_the_one_that_takes_writes() -> None:
    """An address with several hosts asks the driver for the host that takes writes, because the first may be a
    replica."""
    place = parse_address("postgresql://one:5432,two:5433/db")

    assert place.dsn == "postgresql://one:5432,two:5433/db?target_session_attrs=read-write"


async def test_name_of_the_application_may_be_the_users(postgres_url: str) -> None:
    """It is what they look for in pg_stat_activity."""
    connection = await connect(parse_address(f"{postgres_url}&application_name=orders"))

    assert await connection.fetchval("SHOW application_name") == "orders"
    assert await connection.fetchval("SHOW jit") == "off"
    await connection.close()
