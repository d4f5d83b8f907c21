"""The committer: how it batches, counts and answers, and what it does when a transaction of a step is lost."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Sequence
from typing import Any

import pytest

from outlive._kernel.runtime.commit import retry as patience
from outlive._kernel.runtime.commit.committer import BATCH_MIN, Committer, Within
from outlive._kernel.store.contract import Change, Outcome
from outlive._kernel.store.memory import MemoryStore
from outlive.errors import CommitUnknownError, StoreError, StoreUnavailableError
from outlive.telemetry import Counters
from outlive.testing.clock import ManualClock
from outlive_conformance.suite.builders import Writer, begin, new_tree, stepped
from tests.engine.support import in_time, until

BATCH_MAX = 1000


def away() -> StoreUnavailableError:
    """The store does not answer; nothing was done."""
    return StoreUnavailableError("the store", "it is down")


def unanswered() -> CommitUnknownError:
    """The store has not said what it did."""
    return CommitUnknownError("the store", "the line went dead")


class Planned(MemoryStore):
    """A store that notes the size of every batch, and fails as the test says."""

    def __init__(self) -> None:
        super().__init__(clock=ManualClock())
        self.sizes: list[int] = []
        self.faults: list[Exception] = []
        """Raised by the next commits, which do nothing."""
        self.read_faults: list[Exception] = []
        """Raised by the next reads of a journal."""
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.blocks_at = 0
        """Which commit waits, as all do behind it."""

    async def commit(self, changes: Sequence[Change]) -> list[tuple[Outcome, int]]:
        """See `Store`."""
        self.sizes.append(len(changes))
        if len(self.sizes) == self.blocks_at:
            self.is_open.clear()
        await self.is_open.wait()
        if self.faults:
            raise self.faults.pop(0)
        return await super().commit(changes)

    async def read_journal(self, *args: Any, **kwargs: Any) -> Any:
        """See `Store`."""
        if self.read_faults:
            raise self.read_faults.pop(0)
        return await super().read_journal(*args, **kwargs)


class StepTransaction:
    """A transaction of a step that ends as the test says."""

    handle: Any = None

    def __init__(self, store: Planned, *, fault: Exception | None = None, is_done: bool = True) -> None:
        self._store, self._fault, self._is_done = store, fault, is_done
        self.is_let_on = asyncio.Event()
        self.rollbacks = 0

    async def commit(self, changes: Sequence[Change], *, behind: Any = None) -> Any:
        """Commit, or fail."""
        del behind
        await self.is_let_on.wait()
        outcomes = await MemoryStore.commit(self._store, changes) if self._is_done else []
        if self._fault is not None:
            raise self._fault
        return outcomes

    async def rollback(self) -> None:
        """Note it."""
        self.rollbacks += 1

    def gave_way(self, error: BaseException) -> bool:
        """Never."""
        del error
        return False


class Heard:
    """Which caller got which outcome, in order."""

    def __init__(self) -> None:
        self.answers: list[tuple[str, Any]] = []

    def answer(self, name: str) -> Any:
        """What hears the outcome of a change."""
        return lambda outcome, journal: self.answers.append((name, outcome))

    def void(self, name: str) -> Any:
        """What hears that a transaction is lost."""
        return lambda reason: self.answers.append((name, reason))


def new_committer(store: Planned, counters: Counters | None = None, **options: Any) -> Committer:
    """A committer of a test."""
    return Committer(store, counters=counters or Counters(), **({"batch_max": BATCH_MAX} | options))


async def until_idle(committer: Committer) -> None:
    """Return when everything has its outcome, and every waiting caller has got it."""

    async def is_idle() -> bool:
        return committer.is_idle

    await until(is_idle)
    await asyncio.sleep(0)


def next_change(tree: Writer) -> Change:
    """What a tree says next."""
    change = tree.change(stepped(tree.store))
    tree.seq += 1
    return change


# -- Batches -----------------------------------------------------------------------------------------------------------


async def test_batch_takes_what_waits_and_no_more_than_it_may() -> None:
    """Everything that is there at once is one commit, up to the largest batch; nothing is said twice."""
    store, heard = Planned(), Heard()
    committer = new_committer(store, batch_max=4)
    for number in range(6):
        committer.submit(new_tree(store, f"run-{number}"), heard.answer(f"{number}"))
    await until_idle(committer)

    assert [4, 2] == store.sizes
    assert [(f"{number}", Outcome.COMMITTED) for number in range(6)] == heard.answers


async def test_half_of_what_moves_is_written_while_the_other_half_is_answered() -> None:
    """Where a server writes; but few changes are not worth two commits."""
    store, heard = Planned(), Heard()
    committer = new_committer(store, overlaps=True)
    for number in range(41):
        committer.submit(new_tree(store, f"run-{number}"), heard.answer(f"{number}"))
    await until_idle(committer)
    assert [21, 20] == store.sizes
    assert [f"{number}" for number in range(41)] == [name for name, _ in heard.answers]

    for number in range(BATCH_MIN):
        committer.submit(new_tree(store, f"few-{number}"), heard.answer(f"few {number}"))
    await until_idle(committer)
    assert [21, 20, BATCH_MIN] == store.sizes

    committer.gather()
    for number in range(41):
        committer.submit(new_tree(store, f"last-{number}"), heard.answer(f"last {number}"))
    await until_idle(committer)
    assert [21, 20, BATCH_MIN, 41] == store.sizes


async def test_counters_say_what_was_written_and_what_was_refused() -> None:
    """A change that was refused has written nothing, and what its tree said behind it is refused with it."""
    store, heard, counters = Planned(), Heard(), Counters()
    committer = new_committer(store, counters)
    tree, other = await begin(store, "tree"), await begin(store, "other")
    twin = tree.twin()
    await twin.step("another worker's")
    store.sizes.clear()
    written, refused, behind = next_change(other), next_change(tree), next_change(tree)
    store.is_open.clear()
    committer.submit(written, heard.answer("written"))
    committer.submit(refused, heard.answer("refused"))
    await asyncio.sleep(0)
    committer.submit(behind, heard.answer("behind"))
    store.is_open.set()
    await until_idle(committer)

    assert [
        ("written", Outcome.COMMITTED),
        ("refused", Outcome.CONFLICT),
        ("behind", Outcome.CONFLICT),
    ] == heard.answers
    assert [2] == store.sizes
    assert 1 == counters.commits
    assert 2 == counters.conflicts
    assert len(written.rows) == counters.rows
    assert sum(len(row[3]) for row in written.rows) == counters.bytes


async def test_answer_that_fails_does_not_stop_the_other_answers() -> None:
    """It is a bug, and the log has it."""
    store, heard = Planned(), Heard()
    committer = new_committer(store)

    def fail(outcome: Outcome, journal: int) -> None:
        raise ZeroDivisionError

    committer.submit(new_tree(store, "bad"), fail)
    committer.submit(new_tree(store, "good"), heard.answer("good"))
    await until_idle(committer)
    assert [("good", Outcome.COMMITTED)] == heard.answers


async def test_after_the_end_nothing_more_is_taken() -> None:
    """Neither a change nor a transaction."""
    store, heard = Planned(), Heard()
    committer = new_committer(store)
    tree = await begin(store, "tree")
    store.sizes.clear()
    store.is_open.clear()
    committer.submit(new_tree(store, "on-its-way"), heard.answer("on its way"))
    await asyncio.sleep(0)
    committer.abandon()
    committer.submit(new_tree(store, "late"), heard.answer("late"))
    transaction = StepTransaction(store)
    committer.submit_within(Within(transaction, next_change(tree), heard.answer("late"), heard.void("late")))
    store.is_open.set()
    transaction.is_let_on.set()
    await until_idle(committer)

    assert [] == heard.answers
    assert [1] == store.sizes
    assert 1 == len(await store.read_journal(tree.journal))


async def test_committed_changes_are_answered_although_the_engine_ends_in_the_next_batch() -> None:
    """A committer that is abandoned during its second batch has answered the first one, drops the second, and leaves no
    unhandled error."""
    store, heard, errors = Planned(), Heard(), list[dict[str, Any]]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
    committer = new_committer(store, overlaps=True)
    for number in range(2 * BATCH_MIN):
        committer.submit(new_tree(store, f"run-{number}"), heard.answer(f"{number}"))
    store.blocks_at = 2

    async def are_two() -> bool:
        return len(store.sizes) == 2

    await until(are_two)
    committer.abandon()
    await until_idle(committer)
    gc.collect()

    assert [(f"{number}", Outcome.COMMITTED) for number in range(BATCH_MIN)] == heard.answers
    assert await store.find_run(f"run-{BATCH_MIN}") is None
    assert [] == errors


async def test_waiting_for_the_last_outcomes_ends_when_the_store_is_away_for_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A store that only takes its time is waited for; one that is away is not, and what waits for it is not lost."""
    monkeypatch.setattr(patience, "BACKOFF_FIRST_SECONDS", 0.002)
    store, heard = Planned(), Heard()
    committer = new_committer(store)
    store.is_open.clear()
    committer.submit(new_tree(store, "slow"), heard.answer("slow"))
    draining = asyncio.ensure_future(committer.drain(outage_seconds_max=0))
    await asyncio.sleep(0.06)
    assert not draining.done()
    store.is_open.set()
    assert await in_time(draining)
    assert [("slow", Outcome.COMMITTED)] == heard.answers

    store.faults = [away()] * 1_000
    committer.submit(new_tree(store, "later"), heard.answer("later"))
    assert not await in_time(committer.drain(outage_seconds_max=0.03))
    assert str(away()) == committer.trouble
    assert 1 == len(heard.answers)
    store.faults.clear()
    assert await in_time(committer.drain(outage_seconds_max=20))
    assert [("slow", Outcome.COMMITTED), ("later", Outcome.COMMITTED)] == heard.answers


# -- A store in trouble ------------------------------------------------------------------------------------------------


async def test_log_says_once_that_the_store_is_away_and_once_that_it_is_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Three failed tries log one line with the number of changes that wait, and one line when the store is back."""
    monkeypatch.setattr(patience, "BACKOFF_FIRST_SECONDS", 0.001)
    caplog.set_level(logging.WARNING, "outlive")
    store, heard = Planned(), Heard()
    committer = new_committer(store, batch_max=1)
    store.faults = [away(), away(), away()]
    for name in ("a", "b", "c"):
        committer.submit(new_tree(store, name), heard.answer(name))
    await until_idle(committer)

    assert 3 == len(heard.answers)
    first, last = [record.getMessage() for record in caplog.records]
    assert first.endswith("it is down; 3 changes wait and will be tried again")
    assert "the store is back" == last
    assert "" == committer.trouble


@pytest.mark.parametrize("is_answered", [pytest.param(True, id="answered"), pytest.param(False, id="withdrawn")])
async def test_store_has_answered_only_what_it_was_given(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, *, is_answered: bool
) -> None:
    """A start that is withdrawn before the store took it says nothing of the store: the next start has the whole
    time."""
    monkeypatch.setattr(patience, "BACKOFF_FIRST_SECONDS", 0.001)
    store, heard = Planned(), Heard()
    committer = new_committer(store)
    store.faults = [away(), away()]
    change = new_tree(store, "a")
    committer.submit(change, heard.answer("a"))
    if not is_answered:
        assert committer.withdraw(change.runs[0].nonce)
    await until_idle(committer)

    assert [("a", Outcome.COMMITTED if is_answered else Outcome.CONFLICT)] == heard.answers
    assert is_answered == (committer.answered_at > 0)
    assert is_answered == ("the store is back" in caplog.text)


async def test_store_that_is_back_says_what_it_refuses(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have gone back meanwhile, or another worker went on: what waited is not always written."""
    monkeypatch.setattr(patience, "BACKOFF_FIRST_SECONDS", 0.001)
    store, heard = Planned(), Heard()
    committer = new_committer(store)
    await MemoryStore.commit(store, [new_tree(store, "taken")])
    store.faults = [away()]
    for name in ("taken", "free"):
        committer.submit(new_tree(store, name), heard.answer(name))
    await until_idle(committer)

    assert [("taken", Outcome.CONFLICT), ("free", Outcome.COMMITTED)] == heard.answers
    assert "the store is back; it refuses 1 of the 2 changes that it was given" in caplog.text


async def test_trouble_without_a_text_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a store that fails silently is not taken for one that is well."""
    monkeypatch.setattr(patience, "BACKOFF_FIRST_SECONDS", 0.001)
    store, heard = Planned(), Heard()
    committer = new_committer(store)
    troubles: list[str] = []

    class SilentError(StoreError):
        def __str__(self) -> str:
            return ""

    class Noted(list[Exception]):
        def pop(self, place: Any = -1) -> Exception:
            troubles.append(committer.trouble)
            return super().pop(place)

    store.faults = Noted([SilentError(), SilentError()])
    committer.submit(new_tree(store, "a"), heard.answer("a"))
    await until_idle(committer)
    assert ["", "SilentError()"] == troubles
    assert [("a", Outcome.COMMITTED)] == heard.answers


async def test_change_that_the_store_always_refuses_is_given_up_and_its_neighbours_are_not(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is tried as often as the limit says, alone, and the log says why."""
    monkeypatch.setattr(patience, "BACKOFF_FIRST_SECONDS", 0.001)

    class Picky(Planned):
        tries = 0

        async def commit(self, changes: Sequence[Change]) -> list[tuple[Outcome, int]]:
            if any(run.id == "poison" for change in changes for run in change.runs):
                self.tries += 1
                raise StoreError("no such thing can be stored")
            return await super().commit(changes)

    store, heard = Picky(), Heard()
    committer = new_committer(store)
    for name in ("a", "poison", "b"):
        committer.submit(new_tree(store, name), heard.answer(name))
    await until_idle(committer)

    outcomes = {"a": Outcome.COMMITTED, "poison": Outcome.CONFLICT, "b": Outcome.COMMITTED}
    assert list(outcomes.items()) == heard.answers
    assert 1 + patience.REFUSALS_MAX == store.tries
    assert [1, 1] == store.sizes
    assert 1 == sum("is discarded: no such thing can be stored" in record.getMessage() for record in caplog.records)
    assert "" == committer.trouble


async def test_only_what_is_not_there_is_written_again_after_a_commit_without_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One of two was written: the other one is given to the store again, alone."""
    monkeypatch.setattr(patience, "BACKOFF_FIRST_SECONDS", 0.001)
    store, heard, counters = Planned(), Heard(), Counters()
    committer = new_committer(store, counters)
    written, lost = new_tree(store, "written"), new_tree(store, "lost")
    await MemoryStore.commit(store, [written])
    store.faults = [unanswered()]
    committer.submit(written, heard.answer("written"))
    committer.submit(lost, heard.answer("lost"))
    await until_idle(committer)

    assert [("written", Outcome.COMMITTED), ("lost", Outcome.COMMITTED)] == heard.answers
    assert [2, 1] == store.sizes
    assert (1, 0) == (counters.unknowns, counters.conflicts)


# -- Transactions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_done", [True, False], ids=["done", "not done"])
async def test_transaction_without_an_answer_is_read_back_when_the_store_is_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, is_done: bool
) -> None:
    """A transaction whose commit has no answer is read back, with the change of its tree that went before it, and
    either both count as committed or only the earlier change is written again."""
    monkeypatch.setattr(patience, "BACKOFF_MAX_SECONDS", 0.005)
    store, heard, counters = Planned(), Heard(), Counters()
    committer = new_committer(store, counters)
    tree = await begin(store, "tree")
    store.read_faults = [away()]
    before, within = next_change(tree), next_change(tree)
    transaction = StepTransaction(store, fault=unanswered(), is_done=is_done)
    transaction.is_let_on.set()
    committer.submit(before, heard.answer("before"))
    committer.submit_within(Within(transaction, within, heard.answer("within"), heard.void("within")))

    async def is_over() -> bool:
        return bool(heard.answers)

    await until(is_over)
    assert "" == committer.trouble
    assert 1 == sum("the store is back" in record.getMessage() for record in caplog.records)
    await until_idle(committer)
    if is_done:
        assert [("before", Outcome.COMMITTED), ("within", Outcome.COMMITTED)] == heard.answers
        assert (1, 1, 2) == (counters.transactions, counters.commits, counters.rows)
    else:
        assert [("within", None), ("before", Outcome.COMMITTED)] == heard.answers
        assert (0, 1, 1) == (counters.transactions, counters.commits, counters.rows)
    assert 1 == counters.unknowns
    assert 0 == transaction.rollbacks


async def test_transaction_behind_a_lost_one_is_rolled_back() -> None:
    """It builds on what is not there; and so does what its tree said behind both. All of that counts as refused."""
    store, heard, counters = Planned(), Heard(), Counters()
    committer = new_committer(store, counters)
    tree = await begin(store, "tree")
    lost, behind = StepTransaction(store, fault=away(), is_done=False), StepTransaction(store)
    committer.submit_within(Within(lost, next_change(tree), heard.answer("lost"), heard.void("lost")))
    committer.submit_within(Within(behind, next_change(tree), heard.answer("behind"), heard.void("behind")))
    committer.submit(next_change(tree), heard.answer("last"))
    assert not committer.is_idle
    behind.is_let_on.set()
    lost.is_let_on.set()
    await until_idle(committer)

    assert [("lost", None), ("behind", Outcome.CONFLICT), ("last", Outcome.CONFLICT)] == heard.answers
    assert (0, 1) == (lost.rollbacks, behind.rollbacks)
    assert (2, 0, 0) == (counters.conflicts, counters.transactions, counters.commits)
    assert 1 == len(await store.read_journal(tree.journal))


async def test_transactions_of_a_tree_commit_in_the_order_in_which_they_came() -> None:
    """Two transactions of one tree commit in their order, with the changes before, between and after them in their
    places."""
    store, heard, counters = Planned(), Heard(), Counters()
    committer = new_committer(store, counters)
    tree = await begin(store, "tree")
    first, second = StepTransaction(store), StepTransaction(store)
    committer.submit_within(Within(first, next_change(tree), heard.answer("first"), heard.void("first")))
    committer.submit(next_change(tree), heard.answer("between"))
    committer.submit_within(Within(second, next_change(tree), heard.answer("second"), heard.void("second")))
    committer.submit(next_change(tree), heard.answer("last"))
    second.is_let_on.set()
    first.is_let_on.set()
    await until_idle(committer)

    names = ["first", "between", "second", "last"]
    assert [(name, Outcome.COMMITTED) for name in names] == heard.answers
    assert 2 == counters.transactions
    assert 5 == len(await store.read_journal(tree.journal))


async def test_transaction_that_the_database_refuses_says_why() -> None:
    """That is the step's own failure; a store that is away is not."""
    store, heard = Planned(), Heard()
    committer = new_committer(store)
    tree = await begin(store, "tree")
    reason = ValueError("no such account")
    transaction = StepTransaction(store, fault=reason, is_done=False)
    transaction.is_let_on.set()
    committer.submit_within(Within(transaction, next_change(tree), heard.answer("step"), heard.void("step")))
    await until_idle(committer)
    assert [("step", reason)] == heard.answers


async def test_stopping_waits_for_a_transaction_that_is_on_its_way() -> None:
    """Its caller gets the outcome before the engine is gone."""
    store, heard = Planned(), Heard()
    committer = new_committer(store)
    tree = await begin(store, "tree")
    transaction = StepTransaction(store)
    committer.submit_within(Within(transaction, next_change(tree), heard.answer("step"), heard.void("step")))
    draining = asyncio.ensure_future(committer.drain(outage_seconds_max=0))
    asyncio.get_running_loop().call_later(0.005, transaction.is_let_on.set)
    assert await in_time(draining)
    assert [("step", Outcome.COMMITTED)] == heard.answers


async def test_transaction_that_is_not_wanted_is_rolled_back() -> None:
    """The committer rolls back a transaction that its caller does not want any more."""
    store = Planned()
    committer = new_committer(store)
    transaction = StepTransaction(store)
    committer.roll_back(transaction)
    await until_idle(committer)
    assert 1 == transaction.rollbacks
