"""Which interrupts a signal caused, and a loop that goes on after all others. Imports nothing of ours: for every room.

Ctrl-C ends a process, so its KeyboardInterrupt passes through every step and every run. Code can raise the same
exception, as `sys.exit` raises SystemExit. Then it is the failure of that code, and the worker goes on with its other
runs.
"""

from __future__ import annotations

import asyncio
import logging
import opcode
import signal
import threading
from collections.abc import Coroutine, Iterator
from functools import partial
from types import CodeType, TracebackType
from typing import Any, TypeVar

T = TypeVar("T")

log = logging.getLogger("outlive")
RAISE = opcode.opmap["RAISE_VARARGS"]


def came_by_signal(error: BaseException | None) -> bool:
    """Whether a signal has raised it: SIGINT, where its handler raises KeyboardInterrupt."""
    if not isinstance(error, KeyboardInterrupt) or getattr(error, "_is_rebuilt", False):
        return False
    if threading.current_thread() is not threading.main_thread():
        return False  # Python handles signals in the main thread.
    code = _code_of(signal.getsignal(signal.SIGINT))
    if code is not None:  # A handler of Python, as `asyncio.run` has one, stands in the traceback.
        return any(trace.tb_frame.f_code is code for trace in _traces(error.__traceback__))
    if signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, signal.SIG_DFL):
        return False
    return not _is_raised_by_code(error.__traceback__)


def run_to_end(runner: asyncio.Runner, work: Coroutine[Any, Any, T]) -> T:
    """Run the work to its end and return its result. A task or callback beside it that raises SystemExit or
    KeyboardInterrupt stops the event loop; this starts the loop again, unless a signal has caused it.

    Raises:
        KeyboardInterrupt: a signal has caused it.
    """
    main: asyncio.Task[T] | None = None

    async def begin() -> T:
        nonlocal main
        main = asyncio.current_task()
        return await work

    go = partial(runner.run, begin())
    while True:
        try:
            return go()
        except (KeyboardInterrupt, SystemExit) as error:
            if main is None or main.done() or came_by_signal(error):
                raise
            text = "code in a task or a callback of its own raised %s, which ends a program; this one goes on"
            log.critical(text, type(error).__name__, exc_info=error)
        go = partial(runner.get_loop().run_until_complete, main)


def _code_of(handler: Any) -> CodeType | None:
    while isinstance(handler, partial):
        handler = handler.func
    handler = getattr(handler, "__func__", handler)
    return getattr(handler, "__code__", None)


def _traces(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _is_raised_by_code(trace: TracebackType | None) -> bool:
    """Whether the innermost frame stands in a `raise`. The handler of Python itself has no frame: an interrupt by it
    comes out of any other instruction."""
    traces = [*_traces(trace)]
    return not traces or traces[-1].tb_frame.f_code.co_code[traces[-1].tb_lasti] == RAISE
