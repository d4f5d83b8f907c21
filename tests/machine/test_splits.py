"""Splits: every join, the losers, time, room, and branches that are undone."""

from __future__ import annotations

import asyncio
import enum
from dataclasses import dataclass, field
from typing import Any

import pytest

import outlive
from outlive._features.machines.joins import Join
from outlive.errors import RunFailedError
from outlive.events import StateLeft, StepSucceeded
from outlive.machine import All, PartialResults, PartialTimeout, Percentage, Quorum
from outlive.machine import Any as First
from tests.engine.inside import crash
from tests.engine.support import Place, events_of, in_time, stage, until, waits

pytestmark = pytest.mark.any_store


class S(enum.Enum):
    """One split."""

    PACK = "pack"
    DONE = "done"


@dataclass
class Parcel:
    """What each branch does: `ok`, `fail`, `hold` (until the test lets it) or `slow` (an hour)."""

    plan: dict[str, str]
    found: dict[str, str] = field(default_factory=dict)


async def act(name: str, plan: dict[str, str]) -> str:
    """One branch."""
    stage.call(name)
    way = plan[name]
    if way == "hold":
        try:
            await stage.gate(name).pass_through()
        except asyncio.CancelledError:
            stage.call(f"{name} cancelled")
            raise
    if way == "fail":
        raise ValueError(f"{name} is broken")
    if way == "slow":
        raise ConnectionError("try again in an hour")
    return f"{name} is fine"


async def a(data: Parcel) -> str:
    """The first."""
    return await act("a", data.plan)


async def b(data: Parcel) -> str:
    """The second."""
    return await act("b", data.plan)


async def c(data: Parcel) -> str:
    """The third."""
    return await act("c", data.plan)


def merge(data: Parcel, results: dict[str, Any]) -> None:
    """Keep everything."""
    data.found = {name: str(result) for name, result in results.items()}


def splitting(name: str, join: Join, **options: Any) -> outlive.Machine[S, Parcel]:
    """A machine that is one split."""
    machine = outlive.Machine(f"splits.{name}", S, data=Parcel, start=S.PACK, exits=[S.DONE])
    machine.split(S.PACK, [a, b, c], join=join, merge=merge, **options)
    return machine


HOURLY = outlive.Retry(attempts=9, first=3600, on=(ConnectionError,))
every = splitting("all", All(then=S.DONE))
first = splitting("any", First(then=S.DONE))
two = splitting("quorum", Quorum(2, then=S.DONE))
half = splitting("percentage", Percentage(0.5, then=S.DONE))
partial = splitting("partial", PartialResults(2, then=S.DONE))
late = splitting("late", PartialTimeout(then=S.DONE), timeout=60, retry=HOURLY)
strict = splitting("strict", All(then=S.DONE), timeout=60, retry=HOURLY)
narrow = splitting("narrow", All(then=S.DONE), concurrency=1)


nothing = outlive.Machine("splits.nothing", S, data=Parcel, start=S.PACK, exits=[S.DONE])
nothing.split(S.PACK, [], join=PartialTimeout(then=S.DONE), merge=merge, timeout=60)


def plan(text: str) -> Parcel:
    """`ok fail hold` for a, b and c."""
    return Parcel(dict(zip("abc", text.split(), strict=True)))


async def test_a_split_is_a_row_for_each_branch_and_one_for_its_join(engine: outlive.Engine) -> None:
    """Cano writes one for the whole split; here a branch that has ended does not run again. [CA-U1]"""
    run = await engine.start(every, plan("ok ok ok"))
    await in_time(run.result())

    branches = [event.call for event in await events_of(run, StepSucceeded)]
    assert sorted(branches) == ["1/splits.all.PACK.a", "2/splits.all.PACK.b", "3/splits.all.PACK.c"]
    assert [event.call for event in await events_of(run, StateLeft)] == ["@state/splits.all.PACK"]


@pytest.mark.parametrize(
    ("machine", "ways", "found"),
    [
        (every, "ok ok ok", "abc"),
        (first, "fail hold ok", "ac"),
        (two, "ok fail ok", "abc"),
        (two, "ok hold ok", "ac"),
        (half, "ok ok hold", "ab"),
        (partial, "hold ok ok", "bc"),
        (late, "fail fail ok", "abc"),
    ],
)
async def test_a_join_goes_on_when_it_has_enough(
    engine: outlive.Engine, machine: outlive.Machine[S, Parcel], ways: str, found: str
) -> None:
    """A join goes on when it has enough, cancels the other branches, and merges the results and exceptions that it
    has. [FE-S4]"""
    result = await in_time((await engine.start(machine, plan(ways))).result())

    words = {"ok": "is fine", "fail": "is broken"}
    expected = {name: f"{name} {words[way]}" for name, way in zip("abc", ways.split(), strict=True) if way in words}
    assert result.data.found == {name: expected[name] for name in found}
    losers = [f"{name} cancelled" for name in "abc" if name not in found]

    async def are_told() -> bool:
        return [each for each in stage.calls if " " in each] == losers

    await until(are_told)


@pytest.mark.parametrize(
    ("machine", "ways", "message"),
    [
        (every, "ok fail hold", "wants All, and"),
        (first, "fail fail fail", "wants Any, and 0 succeeded"),
        (
            two,
            "fail ok fail",
            r"wants Quorum\(2\), and 1 succeeded \(b\); .*: a failed with ValueError: a is broken; c",
        ),
        (half, "fail fail hold", r"wants Percentage\(0.5\), and 0 succeeded"),
        (partial, "fail fail ok", r"wants PartialResults\(2\)"),
        (late, "fail fail fail", "wants PartialTimeout, and 0 succeeded"),
    ],
)
async def test_a_join_that_cannot_have_enough_fails(
    engine: outlive.Engine, machine: outlive.Machine[S, Parcel], ways: str, message: str
) -> None:
    """At once: it does not wait for branches that could not help."""
    run = await engine.start(machine, plan(ways))

    with pytest.raises(RunFailedError, match=message):
        await in_time(run.result())


async def test_a_late_split_takes_what_it_has(place: Place) -> None:
    """PartialTimeout; the time of a split is durable. [FE-S4]"""
    async with place.engine() as engine:
        run = await engine.start(late, plan("ok slow ok"))
        await waits(run)
        place.clock.skip(seconds=61)
        assert (await in_time(run.result())).data.found == {"a": "a is fine", "c": "c is fine"}


@pytest.mark.parametrize(("machine", "ways"), [(late, "slow slow slow"), (strict, "ok slow ok")])
async def test_a_late_split_without_enough_fails(place: Place, machine: outlive.Machine[S, Parcel], ways: str) -> None:
    """Nothing at all, or not all of them."""
    async with place.engine() as engine:
        run = await engine.start(machine, plan(ways))
        await waits(run)
        place.clock.skip(seconds=61)

        with pytest.raises(RunFailedError, match="its time is over"):
            await in_time(run.result())


async def test_only_unfinished_branches_run_again(place: Place) -> None:
    """Cano re-runs a split as a whole; here each branch is durable on its own."""
    engine = await place.engine().__aenter__()
    run = await engine.start(every, plan("ok hold ok"), id="run-1")
    await stage.gate("b").reached()

    async def are_two_done() -> bool:
        return len(await events_of(run, StepSucceeded)) == 2

    await until(are_two_done)
    await crash(engine)
    stage.gate("b").open()

    async with place.engine() as second:
        run = second.get("run-1")
        assert "abc" == "".join((await in_time(run.result())).data.found)
        assert 1 == len(await events_of(run, StateLeft))
    assert [1, 2, 1] == [stage.count(name) for name in "abc"]


async def test_a_split_runs_no_more_branches_than_it_may(engine: outlive.Engine) -> None:
    """One at a time, in their order. [FE-R7]"""
    run = await engine.start(narrow, plan("ok hold ok"))
    await stage.gate("b").reached()
    assert stage.calls == ["a", "b"]
    stage.gate("b").open()
    await in_time(run.result())
    assert stage.calls == ["a", "b", "c"]


async def test_a_split_without_branches_goes_straight_on(engine: outlive.Engine) -> None:
    """A list that was computed may be empty. It is left like any other, with a merge of nothing."""
    run = await engine.start(nothing, Parcel({}, found={"before": "it"}))

    assert (await in_time(run.result())).data.found == {}
    assert [[], 1] == [await events_of(run, StepSucceeded), len(await events_of(run, StateLeft))]


# -- Steps and workflows as branches, and their undos ------------------------------------------------------------------


def unbook(name: str) -> None:
    """Take it back."""
    stage.call(f"undo {name}")


@outlive.step(undo=unbook)
async def splits_truck(data: Parcel) -> str:
    """A branch with an undo."""
    await act("a", data.plan)
    return "truck"


@outlive.step(undo=unbook)
async def splits_slot(data: Parcel) -> str:
    """Another one."""
    await act("b", data.plan)
    return "slot"


@outlive.workflow
async def splits_child(data: Parcel) -> str:
    """A branch that is a run."""
    return await splits_note(data.plan["c"])


@outlive.step
async def splits_note(way: str) -> str:
    """Fail or not."""
    return await act("c", {"c": way})


booking = outlive.Machine("splits.booking", S, data=Parcel, start=S.PACK, exits=[S.DONE])
booking.split(
    S.PACK, {"truck": splits_truck, "slot": splits_slot, "note": splits_child}, join=All(then=S.DONE), merge=merge
)
racing = outlive.Machine("splits.racing", S, data=Parcel, start=S.PACK, exits=[S.DONE])
racing.split(S.PACK, [splits_truck, splits_slot], join=First(then=S.DONE), merge=merge)


async def test_branches_can_be_steps_and_workflows(engine: outlive.Engine) -> None:
    """By the names they are given."""
    result = await in_time((await engine.start(booking, plan("ok ok ok"))).result())

    assert result.data.found == {"truck": "truck", "slot": "slot", "note": "c is fine"}
    assert not [call for call in stage.calls if call.startswith("undo")]


async def test_branches_are_undone_when_the_split_fails(engine: outlive.Engine) -> None:
    """Cano refuses that. A step that failed has nothing to undo."""
    run = await engine.start(booking, plan("ok ok hold"))
    await stage.gate("c").reached()

    async def are_two_done() -> bool:
        return len(await events_of(run, StepSucceeded)) == 2

    await until(are_two_done)
    await run.cancel()
    with pytest.raises(outlive.errors.RunCancelledError):
        await in_time(run.result())
    done = [event.call.rpartition("/")[2] for event in await events_of(run, StepSucceeded)][:2]
    names = {"splits_truck": "undo truck", "splits_slot": "undo slot"}
    assert [names[call] for call in reversed(done)] == [call for call in stage.calls if call.startswith("undo")]


async def test_a_loser_with_an_undo_is_waited_for_and_undone(engine: outlive.Engine) -> None:
    """Its effect may have happened, and no code has seen its result."""
    run = await engine.start(racing, Parcel({"a": "hold", "b": "ok"}))
    await stage.gate("a").reached()

    async def is_won() -> bool:
        return len(await events_of(run, StepSucceeded)) == 1

    await until(is_won)
    stage.gate("a").open()

    assert (await in_time(run.result())).data.found == {"splits_slot": "slot"}
    assert ["undo truck"] == [call for call in stage.calls if call.startswith("undo")]
