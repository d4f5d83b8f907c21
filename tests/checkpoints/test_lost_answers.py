"""Appends whose answer was lost, and that are repeated: a row is there once, and no program takes the row of another
for its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, cast

import pytest

from outlive._features.checkpoints import store as front
from outlive._kernel.journal.packing import Packer
from outlive._kernel.runtime.clock import SystemClock
from outlive.checkpoints import Checkpoint, CheckpointStore
from outlive.errors import CommitUnknownError, StoreUnavailableError
from outlive.errors.store import DuplicateCheckpointError
from outlive.limits import Limits
from tests.engine.faults import FaultyStore, unavailable, unknown
from tests.engine.support import Place, in_time

ROW = Checkpoint(1, "PAY", output=b"receipt")


class Slow(FaultyStore):
    """Never comes to the end of what it is asked, before it is done or after."""

    def __init__(self, inner: Any, moment: str) -> None:
        super().__init__(inner)
        self.moment = moment
        self.reached = asyncio.Event()

    async def follow_plan(self, name: str, verb: Callable[[], Awaitable[Any]]) -> Any:
        """Stop there."""
        answer = await verb() if self.moment != "before" else None
        if self.moment:
            self.reached.set()
            await asyncio.Event().wait()
        return answer


@pytest.fixture
async def faulty(place: Place) -> AsyncIterator[FaultyStore]:
    """A store that fails as the test says."""
    store = FaultyStore(place.store())
    await store.open()
    yield store
    await store.close()


def front_of(store: FaultyStore) -> CheckpointStore:
    """One program's view of it."""
    return CheckpointStore(lambda: cast(Any, store), packer=Packer(Limits()), nonce=SystemClock().nonce)


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_an_append_whose_answer_was_lost_may_be_repeated(faulty: FaultyStore, moment: str) -> None:
    """Whether it had happened or not, it is there once, and no caller gets an error of a duplicate."""
    mine = front_of(faulty)
    getattr(faulty, moment)["append_checkpoint"].append(unknown())
    with pytest.raises(CommitUnknownError):
        await mine.append("run-1", ROW)

    await mine.append("run-1", Checkpoint(1, "PAY", output=b"receipt"))

    assert await mine.load_run("run-1") == [ROW]
    with pytest.raises(DuplicateCheckpointError):
        await mine.append("run-1", ROW)


async def test_an_answer_may_be_lost_again_and_again(faulty: FaultyStore) -> None:
    """An append whose answer was lost twice, and that was then refused, can be repeated and leaves one row."""
    mine = front_of(faulty)
    faulty.after["append_checkpoint"].extend([unknown(), unknown()])
    for _ in range(2):
        with pytest.raises(CommitUnknownError):
            await mine.append("run-1", ROW)
    faulty.before["append_checkpoint"].append(unavailable())
    with pytest.raises(StoreUnavailableError):
        await mine.append("run-1", ROW)

    await mine.append("run-1", ROW)

    assert await mine.load_run("run-1") == [ROW]


async def test_row_of_another_writer_is_not_taken_for_ones_own(faulty: FaultyStore) -> None:
    """Not even with the same content: two writers of one run must hear of each other."""
    mine, theirs = front_of(faulty), front_of(faulty)
    faulty.before["append_checkpoint"].append(unknown())
    with pytest.raises(CommitUnknownError):
        await mine.append("run-1", ROW)
    await theirs.append("run-1", ROW)

    with pytest.raises(DuplicateCheckpointError):
        await mine.append("run-1", ROW)

    assert await mine.load_run("run-1") == [ROW]


async def test_another_row_with_the_number_is_a_duplicate(faulty: FaultyStore) -> None:
    """Only what was sent may be sent again; and after that the answer can still be had."""
    mine = front_of(faulty)
    faulty.after["append_checkpoint"].append(unknown())
    with pytest.raises(CommitUnknownError):
        await mine.append("run-1", ROW)

    with pytest.raises(DuplicateCheckpointError):
        await mine.append("run-1", Checkpoint(1, "SHIP"))
    await mine.append("run-1", ROW)

    assert await mine.load_run("run-1") == [ROW]


async def test_one_of_several_tasks_that_repeat_an_append_succeeds(faulty: FaultyStore) -> None:
    """An append whose answer was lost succeeds for one of three tasks that repeat it; the others get
    DuplicateCheckpointError."""
    mine = front_of(faulty)
    faulty.after["append_checkpoint"].append(unknown())
    with pytest.raises(CommitUnknownError):
        await mine.append("run-1", ROW)

    ends = await asyncio.gather(*(mine.append("run-1", ROW) for _ in range(3)), return_exceptions=True)

    assert sorted(type(end).__name__ for end in ends) == ["DuplicateCheckpointError"] * 2 + ["NoneType"]


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_cancelled_append_may_be_repeated(faulty: FaultyStore, moment: str) -> None:
    """A caller that stops waiting does not know the outcome either, because a verb of a store goes on to its end."""
    slow = Slow(faulty.inner, moment)
    mine = front_of(slow)
    appending = asyncio.create_task(mine.append("run-1", ROW))
    await in_time(slow.reached.wait())
    appending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await appending
    slow.moment = ""

    await mine.append("run-1", ROW)

    assert await mine.load_run("run-1") == [ROW]


async def test_a_cleared_run_begins_at_its_start(faulty: FaultyStore) -> None:
    """An append that was in doubt before its run was cleared is forgotten: a row of another writer is then a
    duplicate."""
    mine = front_of(faulty)
    faulty.after["append_checkpoint"].append(unknown())
    with pytest.raises(CommitUnknownError):
        await mine.append("run-1", ROW)
    faulty.after["append_checkpoint"].append(unknown())
    with pytest.raises(CommitUnknownError):
        await mine.append("run-2", ROW)

    await mine.clear("run-1")
    await front_of(faulty).append("run-1", ROW)

    with pytest.raises(DuplicateCheckpointError):
        await mine.append("run-1", ROW)
    await mine.append("run-2", ROW)


async def test_doubts_do_not_pile_up(faulty: FaultyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest is forgotten, and is a duplicate then, which loading explains."""
    monkeypatch.setattr(front, "DOUBTFUL_MAX", 2)
    mine = front_of(faulty)
    for number in range(3):
        faulty.after["append_checkpoint"].append(unknown())
        with pytest.raises(CommitUnknownError):
            await mine.append("run-1", Checkpoint(number, "S"))

    with pytest.raises(DuplicateCheckpointError):
        await mine.append("run-1", Checkpoint(0, "S"))
    await mine.append("run-1", Checkpoint(1, "S"))
    await mine.append("run-1", Checkpoint(2, "S"))

    assert len(await mine.load_run("run-1")) == 3


async def test_a_clear_whose_answer_was_lost_may_be_repeated(faulty: FaultyStore) -> None:
    """It is another clear."""
    mine = front_of(faulty)
    await mine.append("run-1", ROW)
    for moment in (faulty.before, faulty.after):
        moment["clear_checkpoints"].append(unknown())
        with pytest.raises(CommitUnknownError):
            await mine.clear("run-1")

    await mine.clear("run-1")

    assert await mine.load_run("run-1") == []
