"""Steps that a person has skipped: what was in flight when a run was parked gets its outcome from outside.

Only the code knows which steps are in flight: a journal has outcomes, not calls. So a request to skip a step waits in
the inbox until a worker has replayed the run, and is compared with the steps that are in flight before anything else
happens. A request that does not fit parks the run again, and the reason names the steps in flight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from outlive._kernel.journal.event import AnyEvent, StepFailed, StepSucceeded
from outlive._kernel.journal.failure import failure_of
from outlive._kernel.journal.value import Stored, decode_untyped
from outlive._kernel.model import Payload, child_id
from outlive._kernel.replay.command import Command, RunStep
from outlive._kernel.store.contract import InboxMessage
from outlive.errors import StepSkippedError, UnreadableError, UnserialisableError

CALLS_SHOWN_MAX = 10


class SkipRefused(Exception):
    """A request to skip a step cannot be granted; the message says why, for the reason of a parked run."""


class Skip(NamedTuple):
    """A step in flight that is not called again."""

    command: RunStep
    data: bytes | None
    """The result that it is given, by its own codec; None if it fails instead."""

    def event(self, pack: Callable[[bytes, str], Payload], *, at: int) -> AnyEvent:
        """The outcome of the step for the journal."""
        command = self.command
        fields: dict[str, Any] = {"run": command.run, "call": command.call, "digest": command.digest}
        fields |= {"at": at, "attempt": command.attempt}
        if self.data is None:
            return StepFailed(failure=failure_of(StepSkippedError(command.step.name)), **fields)
        return StepSucceeded(result=pack(self.data, f"result of step {command.call}"), skipped=True, **fields)


def skips_of(
    requests: Sequence[InboxMessage], asked: Sequence[Command], *, root_id: str, unpack: Callable[[Payload], Stored]
) -> list[Skip]:
    """Which steps of a tree are skipped, and with what result.

    Raises:
        SkipRefused: one of the requests does not fit what is in flight.
    """
    steps = [command for command in asked if type(command) is RunStep]
    skips: list[Skip] = []
    for request in requests:
        if request.fault:
            reason = f"message {request.id} in its inbox is damaged: {request.fault}"
            raise SkipRefused(f"nothing was skipped: {reason}; skip the step again, resume the run, or cancel it")
        command = _chosen(request, steps, {(skip.command.run, skip.command.call) for skip in skips}, root_id)
        if command is not None:
            skips.append(Skip(command, _result_of(request, command, unpack)))
    return skips


def _chosen(request: InboxMessage, steps: list[RunStep], taken: set[tuple[int, str]], root_id: str) -> RunStep | None:
    """The step that a request is about; None if another request has skipped it already."""
    # A request to the root that names no step is about the one step in flight in its tree.
    found = [step for step in steps if step.run == request.run and step.call == request.name]
    if not request.name:
        found = [step for step in steps if request.run in (0, step.run)]
    left = [step for step in found if (step.run, step.call) not in taken]
    if len(left) == 1:
        return left[0]
    if found and not left:
        return None
    names = [f"{step.call} of {child_id(root_id, step.run)}" if step.run else step.call for step in steps]
    shown = ", ".join(names[:CALLS_SHOWN_MAX]) or "none"
    if len(steps) > CALLS_SHOWN_MAX:
        shown += f" and {len(steps) - CALLS_SHOWN_MAX} more"
    if left:
        raise SkipRefused(f"nothing was skipped: several steps are in flight ({shown}); name the call of one")
    what = f"step {request.name} is not in flight here" if request.name else "no step is in flight here"
    raise SkipRefused(f"nothing was skipped: {what} (in flight: {shown}); resume the run, or cancel it")


def _result_of(request: InboxMessage, command: RunStep, unpack: Callable[[Payload], Stored]) -> bytes | None:
    codec, what = command.step.signature.result, f"the result given for step {command.call}"
    if request.payload is not None and command.step.options.unsettable:
        raise SkipRefused(
            f"nothing was skipped: step {command.call} takes no result: {command.step.options.unsettable}"
        )
    if request.payload is None:
        # No workflow waits for an undo, so it does not fail: it counts as done.
        return _encoded(command, None) if command.options.parks else None
    return _encoded(command, decode_untyped(codec, unpack(request.payload), what))


def _encoded(command: RunStep, value: Any) -> bytes:
    """The value as the step itself would have returned it, so that a replay can read it."""
    codec, what = command.step.signature.result, f"the result given for step {command.call}"
    try:
        data = codec.encode(value, what)
        codec.decode(data, what)
    except (UnreadableError, UnserialisableError) as error:
        raise SkipRefused(f"nothing was skipped: {error}") from error
    return data
