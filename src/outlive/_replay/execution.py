"""One tree of runs as a pure function of its journal: `feed(event) -> commands`.

    execution = Execution(root_id, resolve=..., unpack=...)
    for event in journal:
        commands = execution.feed(event)

Live execution is replay: the worker makes every outcome an event and feeds it here; recovery feeds the same events from
the store. There is no other way in, so what works live cannot break on recovery.

Feeding an event answers one durable call (or fires a timer, or hands over a signal), moves the run's clock to the time
of the event, and runs the loop until nothing is ready. What the workflow asked for meanwhile comes back as commands. An
event that answers a call the code did not make contradicts the code: the execution stops with a `Park` command that
carries a readable diff, and is of no use after that. Arguments are not identity: a call that the code makes with other
arguments than the journal has is noted (`differences`), and the answer counts.

What this is not: it has no clock, does no I/O, knows no store and no thread. It does not decide when a timer is due or
a step is retried; it says what it waits for (`waits`, `wake_at`) and is told what happened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from outlive._journal.event import AnyEvent, PatchTaken
from outlive._journal.failure import failure_of, text_of
from outlive._journal.value import Stored
from outlive._model import Payload
from outlive._replay.answering import HANDLERS
from outlive._replay.bound import renew
from outlive._replay.call import ChildCall
from outlive._replay.command import Command, Park
from outlive._replay.ending import end_closed
from outlive._replay.foresight import Foresight
from outlive._replay.frame import SCOPE
from outlive._replay.loop import RunTask, Timer
from outlive._replay.timers import Timers
from outlive._replay.tree import RunTree
from outlive._replay.waiting import asked_by, stuck_at
from outlive.errors import (
    DivergenceError,
    RunawayError,
    RunDropped,
    StuckError,
    UnreadableError,
    WorkflowNotFoundError,
)
from outlive.telemetry import log, run_fields


class Execution(RunTree):
    """The workflow code of one tree, fed with its journal."""

    # -- Events in, commands out -----------------------------------------------------------------------------

    def feed(self, event: AnyEvent) -> list[Command]:
        """Take the next event of the journal; what the run asks for because of it."""
        handle = HANDLERS[type(event)]
        if handle is not None and not self.is_parked:
            try:
                if event.at > self.loop.now_at:
                    self.loop.now_at = event.at
                handle(self, event)
                self.loop.drain()
                if failed := self.loop.take_unseen():
                    self._report(failed)
                if self.closing:
                    end_closed(self)
                # Every child that runs is also a call of its parent: no other call is open.
                if len(self.calls) < len(self.frames) and not self.timers:
                    self._check_not_stuck()
            except (DivergenceError, UnreadableError, RunawayError, StuckError, WorkflowNotFoundError) as error:
                self.park(error, event.run)
        elif self.bounds:
            renew(self, event)
        self.events += 1
        commands, self.commands = self.commands, []
        return [command for command in commands if isinstance(command, Park)] if self.is_parked else commands

    @property
    def is_replaying(self) -> bool:
        """Whether the code that runs now has run before: it is fed what the feeder has foreseen (`foresee`), and older
        code has lived through that."""
        return self.events <= self.foresight.seen

    def foresee(self, events: Sequence[AnyEvent]) -> None:
        """Before a replay: the whole journal that is about to be fed."""
        self.foresight = Foresight(events)

    def outstanding(self) -> list[Command]:
        """Everything asked for and not answered so far, oldest first: what is left to do after a replay."""
        if self.is_parked:
            return []
        asked = [call for call in self.calls.values() if not (isinstance(call, ChildCall) and call.frame is not None)]
        endings = [frame.ending for frame in self.frames.values() if frame.ending is not None]
        return [*(call.command for call in asked), *endings]

    def mark(self, event: PatchTaken) -> PatchTaken:
        """The mark as it is written now: with what the code waits for behind it."""
        frame = self.frames.get(event.run)
        return event if frame is None else msgspec.structs.replace(event, asked=asked_by(self, frame))

    def expects(self, run: int, call: str) -> bool:
        """Whether the run still waits for the outcome of this call."""
        return (run, call) in self.calls

    def unread(self) -> Iterator[Payload]:
        """What it was given and may look at later: signals that nobody took, results of detached runs."""
        for frame in self.frames.values():
            for _, payload in frame.buffered_signals():
                yield payload
        for ended in self.ended.values():
            if ended.result is not None:
                yield ended.result

    def drop(self) -> None:
        """Leave memory without a trace: nothing in a `finally` block of the workflow can be seen from outside.

        Takes itself apart afterwards. Loop, tasks, contexts and frames refer to each other in circles, and thousands of
        runs an instant are more than the garbage collector should have to find.
        """
        self.loop.drop([task for frame in self.frames.values() for task in frame.tasks])
        for frame in self.frames.values():
            frame.forget_tasks()
        for things in (self.commands, self.frames, self.calls, self.children, self.ended, self.end_waiters):
            things.clear()
        self.closing.clear()
        self.timers = Timers()
        self.on_stage = None
        self.unpack = self.unpack_foreign = _nothing
        self.loop.execution = None

    def _report(self, failed: list[asyncio.Task[Any]]) -> None:
        """Say at once that background tasks have failed: if the workflow never looks at them, nothing else would."""
        for task in failed:
            error = task.exception()  # Looked at: asyncio need not complain when the task is collected.
            if error is None or self.is_replaying or not isinstance(task, RunTask):
                continue
            frame = task.home[SCOPE].frame
            text = "a background task of run %s failed, and nothing waits for it:\n%s"
            log.warning(text, frame.id, text_of(failure_of(error)), extra=run_fields(frame.id, frame.spec.name))

    # -- What it waits for -----------------------------------------------------------------------------------

    def wake_at(self) -> int | None:
        """When the next timer is due."""
        timer = self.timers.next()
        return None if timer is None else timer.due_at

    def due_timer(self, now_at: int) -> Timer | None:
        """The timer to fire first, if one is due."""
        timer = self.timers.next()
        return timer if timer is not None and timer.due_at <= now_at else None

    def _check_not_stuck(self) -> None:
        place = None if self.end_waiters or self.is_parked else stuck_at(self.frames)
        if place is not None:
            raise StuckError(place)


def _nothing(payload: Payload) -> Stored:
    raise RunDropped
