"""A step with a transaction that uses SQLAlchemy: its rows commit with the journal, and what it rolls back is gone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy import select, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

import outlive
from outlive.errors import RunFailedError
from outlive.testing import TestEngine


class Base(DeclarativeBase):
    """Of the tables of the tests."""


class Account(Base):
    """A row with JSON, whose codec SQLAlchemy would change on the connection."""

    __tablename__ = "orm_accounts"
    id: Mapped[str] = mapped_column(primary_key=True)
    cents: Mapped[int]
    notes: Mapped[dict[str, Any]] = mapped_column(JSONB, default=dict)


@outlive.step(name="orm.make", transaction=True)
async def make(tx: outlive.types.Tx) -> None:
    """The table."""
    await tx.execute("CREATE TABLE orm_accounts (id text PRIMARY KEY, cents bigint NOT NULL, notes jsonb)")


@outlive.step(name="orm.credit", transaction=True)
async def credit(tx: outlive.types.Tx, account_id: str, cents: int) -> int:
    """Twice in one transaction, with the plain verbs in between."""
    async with tx.sqlalchemy() as session:
        session.add(Account(id=account_id, cents=cents, notes={"by": ["ann"]}))
    row = await tx.fetchrow("SELECT cents, notes FROM orm_accounts WHERE id = $1", account_id)
    assert row is not None
    assert (cents, '{"by": ["ann"]}') == tuple(row), "JSON is text again"
    async with tx.sqlalchemy() as session:
        account = await session.get_one(Account, account_id)
        assert {"by": ["ann"]} == account.notes
        account.cents += 1
        await session.commit()
        session.add(Account(id=f"{account_id}-2", cents=0))
        await session.rollback()
        account = await session.get_one(Account, account_id)
        return account.cents


@outlive.step(name="orm.fail", transaction=True)
async def fail(tx: outlive.types.Tx, account_id: str, *, after: str) -> str:
    """Writes and fails, in the way that the test wants."""
    if after == "step":
        async with tx.sqlalchemy() as session:
            session.add(Account(id=account_id, cents=1))
        raise ValueError("planned")
    try:
        async with tx.sqlalchemy() as session:
            session.add(Account(id=account_id, cents=1))
            await session.flush()
            if after == "statement":
                await session.execute(sqlalchemy.insert(Account).values(id=account_id, cents=2))
            if after == "COMMIT":
                await session.execute(text("COMMIT"))
            raise ValueError("planned")
    except (ValueError, IntegrityError) as error:
        return type(error).__name__


@outlive.step(name="orm.lose", transaction=True)
async def lose(tx: outlive.types.Tx) -> int:
    """Loses its connection in the middle, the first time."""
    CALLS.append("lose")
    async with tx.sqlalchemy() as session:
        session.add(Account(id=f"lost-{len(CALLS)}", cents=1))
        await session.flush()
        if len(CALLS) == 1:
            await session.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
    return len(CALLS)


CALLS: list[str] = []


@outlive.workflow(name="orm.losing")
async def losing() -> int:
    """One step."""
    return await lose()


@outlive.workflow(name="orm.prepare")
async def prepare() -> None:
    """The table."""
    await make()


@outlive.workflow(name="orm.crediting")
async def crediting(account_id: str, cents: int) -> int:
    """One step."""
    return await credit(account_id, cents)


@outlive.workflow(name="orm.failing")
async def failing(account_id: str, after: str) -> str:
    """One step."""
    return await fail(account_id, after=after)


@outlive.step(name="orm.count", transaction=True)
async def count(tx: outlive.types.Tx) -> list[str]:
    """What is there, by SQLAlchemy."""
    async with tx.sqlalchemy() as session:
        return list(await session.scalars(select(Account.id).order_by(Account.id)))


@outlive.workflow(name="orm.counting")
async def counting() -> list[str]:
    """One step."""
    return await count()


@pytest.fixture
async def engine(postgres_url: str) -> AsyncIterator[TestEngine]:
    """On PostgreSQL, with the table."""
    async with TestEngine(postgres_url) as engine:
        await (await engine.start(prepare)).result()
        yield engine


async def ids(engine: TestEngine) -> list[str]:
    """The rows that are there."""
    return await (await engine.start(counting)).result()


async def test_a_session_commits_with_the_journal(engine: TestEngine) -> None:
    """Its commit is of its own savepoint, and its rollback goes back to that."""
    assert 501 == await (await engine.start(crediting, "ann", 500)).result()
    assert ["ann"] == await ids(engine)


async def test_rows_of_a_failed_step_are_gone(engine: TestEngine) -> None:
    """The rows of a step that fails are gone, though its session was committed into the transaction."""
    with pytest.raises(RunFailedError, match="planned"):
        await (await engine.start(failing, "bob", "step")).result()
    assert [] == await ids(engine)


@pytest.mark.parametrize(("after", "said"), [("block", "ValueError"), ("statement", "IntegrityError")])
async def test_a_session_that_fails_is_rolled_back_and_the_step_may_go_on(
    engine: TestEngine, after: str, said: str
) -> None:
    """A session that fails, by an exception or a refused statement, is rolled back, and the step goes on in its
    transaction."""
    assert said == await (await engine.start(failing, "bob", after)).result()
    assert [] == await ids(engine)


async def test_a_session_cannot_end_the_transaction(engine: TestEngine) -> None:
    """A session cannot commit the transaction of its step with a statement."""
    with pytest.raises(RunFailedError, match="COMMIT"):
        await (await engine.start(failing, "bob", "COMMIT")).result()
    assert [] == await ids(engine)


async def test_a_step_whose_connection_is_lost_is_called_again(engine: TestEngine) -> None:
    """It has not failed: the store was away."""
    CALLS.clear()
    assert 2 == await (await engine.start(losing)).result()
    assert ["lost-2"] == await ids(engine)


async def test_sqlalchemy_on_another_store_is_refused_with_advice() -> None:
    """`tx.sqlalchemy()` on another store is refused with the verbs to use instead."""
    async with TestEngine() as engine:
        with pytest.raises(RunFailedError, match=r"tx.sqlalchemy\(\) is for PostgreSQL") as caught:
            await (await engine.start(counting)).result()
    assert "use tx.execute and tx.fetch" in str(caught.value)
