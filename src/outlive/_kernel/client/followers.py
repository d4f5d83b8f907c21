"""The followers of runs: readers of streams and of published objects, and callers that wait for an answer.

A reader looks at the store and, when there is nothing new, waits for a ring. The worker of this engine rings when it
has written something for readers, and so does the store, if it can, for what other processes have written. Both are
hints: a reader looks by itself now and then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from outlive.errors import EngineClosedError


class Bell:
    """The wake-up of one reader. A ring while the reader does not wait ends its next wait at once, and only that
    one."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """There may be something new."""
        self._rung.set()

    def clear(self) -> None:
        """From now on only what comes later rings: call it before a look that no wait precedes."""
        self._rung.clear()

    async def wait(self, seconds: float) -> None:
        """Return when it rings, or after a while; the next wait is for what comes later.

        A wait that left the bell rung would make a loop around it spin, and an event loop with it."""
        loop = asyncio.get_running_loop()
        timer = loop.call_later(seconds, self._rung.set)
        try:
            await self._rung.wait()
        finally:
            timer.cancel()
        self._rung.clear()


class Followers:
    """The wake-ups of the readers of one engine, by the root of the run that they read."""

    def __init__(self, follow: Callable[[Callable[[str], None]], bool]) -> None:
        self._follow = follow
        self._is_rung: bool | None = None
        self.bells: dict[str, list[Callable[[], None]]] = {}
        """Empty while there are no readers: then there is no need to ring."""
        self._is_closed = False

    def begin(self) -> bool:
        """Let the store ring for what other processes write, if it can; whether it can."""
        if self._is_rung is None:
            self._is_rung = self._follow(self.ring)
        return self._is_rung

    def ring(self, root_id: str) -> None:
        """Readers of this tree are to look; with "", all readers."""
        for bells in [self.bells.get(_name_of(root_id), [])] if root_id else self.bells.values():
            for ring in bells:
                ring()

    @contextmanager
    def following(self, run_id: str) -> Iterator[Bell]:
        """A bell for a reader of a run."""
        self.check_open()
        bell = Bell()
        with self.calling(run_id, bell.ring):
            yield bell

    @contextmanager
    def calling(self, run_id: str, ring: Callable[[], None]) -> Iterator[None]:
        """Call `ring` when there may be something new of a run; also when the engine stops."""
        name = _name_of(run_id)
        self.bells.setdefault(name, []).append(ring)
        try:
            yield
        finally:
            self.bells[name].remove(ring)
            if not self.bells[name]:
                del self.bells[name]

    def check_open(self) -> None:
        """See that the engine runs.

        Raises:
            EngineClosedError: it does not.
        """
        if self._is_closed:
            raise EngineClosedError("reading a stream")

    def close(self) -> None:
        """The engine stops: all readers are to notice."""
        self._is_closed = True
        self.ring("")


def _name_of(run_id: str) -> str:
    """The prefix of the ids of a tree and of all its generations."""
    return run_id.partition("~")[0]
