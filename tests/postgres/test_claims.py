"""Claims by many at once: between looking, locking and writing others go on, and no claim takes what is not free."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from outlive._kernel.store.postgres import PostgresStore
from outlive._kernel.store.postgres.claim import CLAIM_TRIES_MAX
from outlive._kernel.store.postgres.connection import Session
from outlive.testing.clock import ManualClock
from outlive_conformance.suite.builders import LEASE_SECONDS, Writer, begin, claim, get_run, hire
from tests.postgres.support import in_time

Hook = Callable[[], Awaitable[object]]


class Statements:
    """Counts the statements of all stores, and does something before the next one of a kind."""

    def __init__(self, fetch: Callable[..., Awaitable[Any]]) -> None:
        self._fetch = fetch
        self.counts: Counter[str] = Counter()
        self._before: dict[str, Hook] = {}

    def before(self, name: str, hook: Hook) -> None:
        """Do this before the next statement of this name, once."""
        self._before[name] = hook

    async def fetch(self, session: Session, name: str, *values: Any) -> Any:
        """In the place of `Session.fetch`."""
        self.counts[name] += 1
        hook = self._before.pop(name, None)
        if hook is not None:
            await in_time(hook())
        return await self._fetch(session, name, *values)


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> Statements:
    """What the stores of this test send."""
    statements = Statements(Session.fetch)

    def fetch(session: Session, name: str, *values: Any) -> Any:
        return statements.fetch(session, name, *values)

    monkeypatch.setattr(Session, "fetch", fetch)
    return statements


async def leave_an_orphan(store: PostgresStore, clock: ManualClock) -> Writer:
    """A run of worker-a, whose lease has run out."""
    await hire(store, "worker-a")
    tree = await begin(store)
    assert await claim(store, "worker-a") == ["run-1"]
    await tree.catch_up()
    clock.advance(seconds=LEASE_SECONDS + 1)
    return tree


async def test_owner_that_renews_while_others_look_keeps_its_run(
    store: PostgresStore, clock: ManualClock, statements: Statements
) -> None:
    """It was an orphan when it was found, and is none when it is to be locked."""
    await leave_an_orphan(store, clock)
    await hire(store, "worker-b")
    beat = store.open_beat("worker-a")
    statements.counts.clear()

    async def renew() -> None:
        assert await asyncio.to_thread(beat.renew, lease_seconds=LEASE_SECONDS)

    statements.before("lock_due", renew)
    assert await claim(store, "worker-b") == []

    assert statements.counts["lock_due"] == 1
    assert (await get_run(store, "run-1")).owner == "worker-a"
    await asyncio.to_thread(beat.close)


@pytest.mark.parametrize("is_orphan", [False, True], ids=["free", "orphan"])
async def test_claimant_that_is_retired_while_it_looks_gets_nothing(
    store: PostgresStore,
    clock: ManualClock,
    statements: Statements,
    is_orphan: bool,  # noqa: FBT001 (a parameter of the test)
) -> None:
    """Its session was ended by others: what it took would be an orphan again at once."""
    if is_orphan:
        await leave_an_orphan(store, clock)
    else:
        await begin(store)
    owner = "worker-a" if is_orphan else ""
    await hire(store, "worker-b")

    statements.before("lock_due", lambda: store.end_session("worker-b"))
    assert await claim(store, "worker-b") == []

    assert (await get_run(store, "run-1")).owner == owner


@pytest.mark.parametrize("is_orphan", [False, True], ids=["free", "orphan"])
async def test_run_that_others_take_while_one_looks_is_theirs(
    store: PostgresStore,
    other: PostgresStore,
    clock: ManualClock,
    statements: Statements,
    is_orphan: bool,  # noqa: FBT001 (a parameter of the test)
) -> None:
    """It is found and no longer free when it is to be locked: no conflict, and no second look."""
    if is_orphan:
        await leave_an_orphan(store, clock)
    else:
        await begin(store)
    for worker in ("worker-b", "worker-c"):
        await hire(store, worker)
    statements.counts.clear()

    statements.before("lock_due", lambda: claim(other, "worker-c"))
    assert await claim(store, "worker-b") == []

    assert (await get_run(store, "run-1")).owner == "worker-c"
    assert statements.counts["find_due"] == 2


@pytest.mark.parametrize("is_orphan", [False, True], ids=["free", "orphan"])
async def test_claimers_at_once_take_different_runs_and_never_conflict(
    store: PostgresStore,
    other: PostgresStore,
    clock: ManualClock,
    statements: Statements,
    is_orphan: bool,  # noqa: FBT001 (a parameter of the test)
) -> None:
    """A claimer passes over the runs that another one has locked, takes others, and does not wait."""
    names = [f"run-{number}" for number in range(4)]
    for name in names:
        await begin(store, name)
    if is_orphan:
        await hire(store, "worker-a")
        assert await claim(store, "worker-a") == names
        clock.advance(seconds=LEASE_SECONDS + 1)
    for worker in ("worker-b", "worker-c"):
        await hire(store, worker)
    statements.counts.clear()
    theirs: list[str] = []

    async def claim_meanwhile() -> None:
        theirs.extend(await claim(other, "worker-c", limit=2))

    statements.before("commit_changes", claim_meanwhile)
    ours = await in_time(claim(store, "worker-b", limit=2))

    assert (ours, theirs) == (names[:2], names[2:])
    assert statements.counts["find_due"] == 2


async def test_owner_that_writes_while_it_is_taken_over_is_looked_at_again(
    store: PostgresStore, clock: ManualClock, statements: Statements
) -> None:
    """It slept, and woke up for one more step: the take-over comes behind it."""
    tree = await leave_an_orphan(store, clock)
    await hire(store, "worker-b")
    statements.counts.clear()

    statements.before("commit_changes", tree.step)
    assert await claim(store, "worker-b") == ["run-1"]

    assert statements.counts["find_due"] == 2
    assert len(await store.read_journal(tree.journal)) == 4


async def test_owner_that_writes_all_the_time_is_left_alone(
    store: PostgresStore, clock: ManualClock, statements: Statements
) -> None:
    """No claim tries for ever to take over what moves."""
    tree = await leave_an_orphan(store, clock)
    await hire(store, "worker-b")
    statements.counts.clear()

    async def step_again() -> None:
        statements.before("commit_changes", step_again)
        await tree.step()

    statements.before("commit_changes", step_again)
    assert await claim(store, "worker-b") == []

    assert statements.counts["find_due"] == CLAIM_TRIES_MAX
    assert (await get_run(store, "run-1")).owner == "worker-a"
