"""How the coroutines of a dropped run are closed: all of them, at once, and without a word.

Python runs `finally` blocks when it closes a coroutine, and closes whatever is left when it collects garbage. By then
the run's loop is not running any more, and a step called in such a block would be the plain function, with its effects.
So no coroutine may be left over, whatever the workflow does to stay alive.
"""

from __future__ import annotations

import contextvars
import gc
import inspect
import types
from collections.abc import Coroutine, Generator
from typing import Any

from outlive.telemetry import log

CLOSES_MAX = 100
"""Times that a coroutine may answer "close" by waiting for something else, as `TaskGroup` does once."""

_HOLDERS = frozenset({list, tuple, type(iter([])), type(iter(()))})

_UNCLOSABLE: list[Any] = []
"""Coroutines that swallow everything: Python must not try to close them either."""


def close_quietly(
    coro: Coroutine[Any, Any, Any] | Generator[Any, Any, Any] | None, context: contextvars.Context
) -> None:
    """Close a coroutine in its own context; nobody hears of what its blocks do."""
    if coro is None:
        return
    _close_unawaited(coro, set())
    for _ in range(CLOSES_MAX):
        try:
            context.run(coro.close)
        except BaseException as error:  # The block may raise anything, RunDropped above all.
            log.debug("closing a dropped run: %r", error)
        if getattr(coro, "cr_frame", None) is None:
            return
    log.warning("%r swallows every exception and cannot be closed; it stays in memory", coro)
    _UNCLOSABLE.append(coro)


def _close_unawaited(thing: object, seen: set[int]) -> None:
    """Close what the workflow has called and not awaited yet, lest Python warn that nobody ever did."""
    for held in gc.get_referents(thing):
        if id(held) in seen:
            continue
        if isinstance(held, types.CoroutineType):
            seen.add(id(held))
            if inspect.getcoroutinestate(held) == inspect.CORO_CREATED:
                held.close()
            else:
                _close_unawaited(held, seen)
        elif type(held) in _HOLDERS:
            seen.add(id(held))
            _close_unawaited(held, seen)
