"""Testing the simulator: one protection of the engine switched off at a time. It must be noticed.

Each switch replaces a piece of production code, in this process and while it is off, by what a careless author might
have written. A simulator that does not find these would not find their like either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from outlive._features.promises import verbs as promises
from outlive._features.retention import pruner
from outlive._kernel.client import asks, forking
from outlive._kernel.journal.codec import Row, open_journal, open_row, salt_of, seal
from outlive._kernel.journal.event import AnyEvent, StepSucceeded
from outlive._kernel.model.queue import QueueRecord
from outlive._kernel.replay.command import RunStep
from outlive._kernel.runtime.commit.retry import CommitRetry
from outlive._kernel.runtime.steps.executor import Executor
from outlive._kernel.runtime.tree.live import LiveTree
from outlive._kernel.store import streams
from outlive._kernel.store.contract import Change, Outcome
from outlive._kernel.store.memory import MemoryStore, deleting
from outlive._kernel.store.schedules import ScheduleChange
from outlive._kernel.store.streams import Appended, StreamAppend, StreamLimits
from outlive._kernel.store.tables.queueing import HeldSlots, LineHead, Serving
from proof.simulation.machines.switches import MACHINE_SWITCHES
from proof.simulation.replacing import replaced

Found = dict[int, tuple[Outcome, int]]


@contextmanager
def _without_fence() -> Iterator[None]:
    """The store appends wherever the journal ends, whatever the writer thought."""
    judge = MemoryStore._commit

    def commit(self: MemoryStore, change: Change) -> tuple[Outcome, int]:
        tree = self._state.trees.get(change.journal)
        if tree is not None and tree.rows[-1][0] != change.after:
            salt, end = salt_of(tree.root.nonce), tree.rows[-1][0] + 1
            events = [open_row(row, salt=salt, run_id=tree.root.id) for row in change.rows]
            change.rows = [seal(event, salt=salt, seq=seq) for seq, event in enumerate(events, end)]
            change.after, change.prior = end - 1, tree.rows[-1][2]
        return judge(self, change)

    with replaced(MemoryStore, "_commit", commit):
        yield


async def _never_read_back(self: CommitRetry, changes: Sequence[Change], open_: list[int]) -> Found:
    return {}


async def _believe(self: CommitRetry, changes: Sequence[Change], open_: list[int]) -> Found:
    return {index: (Outcome.COMMITTED, changes[index].journal) for index in open_}


@contextmanager
def _without_budget() -> Iterator[None]:
    """A worker counts attempts in its memory: the next owner of a run begins with the first."""
    start = Executor.start
    known: WeakKeyDictionary[Any, set[tuple[int, int, str]]] = WeakKeyDictionary()

    def begin(self: Executor, live: LiveTree, command: RunStep) -> None:
        calls = known.setdefault(asyncio.get_running_loop(), set())
        call = live.fold.root.nonce, command.run, command.call
        if call not in calls:
            command = replace(command, attempt=1)
        calls.add(call)
        start(self, live, command)

    with replaced(Executor, "start", begin):
        yield


@contextmanager
def _without_marks() -> Iterator[None]:
    """An append to a stream that was never answered is written again."""
    with replaced(streams, "is_there", lambda state, mark: False):
        yield


def _new_key(run_id: str, name: str, key: str) -> str:
    """Each settlement of a promise, or each ask, has a key of its own, and so all of them count."""
    return f"{run_id}/{name}/{key}/{asyncio.get_running_loop().time()}"


@contextmanager
def _without_epoch() -> Iterator[None]:
    """The store appends to a stream for every worker that ever owned the run."""
    judge = MemoryStore._judge_append

    def append(self: MemoryStore, append: StreamAppend, limits: StreamLimits) -> Appended:
        tree = self._state.trees.get(append.journal)
        return judge(self, append if tree is None else replace(append, epoch=tree.root.epoch), limits)

    with replaced(MemoryStore, "_judge_append", append):
        yield


@contextmanager
def _without_revision() -> Iterator[None]:
    """The store changes a schedule, whatever the writer has seen of it."""
    judge = MemoryStore._change_schedule

    def change(self: MemoryStore, change: ScheduleChange) -> Outcome:
        held = self._state.schedules.get(change.name)
        return judge(self, replace(change, revision=0 if held is None else held.revision))

    with replaced(MemoryStore, "_change_schedule", change):
        yield


@contextmanager
def _with_one_slot() -> Iterator[None]:
    """A queue gives no slot while one is held."""
    begin = Serving.__init__

    def serve(self: Serving, name: str, record: QueueRecord, held: HeldSlots, *, limit: int, now_at: int) -> None:
        is_held = held.in_all or any(held.by_key.values())
        begin(self, name, record, held, limit=0 if is_held else limit, now_at=now_at)

    with replaced(Serving, "__init__", serve):
        yield


@contextmanager
def _without_rate() -> Iterator[None]:
    """A claim does not remember what it took out of a line."""
    with replaced(QueueRecord, "charged", lambda self, name, count, now_at: self):
        yield


@contextmanager
def _without_share() -> Iterator[None]:
    """A worker takes from a queue what it can get."""
    begin = Serving.__init__

    def serve(self: Serving, name: str, record: QueueRecord, held: HeldSlots, *, limit: int, now_at: int) -> None:
        begin(self, name, record, held._replace(by_worker=0), limit=limit, now_at=now_at)

    with replaced(Serving, "__init__", serve):
        yield


@contextmanager
def _without_weight() -> Iterator[None]:
    """A queue gives every run one slot, however many it takes."""
    pick = Serving.pick

    def light(self: Serving, heads: Mapping[str, Sequence[LineHead]]) -> list[int]:
        return pick(self, {key: [LineHead(head.run, 1) for head in line] for key, line in heads.items()})

    with replaced(Serving, "pick", light):
        yield


@contextmanager
def _with_short_forks() -> Iterator[None]:
    """A fork begins before the last step that has returned, and calls it again."""

    def shorter(rows: list[Row], *, nonce: int, run_id: str) -> list[AnyEvent]:
        events = open_journal(rows, nonce=nonce, run_id=run_id)
        last = max((n for n, event in enumerate(events) if isinstance(event, StepSucceeded)), default=len(events))
        return events[:last]

    with replaced(forking, "open_journal", shorter):
        yield


@contextmanager
def _without_need() -> Iterator[None]:
    """The store deletes what has ended, whatever open runs need of it."""
    with (
        replaced(deleting, "_needed_ids", lambda state: set()),
        replaced(deleting, "_needs_starter", lambda state, tree: False),
    ):
        yield


@contextmanager
def _without_turns() -> Iterator[None]:
    """A worker deletes what its rules let go whenever it looks, also while another worker does."""

    def take(self: pruner.Pruner, data: bytes | None, now: int) -> tuple[bytes, pruner.Turns]:
        return data or b"", pruner.turns_in(data)

    with replaced(pruner.Pruner, "_take", take), replaced(pruner.Pruner, "_left", lambda self, turns, now: 0.0):
        yield


async def _forget_references(self: MemoryStore, ids: Collection[str]) -> None:
    """Which blobs are in use is read, and not remembered."""


SWITCHES: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "fence": _without_fence,
    "read-back": partial(replaced, CommitRetry, "read_back", _never_read_back),
    "doubt": partial(replaced, CommitRetry, "read_back", _believe),
    "budget": _without_budget,
    "mark": _without_marks,
    "settlement": partial(replaced, promises, "key_of_signal", _new_key),
    "ask": partial(replaced, asks, "key_of_ask", _new_key),
    "fork": _with_short_forks,
    "epoch": _without_epoch,
    "revision": _without_revision,
    "slots": _with_one_slot,
    "share": _without_share,
    "weight": _without_weight,
    "rate": _without_rate,
    "need": _without_need,
    "turns": _without_turns,
    "blobs": partial(replaced, MemoryStore, "keep_blobs", _forget_references),
    **MACHINE_SWITCHES,
}
"""What can be switched off: the compare-and-swap of the store; reading back a commit whose outcome is unknown, either
taking it for not done or taking it for done; the durable budget of attempts; the marks of appends to streams; that
one settlement of a promise counts; that asks with one key are one; that a fork has all results; that only the owner
appends to a stream; that a change of a schedule is made of what is there; that a queue gives all its slots, to one
worker no more than its share, to a heavy run as many as it takes, and to all no more than the rate; that nothing is
deleted that an open run needs; that the workers take turns in deleting; that blobs stay which rows name; and what
`machines.switches` has."""


def without(name: str | None) -> AbstractContextManager[None]:
    """Switch one protection off."""
    return nullcontext() if name is None else SWITCHES[name]()
