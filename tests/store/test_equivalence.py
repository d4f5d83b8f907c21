"""Whatever is asked of them, the SQLite store answers as the in-memory store does."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from outlive._journal.event import AnyEvent, RunParked, RunReleased, RunResumed, RunSucceeded, RunSuspended
from outlive._model import RunFilter
from outlive._store.contract import MessageKind, Store
from outlive._store.sqlite import SqliteStore
from outlive.testing.clock import ManualClock
from outlive.testing.conformance import MemoryFactory, PersistentFactory
from outlive.testing.conformance.builders import (
    DEFINITION,
    follow,
    hire,
    message,
    new_tree,
    send,
    stepped,
    value,
)

RUNS = ("run-0", "run-1")
WORKERS = ("worker-0", "worker-1")
PROLOGUE: list[tuple[int, tuple[Any, ...]]] = [
    (0, ("hire", "worker-0")),
    (0, ("hire", "worker-1")),
    (0, ("begin", "run-0", "worker-0")),
    (0, ("begin", "run-1", "")),
]
ENDINGS: dict[str, Callable[[int], AnyEvent]] = {
    "suspend": lambda now: RunSuspended(at=now, waits=()),
    "sleep": lambda now: RunSuspended(at=now, waits=(), wake_at=now + 20_000_000),
    "park": lambda now: RunParked(at=now, reason="tired"),
    "resume": lambda now: RunResumed(at=now),
    "release": lambda now: RunReleased(at=now),
    "succeed": lambda now: RunSucceeded(at=now, result=value("done")),
}

runs, workers, small = st.sampled_from(RUNS), st.sampled_from(WORKERS), st.integers(0, 3)
steps = st.one_of(
    st.tuples(st.just("begin"), runs, st.sampled_from(["", *WORKERS])),
    st.tuples(st.just("write"), runs, st.sampled_from(["step", *ENDINGS]), small, st.sampled_from([0, 0, 0, 0, 1, -1])),
    st.tuples(st.just("send"), runs, st.sampled_from(list(MessageKind)), st.sampled_from(["", "a"]), st.integers(1, 3)),
    st.tuples(st.just("claim"), workers, st.integers(1, 3)),
    st.tuples(st.just("hire"), workers),
    st.tuples(st.just("retire"), workers),
    st.tuples(st.just("beat"), workers),
    st.tuples(st.just("replace"), runs),
)


class Player:
    """Does to one store what it is told, and gives its answers without handles, which are the store's own affair."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def begin(self, run_id: str, worker: str) -> object:
        """Create a tree, with an owner if that one lives: a store may forget a dead worker that owns nothing."""
        live = {each.id for each in await self.store.list_workers() if each.is_live}
        change = new_tree(self.store, run_id, worker=worker if worker in live else "")
        return [outcome for outcome, _ in await self.store.commit([change])]

    async def replace(self, run_id: str) -> object:
        """Create a tree in the place of one that may have ended."""
        change = new_tree(self.store, run_id)
        if run := await self.store.find_run(run_id):
            older = f"{run_id}.{run.journal}"
            change.renames = [replace(run, id=older, root_id=older)]
        return [outcome for outcome, _ in await self.store.commit([change])]

    async def write(self, run_id: str, what: str, consumed: int, lag: int) -> object:
        """Append an event, at the right place or beside it, and consume some messages."""
        if await self.store.find_run(run_id) is None:
            return None
        writer = await follow(self.store, run_id)
        now = self.store.now()
        event = stepped(self.store) if what == "step" else ENDINGS[what](now)
        writer.seq = max(0, writer.seq - lag)
        inbox = (await self.store.read_inbox([writer.journal])).get(writer.journal, [])
        return await writer.try_write(event, consumed=[each.id for each in inbox[:consumed]])

    async def send(self, run_id: str, kind: MessageKind, key: str, count: int) -> object:
        """Deliver a few messages into a small inbox."""
        sent = [message(self.store, run_id, f"{number}", kind=kind, key=key) for number in range(count)]
        return await send(self.store, *sent, inbox_messages_max=4)

    async def claim(self, worker_id: str, limit: int) -> object:
        """Take a few runs."""
        claims = await self.store.claim_runs(worker_id, [DEFINITION], limit=limit)
        taken = [(claim.run.id, claim.seq, claim.run.epoch, claim.run.attempts) for claim in claims.claims]
        return sorted(taken), claims.next_wake_at

    async def hire(self, worker_id: str) -> object:
        """Begin a session."""
        await hire(self.store, worker_id)
        return None

    async def retire(self, worker_id: str) -> object:
        """End a session."""
        await self.store.retire_worker(worker_id)
        return None

    async def beat(self, worker_id: str) -> object:
        """Renew a lease."""
        beat = self.store.open_beat(worker_id)
        is_renewed = beat.renew(lease_seconds=30)
        beat.close()
        return is_renewed

    async def look(self) -> object:
        """Everything that can be seen."""
        runs = await self.store.list_runs(RunFilter())
        journals = await self.store.read_journals([run.journal for run in runs])
        inboxes = await self.store.read_inbox([run.journal for run in runs])
        return (
            [replace(run, journal=0, id=run.id.split(".")[0], root_id="") for run in runs],
            [journals[run.journal] for run in runs],
            [[replace(each, id=0) for each in inboxes.get(run.journal, [])] for run in runs],
            sorted((worker.id, worker.is_live, worker.runs) for worker in await self.store.list_workers()),
            [len(await self.store.find_mail(worker_id)) for worker_id in WORKERS],
        )


@given(script=st.lists(st.tuples(st.sampled_from([0, 0, 0, 1, 4]), steps), max_size=20))
@settings(max_examples=40, deadline=None)
def test_stores_answer_alike(script: list[tuple[int, tuple[Any, ...]]]) -> None:
    """Step by step, and in what they show afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(PROLOGUE + script, Path(folder) / "equivalence.db"))


async def play(script: list[tuple[int, tuple[Any, ...]]], path: Path) -> None:
    """Play one script on both stores, with one clock."""
    clock = ManualClock()
    memory = Player(await MemoryFactory(clock=clock).open())
    sqlite = Player(await PersistentFactory(partial(SqliteStore, path), clock).open())
    try:
        for pause, (verb, *arguments) in script:
            clock.advance(seconds=10 * pause)
            answers: list[Awaitable[object]] = [getattr(player, verb)(*arguments) for player in (memory, sqlite)]
            first, second = [await answer for answer in answers]
            assert first == second, verb
            assert await memory.look() == await sqlite.look(), verb
    finally:
        await sqlite.store.close()
