"""What a machine leaves behind at every turn does not add up, whatever a turn does."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import pytest

import outlive
from outlive.events import ApprovalRequested, SnapshotTaken
from outlive.machine import Any as AnyOf
from outlive.testing import TestEngine
from outlive.types import RunHandle
from tests.engine.inside import journal_of
from tests.engine.support import in_time, until

TURNS = 120
AFTER = 12


class S(enum.Enum):
    """Round and round."""

    TURN = "turn"
    DONE = "done"


@dataclass
class Data:
    """How often."""

    turns: int = 0


async def take_back(data: Any) -> None:
    """Nothing was done."""


@outlive.step(name="long_lives.refuse", undo=take_back)
async def refuse(data: Any) -> int:
    """Never goes well."""
    raise ValueError("no")


async def agree(data: Data) -> int:
    """Always goes well."""
    return 1


def next_of(data: Data) -> S:
    """One turn more, until there are enough."""
    data.turns += 1
    return S.TURN if data.turns < TURNS else S.DONE


def machine(name: str) -> outlive.Machine[Any, Data]:
    """With snapshots every now and then."""
    return outlive.Machine(f"long_lives.{name}", S, data=Data, start=S.TURN, exits=[S.DONE], snapshot_after=AFTER)


calling = machine("calling")


@calling.workflow(S.TURN)
async def call(data: Data) -> S:
    """A call that fails, which its code bears."""
    with pytest.raises(ValueError, match="no"):
        await refuse(data.turns)
    return next_of(data)


class Split(enum.Enum):
    """A split and a way back."""

    TURN = "turn"
    BACK = "back"
    DONE = "done"


splitting = outlive.Machine(
    "long_lives.splitting", Split, data=Data, start=Split.TURN, exits=[Split.DONE], snapshot_after=AFTER
)
splitting.split(Split.TURN, {"no": refuse, "yes": agree}, join=AnyOf(then=Split.BACK), concurrency=1)


@splitting.workflow(Split.BACK)
async def go_back(data: Data) -> Split:
    """One turn more."""
    return Split[next_of(data).name]


asking = machine("asking")


@asking.workflow(S.TURN)
async def ask(data: Data) -> S:
    """A question that has a name of its own, and one that comes again and again; both are answered."""
    await outlive.wait_for_approval(f"order-{data.turns}")
    await outlive.wait_for_approval("order")
    return next_of(data)


async def test_names_of_approvals_do_not_add_up_in_a_snapshot() -> None:
    """No identity comes twice all the same, so no answer is taken for one to another question."""
    taken, calls = dict[int, int](), list[str]()
    async with TestEngine() as engine:
        run = await engine.start(asking, Data())
        for turn in range(TURNS):
            for name in (f"order-{turn}", "order"):
                await in_time(is_asked(run, name))
                history = await journal_of(run)
                calls += [event.call for event in history if isinstance(event, ApprovalRequested)][-1:]
                if isinstance(history[0], SnapshotTaken):
                    taken[turn] = len(bytes(history[0].payload.v))  # type: ignore[arg-type]
                await run.approve(name, by="ann")
        await in_time(run.result())

    sizes = list(taken.values())
    assert max(sizes) < sizes[0] + 20
    assert len({*calls}) == len(calls) == 2 * TURNS


async def is_asked(run: RunHandle[Any], name: str) -> None:
    """Return when a question is open."""

    async def is_open() -> bool:
        return [entry.name for entry in await run.approvals() if entry.decision is None] == [name]

    await until(is_open)


@pytest.mark.parametrize("made", [calling, splitting], ids=lambda made: made.name)
async def test_a_call_that_failed_is_not_remembered_for_its_undo(made: outlive.Machine[Any, Data]) -> None:
    """A call that failed owes no undo, and does not keep snapshots from being taken."""
    async with TestEngine() as engine:
        run = await engine.start(made, Data())
        assert (await in_time(run.result())).data.turns == TURNS
        history = await journal_of(run)

    assert isinstance(history[0], SnapshotTaken)
    assert len(history) < 3 * AFTER
