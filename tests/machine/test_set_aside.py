"""Messages that a machine could not read, beyond the snapshots that take the place of its journal."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import outlive
from outlive._journal.event import MessageSetAside, SnapshotTaken
from tests.engine.support import Place, events_of, in_time, waits_for_another


class S(enum.Enum):
    """Two waits."""

    FIRST = "first"
    SECOND = "second"
    DONE = "done"


@dataclass
class Data:
    """What was sent."""

    total: int = 0


adder = outlive.Machine("set_aside.adder", S, data=Data, start=S.FIRST, exits=[S.DONE], snapshot_after=1)


@adder.workflow(S.FIRST)
async def first(data: Data) -> S:
    """Take one number."""
    data.total += await outlive.wait_for_signal("first", int)
    return S.SECOND


@adder.workflow(S.SECOND)
async def second(data: Data) -> S:
    """Take another one."""
    data.total += await outlive.wait_for_signal("second", int)
    return S.DONE


async def test_a_snapshot_keeps_what_was_set_aside(place: Place) -> None:
    """With what it said, as the event that said it goes. And a signal that a snapshot has kept can be set aside too:
    live and replayed it is found by its place in the snapshot."""
    async with place.engine() as engine:
        run = await engine.start(adder, Data(), id="run-1")
        await run.signal("first", "one")
        await run.signal("second", "two")
        await waits_for_another(run, "first")
        await run.signal("first", 1)
        await waits_for_another(run, "second")
        (snapshot,) = await events_of(run, SnapshotTaken)
        (fact,) = await events_of(run, MessageSetAside)
        assert (f"{snapshot.events}.0", "second") == (fact.message, fact.name)
    async with place.engine() as engine:
        assert [("first", "one"), ("second", "two")] == [
            (found.name, found.value) for found in await engine.set_aside("run-1")
        ]
        await engine.signal("run-1", "second", 2)
        assert Data(3) == (await in_time(engine.get("run-1").result())).data
