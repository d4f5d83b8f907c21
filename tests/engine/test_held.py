"""Changes that the store holds: they step aside, and everybody else goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

import pytest

from outlive._runtime.commit import held
from outlive._runtime.commit.committer import Committer
from outlive._store.contract import Change, Outcome
from outlive._store.memory import MemoryStore
from outlive.errors import CommitUnknownError, StoreUnavailableError
from outlive.telemetry import Counters
from outlive.testing.clock import ManualClock
from outlive.testing.conformance.builders import begin, new_tree, stepped

PATIENCE_SECONDS = 20


class Holding(MemoryStore):
    """Holds what takes an id that is in somebody's hands."""

    def __init__(self) -> None:
        super().__init__(clock=ManualClock())
        self.ids: set[str] = set()
        self.looks = 0
        self.faults: list[Exception] = []
        """Raised by the next looks."""
        self.lost_answers = 0
        """How many commits are done and not answered."""

    def _is_held(self, change: Change) -> bool:
        runs = [*change.runs, *(run for start in change.starts for run in start.runs)]
        return any(run.id in self.ids for run in runs)

    async def commit(self, changes: Sequence[Change]) -> list[tuple[Outcome, int]]:
        """See `Store`."""
        if self.lost_answers:
            self.lost_answers -= 1
            await super().commit(changes)
            raise CommitUnknownError("the store", "the line went dead")
        free = [change for change in changes if not self._is_held(change)]
        outcomes = iter(await super().commit(free))
        return [(Outcome.HELD, change.journal) if self._is_held(change) else next(outcomes) for change in changes]

    async def find_free(self, changes: Sequence[Change]) -> list[int]:
        """See `Store`."""
        self.looks += 1
        if self.faults:
            raise self.faults.pop()
        return [place for place, change in enumerate(changes) if not self._is_held(change)]


class Told:
    """Who was told what, in order."""

    def __init__(self) -> None:
        self.answers: list[tuple[str, Outcome]] = []

    def __call__(self, name: str, outcome: Outcome, journal: int) -> None:
        self.answers.append((name, outcome))


def new_committer(store: Holding, counters: Counters | None = None) -> Committer:
    """One that overlaps."""
    return Committer(store, counters=counters or Counters(), batch_max=1000, overlaps=True)


async def until_told(told: Told, count: int) -> None:
    """Return when so many answers have come."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(told.answers) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.002)


async def until_looked(store: Holding, looks: int) -> None:
    """Return when the store was asked so often what is free."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while store.looks < looks:  # noqa: ASYNC110
            await asyncio.sleep(0.002)


async def test_held_start_steps_aside_until_its_id_is_free() -> None:
    """Nobody is told anything of it before it has an outcome."""
    store, told, counters = Holding(), Told(), Counters()
    committer = new_committer(store, counters)
    store.ids = {"held"}

    committer.submit(new_tree(store, "held"), partial(told, "held"))
    committer.submit(new_tree(store, "other"), partial(told, "other"))
    await until_looked(store, 2)
    assert told.answers == [("other", Outcome.COMMITTED)]
    idle_while_held = committer.is_idle
    store.ids = set()
    await until_told(told, 2)

    assert told.answers[1] == ("held", Outcome.COMMITTED)
    assert (idle_while_held, committer.is_idle) == (False, True)
    assert counters.held == 1


async def test_what_a_tree_says_next_waits_behind_what_is_held() -> None:
    """In order, and the other trees go on."""
    store, told = Holding(), Told()
    tree, other = await begin(store, "tree"), await begin(store, "other")
    committer = new_committer(store)
    store.ids = {"held"}

    committer.submit(tree.change(stepped(store), starts=[new_tree(store, "held")]), partial(told, "first"))
    await until_looked(store, 1)
    tree.seq += 1
    committer.submit(tree.change(stepped(store)), partial(told, "second"))
    committer.submit(other.change(stepped(store)), partial(told, "other"))
    await until_told(told, 1)
    assert not await committer.drain(patience_seconds=0)
    store.ids = set()
    assert await committer.drain(patience_seconds=PATIENCE_SECONDS)

    assert [name for name, _ in told.answers] == ["other", "first", "second"]
    assert {outcome for _, outcome in told.answers} == {Outcome.COMMITTED}


async def test_what_a_tree_said_in_the_same_batch_waits_too() -> None:
    """They are one change for the store, and have one outcome."""
    store, told = Holding(), Told()
    tree = await begin(store, "tree")
    committer = new_committer(store)
    store.ids = {"held"}

    committer.submit(tree.change(stepped(store), starts=[new_tree(store, "held")]), partial(told, "first"))
    tree.seq += 1
    committer.submit(tree.change(stepped(store)), partial(told, "second"))
    await until_looked(store, 1)
    assert told.answers == []
    store.ids = set()
    await until_told(told, 2)

    assert told.answers == [("first", Outcome.COMMITTED), ("second", Outcome.COMMITTED)]
    assert len(await store.read_journal(tree.journal)) == 3


async def test_conflict_after_holding_refuses_what_came_behind() -> None:
    """Another worker has taken the tree over meanwhile."""
    store, told = Holding(), Told()
    tree = await begin(store, "tree")
    committer = new_committer(store)
    store.ids = {"held"}
    twin = tree.twin()

    committer.submit(tree.change(stepped(store), starts=[new_tree(store, "held")]), partial(told, "first"))
    await until_looked(store, 1)
    tree.seq += 1
    committer.submit(tree.change(stepped(store)), partial(told, "second"))
    await twin.step("somebody else's")
    store.ids = set()
    await until_told(told, 2)

    assert told.answers == [("first", Outcome.CONFLICT), ("second", Outcome.CONFLICT)]
    assert committer.is_idle


async def test_start_that_is_held_by_its_own_lost_commit_is_known_again() -> None:
    """The first try was written and not answered; while the server was at it, it held the id."""
    store, told = Holding(), Told()
    committer = new_committer(store)
    mine = new_tree(store, "mine")
    original = store.find_run

    async def find_nothing(run_id: str) -> None:
        store.find_run = original  # type: ignore[method-assign]
        store.ids = {"mine"}

    store.lost_answers = 1
    store.find_run = find_nothing  # type: ignore[method-assign]
    committer.submit(mine, partial(told, "mine"))
    await until_looked(store, 1)
    store.ids = set()
    await until_told(told, 1)

    assert told.answers == [("mine", Outcome.COMMITTED)]


async def test_log_says_once_which_ids_have_been_held_for_long(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The first few by their names, for whoever has forgotten to end a transaction."""
    monkeypatch.setattr(held, "PAUSE_FIRST_SECONDS", 0.001)
    monkeypatch.setattr(held, "PAUSE_MAX_SECONDS", 0.002)
    monkeypatch.setattr(held, "PAUSE_SECONDS_PER_CHANGE", 0.0)
    store, told = Holding(), Told()
    committer = new_committer(store)
    store.ids = {f"held-{number}" for number in range(7)}
    for number in range(7):
        committer.submit(new_tree(store, f"held-{number}"), partial(told, f"{number}"))
    await until_looked(store, 6)
    store.ids = set()
    await until_told(told, 7)

    (text,) = [record.getMessage() for record in caplog.records]
    names = ", ".join(f"held-{number}" for number in range(5))
    assert text == f"7 changes wait for ids held by open transactions: {names}"
    assert committer.is_idle


async def test_store_that_cannot_look_forgets_nobody() -> None:
    """It is away for a while, or something is wrong with it."""
    store, told = Holding(), Told()
    committer = new_committer(store)
    store.ids = {"held"}
    store.faults = [StoreUnavailableError("the store", "it is down"), RuntimeError("a bug")]

    committer.submit(new_tree(store, "held"), partial(told, "held"))
    await until_looked(store, 3)
    store.ids = set()
    await until_told(told, 1)

    assert told.answers == [("held", Outcome.COMMITTED)]


async def test_stopping_does_not_wait_for_starts_that_are_held() -> None:
    """Nothing was created, and whoever asked for them is told by others."""
    store, told = Holding(), Told()
    committer = new_committer(store)
    store.ids = {"held"}
    committer.submit(new_tree(store, "held"), partial(told, "held"))
    await until_looked(store, 1)

    assert await committer.drain(patience_seconds=PATIENCE_SECONDS)
    committer.abandon()

    store.ids = set()
    assert await store.find_run("held") is None
    assert told.answers == []
