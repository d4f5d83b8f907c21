"""Messages that a machine could not read, beyond the snapshots that take the place of its journal; and a snapshot that
no code can read."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import outlive
from outlive.events import MessageSetAside, SnapshotTaken
from outlive.types import RunHandle
from tests.engine.support import Place, events_of, in_time, parks, until, waits_for_another


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
            (found.name, found.value) for found in await engine.dead_letters.list("run-1")
        ]
        await engine.signal("run-1", "second", 2)
        assert Data(3) == (await in_time(engine.get("run-1").result())).data


async def test_a_damaged_snapshot_parks_its_machine_and_is_named() -> None:
    """A damaged snapshot parks its machine with the event to restore, because nothing can be rebuilt without it, and
    others go on."""
    place = Place(None, is_damaged=True)
    async with place.engine() as engine:
        for run_id in ("bad", "good"):
            run = await engine.start(adder, Data(), id=run_id)
            await run.signal("first", 1)
            await waits_for(run, "second")
    tree = place.state.trees[place.state.runs["bad"].journal]
    seq, format_, crc, body = tree.rows[0]
    tree.rows[0] = (seq, format_, crc, body.replace(b'"total":1', b'"total":7'))
    async with place.engine() as engine:
        for run_id in ("bad", "good"):
            await engine.signal(run_id, "second", 2)
        assert Data(3) == (await in_time(engine.get("good").result())).data
        assert f"damaged at event {seq}: checksum does not match (SnapshotTaken)" in await parks(engine.get("bad"))


async def waits_for(run: RunHandle[Any], name: str) -> None:
    """Return when a run waits for this signal."""

    async def does() -> bool:
        return await run.why() == f"it waits for signal {name!r}"

    await until(does)
