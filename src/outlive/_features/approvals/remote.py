"""`engine.approvals` through a server."""

from __future__ import annotations

from typing import Any, Unpack

from outlive._kernel.client.finding import Filters, Page
from outlive._kernel.journal.plain import plain_json
from outlive._kernel.model import given
from outlive._kernel.model.approval import Approval
from outlive._kernel.values.approval import LINK_SPAN, ApprovalRequest, NewLink
from outlive.remote.connection import Connection
from outlive.remote.values import only_given, query_of, seconds_of


class RemoteLinks:
    """`engine.approvals.links`. What a link is for is shown to people, at its own address."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def create(
        self,
        run_id: str,
        name: str,
        *,
        approved: bool,
        by: str,
        expires: given.Span = LINK_SPAN,
        request: str | None = None,
    ) -> NewLink:
        """See `Links.create`. The path of the link is in the answer, and nowhere else."""
        seconds = seconds_of("engine.approvals.links.create", "expires", expires)
        body = only_given({"approved": approved, "by": by, "expires_seconds": seconds, "request": request})
        found: NewLink = await self._connection.operate("approvals.create_link", body=body, run_id=run_id, name=name)
        return found

    async def use(self, token: str, *, form: Any = None, comment: str = "") -> Approval[Any]:
        """See `Links.use`."""
        body = {"form": plain_json("engine.approvals.links.use", form), "comment": comment}
        found: Approval[Any] = await self._connection.operate("approvals.use_link", body=body, token=token)
        return found


class RemoteApprovals:
    """`engine.approvals.list`. The server knows by the key who decides."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def links(self) -> RemoteLinks:
        """See `Approvals`."""
        return RemoteLinks(self._connection)

    async def list(
        self,
        run_id: str | None = None,
        *,
        assignee: str | None = None,
        limit: int = 100,
        after: str | None = None,
        **filters: Unpack[Filters],
    ) -> Page[ApprovalRequest]:
        """See `Approvals.list`."""
        if run_id is not None:
            found = await self._connection.operate("runs.approvals", run_id=run_id)
        else:
            query = query_of(filters) | {"assignee": assignee, "limit": limit, "after": after}
            found = await self._connection.operate("approvals.list", query=query)
        return Page(found.items, next=found.next, previous=found.previous)

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
        """See `Approvals`. The owner of the key decides; another person may be named only where no key is needed."""
        return await self._decide("approve", run_id, name, by, form, comment, request)

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
        """See `Approvals`."""
        return await self._decide("reject", run_id, name, by, form, comment, request)

    async def _decide(
        self, verb: str, run_id: str, name: str, by: str | None, form: Any, comment: str, request: str | None
    ) -> Approval[Any]:
        said = {"by": by, "form": form, "comment": comment, "request": request}
        body = only_given(plain_json(f"engine.approvals.{verb}", said))
        found: Approval[Any] = await self._connection.operate(f"approvals.{verb}", body=body, run_id=run_id, name=name)
        return found
