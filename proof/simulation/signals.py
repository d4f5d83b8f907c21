"""A signal to the simulator ends the simulator: when a person presses Ctrl-C, and when a test has used up its time.

Python runs the handler of a signal between any two instructions, so what the handler raises comes up in the middle of a
simulated process, where asyncio takes it for the end of the task that happens to run, and an engine for the failure of
a step. The episode would go on, and complain of a request without an answer. So what a handler has raised is kept,
and raised once more where only the simulator runs.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any]


class Interruption:
    """What the handler of a signal has raised, if one has."""

    def __init__(self) -> None:
        self.raised: BaseException | None = None

    def check(self) -> None:
        """Raise it, where nothing simulated can catch it."""
        if self.raised is not None:
            raise self.raised

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Keep what handlers raise meanwhile, and raise it at the end, if the episode has not."""
        if threading.current_thread() is not threading.main_thread():
            yield  # Handlers run in the main thread alone.
            return
        former = {number: handler for number in signal.valid_signals() if callable(handler := signal.getsignal(number))}
        for number, handler in former.items():
            signal.signal(number, partial(self._handle, handler))
        try:
            yield
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)
        self.check()

    def _handle(self, handler: Handler, number: int, frame: FrameType | None) -> None:
        try:
            handler(number, frame)
        except BaseException as error:
            self.raised = error
            raise
