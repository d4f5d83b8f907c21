"""A connection to a server: it carries out operations of the HTTP API by their names."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any

from outlive._kernel.journal.plain import encode_plain
from outlive._kernel.runtime.clock import SystemClock
from outlive.errors import InvalidArgumentError
from outlive.remote.following import Message, follow
from outlive.remote.refusal import raise_refusal
from outlive.remote.requests import Requests
from outlive.remote.transport import Transport
from outlive.remote.values import answer_of, operation_of, target_of


class Connection:
    """Sends operations to one server."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._clock = SystemClock()
        self._requests = Requests(transport)
        self.url = transport.origin

    def open(self) -> None:
        """Let requests be sent, until it is closed."""
        self._requests.open()

    def close(self) -> None:
        """Send no more, and stop what is under way."""
        self._requests.close()

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop that opened it; None while it is closed."""
        return self._requests.loop

    async def operate(
        self,
        operation_name: str,
        /,
        *,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
        patience: float = 0.0,
        **path: str,
    ) -> Any:
        """The answer of an operation. See `Remote.operate`."""
        operation = operation_of("engine.operate", operation_name)
        if operation.media == "text/event-stream":
            wanted = f"it sends messages one by one: use engine.follow({operation_name!r}, ...)"
            raise InvalidArgumentError("engine.operate", "operation_name", operation_name, wanted)
        sent = None if body is None else encode_plain(f"engine.operate({operation_name!r})", body)
        target = target_of(operation, path)
        send = partial(self._transport.send, operation.method, target, query=query, body=sent, key=self._clock.new_id())
        answer = await self._requests.answer(
            send, self._transport.timeout + patience, may_change=operation.method != "GET"
        )
        if answer.status >= 400:
            raise_refusal(answer, operation_name)
        return answer_of(operation, answer)

    async def follow(
        self, operation_name: str, query: Mapping[str, object] | None = None, /, **path: str
    ) -> AsyncIterator[Message]:
        """The messages of an operation that sends them one by one, until it is over."""
        target = target_of(operation_of("engine.follow", operation_name), path)
        async for message in follow(self._transport, target, query or {}, in_thread=self._requests.in_thread):
            yield message
