"""The messages of people and programs to runs, through a server: `engine.approvals.list`, `promises`, `asks`,
`dead_letters`."""

from __future__ import annotations

import asyncio
import builtins
from typing import Any, Unpack

from outlive._journal.failure import OWN_ERRORS, exception_of
from outlive._journal.plain import plain_json
from outlive._model import given
from outlive._model.approval import Approval
from outlive._values.approval import LINK_SPAN, ApprovalRequest, NewLink
from outlive._values.dead_letter import DeadLetter
from outlive._values.failure import stored_failure
from outlive.client.finding import Filters, Page
from outlive.errors import AskFailedError
from outlive.errors.run import AskTimeoutError
from outlive.http.wire.runs import AnswerView, NotAnswered
from outlive.remote.connection import Connection
from outlive.remote.values import only_given, query_of, seconds_of, typed

WAIT_SECONDS = 20.0
"""How long the server is asked to wait for an answer before it is asked again."""


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


class RemotePromises:
    """`engine.promises`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def resolve(self, promise: str, value: Any = None) -> bool:
        """Settle a promise of a run with a value; whether it was this call that settled it."""
        body = {"value": plain_json("engine.promises.resolve", value)}
        is_new: bool = (await self._connection.operate("promises.resolve", body=body, promise_id=promise)).is_new
        return is_new

    async def fail(self, promise: str, error: Exception) -> bool:
        """Settle a promise of a run with an error, which the run gets with its name and its message."""
        given.instance("engine.promises.fail", "error", error, Exception, like='ValueError("no such order")')
        body = {"message": str(error), "type": type(error).__name__}
        is_new: bool = (await self._connection.operate("promises.fail", body=body, promise_id=promise)).is_new
        return is_new


class RemoteAsks:
    """`engine.asks`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def answer(
        self, run_id: str, name: str, key: str, *, timeout: given.Span | None = None, reply: Any = Any
    ) -> Any:
        """Wait for the answer to an ask that was sent before, by any process; `AskNotFoundError` if it was not."""
        seconds = seconds_of("engine.asks.answer", "timeout", timeout)
        deadline = None if seconds is None else asyncio.get_running_loop().time() + seconds
        found = await self._connection.operate("asks.answer", query={"wait": 0}, run_id=run_id, name=name, key=key)
        return await answered(self._connection, run_id, name, found, deadline, seconds, reply)


async def answered(
    connection: Connection,
    run_id: str,
    name: str,
    found: Any,
    deadline: float | None,
    timeout: float | None,
    reply: Any,
) -> Any:
    """The answer to an ask, which the server is asked for until it is there or the time is over."""
    loop = asyncio.get_running_loop()
    while isinstance(found, NotAnswered):
        if deadline is not None and loop.time() >= deadline:
            assert timeout is not None
            raise AskTimeoutError(run_id, name, found.key, seconds=timeout, why=found.why)
        wait = WAIT_SECONDS if deadline is None else max(0.0, min(WAIT_SECONDS, deadline - loop.time()))
        found = await connection.operate(
            "asks.answer", query={"wait": wait}, run_id=run_id, name=name, key=found.key, patience=wait
        )
    assert isinstance(found, AnswerView)
    if found.error is not None:
        failure = stored_failure(found.error)
        raise AskFailedError(run_id, name, found.key, failure) from exception_of(failure, registered=OWN_ERRORS)
    return typed(reply, found.answer, f"the answer of run {run_id} to {name}")


class RemoteDeadLetters:
    """`engine.dead_letters`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def list(self, run_id: str) -> builtins.list[DeadLetter]:
        """See `DeadLetters.list`."""
        items: builtins.list[DeadLetter] = (await self._connection.operate("dead_letters.list", run_id=run_id)).items
        return items


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
