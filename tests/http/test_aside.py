"""Work beside the event loop: the server goes on, callers have a deadline, and senders do not wait for each other."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from outlive.client.graphs import check_text
from outlive.http import Api, ApiLimits
from outlive.http.aside import AT_ONCE, WAITING_MAX, Aside
from outlive.http.operations import graphs
from outlive.http.problem import Problem
from outlive.testing import TestEngine
from tests.http.caller import Caller

DOCUMENT = "name: aside\nsteps: {a: {use: noop}}\n"
NEVER = 60.0


class Blocking:
    """Work that has begun and does not end before it may."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.has_begun = asyncio.Event()
        self.may_end = threading.Event()
        self.thread: threading.Thread | None = None

    def __call__(self, *arguments: Any) -> str:
        """On the thread."""
        self.thread = threading.current_thread()
        self._loop.call_soon_threadsafe(self.has_begun.set)
        self.may_end.wait(NEVER)
        return "done"


@pytest.fixture
async def new_work() -> AsyncIterator[Callable[[], Blocking]]:
    """Makes work; all of it ends with the test."""
    made: list[Blocking] = []

    def make() -> Blocking:
        made.append(Blocking())
        return made[-1]

    yield make
    for each in made:
        each.may_end.set()
        if each.thread is not None:
            await asyncio.to_thread(each.thread.join)


@pytest.fixture
async def checking(monkeypatch: pytest.MonkeyPatch, new_work: Callable[[], Blocking]) -> Blocking:
    """The check of a document, which does not end before it may."""
    work = new_work()

    def check_slowly(text: str) -> Any:
        work()
        return check_text(text)

    monkeypatch.setattr(graphs, "check_text", check_slowly)
    return work


async def test_other_requests_are_answered_while_a_document_is_checked(checking: Blocking) -> None:
    """However long that takes. [S35]"""
    async with TestEngine() as engine:
        api = Caller(Api(engine))
        check = asyncio.ensure_future(api.post("/api/v1/flows/check", {"document": DOCUMENT}))
        await checking.has_begun.wait()
        others = [await api.get("/health/live"), await api.get("/api/v1/runs")]
        was_done = check.done()
        checking.may_end.set()

        assert ([200, 200], False) == ([each.status for each in others], was_done)
        assert (await check).data["is_fine"] is True


async def test_a_check_that_takes_too_long_is_given_up(checking: Blocking) -> None:
    """Its caller may come again; its thread does not hold up the end of the process. [S35]"""
    async with TestEngine() as engine:
        api = Caller(Api(engine, limits=ApiLimits(check_seconds=0.02)))
        answer = await api.post("/api/v1/flows/check", {"document": DOCUMENT})
        assert (answer.status, answer.error, answer.headers["retry-after"]) == (503, "TooBusy", "5")
        assert answer.data["detail"] == "the document was not taken: it was not checked within 0.02 s"
        await checking.has_begun.wait()

    assert checking.thread is not None
    assert checking.thread.daemon


async def test_the_work_of_one_sender_does_not_hold_up_that_of_others(new_work: Callable[[], Blocking]) -> None:
    """One of each sender is done at once, and few of all. [S35 S51]"""
    aside, first, second, other = Aside(NEVER), new_work(), new_work(), new_work()
    of_ann = [asyncio.ensure_future(aside.do("ann", work)) for work in (first, second)]
    of_bob = asyncio.ensure_future(aside.do("bob", other))
    await first.has_begun.wait()
    await other.has_begun.wait()
    of_eve = asyncio.ensure_future(aside.do("eve", lambda: "done"))
    other.may_end.set()

    assert ["done", "done"] == [await of_bob, await of_eve]
    assert not second.has_begun.is_set()
    first.may_end.set()
    second.may_end.set()
    assert ["done", "done"] == await asyncio.gather(*of_ann)


async def test_so_much_work_may_wait(new_work: Callable[[], Blocking]) -> None:
    """More is refused at once; what its caller no longer waits for leaves its place. [S35]"""
    aside, works = Aside(NEVER), [new_work() for _ in range(AT_ONCE)]
    under_way = [asyncio.ensure_future(aside.do(f"sender {number}", work)) for number, work in enumerate(works)]
    waiting = [asyncio.ensure_future(aside.do(f"another {each}", lambda: None)) for each in range(WAITING_MAX)]
    await works[-1].has_begun.wait()
    with pytest.raises(Problem, match="too much to check before it"):
        await aside.do("one more", lambda: None)
    for each in waiting:
        each.cancel()
    await asyncio.wait(waiting)
    for work in works:
        work.may_end.set()

    assert await aside.do("one more", lambda: 7) == 7
    await asyncio.gather(*under_way)


async def test_the_line_is_shared_by_senders(new_work: Callable[[], Blocking]) -> None:
    """One that wants a hundred checks at once leaves half of the line to others. [S33 S35 S51]"""
    aside, work = Aside(NEVER), new_work()
    noisy = [asyncio.ensure_future(aside.do("noisy", work)) for _ in range(WAITING_MAX)]
    await work.has_begun.wait()

    assert await aside.do("quiet", lambda: 7) == 7
    work.may_end.set()
    answers = await asyncio.gather(*noisy, return_exceptions=True)
    assert sum(answer == "done" for answer in answers) == 1 + WAITING_MAX // 2


async def test_two_keys_with_one_name_do_not_wait_for_each_other(
    checking: Blocking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tenants call their programs the same. [S33 S35]"""
    async with TestEngine() as engine:
        api = Api(engine, auth="keys")
        keys = [(await engine.keys.create("app", tags={"tenant": name})).secret for name in ("a", "b")]
        a, b = (Caller(api, key=key) for key in keys)
        first = asyncio.ensure_future(a.post("/api/v1/flows/check", {"document": DOCUMENT}))
        await checking.has_begun.wait()
        monkeypatch.setattr(graphs, "check_text", check_text)
        other = await b.post("/api/v1/flows/check", {"document": DOCUMENT})
        checking.may_end.set()

        assert (other.status, (await first).status) == (200, 200)


async def test_error_of_the_work_reaches_its_caller() -> None:
    """The caller gets the error of its work, and the next work is done. [S35]"""

    def fail() -> None:
        raise ValueError("no")

    aside = Aside(NEVER)
    with pytest.raises(ValueError, match="no"):
        await aside.do("ann", fail)

    assert await aside.do("ann", lambda: 7) == 7
