"""`engine.approvals.list`: what runs ask people for, and what people decide."""

from __future__ import annotations

from typing import Any, Unpack

from msgspec.structs import replace

from outlive._features.approvals.deciding import Decider
from outlive._features.approvals.links import Links
from outlive._kernel.client.client import Client
from outlive._kernel.client.finding import Filters, Page, filter_of
from outlive._kernel.model import given, known_run_id
from outlive._kernel.model.approval import Approval
from outlive._kernel.values.approval import ApprovalRequest
from outlive.errors import InvalidArgumentError


class Approvals:
    """Lists what runs ask people for, and takes decisions: `list`, `approve`, `reject`, and `links` to decide without a
    key."""

    def __init__(self, client: Client) -> None:
        self._decider, self._finder = Decider(client), client.finder
        self._links = Links(client.access, self._decider)

    @property
    def links(self) -> Links:
        """Links with which a person decides on an approval, once and without a key: create, show, use."""
        return self._links

    async def list(
        self,
        run_id: str | None = None,
        *,
        assignee: str | None = None,
        limit: int = 100,
        after: str | None = None,
        **filters: Unpack[Filters],
    ) -> Page[ApprovalRequest]:
        """Requests without a decision, of the oldest runs first: the inbox of one person, or of all. With a `run_id`:
        all requests of this run and its children, with their decisions: by whom, what and when.

        Args:
            assignee: only what this person, or this group, may decide.
            limit: of how many runs a page has the requests.
            after: `page.next` or `page.previous` of another page.
            filters: only of runs that fit, as in `Engine.list`.
        """
        where = "engine.approvals.list"
        if run_id is not None:
            given.alone(where, "run_id", assignee=assignee, after=after, **filters)
            return Page(await self._decider.entries(known_run_id(where, run_id)))
        person = "" if assignee is None else given.text(where, "assignee", assignee, like="finance")
        wanted = replace(filter_of(where, **filters), asks=person)
        if wanted.waiting_for is not None:
            instead = "leave it out; give an assignee instead"
            raise InvalidArgumentError(where, "waiting_for", wanted.waiting_for, instead)
        runs = await self._finder.page(where, wanted, order="created_at", limit=limit, after=after)
        audits = await self._decider.read_all(runs)
        found = [
            entry
            for run in runs
            for entry in audits[run.journal].entries.values()
            if entry.run_id == run.id and entry.status == "pending" and (not person or person in entry.assignees)
        ]
        return Page(found, next=runs.next, previous=runs.previous)

    async def approve(
        self,
        run_id: str,
        name: str,
        *,
        by: str | None = None,
        form: Any = None,
        comment: str = "",
        request: str | None = None,
    ) -> Approval[Any]:
        """Approve what a run asks for; the decision is durable when this returns.

        The first decision is the only one: a later one gets it back, with `is_first` False.

        Args:
            by: who decides. It may be left out where it is known who acts: in `engine.audit.acting(...)`, and through
                a server with a key, whose owner decides.
            form: what they filled in, as plain values or as the form's own type.
            request: the id of the request (`ApprovalRequest.id`); the oldest open one of this name unless given.

        Raises:
            RunNotFoundError, ApprovalNotFoundError, ApprovalClosedError, ApprovalFormError, InboxFullError.
        """
        return await self._decider.decide(
            run_id, name, approved=True, by=by, form=form, comment=comment, request=request
        )

    async def reject(
        self,
        run_id: str,
        name: str,
        *,
        by: str | None = None,
        form: Any = None,
        comment: str = "",
        request: str | None = None,
    ) -> Approval[Any]:
        """Reject what a run asks for. As `approve`, and the form may be left out."""
        return await self._decider.decide(
            run_id, name, approved=False, by=by, form=form, comment=comment, request=request
        )
