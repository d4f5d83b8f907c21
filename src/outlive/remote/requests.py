"""The requests of one connection that are under way: each is on a thread of a small pool, and each can be stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from outlive._kernel.runtime.wakeup import Wakeup
from outlive.errors import ConfigurationError, EngineClosedError
from outlive.errors.outside import UnreachableError
from outlive.remote.refusal import says_nothing_happened
from outlive.remote.transport import AGAIN, BROKEN, Answer, Call, Transport

THREADS_MAX = 64
"""Requests at once; a caller that waits for a result has one of them."""
TRY_SECONDS_MIN = 0.1
PAUSE_FIRST_SECONDS, PAUSE_MAX_SECONDS = 0.05, 2.0


class Requests:
    """Sends requests, each until it is answered."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._threads: ThreadPoolExecutor | None = None
        self._calls: set[Call] = set()
        """The calls for which threads wait."""
        self.loop: asyncio.AbstractEventLoop | None = None
        """The event loop that opened it; None while it is closed."""

    def open(self) -> None:
        """Let requests be sent, until it is closed."""
        if self._threads is not None:
            raise ConfigurationError("this connection is open already; call outlive.connect(...) for another one")
        self._threads = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="outlive-connect")
        self.loop = asyncio.get_running_loop()

    def close(self) -> None:
        """Send no more, and stop what is under way."""
        threads, self._threads, self.loop = self._threads, None, None
        if threads is not None:
            threads.shutdown(wait=False)
        for call in self._calls:
            call.stop()  # Its caller finds the connection closed, and the program need not wait for its thread.
        self._transport.close()

    async def in_thread(self, work: Callable[[], Any], call: Call) -> Any:
        """The result of a function that blocks; `call` stops it when its caller is cancelled, or the connection
        closed."""
        if self._threads is None:
            raise EngineClosedError("this connection", made_by="outlive.connect(...)")
        self._calls.add(call)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except asyncio.CancelledError:
            call.stop()
            raise
        finally:
            self._calls.discard(call)

    async def answer(self, send: Callable[..., Answer], seconds: float, *, may_change: bool) -> Answer:
        """The answer to a request, which is sent until there is one or the time is over."""
        loop = asyncio.get_running_loop()
        deadline, pause, is_unsure = loop.time() + seconds, PAUSE_FIRST_SECONDS, False
        while True:
            left = max(deadline - loop.time(), TRY_SECONDS_MIN)
            call, wait = Call(), pause
            try:
                answer: Answer = await self.in_thread(partial(send, timeout=left, call=call), call)
                wait = max(pause, answer.wait)
                if answer.status not in AGAIN or left <= wait:
                    return answer._replace(is_unsure=is_unsure)
                is_unsure = is_unsure or (may_change and not says_nothing_happened(answer))
            except BROKEN as error:
                is_unsure = is_unsure or may_change
                if left <= pause:
                    reason = str(error) or type(error).__name__
                    raise UnreachableError(self._transport.origin, f"gave no answer: {reason}") from error
            await Wakeup().sleep(wait)
            pause = min(pause * 2, PAUSE_MAX_SECONDS)
