"""Transactions of steps whose outcome is not wanted any more: they are rolled back at once, and hold nothing up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import outlive
from outlive._kernel.runtime.lease_deadline import LeaseDeadline
from outlive._kernel.runtime.steps import transactions
from outlive._kernel.runtime.steps.transactions import TransactionSteps
from outlive.events import StepSucceeded
from outlive.limits import Limits
from tests.engine.faults import FaultyStore, faulty, unavailable
from tests.engine.ledger import ENTRY, entries, ledger_credit_slowly, open_ledger
from tests.engine.support import Place, events_of, hold, in_time, note, stage

IN_MEMORY = pytest.mark.parametrize("place", ["memory"], indirect=True)
WITHOUT_SERVER = pytest.mark.parametrize("place", ["memory", "sqlite"], indirect=True)


@outlive.step(transaction=True)
async def ledger_credit_stubbornly(tx: Any, account: str) -> str:
    """Return although it is cancelled."""
    await tx.execute(ENTRY, account, 1)
    try:
        await stage.gate(account).pass_through()
    except asyncio.CancelledError:
        stage.call(f"{account} cancelled")
    return account


@outlive.step(transaction=True, retry=None)
async def ledger_credit_at_length(tx: Any, account: str) -> str:
    """Return more than may be stored."""
    await tx.execute(ENTRY, account, 1)
    return account * 5_000


@outlive.step(transaction=True)
async def ledger_credit_aloud(tx: Any, account: str) -> str:
    """Publish something, and something else when the first is on its way into the journal."""
    await tx.execute(ENTRY, account, 1)
    outlive.publish(entered=account)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    outlive.publish(counted=1)
    return account


@outlive.workflow
async def crediting_or_not(stubbornly: bool) -> str:  # noqa: FBT001
    """Take what comes first; a transaction that comes second must leave nothing."""
    await open_ledger()
    credit = ledger_credit_stubbornly if stubbornly else ledger_credit_slowly
    racers = [asyncio.ensure_future(hold("a")), asyncio.ensure_future(credit("ann"))]
    done, late = await asyncio.wait(racers, return_when=asyncio.FIRST_COMPLETED)
    for racer in late:
        racer.cancel()
    await note("after")
    return " ".join(sorted(racer.result() for racer in done))


@outlive.workflow
async def crediting_at_length() -> str:
    await open_ledger()
    try:
        return await ledger_credit_at_length("ann")
    except Exception as error:
        return str(error)


@outlive.workflow
async def crediting_with_another() -> list[str]:
    await open_ledger()
    return list(await asyncio.gather(hold("a"), ledger_credit_slowly("ann")))


@outlive.workflow
async def crediting_aloud() -> str:
    await open_ledger()
    return await ledger_credit_aloud("ann")


@WITHOUT_SERVER
async def test_step_that_returns_in_the_turn_in_which_it_is_given_up_leaves_nothing(place: Place) -> None:
    """Its transaction is rolled back, so that none waits for its locks; and it is not counted as done."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        run = await engine.start(crediting_or_not, False)
        await stage.gate("a").reached()
        await stage.gate("ann").reached()
        stage.gate("a").open()
        stage.gate("ann").open()
        assert "a" == await in_time(run.result())
        assert 1 == stores[0].calls["rollback"]
        assert 1 == engine.counters.transactions
    assert [] == await entries(place)


@IN_MEMORY
async def test_step_that_returns_although_it_is_cancelled_leaves_nothing(place: Place) -> None:
    """It swallows the cancellation and returns; what it wrote is rolled back all the same."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        run = await engine.start(crediting_or_not, True)
        await stage.gate("a").reached()
        await stage.gate("ann").reached()
        stage.gate("a").open()
        assert "a" == await in_time(run.result())
        assert 1 == stage.count("ann cancelled")
        assert 1 == stores[0].calls["rollback"]
    assert [] == await entries(place)


@WITHOUT_SERVER
async def test_result_that_is_too_large_rolls_back(place: Place) -> None:
    """The step has failed, so it has written nothing; and its run hears of it at once."""
    stores: list[FaultyStore] = []
    limits = Limits(payload_bytes_max=10_000, payload_inline_bytes_max=1_000)
    async with place.engine(wrap=faulty(stores), limits=limits) as engine:
        run = await engine.start(crediting_at_length)
        assert "10000" in (await in_time(run.result())).replace(",", "")
        assert 1 == stores[0].calls["rollback"]
        assert 1 == engine.counters.transactions
    assert [] == await entries(place)


@WITHOUT_SERVER
async def test_step_that_returned_in_the_same_turn_as_a_lost_transaction_is_not_called_again(place: Place) -> None:
    """A step that returned in the same turn as a transaction that was lost keeps its result."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        run = await engine.start(crediting_with_another)
        await stage.gate("a").reached()
        await stage.gate("ann").reached()
        stores[0].before["end"].append(unavailable())
        stage.gate("a").open()
        stage.gate("ann").open()
        assert ["a", "credited ann"] == await in_time(run.result())
        assert 3 == len(await events_of(run, StepSucceeded))
    assert ["a"] == stage.calls
    assert [("ann", 1)] == await entries(place)


@WITHOUT_SERVER
async def test_last_published_value_is_there_with_its_transaction(place: Place) -> None:
    """A value that a step publishes at its end is there with its transaction, even while an earlier one is being
    written."""
    async with place.engine() as engine:
        run = await engine.start(crediting_aloud)
        assert "ann" == await in_time(run.result())
        assert {"entered": "ann", "counted": 1} == await run.published()
    assert [("ann", 1)] == await entries(place)


async def test_refusals_that_no_run_asks_for_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest are forgotten, for their runs may be with other workers; at worst an attempt is made again."""
    monkeypatch.setattr(transactions, "VOID_KEPT_MAX", 2)
    begun: list[str] = []

    class Refused(Exception):
        """The database did not take it."""

    class Begun(Exception):
        """The function would be called now."""

    class Beginning:
        """A committer that says what it was asked for."""

        async def begin(self, *, seconds_max: float) -> Any:
            begun.append("begun")
            raise Begun

    committer: Any = Beginning()
    steps = TransactionSteps(committer, LeaseDeadline(lambda: 0.0), seconds_max=1)
    attempts = [_Attempt(f"step-{number}") for number in range(3)]
    for attempt in attempts:
        steps.void(1, attempt.command, _Transaction(), Refused())  # type: ignore[arg-type]
    for attempt in attempts[1:]:
        with pytest.raises(Refused):
            await steps.run(1, attempt, _unused)  # type: ignore[arg-type]
    assert [] == begun
    for attempt in attempts:
        with pytest.raises(Begun):
            await steps.run(1, attempt, _unused)  # type: ignore[arg-type]


async def test_attempt_that_gives_way_again_takes_no_more_room_among_the_refusals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is remembered once, however often it begins again, so the refusals of other attempts are not forgotten."""
    monkeypatch.setattr(transactions, "VOID_KEPT_MAX", 2)
    monkeypatch.setattr(transactions, "BACKOFF_FIRST_SECONDS", 0.0)
    tries = 0

    class Refused(Exception):
        """The database did not take it."""

    class GivesWay(_Transaction):
        """It ends so that another one can go on."""

        handle = None

        def gave_way(self, error: BaseException) -> bool:
            """It did."""
            return True

        async def rollback(self) -> None:
            """See `Transaction`."""

    class Beginning:
        """A committer with transactions that give way."""

        async def begin(self, *, seconds_max: float) -> Any:
            """See `Committer`."""
            return GivesWay()

    async def call(*_: Any) -> bytes:
        nonlocal tries
        tries += 1
        if tries < 4:
            raise GaveWayError
        return b"1"

    class GaveWayError(Exception):
        """Another transaction goes first."""

    committer: Any = Beginning()
    lease = LeaseDeadline(lambda: 0.0)
    lease.until = 1.0
    steps = TransactionSteps(committer, lease, seconds_max=1)
    other, own = _Attempt("other"), _Attempt("own")
    steps.void(1, other.command, _Transaction(), Refused())  # type: ignore[arg-type]
    assert await steps.run(1, own, call) == b"1"  # type: ignore[arg-type]

    assert tries == 4
    with pytest.raises(Refused):
        await steps.run(1, other, _unused)  # type: ignore[arg-type]


async def _unused(*_: Any) -> Any:
    raise AssertionError


class _Transaction:
    """As much of a transaction as is asked for after its commit."""

    def gave_way(self, error: BaseException) -> bool:
        """It did not."""
        return False


class _Attempt:
    """As much of an attempt as is asked for before its function is called."""

    def __init__(self, call: str) -> None:
        self.command = self
        self.run, self.call, self.attempt = 0, call, 1
        self.step, self.is_async = self, True
        self.run_id, self.workflow, self.name = "run", "flow", call
        self.transaction: Any = None

    def context(self) -> _Attempt:
        """Who makes it."""
        return self
