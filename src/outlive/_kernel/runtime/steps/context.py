"""A step in a context of its own, within a task that runs many.

A task for every step would be the largest single cost of a short step. But most short steps never wait: they can follow
each other in one task, a *lane*. When a step does wait, the lane waits with it and is that step's task for as long as
it takes, and the executor opens another lane for the steps behind it. So `asyncio.current_task()`, `asyncio.timeout()`
and cancellation mean in a step what they always mean; only context variables need care, because a task has one context
and each step must have its own.
"""

from __future__ import annotations

import contextvars
import types
from collections.abc import Coroutine, Generator
from functools import partial
from typing import Any


@types.coroutine
def in_context(coroutine: Coroutine[Any, Any, Any], context: contextvars.Context) -> Generator[Any, Any, Any]:
    """Drive a coroutine to its end in `context`, passing on what it waits for to the task that awaits this."""
    run, send = context.run, coroutine.send
    try:
        waiting = run(send, None)
        while True:
            try:
                value = yield waiting
            except GeneratorExit:
                run(coroutine.close)
                raise
            except BaseException as error:  # Cancellation above all: it is the step's to handle.
                waiting = run(partial(coroutine.throw, error))
            else:
                waiting = run(send, value)
    except StopIteration as end:
        return end.value
