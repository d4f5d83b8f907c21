"""Lists of runs that are followed, live: each is looked at once for all its readers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import msgspec

from outlive._tasks import own_task
from outlive.client.followers import Bell
from outlive.client.view import View
from outlive.errors import StoreUnavailableError
from outlive.http.sse import ALIVE, ALIVE_SECONDS, FIRST, message
from outlive.http.wire.runs import RunsFollowQuery, RunView, run_view

LOOK_SECONDS = 1.0


class LivePage:
    """The first page of a list, looked at again and again for all who follow it."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[Any, bytes]] = {}
        """By id: what tells whether a row has changed, and its message."""
        self.changed = asyncio.Event()
        """Replaced by another one with each change."""
        self.readers = 0
        self.task: asyncio.Task[None] | None = None
        self.error: BaseException | None = None

    def show(self, views: list[RunView]) -> None:
        """What the list shows now."""
        rows: dict[str, tuple[Any, bytes]] = {}
        for view in views:
            mark = (view.updated_at, view.status, view.waits, view.approvals)
            known = self.rows.get(view.id)
            rows[view.id] = known if known is not None and known[0] == mark else (mark, message("run", view))
        if rows != self.rows:
            self.rows = rows
            self.ring()

    def ring(self) -> None:
        """Let all readers look."""
        self.changed, before = asyncio.Event(), self.changed
        before.set()


class LivePages:
    """The lists that are followed, each looked at once for all its readers."""

    def __init__(self) -> None:
        self._pages: dict[bytes, LivePage] = {}

    async def follow(self, view: View, query: RunsFollowQuery, *, of: str) -> AsyncGenerator[bytes, None]:
        """The runs of a list as they are, then every one that is new, has changed, or is in the list no longer.

        Lists of the same query and `of` the same namespace are one.
        """
        key = msgspec.json.encode([query, of])
        page = self._pages.setdefault(key, LivePage())
        page.readers += 1
        if page.task is None:
            page.task = own_task(_look(page, view, query), name="outlive-http-list")
        try:
            yield FIRST
            known: dict[str, Any] = {}
            while True:
                changed = page.changed
                if page.error is not None:
                    raise page.error
                for run_id in [run_id for run_id in known if run_id not in page.rows]:
                    del known[run_id]
                    yield message("gone", {"id": run_id})
                for run_id, (mark, part) in reversed(page.rows.items()):
                    if known.get(run_id) != mark:
                        known[run_id] = mark
                        yield part
                waiting = asyncio.ensure_future(changed.wait())
                try:
                    done, _ = await asyncio.wait([waiting], timeout=ALIVE_SECONDS)
                finally:
                    waiting.cancel()
                if not done:
                    yield ALIVE
        finally:
            page.readers -= 1
            if not page.readers:
                self._pages.pop(key, None)
                page.task.cancel()


async def _look(page: LivePage, view: View, query: RunsFollowQuery) -> None:
    bell = Bell()
    try:
        while True:
            bell.clear()
            try:
                found = await view.runs(order="-created_at", limit=query.limit, after=None, **query.filters())
                page.show([run_view(run) for run in found])
            except StoreUnavailableError:
                pass
            await bell.wait(LOOK_SECONDS)
    except Exception as error:
        page.error = error
        page.ring()
