"""Names by which a run decides something by itself: what it shows, its tags, which way it takes, how it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from concurrent.futures import Future
from typing import Any, NoReturn

from outlive._kernel.define.in_step import CURRENT_STEP
from outlive._kernel.define.workflow import Bound, Workflow, bound
from outlive._kernel.model import given
from outlive._kernel.replay import deciding
from outlive._kernel.replay.ask import current_execution, this_execution
from outlive.errors.program import NotInRunError


def publish(**fields: Any) -> None:
    """Show something of the run to people: `publish(stage="packing", progress=0.4)`.

    Fields stay until they are published again; `publish(stage=outlive.types.REMOVED)` takes one out. Readers get plain
    values: the value of an enum, an object for a model or a dataclass. `await engine.get(run_id).published()` reads
    them back, and `watch()` as they change. In a workflow each change is a fact in the journal; in a step, from any
    thread, the latest values win when it publishes faster than the store can write. For what comes in pieces, see
    `outlive.emit`.

    Raises:
        NotInRunError: neither a workflow nor a step runs here.
        UnserialisableError: a value has no stored form.
    """
    execution = current_execution()
    if execution is not None:
        deciding.publish(execution, fields)
        return
    step = CURRENT_STEP.get(None)
    if step is None:
        raise NotInRunError("publish", "a workflow or a step")
    step.publish(fields)


def set_tags(**tags: str | None) -> None:
    """Give this run tags by which it can be found: `set_tags(stage="packing")`; None removes one.

    The others stay as they are. The row of the run, and `engine.list(tags=...)`, have them in the transaction of the
    event that led here; every change is a fact in the journal. Children keep their own tags, and the next generation of
    the run begins with these.

    Raises:
        NotInRunError: no workflow runs here.
        InvalidArgumentError: a name or a value is not a tag, or there are too many.
    """
    execution = this_execution("set_tags")
    checked = given.tags("outlive.set_tags", {name: value for name, value in tags.items() if value is not None})
    removed = given.tags("outlive.set_tags", {name: "" for name, value in tags.items() if value is None})
    deciding.set_tags(execution, {**dict.fromkeys(removed), **checked})


class Emission:
    """The result of `outlive.emit`. Awaiting it is waiting until there is room for more."""

    __slots__ = ("_room",)

    def __init__(self, room: Future[None] | None = None) -> None:
        self._room = room

    def __await__(self) -> Generator[Any, None, None]:
        if self._room is not None and not self._room.done():
            yield from asyncio.wrap_future(self._room).__await__()


_EMITTED = Emission()


def emit(stream: str, value: Any) -> Emission:
    """Let readers of a stream of this run have an item: `await outlive.emit("tokens", chunk)`.

    Items are ordered, cheap and no part of the journal; `engine.get(run_id).stream("tokens")` reads them, from any
    process. Readers get plain values, as with `publish`. What a workflow emits is written with the event that led to
    it: once, and a replay emits nothing. What a step emits is written in batches while it runs, and all of it before
    its result; items of an attempt that failed stay, and are marked with their attempt.

    Awaiting it is waiting for room in the buffer. A sync step calls it without `await`, and waits in the call.

    Raises:
        NotInRunError: neither a workflow nor a step runs here.
        UnserialisableError, PayloadTooLargeError: the item cannot be stored.
        StreamFullError: the run has emitted as much as it may (`Limits`).
    """
    name = given.text("outlive.emit", "stream", stream, like="tokens")
    execution = current_execution()
    if execution is not None:
        deciding.emit(execution, name, value)
        return _EMITTED
    step = CURRENT_STEP.get(None)
    if step is None:
        raise NotInRunError("emit", "a workflow or a step")
    room = step.emit(name, value)
    if room is None:
        return _EMITTED
    if asyncio._get_running_loop() is None:
        room.result()  # A thread of a sync step.
    return Emission(room)


def patched(name: str) -> bool:
    """Whether to take the new way at a change of the code: `if outlive.patched("two-letters"): ... else: ...`.

    False in a run that had come past this point before the change was deployed, True in every other one; the answer is
    journaled at its first use and stays the same for the rest of the run, in loops and branches too. Outside a run the
    new way is taken.

    Raises:
        InvalidArgumentError: journals cannot use this name.
    """
    execution = current_execution()
    mark = given.label("outlive.patched", name, like="two-letters")
    return execution is None or deciding.patched(execution, mark)


def continue_as_new(*args: Any, workflow: Workflow[..., Any] | Bound[Any] | None = None, **kwargs: Any) -> NoReturn:
    """End this generation of the run and go on as the next one: the same id, these arguments, a fresh journal.

    Never returns: it unwinds the workflow. `finally` blocks and context managers run, `except Exception` does not see
    it; what the workflow left running is cancelled and awaited, as at every end. The next generation keeps the tags,
    the deadline, what was published, signals that no code took and everything in the inbox; the old one stays in the
    store as `<id>~gen1`, `<id>~gen2`, ... Waiting for the result is waiting for that of the last generation.

    Args:
        workflow: another workflow or version to go on as, maybe bound to all its arguments; the same one unless given.

    Raises:
        ConfigurationError: this is a child run.
        TypeError: the workflow does not take these arguments.
        NotInRunError: no workflow runs here.
    """
    execution = this_execution("continue_as_new")
    if workflow is None:
        deciding.continue_as_new(execution, None, args, kwargs)
    wanted = bound(workflow, args)
    deciding.continue_as_new(execution, wanted.workflow.spec, wanted.args, {**wanted.kwargs, **kwargs})


__all__ = ["Emission", "continue_as_new", "emit", "patched", "publish", "set_tags"]
