"""Many callers that ask one store at the same time: how often it is asked, and what each of them gets."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from outlive._kernel.client.acting import GatheringCommits
from outlive._kernel.client.arrivals import in_time
from outlive._kernel.client.cell_reader import CellReader
from outlive._kernel.client.lookups import ASKED_MAX, Lookups
from outlive._kernel.model import Run
from outlive.errors import ResultTimeoutError, StepTimeoutError, StoreUnavailableError
from tests.engine.support import turns_of_the_loop

AWAY = StoreUnavailableError("the store", "it is away")


def run_of(run_id: str) -> Run:
    """A row."""
    return Run(id=run_id, root_id=run_id, workflow="order", version=1, nonce=1)


class Asked:
    """A store that answers when the test says so."""

    def __init__(self) -> None:
        self.questions: list[tuple[Any, asyncio.Future[Any]]] = []

    async def find_runs(self, run_ids: Sequence[str]) -> Any:
        """See `Store`."""
        return await self._ask(list(run_ids))

    async def commit(self, changes: Sequence[Any]) -> Any:
        """See `Store`."""
        return await self._ask(list(changes))

    async def read_cell(self, name: str) -> Any:
        """See `CellStore`."""
        return await self._ask(name)

    async def _ask(self, what: Any) -> Any:
        self.questions.append((what, asyncio.get_running_loop().create_future()))
        return await self.questions[-1][1]

    async def answer(self, answer: Any) -> Any:
        """Answer the last question, which is returned."""
        await turns_of_the_loop(3)
        what, future = self.questions[-1]
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
        await turns_of_the_loop(3)
        return what


async def test_a_thousand_runs_are_looked_up_at_a_time() -> None:
    """One more is asked for in the next question. A run that is not there is None, and a caller that gave up hears
    nothing."""
    store: Any = Asked()
    lookups = Lookups(store)
    finding = [lookups.find(f"run-{number}") for number in range(ASKED_MAX + 1)]
    finding[1].cancel()

    assert await store.answer({"run-0": run_of("run-0")}) == [f"run-{number}" for number in range(ASKED_MAX)]
    assert await store.answer({}) == [f"run-{ASKED_MAX}"]

    assert await finding[0] == run_of("run-0")
    assert await finding[2] is None
    assert await finding[ASKED_MAX] is None
    later = lookups.find("run-0")
    assert await store.answer({}) == ["run-0"]
    assert await later is None


async def test_a_row_that_cannot_be_read_is_the_answer_to_its_own_caller() -> None:
    """After an error that is about a row each run is asked for alone."""
    store: Any = Asked()
    lookups = Lookups(store)
    one, two = lookups.find("one"), lookups.find("two")

    assert await store.answer(ValueError("damaged")) == ["one", "two"]
    assert await store.answer(ValueError("damaged")) == ["one"]
    assert await store.answer({"two": run_of("two")}) == ["two"]

    with pytest.raises(ValueError, match="damaged"):
        await one
    assert await two == run_of("two")
    assert len(store.questions) == 3


async def test_a_store_that_is_away_is_the_answer_to_all_who_have_waited() -> None:
    """Callers that came while it was asked have waited for it too: it is not asked again for them."""
    store: Any = Asked()
    lookups = Lookups(store)
    first = [lookups.find("one"), lookups.find("two")]
    await turns_of_the_loop(2)
    meanwhile = lookups.find("three")
    first[1].cancel()

    assert await store.answer(AWAY) == ["one", "two"]

    for each in (first[0], meanwhile):
        with pytest.raises(StoreUnavailableError):
            await each
    assert len(store.questions) == 1


async def test_commits_that_come_meanwhile_are_written_together() -> None:
    """Each caller gets the outcome of its own change, or the error; a caller that gave up gets nothing."""
    store: Any = Asked()
    commits: Any = GatheringCommits(store)
    changes: list[Any] = ["a", "b", "c", "d", "e"]
    first = asyncio.create_task(commits.commit(changes[0]))
    await turns_of_the_loop(2)
    later = [asyncio.create_task(commits.commit(change)) for change in changes[1:4]]
    await turns_of_the_loop(1)
    later[0].cancel()

    assert await store.answer([("A", 1)]) == ["a"]
    assert await store.answer([("B", 2), ValueError("C"), ("D", 4)]) == ["b", "c", "d"]
    assert await first == ("A", 1)
    assert await later[2] == ("D", 4)
    with pytest.raises(ValueError, match="C"):
        await later[1]
    last = asyncio.create_task(commits.commit(changes[4]))
    assert await store.answer(AWAY) == ["e"]
    with pytest.raises(StoreUnavailableError):
        await last


async def test_caller_that_gave_up_a_cell_is_passed_over() -> None:
    """The others get its value, and its error."""
    store: Any = Asked()
    reader = CellReader("it", lambda held: held)
    for answer in (b"1", AWAY):
        reading = [asyncio.create_task(reader.read(store)) for _ in range(2)]
        await turns_of_the_loop(2)
        reading[0].cancel()
        await store.answer(answer)
        found = (await asyncio.gather(*reading, return_exceptions=True))[1]
        assert found == answer


async def test_what_does_not_come_in_time_says_why() -> None:
    """An error of the work itself stays what it is, even a time-out; without a limit the work is awaited."""

    async def why() -> str:
        return "is asleep"

    async def give(found: Any) -> Any:
        if isinstance(found, BaseException):
            raise found
        return found

    assert await in_time(give(7), "o", None, what="moved", why=why) == 7
    assert await in_time(give(7), "o", 30.0, what="moved", why=why) == 7
    own = StepTimeoutError("charge", 3)
    with pytest.raises(StepTimeoutError, match="step charge did not end"):
        await in_time(give(own), "o", 30.0, what="moved", why=why)
    with pytest.raises(ResultTimeoutError, match=r"moved.*is asleep"):
        await in_time(asyncio.sleep(60), "o", 0.0, what="moved", why=why)
