"""Work beside the event loop: the server goes on, and callers have a deadline."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from outlive._features.flows import graph_operations as graphs
from outlive._features.flows.document.model import canonical_json
from outlive._features.flows.graphs import check_text
from outlive.flow import Document
from outlive.http import Api, ApiLimits
from outlive.http.aside import on_thread
from outlive.testing import TestEngine
from tests.http.caller import Caller

DOCUMENT = "name: aside\nsteps: {a: {use: noop}}\n"
NEVER = 60.0


LEFT_MAX = 500
"""Objects in circles that a request may leave, however long its body is."""
NOT_A_FLOW = "name: aside\nsteps: {a: {use: noop}}\nmade_up:\n" + "  - {a: 1}\n" * 3_000


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

    def check_slowly(*given: Any) -> Any:
        work()
        return check_text(*given)

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


@pytest.mark.parametrize("path", ["/api/v1/flows", "/api/v1/flows/drafts"])
async def test_a_document_that_is_kept_is_written_where_it_is_checked(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its one form and its hash are made on the thread too: of 10,000 steps, they took a tenth of a second. [S35]"""
    threads: list[threading.Thread] = []

    def write(document: Document) -> bytes:
        threads.append(threading.current_thread())
        return canonical_json(document)

    monkeypatch.setattr("outlive._features.flows.library.reading.canonical_json", write)
    async with TestEngine() as engine:
        answer = await Caller(Api(engine)).post(path, {"document": DOCUMENT})

    assert answer.status == 200, answer.body
    assert [threading.current_thread()] != threads
    assert len(threads) == 1, "once, for the hash and for the store"


async def test_a_check_that_takes_too_long_is_given_up(checking: Blocking) -> None:
    """Its caller may come again; its thread does not hold up the end of the process. [S35]"""
    async with TestEngine() as engine:
        api = Caller(Api(engine, limits=ApiLimits(check_seconds=0.02)))
        answer = await api.post("/api/v1/flows/check", {"document": DOCUMENT})
        assert (answer.status, answer.code, answer.headers["retry-after"]) == (503, "too_busy", "5")
        assert answer.data["detail"] == "the check of the document was not done: it was not done within 0.02 s"
        await checking.has_begun.wait()

    assert checking.thread is not None
    assert checking.thread.daemon


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
    """The caller gets the error of work on a thread. [S35]"""

    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await on_thread(fail)

    assert await on_thread(lambda: 7) == 7


async def test_a_refused_document_leaves_nothing_to_the_collector_of_garbage() -> None:
    """A refused request frees all that it had in hand when it is answered. An error and the functions through which it
    came had referred to each other, so all of it stayed until Python's collector came: 0.4 s of the event loop.
    [S35]
    """
    async with TestEngine() as engine:
        caller = Caller(Api(engine))
        await caller.post("/api/v1/flows", {"document": NOT_A_FLOW})  # Modules are imported, and tables are made.
        was_enabled = gc.isenabled()
        gc.collect()
        gc.disable()
        try:
            answered = (await caller.post("/api/v1/flows", {"document": NOT_A_FLOW})).status
            left = gc.collect()
        finally:
            if was_enabled:
                gc.enable()

    assert (answered, left < LEFT_MAX) == (422, True), left
