"""How long a run of a crash test may take, also if its event loop does not turn.

A time limit of asyncio needs a loop that turns. A replay that never ends holds its loop, and what a test runner raises
in it (pytest-timeout does) may be caught by an engine that takes it for a failure of a run. So a thread looks on: when
the time is up and the loop does not turn, it raises `LoopHeld` in the thread of the loop, again and again, until the
loop turns and the limit of asyncio can do its work.
"""

from __future__ import annotations

import asyncio
import ctypes
import sys
import threading
import traceback
from types import FrameType, TracebackType
from typing import Self

TURN_SECONDS = 1.0
"""A loop that takes no callback for so long does not turn."""
FRAMES_MAX = 8


class LoopHeld(BaseException):
    """Raised in code that holds its event loop beyond the limit. Not an `Exception`, so that fewer handlers take it for
    a failure of what they run."""


class RunLimit:
    """`async with RunLimit(seconds) as limit`: raises `TimeoutError` or `LoopHeld`, and `limit.is_over` says so."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timeout = asyncio.timeout(seconds)
        self._left = threading.Event()
        self._held_at = ""

    @property
    def is_over(self) -> bool:
        """Whether the time was up."""
        return self._timeout.expired() or bool(self._held_at)

    def describe(self) -> str:
        """A sentence about the run that did not end, and where it was if it held its loop."""
        text = f"it has not ended after {self._seconds:g} s (max_run_seconds)"
        return f"{text}; its event loop does not turn, it is in\n{self._held_at}" if self._held_at else text

    async def __aenter__(self) -> Self:
        loop, owner = asyncio.get_running_loop(), threading.get_ident()
        threading.Thread(target=self._watch, args=(loop, owner), name="outlive-run-limit", daemon=True).start()
        await self._timeout.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left.set()
        await self._timeout.__aexit__(kind, error, trace)

    def _watch(self, loop: asyncio.AbstractEventLoop, owner: int) -> None:
        wait = self._seconds
        while not self._left.wait(wait):
            wait = TURN_SECONDS
            has_turned = threading.Event()
            loop.call_soon_threadsafe(has_turned.set)
            if not has_turned.wait(TURN_SECONDS) and not self._left.is_set():
                self._held_at = self._held_at or _where(sys._current_frames().get(owner))
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(owner), ctypes.py_object(LoopHeld))


def _where(frame: FrameType | None) -> str:
    lines = traceback.format_list(traceback.extract_stack(frame)[-FRAMES_MAX:]) if frame is not None else []
    return "".join(lines).rstrip()
