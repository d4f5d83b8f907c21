"""The end of an undoable step that has had its effect and returned a value that cannot be stored.

It has failed. Its undo is called inside the attempt, with the result that the journal will never have, and only then
the failure is recorded: a crash before that costs another attempt, which ends in the same way. An undo that fails here
cannot be tried again later, because the journal does not have its argument. So the run is parked, and when a person
resumes it, the step itself makes another attempt: by then its code may be fixed.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, NoReturn

from outlive._interrupts import came_by_signal
from outlive._kernel.define.in_step import CURRENT_STEP
from outlive._kernel.define.step import UnstorableResultError
from outlive._kernel.journal.packing import Packer
from outlive._kernel.replay.command import RunStep, StepSpec
from outlive._kernel.runtime.steps.context import in_context
from outlive._kernel.runtime.tree.attempt import Attempt
from outlive.errors import OutliveError, UndoFailedError

CallUndo = Callable[[Attempt, Callable[..., Any]], Coroutine[Any, Any, None]]


def encode_result(command: RunStep, value: Any, packer: Packer) -> bytes:
    """The result of a step as the journal has it.

    Raises:
        UnstorableResultError: it has no stored form, and the effect of the step is to be undone.
    """
    codec, what = command.step.signature.result, f"result of step {command.call}"
    if command.options.undo is None:
        return codec.encode(value, what)
    try:
        result = codec.encode(value, what)
    except OutliveError as error:
        raise UnstorableResultError(error, (value,)) from error
    check_size(command, result, packer)
    return result


def check_size(command: RunStep, result: bytes, packer: Packer) -> None:
    """Check that the result of an undoable step is not too large.

    Raises:
        UnstorableResultError: it is.
    """
    undo, what = command.options.undo, f"result of step {command.call}"
    if undo is None:
        return
    try:
        packer.check_size(result, what)
    except OutliveError as error:
        value = command.step.signature.result.decode(result, what)
        given, _ = undo.signature.decode(undo.signature.encode((value,), {}))
        raise UnstorableResultError(error, tuple(given)) from error


async def why_undone(attempt: Attempt, unstorable: UnstorableResultError, call: CallUndo) -> BaseException:
    """Undo what a step has done; returns why the attempt fails. See `undo_at_once`."""
    try:
        await undo_at_once(attempt, unstorable, call)
    except BaseException as error:
        if came_by_signal(error):
            raise
        return error


async def undo_at_once(attempt: Attempt, unstorable: UnstorableResultError, call: CallUndo) -> NoReturn:
    """Undo what a step has done, and raise why the attempt fails.

    Raises:
        Exception: why its result cannot be stored; its effect is undone.
        UndoFailedError: it is not.
    """
    command = attempt.command
    undo = command.options.undo
    assert undo is not None, "UnstorableResultError is raised for undoable steps only"
    if not attempt.is_wanted:
        raise unstorable.cause  # Another worker may run the step meanwhile, and has to undo it.
    try:
        await _undo(attempt, undo, unstorable.given, call)
    except BaseException as error:
        if came_by_signal(error) or not attempt.is_wanted:
            raise
        attempt.has_left_effect = True
        raise UndoFailedError(
            undo=undo.name,
            step=command.call,
            error=f"{type(error).__qualname__}: {error}; it was called at once, because {unstorable.cause}",
            attempts=1,
            undone=[],
            left=[command.call],
            resuming=f"it calls {command.call} again",
        ) from unstorable.cause
    raise unstorable.cause


async def _undo(attempt: Attempt, undo: StepSpec, given: tuple[Any, ...] | None, call: CallUndo) -> None:
    if given is None or undo.kind is not None:
        raise OutliveError(f"{undo.name} cannot be called with what cannot be stored")
    inside = attempt.of_undo(undo)
    context = contextvars.Context()
    context.run(CURRENT_STEP.set, inside)
    await in_context(call(inside, partial(undo.fn, *given)), context)
