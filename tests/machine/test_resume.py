"""`engine.resume` of machines, and which of them go on by themselves."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

import pytest

import outlive
from outlive.errors import RunNotFoundError
from outlive.errors.run import RunNotParkedError
from outlive.types import Recovery
from tests.engine.inside import crash
from tests.engine.support import Place, in_time, parks, reaches, registry_of, stage, until

pytestmark = pytest.mark.any_store


class S(enum.Enum):
    """A state that can be undone, one that is parked or held, and the end."""

    BOOK = "book"
    WORK = "work"
    DONE = "done"


class Renamed(enum.Enum):
    """WORK has another name."""

    BOOK = "book"
    LABOUR = "labour"
    DONE = "done"


@dataclass
class Data:
    """What they carry."""

    way: str = "hold"
    seen: list[str] = field(default_factory=list)


def release(data: Data) -> None:
    """The undo of BOOK."""
    stage.call("undo BOOK")


async def open_pool() -> str:
    """A resource, which a worker that runs nothing does not set up."""
    stage.call("set up")
    return "pool"


async def book(data: Data, *, pool: str) -> Any:
    """To the next state, whatever it is called."""
    stage.call("BOOK")
    return list(stage.values.get("states", S))[1]


async def work(data: Data, *, pool: str) -> Any:
    """Held, or on to the end."""
    stage.call("WORK")
    if data.way == "hold":
        await stage.gate("WORK").pass_through()
    return list(stage.values.get("states", S))[2]


def machine(name: str, states: type[enum.Enum] = S, **options: Any) -> outlive.Machine[Any, Data]:
    """The code of some day."""
    members = list(states)
    made: outlive.Machine[Any, Data] = outlive.Machine(
        f"resume.{name}", states, data=Data, start=members[0], exits=[members[2]], **options
    )
    made.resource("pool", open_pool)
    made.state(members[0], undo=release)(book)
    made.state(members[1])(work)
    return made


plain = machine("plain", timeout=7200)
strict = machine("strict", resumable=False)


async def lose_worker(place: Place, machine: outlive.Machine[Any, Data]) -> None:
    """A run in the middle of WORK, of a worker that is gone."""
    engine = await place.engine(registry=registry_of(machine)).__aenter__()
    await engine.start(machine, Data(), id="run-1")
    await stage.gate("WORK").reached()
    await crash(engine)


@pytest.mark.parametrize(
    ("machine", "recovery", "why"),
    [
        (strict, Recovery(), "workflow resume.strict is not resumable"),
        (plain, Recovery(auto_resume=False), "nothing is resumed here by itself"),
        (plain, Recovery(resume_age_max=60), "is more than resume_age_max=60 seconds ago"),
    ],
)
async def test_a_machine_that_may_not_go_on_by_itself_waits_for_a_person(
    place: Place, machine: outlive.Machine[Any, Data], recovery: Recovery, why: str
) -> None:
    """Policies hold for machines as for every workflow; a resume goes on in the state where it was. [CA-X1]"""
    await lose_worker(place, machine)
    place.clock.skip(seconds=61)
    stage.gate("WORK").open()

    async with place.engine(recovery=recovery) as second:
        assert why in await parks(second.get("run-1"))
        assert [1, 1] == [stage.count("BOOK"), stage.count("WORK")]
        await second.resume("run-1")
        assert (await in_time(second.get("run-1").result())).state is S.DONE
    assert [1, 2] == [stage.count("BOOK"), stage.count("WORK")]


async def test_a_machine_goes_on_by_itself_unless_it_is_said_otherwise(place: Place) -> None:
    """No person has to resume the machines of a worker that was lost. [CA-X1]"""
    await lose_worker(place, plain)
    stage.gate("WORK").open()

    async with place.engine() as second:
        assert (await in_time(second.get("run-1").result())).state is S.DONE
    assert [1, 2] == [stage.count("BOOK"), stage.count("WORK")]


# -- What cannot be resumed --------------------------------------------------------------------------------------------


async def test_a_run_that_does_not_exist_cannot_be_resumed(engine: outlive.Engine) -> None:
    """An error of its own, and nothing is set up. [CA-U5]"""
    with pytest.raises(RunNotFoundError, match="no-such-run"):
        await engine.resume("no-such-run")
    assert stage.calls == []


async def test_a_machine_that_has_ended_is_not_parked(engine: outlive.Engine) -> None:
    """It says how it ended, and gives its result at once; one in motion says that it runs. [CA-U4]"""
    run = await engine.start(plain, Data("quick"), id="run-1")
    await in_time(run.result())
    stage.calls.clear()

    with pytest.raises(RunNotParkedError, match="succeeded"):
        await engine.resume("run-1")
    assert (await in_time(engine.get("run-1").result())).state is S.DONE
    moving = await engine.start(plain, Data())
    await stage.gate("WORK").reached()
    with pytest.raises(RunNotParkedError, match="running"):
        await moving.resume()
    stage.gate("WORK").open()
    await in_time(moving.result())
    assert stage.count("WORK") == 1


async def test_a_resumed_machine_in_an_unknown_state_is_parked_again(place: Place) -> None:
    """Before anything is set up or called; code that has the state goes on. [CA-U5]"""
    known = machine("known", resumable=False)
    await lose_worker(place, known)
    stage.gate("WORK").open()
    stage.values["states"] = Renamed
    other = machine("known", Renamed, resumable=False)
    async with place.engine(registry=registry_of(other)) as second:
        assert "not resumable" in await parks(second.get("run-1"))
        stage.calls.clear()
        await second.resume("run-1")
        await until_reason(second.get("run-1"), "is in state WORK, which this code does not have")
        assert stage.calls == []

    stage.values["states"] = S
    async with place.engine(registry=registry_of(known)) as third:
        await third.resume("run-1")
        assert (await in_time(third.get("run-1").result())).state is S.DONE
    assert "BOOK" not in stage.calls


async def until_reason(run: outlive.types.RunHandle[Any], reason: str) -> None:
    """Return when a run is parked for this reason."""

    async def is_so() -> bool:
        info = await run.info()
        return info.status == "parked" and reason in info.reason

    await until(is_so)


async def test_a_resumed_machine_of_another_version_waits_for_its_own(place: Place) -> None:
    """Workers that have only another one leave it alone, and it says which code is missing. [CA-U5 CA-X7]"""
    await lose_worker(place, strict)
    stage.gate("WORK").open()
    async with place.engine() as second:
        await parks(second.get("run-1"))
    stage.calls.clear()
    newer = machine("strict", version=2)
    async with place.engine(registry=registry_of(newer)) as third:
        await third.resume("run-1")
        assert "resume.strict@1" in await third.get("run-1").why()
        other = await third.start(newer, Data("quick"))
        assert (await in_time(other.result())).state is S.DONE
        assert [1, 1] == [stage.count("BOOK"), stage.count("WORK")], "only the other run has moved"
    async with place.engine(registry=registry_of(strict)) as fourth:
        assert (await in_time(fourth.get("run-1").result())).state is S.DONE


# -- Deadlines and cancels of resumed machines -------------------------------------------------------------------------


async def test_a_machine_that_is_resumed_too_late_is_rolled_back(place: Place) -> None:
    """Its time counts from its start, also while it is parked. [CA-U19 CA-U10]"""
    await lose_worker(place, plain)
    stage.gate("WORK").open()
    place.clock.skip(seconds=7100)
    async with place.engine(recovery=Recovery(auto_resume=False)) as second:
        await parks(second.get("run-1"))
        place.clock.skip(seconds=101)
        await second.resume("run-1")
        with pytest.raises(outlive.errors.RunTimedOutError):
            await in_time(second.get("run-1").result())
    assert [1, 1] == [stage.count("WORK"), stage.count("undo BOOK")]


async def test_a_machine_that_was_cancelled_before_it_was_taken_over_runs_nothing_more(place: Place) -> None:
    """The worker that takes it rolls it back, whether it may be resumed or not. [CA-U19 CA-U10]"""
    await lose_worker(place, strict)
    async with place.engine(worker=False) as client:
        await client.cancel("run-1", reason="enough")

    async with place.engine() as second:
        await reaches(second.get("run-1"), "cancelled")
    assert [1, 1] == [stage.count("WORK"), stage.count("undo BOOK")]
