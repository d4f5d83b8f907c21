"""The base of the servers that tests start for themselves: they are removed, whatever happens.

A server runs as a direct child. Who uses it in a `with` block gets it started and sees nothing of it left behind, and
the system ends it with the thread that started it, if nothing else has ended it.
"""

from __future__ import annotations

import ctypes
import signal
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Self

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


class Launched(ABC):
    """Something that is started at the beginning of a `with` block, and removed at its end."""

    @abstractmethod
    def start(self) -> None:
        """Start it, and wait until it can be used."""

    @abstractmethod
    def remove(self) -> None:
        """End it and delete its data; twice is fine."""

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()


def dying_by(number: signal.Signals) -> Callable[[], None]:
    """For a child, before it becomes its program: this signal reaches it when the thread that started it ends."""
    return partial(_set_death_signal, number)


def _set_death_signal(number: signal.Signals) -> None:
    # One system call, which takes no lock: more must not happen between fork and exec.
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, number)
