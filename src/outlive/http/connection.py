"""Connections that are slow on purpose: uvicorn waits for ever for a request to begin, and for an answer to be read.

`guarded` gives its protocol two limits. A connection whose request line and headers do not arrive in time is closed, so
that sockets which say nothing cannot use up the connections of a server. One that does not read what it is sent is
aborted: its answer would else lie in memory for as long as the other side likes. (The body of a request has a limit of
its own, `ApiLimits.body_seconds`, and a connection between two requests has uvicorn's `timeout_keep_alive`.)
"""

from __future__ import annotations

import asyncio
from typing import Any

HEADER_SECONDS = 10.0
"""How long the request line and the headers of a request may take to arrive."""
READ_SECONDS = 30.0
"""How long a client may leave an answer unread."""


def guarded(base: Any, *, header_seconds: float = HEADER_SECONDS, read_seconds: float = READ_SECONDS) -> Any:
    """A protocol of uvicorn's with limits for slow clients."""

    class Guarded(base):  # type: ignore[misc]
        """See the module."""

        _header_timer: asyncio.TimerHandle | None = None
        _read_timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self._await_header()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self._is_answering():
                self._stop_header_timer()
            else:
                self._await_header()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_header_timer()
            self._stop_read_timer()
            super().connection_lost(exc)

        def pause_writing(self) -> None:
            super().pause_writing()
            if self._read_timer is None:
                self._read_timer = asyncio.get_running_loop().call_later(read_seconds, self.transport.abort)

        def resume_writing(self) -> None:
            self._stop_read_timer()
            super().resume_writing()

        def _stop_header_timer(self) -> None:
            if self._header_timer is not None:
                self._header_timer.cancel()
                self._header_timer = None

        def _stop_read_timer(self) -> None:
            if self._read_timer is not None:
                self._read_timer.cancel()
                self._read_timer = None

        def _is_answering(self) -> bool:
            return self.cycle is not None and not self.cycle.response_complete

        def _await_header(self) -> None:
            # Armed once and not with each byte: a client that sends one byte a second is slow too.
            if self._header_timer is None:
                self._header_timer = asyncio.get_running_loop().call_later(header_seconds, self._give_up)

        def _give_up(self) -> None:
            self._header_timer = None
            if not self._is_answering():
                self.transport.close()

    return Guarded
