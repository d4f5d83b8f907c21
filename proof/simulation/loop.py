"""The event loop of one simulated process: nothing in it is real, and it can die or stand still between two callbacks.

Every process has a loop of its own, as in life. The world (`proof.simulation.world`) gives the loops their
turns and moves the time. So a crash needs no co-operation of the code that crashes: its loop just never gets another
turn, at whatever `await` its tasks stand. A pause is the same for a while: when the loop gets its turns again, the time
has gone on without it. Within a loop callbacks come first in first out, as asyncio promises to those who write code.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Protocol


class Timekeeper(Protocol):
    """Who gives a loop its turns."""

    seconds: float
    """The time, which all loops share."""

    def has_ready(self, loop: SimulatedLoop) -> None:
        """A loop that had nothing to do has something to do."""

    def call_loop_at(self, when: float, loop: SimulatedLoop, handle: asyncio.TimerHandle) -> None:
        """Make a callback of a loop ready at an instant."""

    def complain(self, what: str) -> None:
        """Something went wrong that must not go wrong, whatever the faults."""


class SimulatedLoop(asyncio.AbstractEventLoop):
    """One process's loop."""

    def __init__(self, world: Timekeeper, name: str) -> None:
        self._world = world
        self.name = name
        self.is_dead = False
        self.is_paused = False
        self.is_active = False
        """Whether the world has it on the list of those who get turns."""
        self.clogged_until = 0.0
        """Until when nothing gets through between this process and the store, in either direction."""
        self.fuse: int | None = None
        """After how many more callbacks the process dies; None for never."""
        self.ready: deque[asyncio.Handle] = deque()
        self.ledger: object = None
        """Where the steps of this process say what they do."""
        self.kept: list[Any] = []
        """What a dead process had in its hands. It must not be closed: a killed process runs no `finally`."""

    # -- What asyncio needs ----------------------------------------------------------------------------------

    def time(self) -> float:
        """See `AbstractEventLoop`."""
        return self._world.seconds

    def call_soon(  # type: ignore[override]  # typeshed's TypeVarTuple form is not worth its weight here.
        self, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        """See `AbstractEventLoop`."""
        handle = asyncio.Handle(callback, args, self, context)
        self.make_ready(handle)
        return handle

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        """See `AbstractEventLoop`: there are no threads."""
        return self.call_soon(callback, *args, context=context)

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """See `AbstractEventLoop`."""
        return self.call_at(self._world.seconds + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """See `AbstractEventLoop`."""
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._world.call_loop_at(when, self, handle)
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """asyncio says that a timer was taken back; it is thrown away when its time comes."""

    def create_future(self) -> asyncio.Future[Any]:
        """See `AbstractEventLoop`."""
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, Any], *, name: str | None = None, context: contextvars.Context | None = None
    ) -> asyncio.Task[Any]:
        """See `AbstractEventLoop`."""
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def get_debug(self) -> bool:
        """See `AbstractEventLoop`: debugging reads real clocks."""
        return False

    def is_running(self) -> bool:
        """See `AbstractEventLoop`."""
        return not self.is_dead

    def is_closed(self) -> bool:
        """See `AbstractEventLoop`."""
        return self.is_dead

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """See `AbstractEventLoop`. The dead may leave anything behind; the living may not."""
        if not self.is_dead:
            self._world.complain(f"{self.name}: {context.get('message')}: {context.get('exception')!r}")

    @property
    def is_clogged(self) -> bool:
        """Whether nothing gets through to the store."""
        return self._world.seconds < self.clogged_until

    # -- Turns -----------------------------------------------------------------------------------------------

    def make_ready(self, handle: asyncio.Handle) -> None:
        """Call this in the next turn."""
        if self.is_dead:
            self.kept.append(handle)
            return
        self.ready.append(handle)
        if len(self.ready) == 1:
            self._world.has_ready(self)

    def run_turn(self) -> bool:
        """Call what is ready now; False if the process died of its fuse meanwhile."""
        ready = self.ready
        asyncio._set_running_loop(self)
        try:
            for _ in range(len(ready)):
                if self.fuse is not None:
                    if self.fuse <= 0:
                        return False
                    self.fuse -= 1
                handle = ready.popleft()
                if not handle.cancelled():
                    handle._run()
                if self.is_dead or self.is_paused:
                    break
        finally:
            asyncio._set_running_loop(None)
        return True

    def die(self) -> None:
        """Nothing of it runs any more, and nothing of it is cleaned up."""
        self.is_dead = True
        self.kept += asyncio.all_tasks(self)
