"""How users find runs, requests for approval and workflows, and start a workflow that they only know by name."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from outlive._model import Run, given, known_run_id
from outlive.client.audit import ApprovalEntry
from outlive.client.client import Client
from outlive.client.definitions import WorkflowInfo
from outlive.client.finding import COUNT_MAX, Count, Filters, Order, Page
from outlive.client.handle import RunHandle
from outlive.client.starting import OnConflict


class Finding:
    """The verbs of an engine that look for something."""

    @property
    def _verbs(self) -> Client:
        """The client of an engine that runs."""
        raise NotImplementedError

    async def list(
        self, *, order: Order = "-created_at", limit: int = 100, after: str | None = None, **filters: Unpack[Filters]
    ) -> Page[Run]:
        """A page of the runs that fit, newest first; it is a list.

        Args:
            order: `created_at` for oldest first.
            limit: how many runs a page holds, up to 1,000.
            after: `page.next` or `page.previous` of another page with the same filters and order.
            status, workflow, tags, id_prefix, since, until, waiting_for, error, roots_only: what to narrow by. Several
                statuses may be given; `error` is the name of an exception class; `waiting_for` is that of a signal,
                an ask or an approval, or the id of another run.
        """
        return await self._verbs.list(order=order, limit=limit, after=after, **filters)

    async def count(self, *, limit: int = COUNT_MAX, **filters: Unpack[Filters]) -> Count:
        """How many runs fit, with the filters of `list`. Counting ends at `limit`: then `count.at_least` is true, and
        `str(count)` ends with a plus: `10,000+`."""
        return await self._verbs.count(limit=limit, **filters)

    async def approvals(
        self,
        run_id: str | None = None,
        *,
        assignee: str | None = None,
        limit: int = 100,
        after: str | None = None,
        **filters: Unpack[Filters],
    ) -> Page[ApprovalEntry]:
        """What runs ask people for and have no decision on, the oldest runs first: the inbox of one person, or of all.
        With a `run_id`: everything that this run and its children have asked for, with who decided what and when.

        Args:
            assignee: only what this person, or this group, may decide.
            limit: of how many runs a page has the requests.
            after: `page.next` or `page.previous` of another page.
            workflow, tags, id_prefix, since, until, status, error, roots_only: only of runs that fit, as in `list`.
        """
        if run_id is not None:
            given.alone("engine.approvals", "run_id", assignee=assignee, after=after, **filters)
            return Page(await RunHandle(self._verbs, known_run_id("engine.approvals", run_id)).approvals())
        return await self._verbs.approvals.open(assignee=assignee, limit=limit, after=after, **filters)

    async def workflows(self) -> builtins.list[WorkflowInfo]:
        """Every workflow that workers have described, in every version, with the JSON Schemas of its arguments and of
        its result, and how many live workers can run it."""
        return await self._verbs.workflows()

    async def start_by_name(
        self,
        workflow: str,
        arguments: Mapping[str, Any] | Sequence[Any] | None = None,
        *,
        version: int | None = None,
        id: str | None = None,
        on_conflict: OnConflict = "attach",
        timeout: given.Span | None = None,
        tags: dict[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> RunHandle[Any]:
        """Start a run of a workflow whose code this program does not have; it is durable when this returns.

        The arguments are checked against the schema that workers have described. No worker has to be up.

        Args:
            arguments: plain JSON values by name, `{"id": 7}`, or in a list.
            version: the newest one unless given.
            id, on_conflict, timeout, tags, headers: as for `start`.

        Raises:
            UnknownWorkflowError: no worker has described it; names that are near are in the message.
            InvalidArgumentError: the arguments do not fit.
        """
        client = self._verbs
        run_id = await client.start_by_name(
            workflow,
            arguments,
            version=version,
            id=id,
            on_conflict=on_conflict,
            timeout=timeout,
            tags=tags,
            headers=headers,
        )
        return RunHandle(client, run_id)
