"""The asks of one name that reached a run: waiting asks, open asks, and the code that serves them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from outlive._kernel.journal.event import AskReceived
from outlive._kernel.journal.value import ValueCodec


class AskQueue(msgspec.Struct, eq=False):
    """First in, first out. An ask is open from its event to its answer, whether or not code has taken it."""

    codec: ValueCodec | None = None
    """How a body is read; None until the run serves this name."""
    validate: Callable[[Any], object] | None = None
    """Raises for a body that the run does not accept."""
    waiting: deque[AskReceived] = msgspec.field(default_factory=deque)
    """Asks that no code has taken."""
    open: dict[tuple[str, int], AskReceived] = {}
    """Asks without an answer, by key, and by how many forks ago they were asked."""
    waiters: deque[asyncio.Future[AskReceived]] = msgspec.field(default_factory=deque)
    """Code that waits for the next one, oldest first."""

    def receive(self, event: AskReceived) -> None:
        """Give an ask to the code that has waited longest, or keep it."""
        self.open[_key(event)] = event
        if not self._hand_over(event):
            self.waiting.append(event)

    def put_back(self, event: AskReceived) -> None:
        """Code was cancelled with the ask already in its hands: the next to serve this name gets it."""
        if not self._hand_over(event):
            self.waiting.appendleft(event)

    def _hand_over(self, event: AskReceived) -> bool:
        while self.waiters:
            waiter = self.waiters.popleft()
            if not waiter.done():
                waiter.set_result(event)
                return True
        return False

    def is_open(self, event: AskReceived) -> bool:
        """Whether an ask has no answer."""
        return _key(event) in self.open

    def leave_to_origin(self) -> None:
        """The run has become a fork: it does not have the asks that its code had not taken before."""
        left = [event for event in self.waiting if event.forks]
        self.waiting = deque(event for event in self.waiting if not event.forks)
        for event in left:
            self.close(event)

    def close(self, event: AskReceived) -> bool:
        """An ask is answered; False if it was not open."""
        return self.open.pop(_key(event), None) is not None

    @property
    def awaited(self) -> int:
        """How often it is waited for now."""
        return sum(not waiter.done() for waiter in self.waiters)


def _key(event: AskReceived) -> tuple[str, int]:
    return event.key, event.forks
