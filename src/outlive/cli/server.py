"""The verbs of an engine behind `outlive serve`, as commands call them. What is redacted is hidden by the server."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from outlive._model.approval import Approval
from outlive._values.run import Run
from outlive.client.finding import Page
from outlive.errors import OutliveError, ServerError
from outlive.remote import Remote, connect
from outlive.remote.values import DecideOptions

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
        self.get, self.steps, self.history, self.count = remote.get, remote.steps, remote.history, remote.count
        self.recovery = remote.recovery
        self.cancel, self.retry = remote.cancel, remote.retry
        self.signal, self.ask = remote.signal, remote.ask
        self.skip_step, self.fork = remote.skip_step, remote.fork
        self.workflows, self.workers, self.batches = remote.workflows, remote.workers, remote.batches
        self.approvals = ServerApprovals(remote, has_key=has_key)
        self.queues, self.schedules, self.events = remote.queues, remote.schedules, remote.events
        self.audit, self.keys, self.flows, self.bulk = remote.audit, remote.keys, remote.flows, remote.bulk
        self.view = ServerView(remote)

    async def pause(
        self, run_id: str | None = None, *, workflow: str = "", queue: str = "", all: bool = False, **why: str
    ) -> None:
        """Pause a run, a workflow or a queue. The server knows by the key who does it."""
        body = {"reason": why.get("reason", "")}
        if run_id is not None:
            await self._remote.operate("runs.pause", body=body, run_id=run_id)
        elif workflow:
            await self._remote.operate("workflows.pause", body=body, name=workflow)
        elif queue:
            await self._remote.operate("queues.pause", body=body, name=queue)
        else:
            assert all, "something is to be paused"
            await self._remote.operate("store.pause", body=body)

    async def resume(
        self, run_id: str | None = None, *, workflow: str = "", queue: str = "", all: bool = False
    ) -> None:
        """Let a run, a workflow or a queue go on."""
        if run_id is not None:
            await self._remote.resume(run_id)
        elif workflow:
            await self._remote.operate("workflows.resume", name=workflow)
        elif queue:
            await self._remote.operate("queues.resume", name=queue)
        else:
            assert all, "something is to go on"
            await self._remote.operate("store.resume")


class ServerApprovals:
    """`engine.approvals.list`, as far as commands use it."""

    def __init__(self, remote: Remote, *, has_key: bool) -> None:
        self.list = remote.approvals.list
        self._approvals, self._has_key = remote.approvals, has_key
        """With a key the server knows who decides; without, a person says so."""

    async def approve(self, run_id: str, name: str, *, by: str, **options: Any) -> Approval[Any]:
        """Approve what a run asks for. See `Approvals.approve`."""
        return await self._approvals.approve(run_id, name, **self._who(by), **options)

    async def reject(self, run_id: str, name: str, *, by: str, **options: Any) -> Approval[Any]:
        """Reject what a run asks for."""
        return await self._approvals.reject(run_id, name, **self._who(by), **options)

    def _who(self, by: str) -> DecideOptions:
        return {} if self._has_key else {"by": by}


class ServerView:
    """`engine.view`, as far as commands use it."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    async def run(self, run_id: str) -> Run:
        """See `View.run`."""
        return await self._remote.info(run_id)

    async def runs(self, **options: Any) -> Page[Run]:
        """A page of runs. See `View.runs`."""
        return await self._remote.list(**options)
