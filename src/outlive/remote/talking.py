"""Asks and their answers, and dead letters, through a server."""

from __future__ import annotations

import asyncio
import builtins
from typing import Any

from outlive._kernel.journal.failure import OWN_ERRORS, exception_of
from outlive._kernel.model import given
from outlive._kernel.model.why import Why
from outlive._kernel.values.dead_letter import DeadLetter
from outlive._kernel.values.failure import stored_failure
from outlive._kernel.values.inbox import UnreadMessage
from outlive.errors import AskFailedError
from outlive.errors.run import AskTimeoutError
from outlive.http.wire.runs import AnswerView, NotAnswered
from outlive.remote.connection import Connection
from outlive.remote.values import seconds_of, typed

WAIT_SECONDS = 20.0
"""How long the server is asked to wait for an answer before it is asked again."""


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
        left = WAIT_SECONDS if deadline is None else deadline - loop.time()
        if left <= 0:
            assert timeout is not None
            raise AskTimeoutError(run_id, name, found.key, seconds=timeout, why=Why(found.why, *found.advice))
        wait = min(WAIT_SECONDS, left)
        found = await connection.operate(
            "asks.answer", query={"wait": wait}, run_id=run_id, name=name, key=found.key, patience=wait
        )
    assert isinstance(found, AnswerView)
    if found.error is not None:
        failure = stored_failure(found.error)
        raise AskFailedError(run_id, name, found.key, failure) from exception_of(failure, registered=OWN_ERRORS)
    return typed(reply, found.answer, f"the answer of run {run_id} to {name}")


class RemoteInbox:
    """`engine.inbox`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def list(self, run_id: str, *, limit: int = 100) -> builtins.list[UnreadMessage]:
        """See `RunInbox.list`."""
        found = await self._connection.operate("inbox.list", run_id=run_id, query={"limit": limit})
        items: builtins.list[UnreadMessage] = found.items
        return items


class RemoteDeadLetters:
    """`engine.dead_letters`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def list(self, run_id: str) -> builtins.list[DeadLetter]:
        """See `DeadLetters.list`."""
        items: builtins.list[DeadLetter] = (await self._connection.operate("dead_letters.list", run_id=run_id)).items
        return items
