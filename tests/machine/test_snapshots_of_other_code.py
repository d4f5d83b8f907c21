"""A machine that begins with a snapshot may have other code than the machine that took it."""

from __future__ import annotations

import asyncio
import enum
from typing import NoReturn

import msgspec
import pytest

import outlive
from outlive._features.machines import snapshots as machine_snapshots
from outlive.errors import RunFailedError
from tests.engine.inside import crash
from tests.engine.support import Place, in_time, parks, stage, until, waits
from tests.machine.test_behind_snapshots import Data, books


class Walk(enum.Enum):
    """Two states with cursors."""

    OUT = "out"
    BACK = "back"
    DONE = "done"


def walker(name: str) -> outlive.Machine[Walk, Data]:
    """A machine that goes out and comes back."""
    walks = outlive.Machine(name, Walk, data=Data, start=Walk.OUT, exits=[Walk.DONE], snapshot_after=1)

    @walks.stepped(Walk.BACK)
    async def come_back(data: Data, cursor: int | None) -> outlive.machine.More[int] | Walk:
        data.log.append(f"back {cursor}")
        return Walk.DONE

    return walks


walks, walks_now = walker("behind.walks"), walker("behind.walks-now")


@walks.stepped(Walk.OUT)
async def go_out(data: Data, cursor: int | None) -> outlive.machine.More[int] | Walk:
    """Two steps, and one that its process does not live to see the end of."""
    if cursor == 2:
        stage.call("out")
        await asyncio.Event().wait()
    return outlive.machine.More((cursor or 0) + 1)


@walks_now.workflow(Walk.OUT)
async def stay_here(data: Data) -> Walk:
    """What later code has in its place."""
    return Walk.BACK


async def test_a_cursor_is_for_the_state_that_it_is_of(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """If that is another kind of state by now, no handler is given the cursor."""
    first = await place.engine().__aenter__()
    await first.start(walks, Data(), id="walks")

    async def is_out() -> bool:
        return stage.calls == ["out"]

    await until(is_out)
    await crash(first)
    monkeypatch.setitem(walks.plan.kinds, "OUT", walks_now.plan.kinds["OUT"])

    async with place.engine() as second:
        place.clock.skip(seconds=3_600)
        result = await in_time(second.get("walks").result())

        assert result.data.log == ["back None"]


async def test_a_snapshot_that_this_code_cannot_read_parks_the_run(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Failing it would end it with nothing undone; code that can read it goes on."""

    def refuse(stored: bytes) -> NoReturn:
        raise msgspec.ValidationError("of another release")

    first = await place.engine().__aenter__()
    run = await first.start(books, Data(), id="books")
    await waits(run)
    await crash(first)

    async with place.engine() as second:
        found = second.get("books")
        monkeypatch.setattr(machine_snapshots._SNAPSHOT, "_decode", refuse)
        await found.signal("go", True)
        assert "of another release" in await parks(found)
        monkeypatch.undo()
        await found.resume()
        with pytest.raises(RunFailedError, match="regretted"):
            await in_time(found.result())

    assert stage.calls == ["unbook"] * 4
