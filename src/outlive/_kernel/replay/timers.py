"""The timers of one tree, and which of them is next."""

from __future__ import annotations

import asyncio
import contextvars
import heapq
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import msgspec

from outlive._kernel.model.instant import MICROSECONDS


class Timer(asyncio.TimerHandle):
    """A callback due at an instant of the run's clock; a `TimerFired` event makes it ready."""

    __slots__ = ("args", "call", "context", "due_at", "is_cancelled", "name", "order", "run", "timers")

    def __init__(
        self,
        timers: Timers,
        due_at: int,
        call: Callable[..., Any],
        args: tuple[Any, ...],
        context: contextvars.Context,
    ) -> None:
        self.timers = timers
        self.due_at = due_at
        self.call: Callable[..., Any] | None = call
        self.args = args
        self.context = context
        self.is_cancelled = False
        self.run = 0
        self.name = ""
        self.order = 0

    def when(self) -> float:
        """When it is due, in the loop's time."""
        return self.due_at / MICROSECONDS

    def cancel(self) -> None:
        """The workflow no longer waits for this timer."""
        if not self.is_cancelled:
            self.is_cancelled = True
            self.call = None
            self.args = ()
            self.timers.take(self.run, self.name)

    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self.is_cancelled

    def __lt__(self, other: object) -> bool:
        assert isinstance(other, Timer)
        return (self.due_at, self.order) < (other.due_at, other.order)

    def __repr__(self) -> str:
        return f"<Timer {self.name} due {self.due_at}>"

    __hash__ = object.__hash__
    __eq__ = object.__eq__


class Timers(msgspec.Struct, eq=False):
    """Timers by run and name, and a heap for the earliest; cancelled ones leave the heap when they reach its top."""

    by_run: dict[int, dict[str, Timer]] = {}
    _heap: list[Timer] = []
    _made: int = 0

    def __bool__(self) -> bool:
        return bool(self.by_run)

    def __iter__(self) -> Iterator[Timer]:
        return (timer for timers in self.by_run.values() for timer in timers.values())

    def add(self, timer: Timer, run: int, name: str) -> None:
        """Begin to wait for a timer; timers of one instant fire in the order in which they were made."""
        self._made += 1
        timer.run, timer.name, timer.order = run, name, self._made
        self.by_run.setdefault(run, {})[name] = timer
        heapq.heappush(self._heap, timer)

    def take(self, run: int, name: str) -> Timer | None:
        """Stop waiting for a timer; None if the run does not wait for one of this name."""
        timers = self.by_run.get(run)
        timer = timers.pop(name, None) if timers else None
        if timer is not None:
            timer.is_cancelled = True
        if timers is not None and not timers:
            del self.by_run[run]
        return timer

    def take_all(self, run: int) -> None:
        """Stop waiting for every timer of a run."""
        for timer in self.by_run.pop(run, {}).values():
            timer.is_cancelled = True

    def put_off(self, time: int) -> None:
        """Make every timer due later, by so many microseconds."""
        for timer in self:
            timer.due_at += time
        heapq.heapify(self._heap)

    def clear(self) -> None:
        """Forget all of them."""
        self.by_run.clear()
        self._heap.clear()

    def names(self, run: int, most: int) -> list[str]:
        """The newest timers of a run by name."""
        return list(islice(reversed(self.by_run.get(run, {})), most))

    def next(self) -> Timer | None:
        """The timer that is due first."""
        heap = self._heap
        while heap and heap[0].is_cancelled:
            heapq.heappop(heap)
        return heap[0] if heap else None
