"""Which calls of steps a journal says are done, and by which claim.

This is the yardstick for "a completed step never runs again".

The engine gives each step the epoch of the claim that runs it. A step that a claim of epoch e completed may have been
begun by e and by earlier epochs (they were interrupted, or declared dead by mistake), never by a later one: its
claim has read in the journal that it is done.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from outlive._kernel.journal.event import (
    AnyEvent,
    RunClaimed,
    RunCreated,
    RunRetried,
    SnapshotTaken,
    StepFailed,
    StepSucceeded,
)
from outlive._kernel.model import Payload, child_id

INTERRUPTED = "outlive.errors.StepInterruptedError"
_GENERATION = re.compile(r"~gen\d+$")


@dataclass(frozen=True, slots=True)
class Completion:
    """A call that has its outcome."""

    run_id: str
    call: str
    key: str
    """The idempotency key that its attempts were given."""
    epoch: int
    attempt: int
    is_success: bool
    is_interrupted: bool
    """Whether it is a step that is called once, and it is not known whether it was."""
    result: Payload | None


def living_id(root_id: str) -> str:
    """The id that a run had while it ran: one that has gone on as the next generation has been renamed."""
    return _GENERATION.sub("", root_id)


def nonce_of(events: Sequence[AnyEvent]) -> str:
    """The nonce that keeps a tree apart from other trees of its id, as keys have it."""
    return f"{events[0].nonce:016x}" if events and isinstance(events[0], RunCreated) else ""


def completions(root_id: str, events: Sequence[AnyEvent]) -> list[Completion]:
    """The calls that a journal says are done, in its order."""
    root_id = living_id(root_id)
    done = []
    nonce = nonce_of(events)
    epoch = 0
    # An event that a retry has taken back is not an outcome: the call goes on. A snapshot has its own number.
    undone = {number for event in events if isinstance(event, RunRetried) for number in event.undone}
    first = events[0].events if events and isinstance(events[0], SnapshotTaken) else 0
    for number, event in enumerate(events, first):
        match event:
            case RunCreated(run=0):
                epoch = 1 if event.worker else 0
            case RunClaimed():
                epoch = event.epoch
            case StepSucceeded() | StepFailed() if number not in undone:
                run_id = child_id(root_id, event.run)
                done.append(
                    Completion(
                        run_id=run_id,
                        call=event.call,
                        key=f"{run_id}:{event.call}:{nonce}",
                        epoch=epoch,
                        attempt=event.attempt,
                        is_success=isinstance(event, StepSucceeded),
                        is_interrupted=isinstance(event, StepFailed) and event.failure.class_name == INTERRUPTED,
                        result=event.result if isinstance(event, StepSucceeded) else None,
                    )
                )
            case _:
                continue
    return done
