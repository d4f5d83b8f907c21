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

from outlive._kernel.runtime.wakeup import Wakeup
from outlive.errors.outside import UnreachableError
from outlive.remote.refusal import raise_refusal
from outlive.remote.transport import AGAIN, BROKEN, Call, Listening, Transport

PAUSE_SECONDS = 0.2
END = "end"
"""The last message: there is nothing more to come."""


class Message(NamedTuple):
    """One message of a stream of the server."""

    name: str
    data: Any
    id: str


InThread = Callable[[Callable[[], Any], Call], Awaitable[Any]]
"""Calls a function that blocks on a thread, where the call stops it."""


async def follow(
    transport: Transport, path: str, query: Mapping[str, object], *, in_thread: InThread
) -> AsyncIterator[Message]:
    """The messages of a stream, until the server says that it is over.

    Raises:
        OutliveError: the server refuses it. UnreachableError: the server stays away.
    """
    last_id: str | None = None
    loop = asyncio.get_running_loop()
    away_at = loop.time()
    """Since when there is no stream, whether or not there was something to say before."""
    while True:
        listening: Listening | None = None
        call, pause = Call(), PAUSE_SECONDS
        try:
            listening = await in_thread(partial(transport.listen, path, query=query, last_id=last_id, call=call), call)
            is_refused = not listening.is_open
            if is_refused:
                again_at = loop.time() + listening.answer.wait
                if listening.answer.status not in AGAIN or again_at - away_at > transport.timeout:
                    raise_refusal(listening.answer)
                pause = max(pause, listening.answer.wait)
            while not is_refused and (found := await in_thread(listening.read, call)) is not None:
                message = Message(found.name, msgspec.json.decode(found.data), found.id)
                last_id = message.id or last_id
                yield message
                if message.name == END:
                    return
            if listening.is_over:
                return
        except BROKEN as error:
            if listening is None and loop.time() - away_at > transport.timeout:
                raise UnreachableError(transport.origin, f"broke off and stays away: {error}") from error
        finally:
            if listening is not None:
                listening.close()
        if listening is not None and listening.is_open:
            away_at = loop.time()
        await Wakeup().sleep(pause)
