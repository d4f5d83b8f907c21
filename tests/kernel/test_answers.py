"""Callers that wait for the answer or the end of a run in another process: what they hear, and who is looked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from outlive._kernel.client.answers import POLLED_MAX, AnswerWaiters
from outlive._kernel.client.followers import Followers
from outlive._kernel.client.waiters import Waiters
from outlive._kernel.model import Run, RunStatus
from outlive._kernel.store.contract import Answer
from outlive.errors import EngineClosedError, RunNotFoundError, StoreUnavailableError
from outlive.errors.store import StoreMovedError

MOVED = StoreMovedError("runs.db")
AWAY = StoreUnavailableError("the store", "it is away")
ROOT = Run(id="o", root_id="o", workflow="order", version=1, nonce=1, status=RunStatus.RUNNING)
CHILD = replace(ROOT, id="o.1", number=1, parent_id="o")


class Rows:
    """A store with rows and answers, which may fail."""

    def __init__(self) -> None:
        self.rows: dict[str, Run] = {}
        self.answers: dict[tuple[str, str], Answer | None] = {}
        self.error: Exception | None = None
        self.damaged: set[str] = set()
        self.asked: list[list[Any]] = []

    async def find_runs(self, run_ids: Sequence[str]) -> dict[str, Run]:
        """See `Store`."""
        self.asked.append(list(run_ids))
        if self.error is not None:
            raise self.error
        if self.damaged & {*run_ids}:
            raise ValueError("damaged")
        return {run_id: self.rows[run_id] for run_id in run_ids if run_id in self.rows}

    async def find_run(self, run_id: str) -> Run | None:
        """See `Store`."""
        return (await self.find_runs([run_id])).get(run_id)

    async def find_answers(self, asks: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Answer | None]:
        """See `Store`."""
        return {ask: self.answers[ask] for ask in asks if ask in self.answers}

    def follow(self, ring: Callable[[str], None]) -> bool:
        """See `Store`."""
        return False


@pytest.fixture
def rows() -> Any:
    """Typed as any store."""
    return Rows()


@pytest.fixture
async def waiters(rows: Any) -> AsyncIterator[AnswerWaiters]:
    """Callers that wait for answers; none looks by itself."""
    waiters = AnswerWaiters(rows, pause_seconds=1_000, followers=Followers(lambda ring: False))
    yield waiters
    waiters.close()


@pytest.mark.parametrize(
    ("row", "is_known", "heard"),
    [
        (None, False, RunNotFoundError),
        (replace(ROOT, status=RunStatus.DAMAGED, reason="torn"), False, "its row"),
        (ROOT, False, None),
        (replace(ROOT, status=RunStatus.SUCCEEDED), True, "its row"),
        (replace(ROOT, status=RunStatus.PARKED, reason="no code"), True, "its row"),
        (replace(ROOT, status=RunStatus.PARKED, reason="paused"), True, "nothing yet"),
        (ROOT, True, "nothing yet"),
    ],
    ids=["gone", "damaged", "not asked", "ended", "parked", "paused", "running"],
)
async def test_caller_gets_what_there_is_instead_of_an_answer(
    rows: Any, waiters: AnswerWaiters, row: Run | None, *, is_known: bool, heard: Any
) -> None:
    """The row of a run that gives none any more, None if it was never asked, and an error if it is not there."""
    rows.rows = {} if row is None else {"o": row}
    rows.answers = {("o", "k"): None} if is_known else {}
    with waiters.expecting("o", "k") as waiter:
        await waiters.seek(waiter)
        if heard == "nothing yet":
            assert not waiter.future.done()
        elif heard is RunNotFoundError:
            with pytest.raises(RunNotFoundError):
                waiter.future.result()
        else:
            assert waiter.future.result() == (row if heard == "its row" else None)


async def test_child_of_a_parked_run_gives_no_answer(rows: Any, waiters: AnswerWaiters) -> None:
    """Only roots are parked, so the root is looked for too, unless the child has ended."""
    parked = replace(ROOT, status=RunStatus.PARKED, reason="no code")
    rows.rows, rows.answers = {"o": parked, "o.1": CHILD}, {("o.1", "k"): None}
    with waiters.expecting("o.1", "k") as waiter:
        await waiters.seek(waiter)
        assert waiter.future.result() == parked
    ended = rows.rows["o.1"] = replace(CHILD, status=RunStatus.FAILED)
    with waiters.expecting("o.1", "k") as waiter:
        await waiters.seek(waiter)
        assert waiter.future.result() == ended
    assert rows.asked == [["o.1"], ["o"], ["o.1"]]


@pytest.mark.parametrize("error", [MOVED, ValueError("damaged"), AWAY], ids=["moved", "unreadable", "away"])
async def test_store_that_fails_ends_the_wait_unless_it_may_come_back(
    rows: Any, waiters: AnswerWaiters, error: Exception
) -> None:
    """A store that is away is waited for. A caller that gave up hears nothing."""
    rows.error = error
    with waiters.expecting("o", "k") as waiter, waiters.expecting("o", "k") as given_up:
        given_up.future.cancel()
        await waiters.seek(waiter)
        assert waiter.future.done() is (error is not AWAY)
        if waiter.future.done():
            assert waiter.future.exception() is error


async def test_answers_are_looked_for_in_turn(rows: Any, waiters: AnswerWaiters) -> None:
    """Two hundred of them at a time, each of which goes to the end of the line; what was not sent yet is not looked
    for."""
    rows.rows, keys = {"o": ROOT}, [f"k{number:03}" for number in range(POLLED_MAX + 2)]
    rows.answers = {("o", key): None for key in keys}
    asked: list[list[str]] = []

    async def find_answers(asks: Sequence[tuple[str, str]]) -> dict[tuple[str, str], None]:
        asked.append([key for _, key in asks])
        return dict.fromkeys(asks)

    rows.find_answers = find_answers
    blocks = [waiters.expecting("o", key) for key in keys]
    for number, block in enumerate(blocks):
        block.__enter__().is_sent = number > 0
    for _ in range(2):
        await waiters.poll_once()

    assert asked == [keys[1:-1], [keys[-1], *keys[1:-2]]]
    for block in blocks:
        block.__exit__(None, None, None)
    assert waiters.waiting == {}
    await waiters.poll_once()
    assert len(asked) == 2


async def test_everything_that_waits_raises_when_the_engine_stops(rows: Any) -> None:
    """The error says for what it has waited."""
    waiters = Waiters(rows, pause=lambda: asyncio.sleep(0), pause_seconds=1_000)
    with waiters.waiting("o") as end, waiters.waiting("o") as given_up, waiters.answers.expecting("o", "k") as waiter:
        given_up.cancel()
        waiters.close()
        with pytest.raises(EngineClosedError, match="waiting for a result"):
            end.result()
        with pytest.raises(EngineClosedError, match="waiting for an answer"):
            waiter.future.result()


async def test_end_of_a_run_elsewhere_is_looked_for(rows: Any) -> None:
    """A run that has ended, and the root of a child that is parked, are announced. A run that is missing twice is not
    waited for any more."""
    waiters = Waiters(rows, pause=lambda: asyncio.sleep(0), pause_seconds=1_000)
    parked, ended = replace(ROOT, status=RunStatus.PARKED, reason="no code"), replace(ROOT, id="p", root_id="p")
    ended = replace(ended, status=RunStatus.SUCCEEDED)
    open_run = replace(ROOT, id="q", root_id="q")
    rows.rows = {"o": parked, "o.1": CHILD, "p": ended, "q": open_run}
    with (
        waiters.waiting("o.1") as child,
        waiters.waiting("p") as end,
        waiters.waiting("q") as none_yet,
        waiters.waiting("r") as gone,
    ):
        await waiters.poll_once()
        assert (child.done(), end.result(), none_yet.done(), gone.done()) == (False, ended, False, False)
        await waiters.poll_once()
        with pytest.raises(RunNotFoundError):
            gone.result()
        del rows.rows["q"]
        await waiters.poll_once()
        assert not none_yet.done()
        await waiters.poll_once()
        with pytest.raises(RunNotFoundError):
            none_yet.result()
    waiters.close()


async def test_row_that_cannot_be_read_is_the_end_of_its_own_wait(rows: Any) -> None:
    """The other runs are looked for one by one. A store that is away ends no wait, and one that has moved ends all."""
    waiters = Waiters(rows, pause=lambda: asyncio.sleep(0), pause_seconds=1_000)
    rows.damaged, rows.rows = {"o"}, {"p": replace(ROOT, id="p", root_id="p", status=RunStatus.FAILED)}
    with waiters.waiting("o") as torn, waiters.waiting("p") as end, waiters.waiting("q") as later:
        await waiters.poll_once()
        with pytest.raises(ValueError, match="damaged"):
            torn.result()
        assert end.result() == rows.rows["p"]
        rows.error = AWAY
        for _ in range(3):
            await waiters.poll_once()
        assert not later.done()
        rows.error = MOVED
        await waiters.poll_once()
        assert later.exception() is MOVED
    waiters.close()
