"""Steps that are called only once: what the journal says before the call, and after a crash.

The journal says that an attempt is about to begin (`StepIntended`), and only when that is durable the attempt begins.
So a worker that replays the journal and finds an intent without an outcome knows that the call may have been made. It
is not made again: the workflow gets `StepInterruptedError` and decides. An exception is an outcome, so a failed attempt
may be followed by another one, which has an intent of its own, written when its back-off is over.

A worker that stops cleanly withdraws the intents of attempts that it has not begun: those are certainly not made.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from outlive._kernel.journal.event import StepFailed, StepIntended
from outlive._kernel.journal.failure import failure_of
from outlive._kernel.model import Run
from outlive._kernel.replay.command import Command, RunStep
from outlive._kernel.runtime.tree.attempt import idempotency_key
from outlive.errors import StepInterruptedError
from outlive.telemetry import log, run_fields


def intent_of(command: RunStep, *, at: int) -> StepIntended:
    """This attempt is about to begin."""
    return StepIntended(at=at, run=command.run, call=command.call, attempt=command.attempt, digest=command.digest)


def is_interrupted(command: Command) -> bool:
    """Whether a replay has left a step that may have been called already."""
    return type(command) is RunStep and command.intended == command.attempt


def interruption_of(command: RunStep, run: Run, *, at: int) -> StepFailed:
    """The failure that the workflow gets instead of a second call; the log says so too."""
    extra = run_fields(run.id, run.workflow, step=command.step.name, attempt=command.attempt)
    log.warning("step %s of run %s was interrupted and is not called again", command.call, run.id, extra=extra)
    error = StepInterruptedError(command.step.name, "its worker was interrupted", idempotency_key(run, command.call))
    return StepFailed(
        at=at,
        run=command.run,
        call=command.call,
        failure=failure_of(error),
        digest=command.digest,
        attempt=command.attempt,
    )


def unbegun(commands: Iterable[Command], begun: Container[tuple[int, str]], *, at: int) -> list[StepIntended]:
    """The events that withdraw the intents of attempts that have not begun."""
    return [
        StepIntended(at=at, run=command.run, call=command.call, attempt=0, digest=command.digest)
        for command in commands
        if type(command) is RunStep and is_interrupted(command) and (command.run, command.call) not in begun
    ]
