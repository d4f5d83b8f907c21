"""How work is done that takes longer than an event loop may rest: at once, or as a server does it, on a thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Beside(Protocol):
    """Does work, and returns what it returns."""

    async def __call__(self, work: Callable[[], T], /) -> T:
        """The result of the work. An exception of the work is raised."""


async def at_once(work: Callable[[], T], /) -> T:
    """Do it here: a program that publishes a flow has nothing else to do."""
    return work()
