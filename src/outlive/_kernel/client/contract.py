"""The protocols of the verbs that the handle of a run needs, from an engine and from a connection.

Each protocol is a table of names, parameters and results. `outlive.engine.contract` has those of the other namespaces.
"""

from __future__ import annotations

import builtins
from typing import Any, Protocol, TypeVar, Unpack

from outlive._kernel.client.finding import Filters, Page
from outlive._kernel.model import given
from outlive._kernel.model.approval import Approval
from outlive._kernel.values.approval import LINK_SPAN, ApprovalRequest, NewLink
from outlive._kernel.values.dead_letter import DeadLetter
from outlive._kernel.values.inbox import UnreadMessage

T = TypeVar("T")


class LinkVerbs(Protocol):
    """`engine.approvals.links`."""

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
        """See `Links`."""

    async def use(self, token: str, *, form: Any = None, comment: str = "") -> Approval[Any]:
        """See `Links`."""


class ApprovalVerbs(Protocol):
    """`engine.approvals`."""

    @property
    def links(self) -> LinkVerbs:
        """See `Approvals`."""

    async def list(
        self,
        run_id: str | None = None,
        *,
        assignee: str | None = None,
        limit: int = 100,
        after: str | None = None,
        **filters: Unpack[Filters],
    ) -> Page[ApprovalRequest]:
        """See `Approvals`."""

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
        """See `Approvals`."""

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


class AskVerbs(Protocol):
    """`engine.asks`."""

    async def answer(
        self, run_id: str, name: str, key: str, *, timeout: given.Span | None = None, reply: Any = Any
    ) -> Any:
        """See `Asks`."""


class InboxVerbs(Protocol):
    """`engine.inbox`."""

    async def list(self, run_id: str, *, limit: int = 100) -> builtins.list[UnreadMessage]:
        """See `RunInbox`."""


class DeadLetterVerbs(Protocol):
    """`engine.dead_letters`."""

    async def list(self, run_id: str) -> builtins.list[DeadLetter]:
        """See `DeadLetters`."""
