"""Steps in a transaction of the store's database: what they write is there exactly once, with their outcome."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

import outlive
from outlive import Retry
from outlive._kernel.runtime.commit import retry as patience
from outlive.errors import DefinitionError
from outlive.errors.store import TransactionOverError
from outlive.events import AttemptFailed, RunClaimed, StepFailed, StepSucceeded
from outlive.limits import Limits
from tests.engine.dying import deaths
from tests.engine.faults import FaultyStore, faulty, unavailable, unknown
from tests.engine.inside import (
    committer_of,
    go_silent,
    held_in,
    holders_in,
    outcomes_waiting_in,
    queued_in,
    transactions_in,
    worker_of,
)
from tests.engine.ledger import (
    entries,
    ledger_credit,
    ledger_credit_at_last,
    ledger_credit_on_thread,
    ledger_credit_slowly,
    ledger_credit_slowly_on_thread,
    ledger_dawdle,
    ledger_give,
    open_ledger,
)
from tests.engine.support import Place, events_of, hold, in_time, note, stage, until

pytestmark = pytest.mark.every_store

SHORT = 0.03


@outlive.workflow
async def ledger_crediting() -> list[Any]:
    await open_ledger()
    before = await note("before")
    return [
        before,
        await ledger_credit("ann", 10),
        await ledger_credit_on_thread("ann"),
        await ledger_credit("bob", cents=7),
    ]


@outlive.workflow
async def crediting_at_once(count: int) -> int:
    await open_ledger()
    steps = [ledger_credit(f"{number:02}", number) for number in range(count)]
    plain = [note(f"{number}") for number in range(count)]
    return len(await asyncio.gather(*steps, *plain))


@outlive.workflow
async def crediting_at_last() -> int:
    await open_ledger()
    return await ledger_credit_at_last("ann")


@outlive.workflow
async def crediting_in_time(on_thread: bool) -> str:  # noqa: FBT001
    await open_ledger()
    step = ledger_credit_slowly_on_thread if on_thread else ledger_credit_slowly
    try:
        return await step.options(timeout=SHORT)("ann")
    except TimeoutError:
        return await note("late")


@outlive.workflow
async def crediting_slowly() -> str:
    await open_ledger()
    return await ledger_credit_slowly("ann")


@outlive.workflow
async def crediting_nonsense() -> str:
    await open_ledger()
    try:
        await ledger_give("ann")
    except TypeError as error:
        return type(error).__name__
    return "went on"


@outlive.workflow
async def ledger_dawdling() -> int:
    await open_ledger()
    return await ledger_dawdle("ann")


@outlive.workflow
async def crediting_once() -> int:
    await open_ledger()
    return await ledger_credit("ann", 10)


RESULT = ["before", 10, 15, 7]
LEDGER = [("ann", 5), ("ann", 10), ("bob", 7)]


async def test_rows_of_a_step_are_there_with_its_outcome(place: Place) -> None:
    """The rows that an async or a sync step wrote are there with its outcome."""
    async with place.engine() as engine:
        assert RESULT == await in_time((await engine.start(ledger_crediting)).result())
    assert 4 == engine.counters.transactions
    assert LEDGER == await entries(place)


async def test_every_death_leaves_every_entry_once(place: Place) -> None:
    """The process dies at each commit in turn, before and after it."""
    lives = 0
    async for run_id in deaths(place, ledger_crediting):
        async with place.engine() as engine:
            result = await in_time((await engine.start(ledger_crediting, id=run_id)).result())
        lives += 1
        # Balances go on from run to run; every run adds its entries once.
        assert RESULT == [
            result[0],
            *(result[1] - 15 * (lives - 1), result[2] - 15 * (lives - 1)),
            result[3] - 7 * (lives - 1),
        ]
        assert sorted(LEDGER * lives) == await entries(place)
    assert lives > 10


async def test_exception_rolls_back_and_is_retried(place: Place) -> None:
    """Nothing of the failed attempts stays."""
    async with place.engine() as engine:
        run = await engine.start(crediting_at_last)
        assert 3 == await in_time(run.result())
        assert 2 == len(await events_of(run, AttemptFailed))
    assert [("ann", 3)] == await entries(place)


@pytest.mark.parametrize("on_thread", [False, True])
async def test_late_step_is_rolled_back(place: Place, *, on_thread: bool) -> None:
    """The writes of a step that is late are rolled back, even if its thread goes on."""
    async with place.engine() as engine:
        run = await engine.start(crediting_in_time, on_thread)
        assert "late" == await in_time(run.result())
        stage.gate("ann").open()
    assert [] == await entries(place)


async def test_cancelled_step_is_rolled_back(place: Place) -> None:
    """The run ends, and nothing is there; unless the step was first."""
    async with place.engine() as engine:
        run = await engine.start(crediting_slowly)
        await stage.gate("ann").reached()
        cancelling = asyncio.create_task(run.cancel())
        if place.path is None:
            with pytest.raises(outlive.errors.RunCancelledError):
                await in_time(run.result())
            await cancelling
        else:
            # A cancel is a write, and SQLite has one writer: while the transaction is open it comes too late.
            stage.gate("ann").open()
            assert "credited ann" == await in_time(run.result())
            await asyncio.gather(cancelling, return_exceptions=True)
    assert ([] if place.path is None else [("ann", 1)]) == await entries(place)


async def test_result_that_cannot_be_stored_rolls_back(place: Place) -> None:
    """The step has failed, so it has written nothing."""
    async with place.engine() as engine:
        assert "UnserialisableError" == await in_time((await engine.start(crediting_nonsense)).result())
    assert [] == await entries(place)


async def test_steps_of_one_tree_may_have_transactions_at_once(place: Place) -> None:
    """Each commits for itself, and what happens beside them is not held up."""
    async with place.engine() as engine:
        assert 20 == await in_time((await engine.start(crediting_at_once, 10)).result())
    assert [(f"{number:02}", number) for number in range(10)] == await entries(place)


@pytest.mark.parametrize("verb", ["begin", "end"])
async def test_store_that_is_away_fails_no_attempt(place: Place, verb: str) -> None:
    """The step is done again when it is back, and still has its first attempt."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        stores[0].before[verb].extend([unavailable(), unavailable()])
        run = await engine.start(ledger_crediting, id="run-1")

        assert RESULT == await in_time(run.result())
        assert [] == await events_of(run, AttemptFailed)
        assert {1} == {event.attempt for event in await events_of(run, StepSucceeded)}
        # What began under the old claim may still run: going on is a claim of its own, with a higher epoch.
        again = [2, 3] if verb == "end" else []
        assert again == [event.epoch for event in await events_of(run, RunClaimed)]
    assert LEDGER == await entries(place)


@outlive.workflow
async def crediting_beside() -> list[str]:
    await open_ledger()
    return list(await asyncio.gather(hold("a"), hold("b"), ledger_credit_slowly("ann")))


async def test_changes_before_a_lost_transaction_stay(place: Place) -> None:
    """A step that returned before a transaction was lost is not called again, even if it waited for the store with
    it."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        run = await engine.start(crediting_beside)
        for name in ("a", "b", "ann"):
            await stage.gate(name).reached()
        blocked = stores[0].gates["commit"] = asyncio.Event()
        stores[0].before["end"].append(unavailable())
        stage.gate("a").open()
        await in_time(stores[0].waiting["commit"].wait())
        stage.gate("b").open()

        async def is_queued() -> bool:
            return queued_in(committer_of(engine)) > 0

        await until(is_queued)
        stage.gate("ann").open()

        async def is_lost() -> bool:
            return stores[0].calls["end"] == 2 and not transactions_in(committer_of(engine))

        await until(is_lost)
        looked = stores[0].calls["claim_runs"]

        async def has_looked() -> bool:
            return stores[0].calls["claim_runs"] > looked + 2

        await until(has_looked)
        del stores[0].gates["commit"]
        blocked.set()
        assert ["a", "b", "credited ann"] == await in_time(run.result())
    assert ["a", "b"] == stage.calls
    assert [("ann", 1)] == await entries(place)


@outlive.workflow
async def crediting_between() -> list[str]:
    await open_ledger()
    return list(await asyncio.gather(hold("a"), hold("b"), ledger_credit_slowly("ann"), hold("c")))


@outlive.workflow
async def crediting_before() -> list[str]:
    await open_ledger()
    return list(await asyncio.gather(ledger_credit_slowly("ann"), hold("c")))


async def test_lost_transaction_refuses_the_change_behind_it(place: Place) -> None:
    """A change that came after a transaction and waits for it is refused when the transaction is lost; what it said is
    written again, once."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        run = await engine.start(crediting_before)
        for name in ("ann", "c"):
            await stage.gate(name).reached()
        unended = stores[0].gates["end"] = asyncio.Event()
        stage.gate("ann").open()
        await in_time(stores[0].waiting["end"].wait())
        stage.gate("c").open()

        async def is_held() -> bool:
            return held_in(committer_of(engine)) > 0

        await until(is_held)
        stores[0].before["end"].append(unavailable())
        del stores[0].gates["end"]
        unended.set()
        assert ["credited ann", "c"] == await in_time(run.result())
    assert [("ann", 1)] == await entries(place)


async def test_lost_transaction_keeps_earlier_changes(place: Place) -> None:
    """A lost transaction keeps the changes that came before it, and an outcome that came after it is taken again; no
    caller goes on before everything that it said is durable."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        run = await engine.start(crediting_between)
        committer = committer_of(engine)
        for name in ("a", "b", "ann"):
            await stage.gate(name).reached()
        blocked = stores[0].gates["commit"] = asyncio.Event()
        unended = stores[0].gates["end"] = asyncio.Event()
        stage.gate("a").open()
        await in_time(stores[0].waiting["commit"].wait())
        stage.gate("b").open()

        async def is_queued() -> bool:
            return queued_in(committer) > 0

        await until(is_queued)
        stage.gate("ann").open()
        await in_time(stores[0].waiting["end"].wait())
        stage.gate("c").open()

        async def is_waiting() -> bool:
            return outcomes_waiting_in(engine) > 0

        await until(is_waiting)
        stores[0].before["end"].append(unavailable())
        del stores[0].gates["end"]
        unended.set()

        async def is_lost() -> bool:
            return transactions_in(committer) == holders_in(committer) == 0

        await until(is_lost)
        looked = stores[0].calls["claim_runs"]

        async def has_looked() -> bool:
            return stores[0].calls["claim_runs"] > looked + 2

        await until(has_looked)
        del stores[0].gates["commit"]
        blocked.set()
        assert ["a", "b", "credited ann", "c"] == await in_time(run.result())
    assert 1 == stage.count("a") == stage.count("b")
    assert [("ann", 1)] == await entries(place)


@pytest.mark.parametrize("is_done", [False, True], ids=["not done", "done"])
async def test_commit_without_an_answer_is_read_back(place: Place, *, is_done: bool) -> None:
    """Whether it was done or not, every entry is there once; and if it was done, nothing is done again for it."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        faults = stores[0].after if is_done else stores[0].before
        faults["end"].extend([unknown(), unknown()])
        stores[0].before["read_journal"].append(unavailable())
        run = await engine.start(ledger_crediting, id="run-1")

        assert RESULT == await in_time(run.result())
        assert 2 == engine.counters.unknowns
        assert (4 if is_done else 6) == stores[0].calls["begin"]
        assert (0 if is_done else 2) == len(await events_of(run, RunClaimed))
    assert LEDGER == await entries(place)


async def test_commits_that_are_read_back_at_the_same_time_are_all_tried_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store is away when several look for theirs: each of them is answered when it is back."""
    monkeypatch.setattr(patience, "BACKOFF_MAX_SECONDS", 0.05)
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        (store,) = stores
        assert 10 == await in_time((await engine.start(crediting_once)).result())
        looked = store.calls["read_journal"]
        store.after["end"].extend([unknown()] * 2)
        store.before["read_journal"].extend([unavailable()] * 2)
        store.gates["read_journal"] = asyncio.Event()
        runs = [await engine.start(crediting_at_last) for _ in range(2)]

        async def both_look() -> bool:
            return store.calls["read_journal"] == looked + 2

        await until(both_look)
        store.gates.pop("read_journal").set()

        assert [3, 3] == [await in_time(run.result()) for run in runs]
        assert 2 == engine.counters.unknowns
    assert [("ann", 3), ("ann", 3), ("ann", 10)] == await entries(place)


async def test_commit_that_the_database_refuses_fails_the_step(place: Place) -> None:
    """An error that the database raises only at the commit, such as a deferred constraint, is an error of the step."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        run = await engine.start(crediting_at_last, id="run-1")
        assert 3 == await in_time(run.result())
        stores[0].before["end"].append(ValueError("no such account"))
        run = await engine.start(crediting_once, id="run-2")
        with pytest.raises(outlive.errors.RunFailedError, match="no such account"):
            await in_time(run.result())
        (failed,) = await events_of(run, StepFailed)
        assert "ValueError" == failed.failure.type
    assert [("ann", 3)] == await entries(place)


@outlive.step(transaction=True)
async def ledger_open_accounts(tx: Any) -> None:
    await tx.execute("CREATE TABLE accounts (name TEXT PRIMARY KEY)")
    await tx.execute(
        "CREATE TABLE entries (account TEXT REFERENCES accounts (name) DEFERRABLE INITIALLY DEFERRED, cents INTEGER)"
    )


@outlive.step(transaction=True, retry=Retry(attempts=2, first=0, jitter=0))
async def ledger_enter_late(tx: Any, account: str) -> int:
    """Forget the account at first."""
    attempt = outlive.current_step().attempt
    await tx.execute("INSERT INTO entries (account, cents) VALUES ($1, 5)", account)
    if attempt == 2:
        await tx.execute("INSERT INTO accounts (name) VALUES ($1)", account)
    return int(await tx.fetchval("SELECT count(*) FROM entries"))


@outlive.workflow
async def ledger_entering_late() -> list[int]:
    await ledger_open_accounts()
    return [await ledger_enter_late("ann"), await ledger_enter_late("bob")]


async def test_deferred_constraint_fails_the_attempt(place: Place) -> None:
    """The database says so only at the commit: the attempt has failed, and the next one is given another chance."""
    async with place.engine() as engine:
        run = await engine.start(ledger_entering_late)
        assert [1, 2] == await in_time(run.result())
        failed = [event.failure.type for event in await events_of(run, AttemptFailed)]
    assert 2 == len(failed)
    assert all("Constraint" in name or "ForeignKey" in name for name in failed), failed


@outlive.step(transaction=True, retry=None)
async def ledger_misspell(tx: Any) -> Any:
    return await tx.fetchval('SELECT "acount"')


@outlive.workflow
async def ledger_misspelling() -> Any:
    return await ledger_misspell()


async def test_name_that_no_column_has_is_an_error_on_every_store(place: Place) -> None:
    """SQLite would take it for a text, and PostgreSQL refuses it: a test in memory shows what production will do."""
    async with place.engine() as engine:
        run = await engine.start(ledger_misspelling)
        with pytest.raises(outlive.errors.RunFailedError, match="acount"):
            await in_time(run.result())


async def test_step_that_outlasts_its_transaction_has_failed(place: Place) -> None:
    """It returns as if nothing had happened; its transaction was over long before."""
    async with place.engine(limits=Limits(transaction_seconds_max=1)) as engine:
        run = await engine.start(ledger_dawdling)
        assert 2 == await in_time(run.result())
        (failed,) = await events_of(run, AttemptFailed)
        assert f"outlive.errors.{TransactionOverError.__name__}" == failed.failure.type
    assert [("ann", 2)] == await entries(place)


async def test_nothing_stays_when_another_worker_was_first(place: Place) -> None:
    """The run was taken over while the step ran: what it wrote goes, and the other owner's entry stays."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores), grace_seconds=0) as first:
        blocked = stores[0].gates["end"] = asyncio.Event()
        stores[0].gates["end"].set()
        run = await first.start(crediting_slowly, id="run-1")
        await stage.gate("ann").reached()
        blocked.clear()
        stage.gate("ann").open()
        await in_time(stores[0].waiting["end"].wait())
        if place.path is not None:
            # No other process can write while a transaction of SQLite is open: there is no such moment.
            blocked.set()
            assert "credited ann" == await in_time(run.result())
            return
        await go_silent(stores[0], worker_of(first).id)
        async with place.engine() as second:

            async def is_claimed() -> bool:
                return bool(await events_of(second.get(run.id), RunClaimed))

            await until(is_claimed)
            blocked.set()
            assert "credited ann" == await in_time(second.get(run.id).result())

            async def is_refused() -> bool:
                return first.counters.conflicts == 1

            await until(is_refused)
    assert [("ann", 1)] == await entries(place)


async def test_clean_stop_rolls_back_what_it_cancels(place: Place) -> None:
    """The next engine does it again."""
    async with place.engine(grace_seconds=0) as engine:
        await engine.start(crediting_slowly, id="run-1")
        await stage.gate("ann").reached()
    stage.gate("ann").open()
    async with place.engine() as engine:
        assert "credited ann" == await in_time(engine.get("run-1").result())
    assert [("ann", 1)] == await entries(place)


async def test_a_stop_ends_the_steps_that_a_claim_waits_for(place: Place) -> None:
    """On SQLite a claim is a write, and waits until the transaction of a step is over."""
    stores: list[FaultyStore] = []
    async with place.engine(grace_seconds=0, poll_seconds=0.001, wrap=faulty(stores)) as engine:
        claims = stores[0].gates["claim_runs"] = asyncio.Event()
        await in_time(stores[0].waiting["claim_runs"].wait())
        await engine.start(crediting_slowly, id="run-1")
        await stage.gate("ann").reached()
        claims.set()
    stage.gate("ann").open()
    async with place.engine() as engine:
        assert "credited ann" == await in_time(engine.get("run-1").result())
    assert [("ann", 1)] == await entries(place)


class ScriptedAnswer:
    """A transaction of a test."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def execute(self, *asked: Any) -> None:
        """Note what was asked."""
        self.asked.append(asked)

    def fetchval(self, *asked: Any) -> int:
        """Note what was asked."""
        self.asked.append(asked)
        return 42


def test_outside_a_run_the_caller_gives_the_transaction() -> None:
    """So a test can say what the database answers."""
    tx = ScriptedAnswer()

    assert 42 == ledger_credit_on_thread.fn(tx, "ann", 3)
    assert 2 == len(tx.asked)


def test_function_without_a_place_for_the_transaction_is_refused() -> None:
    """When it is defined, in words."""
    with pytest.raises(DefinitionError, match=r"write `def no_place\(tx, \.\.\.\)`"):
        outlive.step(transaction=True, name="no_place")(no_place)  # type: ignore[arg-type]
    assert inspect.iscoroutinefunction(ledger_credit.fn)


def no_place(*, account: str) -> None: ...
