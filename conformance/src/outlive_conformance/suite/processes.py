"""Real processes on one place: one winner per seq, disjoint claims, and what was acknowledged survives a kill.

Only for stores that are `persistent`: their factory is sent to child processes, each of which opens a store of its
own. All children wait for each other before every contended call, so they do contend.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from outlive._kernel.store.contract import Outcome, Store
from outlive_conformance.suite.builders import (
    begin,
    blob,
    claim,
    follow,
    get_run,
    hire,
    message,
    new_tree,
    read_events,
    read_names,
    send,
    stepped,
)
from outlive_conformance.suite.cells import add
from outlive_conformance.suite.facet import Facet
from outlive_conformance.suite.factory import StoreFactory
from outlive_conformance.suite.transactions import ADD_NOTE, read_notes, write_note

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext, SpawnContext  # Windows has one of them only.

PROCESSES = 4
ROUNDS = 10
PATIENCE_SECONDS = 30.0
"""How long a child waits for the others, one of which may have died."""

T = TypeVar("T")


class Meeting(Protocol):
    """Where all children wait for each other."""

    def wait(self) -> object:
        """Go on when everybody is here."""


Job = Callable[[Store, Meeting, int], Coroutine[Any, Any, T]]


class ProcessesConformance(Facet):
    """All writing verbs, called from several processes at once."""

    async def test_one_process_wins_each_seq(self, factory: StoreFactory, store: Store) -> None:
        """The journal has no gap, and a loser leaves neither an event nor anything that hangs on it."""
        tree = await begin(store)

        outcomes = in_processes(factory, append_in_rounds)

        _, *winners = [getattr(event, "call", None) for event in await read_events(tree)]
        assert len(winners) == ROUNDS
        for turn, answers in enumerate(zip(*outcomes, strict=True)):
            assert answers.count(Outcome.COMMITTED.value) == 1
            assert winners[turn] == f"{answers.index(Outcome.COMMITTED.value)}-{turn}"
        everything = [f"{number}-{turn}" for number in range(PROCESSES) for turn in range(ROUNDS)]
        assert (await store.find_runs(everything)).keys() == set(winners)
        blobs = await store.get_blobs([blob(name.encode()).id for name in everything])
        assert {data.decode() for data in blobs.values()} == set(winners)

    async def test_processes_write_different_journals_side_by_side(self, factory: StoreFactory, store: Store) -> None:
        """Everything lands, in order, and nothing in another journal."""
        in_processes(factory, write_own_journal)

        for number in range(PROCESSES):
            tree = await follow(store, f"own-{number}")
            calls = [getattr(event, "call", None) for event in await read_events(tree)]
            assert calls == ["", *(f"{number}-{turn}" for turn in range(ROUNDS))]

    async def test_processes_claim_disjoint_runs(self, factory: StoreFactory, store: Store) -> None:
        """Every run goes to exactly one of many hosts. [AK-L8]"""
        runs = [f"run-{number}" for number in range(10 * PROCESSES)]
        await store.commit([new_tree(store, run_id) for run_id in runs])
        for number in range(PROCESSES):
            await hire(store, f"worker-{number}")

        claimed = in_processes(factory, claim_in_rounds)

        assert sorted(run_id for mine in claimed for run_id in mine) == sorted(runs)
        for number, mine in enumerate(claimed):
            owners = {run.owner for run in (await store.find_runs(mine)).values()}
            assert owners <= {f"worker-{number}"}

    async def test_processes_deliver_one_message_once(self, factory: StoreFactory, store: Store) -> None:
        """Many senders of one key are one sender, and all messages without a key arrive."""
        tree = await begin(store)

        in_processes(factory, deliver_same_key)

        names = await read_names(store, tree)
        assert names.count("keyed") == 1
        assert names.count("plain") == PROCESSES

    async def test_processes_change_one_cell_in_turn(self, factory: StoreFactory, store: Store) -> None:
        """No change is lost, and each has seen the one before it."""
        numbers = in_processes(factory, count_in_rounds)

        assert sorted(number for mine in numbers for number in mine) == list(range(1, PROCESSES * ROUNDS + 1))

    async def test_processes_open_a_new_place_at_once(self, factory: StoreFactory) -> None:
        """The schema is made by one of them, and all can write."""
        assert in_processes(factory, write_own_journal, count=8) == [Outcome.COMMITTED.value] * 8

    async def test_acknowledged_write_survives_a_kill(self, factory: StoreFactory, store: Store) -> None:
        """A process that dies the moment its verbs have returned has lost nothing."""
        child = fresh_processes().Process(target=write_and_die, args=(factory,))
        child.start()
        child.join(PATIENCE_SECONDS)

        run = await get_run(store, "run-1")
        assert child.exitcode == -signal.SIGKILL
        assert len(await store.read_journal(run.journal)) == 2
        assert (await store.read_inbox([run.journal])).keys() == {run.journal}
        child.close()

    async def test_transaction_of_a_killed_process_leaves_nothing(self, factory: StoreFactory, store: Store) -> None:
        """Neither in the user's tables nor in the journal, and no process has to wait for the dead one. [OL-T10]"""
        tree = await begin(store)
        await write_note(tree, None)

        child = fresh_processes().Process(target=write_note_and_die, args=(factory,))
        child.start()
        child.join(PATIENCE_SECONDS)

        assert child.exitcode == -signal.SIGKILL
        assert await read_notes(store) == []
        assert len(await store.read_journal(tree.journal)) == 2
        assert await write_note(tree, "by a survivor") is Outcome.COMMITTED
        child.close()


# -- What the children do --------------------------------------------------------------------------------


async def append_in_rounds(store: Store, meeting: Meeting, number: int) -> list[str]:
    """In each round everybody tries to write the same seq."""
    outcomes = []
    for turn in range(ROUNDS):
        name = f"{number}-{turn}"
        meeting.wait()
        writer = await follow(store, "run-1")
        writer.seq = turn
        outcome = await writer.try_write(
            stepped(store, name), blobs=[blob(name.encode())], starts=[new_tree(store, name)]
        )
        outcomes.append(outcome.value)
    return outcomes


async def write_own_journal(store: Store, meeting: Meeting, number: int) -> str:
    """All of them write, none is in the way."""
    meeting.wait()
    tree = await begin(store, f"own-{number}")
    for turn in range(ROUNDS):
        await tree.step(f"{number}-{turn}")
    return Outcome.COMMITTED.value


async def claim_in_rounds(store: Store, meeting: Meeting, number: int) -> list[str]:
    """Everybody claims a few runs at a time until there cannot be any left."""
    mine = []
    for _turn in range(ROUNDS):
        meeting.wait()
        mine += await claim(store, f"worker-{number}", limit=3)
    return mine


async def deliver_same_key(store: Store, meeting: Meeting, number: int) -> int:
    """Everybody sends a message with the same key and one without."""
    meeting.wait()
    await send(store, message(store, "run-1", "keyed", key="k"), message(store, "run-1", "plain"))
    return number


async def count_in_rounds(store: Store, meeting: Meeting, number: int) -> list[int]:
    """Add one to a cell again and again."""
    meeting.wait()
    return [await store.change_cell("counter", add) for _ in range(ROUNDS)]


def write_and_die(factory: StoreFactory) -> None:
    """Be killed between the answer of the store and anything else."""

    async def write() -> None:
        store = await factory.open()
        tree = await begin(store)
        await send(store, message(store, "run-1"))
        await tree.step()
        os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(write())


def write_note_and_die(factory: StoreFactory) -> None:
    """Be killed in the middle of a transaction."""

    async def write() -> None:
        store = await factory.open()
        transaction = await store.begin()
        await transaction.handle.execute(ADD_NOTE, 1, "never")
        os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(write())


# -- How they are run ------------------------------------------------------------------------------------

_meetings: list[Meeting] = []
"""In a child: where it meets the others."""


def fresh_processes() -> ForkServerContext | SpawnContext:
    """Processes that have inherited nothing; made of one that has imported the suite, where that can be done.

    To start Python and import everything takes a child longer than all that it does for a test.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "outlive._kernel.store.sqlite", "outlive._kernel.store.postgres"])
    return context


def in_processes(factory: StoreFactory, job: Job[T], *, count: int = PROCESSES) -> Sequence[T]:
    """Run a job in as many processes, each with a store of its own, and give what they answer."""
    context = fresh_processes()
    meeting = context.Barrier(count, timeout=PATIENCE_SECONDS)
    with ProcessPoolExecutor(count, context, initializer=_remember, initargs=(meeting,)) as pool:
        answers = [pool.submit(_run_job, factory, job, number) for number in range(count)]
        return [answer.result() for answer in answers]


def _remember(meeting: Meeting) -> None:
    _meetings.append(meeting)


def _run_job(factory: StoreFactory, job: Job[T], number: int) -> T:
    async def run() -> T:
        (meeting,) = _meetings
        meeting.wait()  # No child may take two jobs.
        store = await factory.open()
        try:
            return await job(store, meeting, number)
        finally:
            await store.close()

    return asyncio.run(run())
