"""Idempotency keys: one for each call of a step, whichever worker runs it and however often."""

from __future__ import annotations

import asyncio

import outlive
from outlive.events import StepSucceeded
from tests.engine.inside import crash
from tests.engine.support import Place, events_of, in_time, stage


@outlive.step
async def who_am_i() -> list[str | int]:
    me = outlive.current_step()
    return [me.run_id, me.name, me.attempt, me.idempotency_key]


@outlive.workflow
async def stepping_identity(times: int) -> list[list[str | int]]:
    first = [await who_am_i() for _ in range(times)]
    return first + list(await asyncio.gather(who_am_i(), who_am_i()))


async def test_an_idempotency_key_belongs_to_one_call(engine: outlive.Engine) -> None:
    """No two calls share a key: not in one run, not in two branches, not in two runs of one workflow."""
    first = await in_time((await engine.start(stepping_identity, 3, id="run-1")).result())
    second = await in_time((await engine.start(stepping_identity, 3, id="run-2")).result())

    keys = [key for *_, key in first + second]
    assert len(set(keys)) == len(keys) == 10
    assert ["run-1", "who_am_i", 1] == first[0][:3]


async def test_a_replaced_run_has_other_idempotency_keys(engine: outlive.Engine) -> None:
    """A run that replaces another under its id gives the same call another idempotency key."""
    keys = [
        (await in_time((await engine.start(stepping_identity, 1, id="run-1", on_conflict="replace")).result()))[0][3]
        for _ in range(2)
    ]

    assert keys[0] != keys[1]


async def test_an_interrupted_step_keeps_its_idempotency_key(place: Place) -> None:
    """The attempt after a crash has the key of the attempt before it, so the world can tell that they are one.
    [SF-U28]"""
    first = await place.engine().__aenter__()
    await first.start(stepping_key, id="run-1")
    await stage.gate("key").reached()
    await crash(first)

    async with place.engine() as second:
        await stage.gate("key").reached()
        stage.gate("key").open()
        run = second.get("run-1")
        await in_time(run.result())
        assert 1 == len(await events_of(run, StepSucceeded))
    (key, epoch), (again, later_epoch) = stage.calls
    assert key == again
    assert later_epoch == epoch + 1


@outlive.step
async def tell_key() -> None:
    me = outlive.current_step()
    stage.call((me.idempotency_key, me.epoch))
    await stage.gate("key").pass_through()


@outlive.workflow
async def stepping_key() -> None:
    await tell_key()
