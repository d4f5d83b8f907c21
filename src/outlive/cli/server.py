"""The verbs of an engine behind `outlive serve`, as commands call them. What is redacted is hidden by the server."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

from outlive._model.approval import Approval
from outlive._model.instant import microseconds_of
from outlive._store.contract import WorkerInfo
from outlive._values.approval import ApprovalRequest
from outlive._values.failure import Failure
from outlive._values.run import Run
from outlive.client.finding import Page
from outlive.client.view import ITEMS_PAGE
from outlive.errors import OutliveError, ServerError
from outlive.remote import Remote, connect
from outlive.remote.operating import worker_of

UNAUTHENTICATED = 401
TIMEOUT_SECONDS = 10.0
"""How long a server may be away before a person hears of it."""


@asynccontextmanager
async def open_server(url: str) -> AsyncIterator[Server]:
    """A server by its address; the key is in OUTLIVE_KEY."""
    async with connect(url, timeout=TIMEOUT_SECONDS) as remote:
        try:
            yield Server(remote, has_key=bool(os.environ.get("OUTLIVE_KEY")))
        except ServerError as error:
            if error.status == UNAUTHENTICATED:
                error.add_note("a command takes it from OUTLIVE_KEY")
            raise
        except OutliveError as error:
            # The message says what to do, as on a store; the note of a server says what to request.
            error.__notes__ = []
            raise


class Server:
    """The verbs that commands use, over HTTP."""

    def __init__(self, remote: Remote, *, has_key: bool) -> None:
        self._remote = remote
        self._has_key = has_key
        """With a key the server knows who decides; without, a person says so."""
        self.get, self.steps, self.history, self.count = remote.get, remote.steps, remote.history, remote.count
        self.recovery = remote.recovery
        self.cancel, self.retry = remote.cancel, remote.retry
        self.signal, self.ask = remote.signal, remote.ask
        self.skip_step, self.fork = remote.skip_step, remote.fork
        self.workflows = remote.workflows
        self.list_batches, self.get_batch = remote.list_batches, remote.get_batch
        self.queues, self.schedules, self.events = remote.queues, remote.schedules, remote.events
        self.audit, self.keys, self.flows, self.bulk = remote.audit, remote.keys, remote.flows, remote.bulk
        self.view = ServerView(remote)

    async def pause(
        self, run_id: str | None = None, *, workflow: str = "", queue: str = "", all: bool = False, **why: str
    ) -> None:
        """Pause a run, a workflow or a queue. The server knows by the key who does it."""
        body = {"reason": why.get("reason", "")}
        if run_id is not None:
            await self._remote.operate("pause", body=body, run_id=run_id)
        elif workflow:
            await self._remote.operate("pause_workflow", body=body, name=workflow)
        elif queue:
            await self._remote.operate("pause_queue", body=body, name=queue)
        else:
            assert all, "something is to be paused"
            await self._remote.operate("pause_all", body=body)

    async def resume(
        self, run_id: str | None = None, *, workflow: str = "", queue: str = "", all: bool = False
    ) -> None:
        """Let a run, a workflow or a queue go on."""
        if run_id is not None:
            await self._remote.resume(run_id)
        elif workflow:
            await self._remote.operate("resume_workflow", name=workflow)
        elif queue:
            await self._remote.operate("resume_queue", name=queue)
        else:
            assert all, "something is to go on"
            await self._remote.operate("unpause_all")

    async def approve(self, run_id: str, name: str, *, by: str, **options: Any) -> Approval[Any]:
        """Approve what a run asks for. See `Engine.approve`."""
        return await self._decide("approve", run_id, name, by, options)

    async def reject(self, run_id: str, name: str, *, by: str, **options: Any) -> Approval[Any]:
        """Reject what a run asks for."""
        return await self._decide("reject", run_id, name, by, options)

    async def _decide(self, verb: str, run_id: str, name: str, by: str, options: dict[str, Any]) -> Approval[Any]:
        body = {key: value for key, value in options.items() if value is not None}
        if not self._has_key:
            body["by"] = by
        found: Approval[Any] = await self._remote.operate(verb, body=body, run_id=run_id, name=name)
        return found

    async def approvals(self, run_id: str | None = None, **options: Any) -> Page[ApprovalRequest]:
        """What runs ask people for. See `Engine.approvals`."""
        if run_id is not None:
            found = await self._remote.operate("run_approvals", run_id=run_id)
        else:
            found = await self._remote.operate("list_approvals", query=_query(options))
        return Page(found.items, next=found.next, previous=found.previous)


class ServerView:
    """`engine.view`, as far as commands use it."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    async def run(self, run_id: str) -> Run:
        """See `View.run`."""
        return await self._remote.info(run_id)

    async def failed_items(self, batch_id: str, *, limit: int) -> list[tuple[int, Failure]]:
        """See `View.failed_items`."""
        failed: list[tuple[int, Failure]] = []
        after: int | None = -1
        while after is not None and len(failed) < limit:
            query = {"after": after, "status": "failed", "limit": ITEMS_PAGE}
            page = await self._remote.operate("list_items", query=query, batch_id=batch_id)
            failed += [(it.index, it.error) for it in page.items if it.error is not None]
            after = page.next
        return failed[:limit]

    async def runs(self, **options: Any) -> Page[Run]:
        """A page of runs. See `View.runs`."""
        return await self._remote.list(**options)

    async def workers(self) -> tuple[list[WorkerInfo], int]:
        """See `View.workers`."""
        found = await self._remote.operate("list_workers")
        return [worker_of(view) for view in found.items], microseconds_of(found.now)


def _query(options: dict[str, Any]) -> dict[str, Any]:
    query = {key: value for key, value in options.items() if value is not None}
    tags = query.pop("tags", {})
    if tags:
        query["tag"] = [f"{name}={value}" for name, value in tags.items()]
    return {key: value.isoformat() if isinstance(value, datetime) else value for key, value in query.items()}
