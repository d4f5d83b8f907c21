"""Testing the simulator: one protection of the engine switched off at a time. It must be noticed.

Each switch replaces a piece of production code, in this process and while it is off, by what a careless author might
have written. A simulator that does not find these would not find their like either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from outlive._journal.codec import open_row, salt_of, seal
from outlive._replay.command import RunStep
from outlive._runtime.commit.retry import CommitRetry
from outlive._runtime.steps.executor import Executor
from outlive._runtime.tree.live import LiveTree
from outlive._store import streams
from outlive._store.contract import Change, Outcome
from outlive._store.memory import MemoryStore
from outlive.client import promises
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
            change.after = end - 1
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
    """Each settlement of a promise has a key of its own, and so all of them count."""
    return f"{run_id}/{name}/{key}/{asyncio.get_running_loop().time()}"


SWITCHES: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "fence": _without_fence,
    "read-back": partial(replaced, CommitRetry, "read_back", _never_read_back),
    "doubt": partial(replaced, CommitRetry, "read_back", _believe),
    "budget": _without_budget,
    "mark": _without_marks,
    "settlement": partial(replaced, promises, "key_of_signal", _new_key),
    **MACHINE_SWITCHES,
}
"""What can be switched off: the compare-and-swap of the store; reading back a commit whose outcome is unknown, either
taking it for not done or taking it for done; the durable budget of attempts; the marks of appends to streams; that one
settlement of a promise counts; and what `machines.switches` has."""


def without(name: str | None) -> AbstractContextManager[None]:
    """Switch one protection off."""
    return nullcontext() if name is None else SWITCHES[name]()
