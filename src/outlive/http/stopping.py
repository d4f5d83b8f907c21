"""Whether the server that our app is mounted in is about to stop.

ASGI tells an app so when all of its requests have ended. A request that follows a run ends with its reader, and an open
dashboard is such a reader: uvicorn would wait for it, and never stop or reload. So we look at the flag that uvicorn
sets at the first signal. Its server is found as the owner of the handler of that signal.
"""

from __future__ import annotations

import signal
from typing import Protocol

from outlive.client.followers import Bell

LOOK_SECONDS = 0.25


class StoppableServer(Protocol):
    """What a server of uvicorn has."""

    should_exit: bool


def server_around() -> StoppableServer | None:
    """The server of uvicorn that handles the signals of this process; None if there is none."""
    server: StoppableServer | None = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    return server if isinstance(getattr(server, "should_exit", None), bool) else None


async def until_stopping(server: StoppableServer) -> None:
    """Wait until a server is asked to stop."""
    bell = Bell()
    while not server.should_exit:
        await bell.wait(LOOK_SECONDS)
