"""Machines whose code has changed: what contradicts the journal parks the run, with a reason; what does not goes on."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import pytest

import outlive
from outlive.errors import RunNotFoundError
from tests.engine.support import Place, in_time, parks, registry_of, stage, waits

pytestmark = pytest.mark.any_store


class Old(enum.Enum):
    """As it was."""

    BEGIN = "begin"
    ASK = "ask"
    END = "end"


class New(enum.Enum):
    """ASK has another name."""

    BEGIN = "begin"
    QUESTION = "question"
    END = "end"


@dataclass
class OldData:
    """As it was."""

    name: str


@dataclass
class NewData:
    """With one more field."""

    name: str
    answer: str = "none"


@dataclass
class OtherData:
    """With another field."""

    title: str


async def begin(data: Any) -> Any:
    """On to the next state, whatever it is called."""
    stage.call("begin")
    return list(stage.values["states"])[1]


async def ask(data: Any) -> Any:
    """Wait for the new code."""
    data.answer = await outlive.wait_for_signal("answer", str)
    return list(stage.values["states"])[2]


def machine(states: type[enum.Enum], data: type[Any], version: int = 1) -> outlive.Machine[Any, Any]:
    """The code of some day."""
    members = list(states)
    made: outlive.Machine[Any, Any] = outlive.Machine(
        "other.code", states, data=data, start=members[0], exits=[members[2]], version=version
    )
    made.state(members[0])(begin)
    made.workflow(members[1])(ask)
    stage.values["states"] = states
    return made


async def begin_with_old_code(place: Place) -> None:
    """A run that waits in ASK."""
    old = machine(Old, OldData)
    async with place.engine(registry=registry_of(old)) as engine:
        await waits(await engine.start(old, OldData("x"), id="run-1"))


async def test_a_new_field_with_a_default_contradicts_nothing(place: Place) -> None:
    """The data travels as it is stored, and is read by the code of today."""
    await begin_with_old_code(place)
    async with place.engine(registry=registry_of(machine(Old, NewData))) as engine:
        await engine.signal("run-1", "answer", "yes")
        result = await in_time(engine.get("run-1").result())

    assert result.data == NewData("x", "yes")
    assert stage.calls == ["begin"]


async def test_a_state_that_the_code_does_not_know_parks_the_run(place: Place) -> None:
    """A run in a state that the code does not have is parked, and goes on with code that has it. [CA-U5]"""
    await begin_with_old_code(place)
    async with place.engine(registry=registry_of(machine(New, OldData))) as engine:
        await engine.signal("run-1", "answer", "yes")
        reason = await parks(engine.get("run-1"))
        assert "machine other.code is in state ASK, which this code does not have" in reason
        assert "(it has BEGIN, QUESTION, END)" in reason

    async with place.engine(registry=registry_of(machine(Old, NewData))) as engine:
        await engine.get("run-1").resume()
        assert (await in_time(engine.get("run-1").result())).data.answer == "yes"
    assert stage.calls == ["begin"]


async def test_data_that_the_code_cannot_read_parks_the_run(place: Place) -> None:
    """The reason names the field."""
    await begin_with_old_code(place)
    async with place.engine(registry=registry_of(machine(Old, OtherData))) as engine:
        await engine.signal("run-1", "answer", "yes")
        assert "missing required field `title`" in await parks(engine.get("run-1"))


async def test_a_run_keeps_the_version_it_began_with(place: Place) -> None:
    """A worker that has only another one leaves it alone. [CA-U5 CA-X7]"""
    await begin_with_old_code(place)
    async with place.engine(registry=registry_of(machine(New, NewData, version=2))) as engine:
        await engine.signal("run-1", "answer", "yes")
        assert "other.code@1" in await engine.get("run-1").why()
    old = machine(Old, NewData)
    both = registry_of(old, machine(New, NewData, version=2))
    stage.values["states"] = Old
    async with place.engine(registry=both) as engine:
        assert (await in_time(engine.get("run-1").result())).state is Old.END


async def test_a_run_that_does_not_exist_is_said_to_be_missing(engine: outlive.Engine) -> None:
    """Nothing is set up for it. [CA-U5]"""
    with pytest.raises(RunNotFoundError):
        await engine.get("no-such-run").result()
