"""Snapshots: how a run whose state is data puts its whole past into one event, and begins there from then on.

Now and then such a workflow stands where nothing is under way, and a few data are all that its code needs to go on: a
machine between two states. If its journal has grown long it asks for a snapshot and waits for it, as for a step. What
comes back is an event like every other one: live, the code goes on behind it; in a later replay it is the first event
of the journal, and the code begins there. Both must be in the same place, so a snapshot has everything that the replay
of its past would have made:

* where the workflow stands (`Standing.position`, which only the workflow reads), and what it would undo;
* how often each name was called: the next call of a step must not have the identity, and so the idempotency key, of one
  that has been; for approvals, of whose names there is no end, one number for all; and where its random numbers are;
* the ways taken at marks of changes, signals that no code took, asks without an answer, what is published, the number
  of the next child.

What detached runs reported of their end is forgotten: they report it again when they are asked (`client.message_key`).
Tasks are counted from the first one on again, as their order in sets hangs on their number.

It is taken only where nothing can be lost: no call, timer, task or child is open, and the run was not asked to stop. In
a replay nothing is asked for where the journal goes on: other code, or other settings, saw no need for one there.
"""

from __future__ import annotations

import msgspec

from outlive._kernel.journal.event import SnapshotTaken
from outlive._kernel.journal.value import StructCodec
from outlive._kernel.model.wait import DEADLINE
from outlive._kernel.replay.call import RecordCall, SnapshotCall
from outlive._kernel.replay.command import TakeSnapshot
from outlive._kernel.replay.execution import Execution
from outlive._kernel.replay.frame import SCOPE, Frame, Remembered

SNAPSHOT = (0, "@snapshot")
"""The key of the call; a tree has one at a time."""


class Standing(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a run stands between two events."""

    position: msgspec.Raw
    """The position with which the workflow wants to begin."""
    scope: Remembered = Remembered()
    """The scope of the workflow's own task."""
    next_number: int = 1
    """The number of the next child."""
    patches: dict[str, bool] = {}


_STANDING = StructCodec(Standing, "where a run stood")


def may_take_snapshot(execution: Execution) -> bool:
    """Whether the running code, that of the workflow's own task, is all that is under way."""
    frame = SCOPE.get().frame
    return (
        frame.number == 0
        and execution.events >= execution.ahead.last
        and len(execution.frames) == 1
        and all(isinstance(call, RecordCall) for call in execution.calls.values())
        and all(timer.name == DEADLINE for timer in execution.timers)
        and not (
            frame.open_tasks() or frame.approvals or frame.awaited_signals() or frame.awaited_asks() or frame.unsettled
        )
        and frame.cancel_reason is None
        and not (frame.is_timed_out or frame.is_closing or execution.end_waits or execution.loop.is_dropped)
    )


async def take_snapshot(execution: Execution, position: bytes) -> None:
    """Forget everything but `position`, and go on when that is in the journal."""
    frame = SCOPE.get().frame
    standing = Standing(msgspec.Raw(position), frame.scope.remembered(), execution.next_number, frame.patches)
    signals, set_aside = tuple(frame.buffered_signals()), tuple(frame.set_aside)
    data, asks = _STANDING.encode(standing, "a snapshot"), tuple(frame.open_asks())
    command = TakeSnapshot(data, signals, execution.next_number, asks, set_aside)
    call = SnapshotCall(command, execution.loop.create_future())
    execution.calls[SNAPSHOT] = call
    execution.commands.append(command)
    await call.future
    frame.scope.go_on(standing.scope)  # A replay that begins there does so too.


def restore(frame: Frame, event: SnapshotTaken, execution: Execution) -> None:
    """Put a run where it stood."""
    standing: Standing = _STANDING.decode(execution.unpack(event.payload), "a snapshot")
    execution.next_number = standing.next_number
    frame.position = bytes(standing.position)
    frame.patches = dict(standing.patches)
    execution.unasked_marks |= {(frame.number, call): None for call, is_new in frame.patches.items() if is_new}
    give_signals(frame, event)
    for ask in event.asks:
        frame.asks_of(ask.name).receive(ask)
    frame.set_aside = list(event.set_aside)
    frame.scope.go_on(standing.scope)


def give_signals(frame: Frame, event: SnapshotTaken) -> None:
    """Give a run the signals that a snapshot has kept for it."""
    frame.buffer.clear()
    for number, signal in enumerate(event.signals):
        frame.receive_signal(signal.payload, signal.name, f"{event.events}.{number}")
