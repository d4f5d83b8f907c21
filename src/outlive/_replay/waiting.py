"""What a tree of runs waits for, as data; and where it stands when nothing can ever bring that."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Protocol
from zlib import crc32

from outlive._model import Wait, WaitKind
from outlive._replay.call import Call, StepCall
from outlive._replay.frame import PATCH, Frame
from outlive._replay.loop import Timer
from outlive._replay.timers import Timers

ASKED_MAX = 64
"""Calls that are looked at to tell one way of the code from another: the newest ones."""


def waits_of(
    timers: Iterable[Timer], calls: Iterable[Call], frames: Iterable[Frame], detached: Iterable[str]
) -> tuple[Wait, ...]:
    """Everything that could move the tree."""
    waits = [Wait(kind=WaitKind.TIMER, name=timer.name, until_at=timer.due_at, run=timer.run) for timer in timers]
    for call in calls:
        if isinstance(call, StepCall):
            step = call.command
            until_at = step.not_before_at or None
            kind = WaitKind.LIMIT if step.delayed_by else WaitKind.RETRY
            waits.append(Wait(kind=kind, name=step.call, until_at=until_at, run=step.run, told=step.delayed_by))
    for frame in frames:
        waits += [
            Wait(kind=WaitKind.SIGNAL, name=name, run=frame.number, told=frame.told_of_set_aside(name))
            for name in frame.awaited_signals()
        ]
        waits += [asking.wait(frame.number) for asking in frame.approvals.values()]
    waits += [Wait(kind=WaitKind.CHILD, name=run_id) for run_id in detached]
    return tuple(waits)


def stuck_at(frames: Mapping[int, Frame]) -> str | None:
    """The line where a tree without calls and timers hangs; None if the world or the journal can still move it."""
    if not frames or any(
        frame.ending is not None or frame.awaited_signals() or frame.approvals for frame in frames.values()
    ):
        return None
    # A parent hangs in its child.
    frame = [frame for frame in frames.values() if not frame.children][-1]
    task = next((task for task in frame.tasks if not task.done()), None)
    stack: list[types.FrameType] = task.get_stack() if task is not None else []
    if not stack:
        return frame.spec.name
    code = stack[-1].f_code
    return f"{code.co_filename}:{stack[-1].f_lineno} in {code.co_name}"


class Asking(Protocol):
    """What `asked_by` needs of an execution."""

    calls: dict[tuple[int, str], Call]
    timers: Timers


def asked_by(tree: Asking, frame: Frame) -> int:
    """A CRC-32 of what the code of a run waits for: the newest calls and timers, approvals and signals, by name.

    Marks of changes are left out, so that it is the same with and without them.
    """
    run = frame.number
    newest = islice(reversed(tree.calls), ASKED_MAX)
    names = [name for number, name in newest if number == run and not name.startswith(PATCH)]
    names += tree.timers.names(run, ASKED_MAX)
    names += islice(reversed(frame.approvals), ASKED_MAX)
    names += [f"signal {name}" for name in frame.awaited_signals()[:ASKED_MAX]]
    return crc32("\n".join(names).encode()) or 1
