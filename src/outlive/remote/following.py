"""Reading along: server-sent events, on a connection of their own, which is made again where it broke off.

Every message has an id that says how far its reader has come. After a break the last one is sent, and the server goes
on behind it: nothing is missing, and nothing comes twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import msgspec

from outlive._runtime.wakeup import Wakeup
from outlive.errors import UnreachableError
from outlive.remote.refusal import raise_refusal
from outlive.remote.transport import BROKEN, Answer, Listening, Transport

PAUSE_SECONDS = 0.2
END = "end"
"""The last message: there is nothing more to come."""


class Message(NamedTuple):
    """One message of a stream of the server."""

    name: str
    data: Any
    id: str


InThread = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Calls a function that blocks on a thread."""


async def follow(
    transport: Transport, path: str, query: Mapping[str, object], *, in_thread: InThread
) -> AsyncIterator[Message]:
    """The messages of a stream, until the server says that it is over.

    Raises:
        OutliveError: the server refuses it. UnreachableError: the server stays away.
    """
    last_id: str | None = None
    loop = asyncio.get_running_loop()
    heard_at = loop.time()
    while True:
        listening: Listening | None = None
        try:
            listening = await in_thread(partial(transport.listen, path, query=query, last_id=last_id))
            if listening.status >= 400:
                raise_refusal(Answer(listening.status, listening.body))
            while (found := await in_thread(listening.read)) is not None:
                heard_at = loop.time()
                message = Message(found.name, msgspec.json.decode(found.data), found.id)
                last_id = message.id or last_id
                yield message
                if message.name == END:
                    return
            if listening.is_over:
                return
        except BROKEN as error:
            if loop.time() - heard_at > transport.timeout:
                raise UnreachableError(transport.origin, f"broke off and stays away: {error}") from error
        finally:
            if listening is not None:
                listening.close()
        await Wakeup().sleep(PAUSE_SECONDS)
