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
from typing import Any

from outlive.errors.program import RunDropped
from outlive.telemetry import log

THROWS_MAX = 1_000
"""Times that a dropped coroutine may go on to wait for something else, as a sleep in a `finally` block does."""

_HOLDERS = frozenset({list, tuple, type(iter([])), type(iter(()))})

_UNCLOSABLE: list[Any] = []
"""Coroutines that swallow everything: Python must not try to close them either."""


def close_quietly(coro: Any, context: contextvars.Context) -> None:
    """End a coroutine in its own context; nothing of what its blocks do is seen.

    `coro.close()` is not enough: if a block in the middle of a chain of awaits waits again, Python leaves the inner
    coroutines of the chain for later. An exception that is thrown in goes down to the innermost await, and again.
    """
    if coro is None:
        return
    _close_unawaited(coro, set())
    if isinstance(coro, types.CoroutineType) and inspect.getcoroutinestate(coro) == inspect.CORO_CREATED:
        coro.close()
        return
    for _ in range(THROWS_MAX):
        try:
            context.run(coro.throw, RunDropped())
        except BaseException as error:  # The block may raise anything, RunDropped above all: this is its end.
            log.debug("closing a dropped run: %r", error)
            return
    log.warning("%r swallows every exception and cannot be closed; it stays in memory", coro)
    _UNCLOSABLE.append(coro)


def _close_unawaited(thing: object, seen: set[int]) -> None:
    """Close what the workflow has called and not awaited yet, lest Python warn that it never was."""
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
