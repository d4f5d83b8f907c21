"""Checkpoints from several processes: all land, one wins each number, and what was acknowledged survives a kill."""

from __future__ import annotations

import asyncio
import os
import signal

from outlive._kernel.model.checkpoint import Checkpoint
from outlive._kernel.store.contract import Store
from outlive.errors.store import DuplicateCheckpointError
from outlive_conformance.suite.checkpoints import WHOLE, front
from outlive_conformance.suite.facet import Facet
from outlive_conformance.suite.factory import StoreFactory
from outlive_conformance.suite.processes import (
    PATIENCE_SECONDS,
    PROCESSES,
    ROUNDS,
    Meeting,
    fresh_processes,
    in_processes,
)


class CheckpointProcessesConformance(Facet):
    """The verbs of `CheckpointTable`, called from several processes at once."""

    async def test_processes_append_checkpoints_of_different_runs(self, factory: StoreFactory, store: Store) -> None:
        """Each finds its own, whole and in order, whatever the others append and clear. [CA-K8]"""
        assert in_processes(factory, append_own) == [list(range(ROUNDS))] * PROCESSES

        for number in range(PROCESSES):
            assert {row.state for row in await front(store).load_run(f"own-{number}")} == {f"S{number}"}
            assert await front(store).load_run(f"gone-{number}") == []

    async def test_processes_append_checkpoints_of_one_run(self, factory: StoreFactory, store: Store) -> None:
        """Different numbers all land, and each number that all of them want goes to one. [CA-K9]"""
        wins = in_processes(factory, append_shared)

        found = {row.sequence: row.state for row in await front(store).load_run("run-1")}
        for turn in range(ROUNDS):
            (winner,) = [number for number in range(PROCESSES) if turn in wins[number]]
            assert found.pop(turn) == f"S{winner}"
        everything = {
            1_000 * (number + 1) + turn: f"S{number}" for number in range(PROCESSES) for turn in range(ROUNDS)
        }
        assert found == everything

    async def test_acknowledged_checkpoints_survive_a_kill(self, factory: StoreFactory, store: Store) -> None:
        """A process that dies when its verbs have returned has lost nothing, and what it cleared is gone. [CA-K7]"""
        child = fresh_processes().Process(target=append_and_die, args=(factory,))
        child.start()
        child.join(PATIENCE_SECONDS)

        assert child.exitcode == -signal.SIGKILL
        assert await front(store).load_run("run-1") == [WHOLE, Checkpoint(8, "SHIP")]
        assert await front(store).load_run("cleared") == []
        child.close()


async def append_own(store: Store, meeting: Meeting, number: int) -> list[int]:
    """All of them write, none is in the way."""
    checkpoints = front(store)
    meeting.wait()
    for turn in reversed(range(ROUNDS)):
        await checkpoints.append(f"own-{number}", Checkpoint(turn, f"S{number}"))
        await checkpoints.append(f"gone-{number}", WHOLE)
        await checkpoints.clear(f"gone-{number}")
    return [row.sequence for row in await checkpoints.load_run(f"own-{number}")]


async def append_shared(store: Store, meeting: Meeting, number: int) -> list[int]:
    """In each round everybody wants the same number, and another one alone."""
    checkpoints = front(store)
    won = []
    for turn in range(ROUNDS):
        meeting.wait()
        try:
            await checkpoints.append("run-1", Checkpoint(turn, f"S{number}"))
            won.append(turn)
        except DuplicateCheckpointError:
            """Another process was first."""
        await checkpoints.append("run-1", Checkpoint(1_000 * (number + 1) + turn, f"S{number}"))
    return won


def append_and_die(factory: StoreFactory) -> None:
    """Be killed between the answer of the store and anything else."""

    async def append() -> None:
        store = await factory.open()
        await front(store).append("cleared", WHOLE)
        await front(store).append("run-1", WHOLE)
        await front(store).append("run-1", Checkpoint(8, "SHIP"))
        await front(store).clear("cleared")
        os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(append())
