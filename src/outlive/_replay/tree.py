"""One tree of runs in memory: its frames, the calls that wait for an answer, its timers, its loop.

What the journal's events do to it is in `answering`, what workflow code may ask of it in `ask`; `Execution` is the way
in. This is only the state that they share, and what more than one of them does to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from outlive._journal.event import AnyEvent, DetachedEnded, RunCreated
from outlive._journal.value import Stored
from outlive._model import Payload, RunStatus, Wait
from outlive._replay.bound import UndoBound
from outlive._replay.call import Call, ChildCall, DetachedCall, RecordCall, StepCall
from outlive._replay.command import (
    Command,
    EndRun,
    Park,
    Record,
    Recorded,
    WorkflowSpec,
)
from outlive._replay.continuing import overrule
from outlive._replay.divergence import other_arguments, reason_of, unasked
from outlive._replay.foresight import NOTHING_AHEAD
from outlive._replay.frame import PATCH, SCOPE, Frame
from outlive._replay.loop import RunLoop, Timer
from outlive._replay.timers import Timers
from outlive._replay.waiting import waits_of
from outlive.errors import OutliveError, RunDropped

CallT = TypeVar("CallT", StepCall, ChildCall, DetachedCall, RecordCall)

TIMER = "@timer"


class Difference(NamedTuple):
    """A call that the code makes with other arguments than the journal has."""

    seq: int
    """The first event that has other arguments."""
    definition: str
    run: int
    call: str


class RunTree:
    """The state of one tree, rebuilt by every replay."""

    def __init__(
        self,
        root_id: str,
        *,
        resolve: Callable[[str, int], WorkflowSpec],
        unpack: Callable[[Payload], Stored],
        unpack_foreign: Callable[[Payload], Stored] | None = None,
        turns_max: int = 1_000_000,
    ) -> None:
        self.root_id = root_id
        self.nonce = 0
        self.generation = 0
        self.created: RunCreated | None = None
        """How the root run began."""
        self.events = 0
        """How many events there were: the seq of the next one."""
        self.base = 0
        """The seq of the last snapshot, if there is one."""
        self.forgets = False
        """Whether snapshots are taken of the root run."""
        self.is_parked = False
        self.parked_for: tuple[type[OutliveError], int] | None = None
        """Why it is parked, and in which run. Not the error itself: its traceback would hold everything."""
        self.on_stage: Callable[[Frame, str], None] | None = None
        """Called when a run comes to another stage, with the stage that it has left if the journal says so, else "".
        None while old events are replayed."""
        self.foresight = NOTHING_AHEAD
        self.has_items = False
        """Whether outcomes of steps and children may be those of items."""
        self.frames: dict[int, Frame] = {}
        # What a workflow may not use is refused by methods that are set after the class body; mypy cannot see them.
        self.loop = RunLoop(self, turns_max=turns_max)  # type: ignore[abstract]
        self.resolve = resolve
        self.unpack = unpack
        self.unpack_foreign = unpack_foreign or unpack
        """For values that another tree made: the results of detached runs."""
        self.commands: list[Command] = []
        self.calls: dict[tuple[int, str], Call] = {}
        self.children: dict[int, ChildCall] = {}
        """The calls that started runs of this tree, by the number of the child, until it has ended."""
        self.closing: list[Frame] = []
        """Runs whose workflow has ended and whose last tasks and children have not."""
        self.timers = Timers()
        self.bounds: list[UndoBound] = []
        """Of the roll-backs under way."""
        self.next_number = 1
        self.unasked_marks: dict[tuple[int, str], None] = {}
        """Marks that the journal has and the code has not asked for, by run and call."""
        self.differences: dict[tuple[int, str], Difference] = {}
        """What a replay has found, by run and call."""
        self.ended: dict[str, DetachedEnded] = {}
        self.end_waiters: dict[str, list[asyncio.Future[DetachedEnded]]] = {}

    def record(self, fact: Recorded, data: bytes | None = None) -> None:
        """Write a fact of the run's own into the journal, with `data` as its payload; it has `at=0` until then."""
        command = Record(fact.run, fact.call, fact, data)
        self.calls[fact.run, fact.call] = RecordCall(command)
        self.commands.append(command)

    def enter_stage(self, frame: Frame, stage: str, *, is_written: bool) -> None:
        """The workflow says that it is in another stage now; `is_written` says whether the journal has that, or it only
        follows from what the journal has."""
        left, frame.stage = frame.stage, stage
        if self.on_stage is not None:
            self.on_stage(frame, left if is_written else "")

    def begin_timer(self, timer: Timer) -> None:
        """A timer of the workflow; called by its loop."""
        # Not refused in a dropped run: functions of asyncio hold coroutines while they set their timers, and would
        # leave them behind. Who waits for such a timer is closed like all others.
        if not self.loop.is_dropped:
            scope = SCOPE.get()
            self.timers.add(timer, scope.frame.number, scope.call(TIMER))

    def forget_timer(self, timer: Timer) -> None:
        """The workflow no longer waits for this timer."""
        self.timers.take(timer.run, timer.name)

    def refuse_if_dropped(self) -> None:
        """A dropped run's `finally` blocks may ask for nothing."""
        if self.loop.is_dropped and self.loop.may_refuse():
            raise RunDropped

    def park(self, error: OutliveError, run: int = 0) -> None:
        """Stop here: going on would be wrong, failing would lose the run."""
        if not self.is_parked:
            self.is_parked, self.parked_for = True, (type(error), run)
            lacks = next((call for _, call in self.unasked_marks), "").removeprefix(PATCH)
            self.commands = [Park(reason_of(self, error, run), lacks)]

    def cancel_frame(self, frame: Frame, reason: str) -> None:
        """Ask a run to stop; asking twice is asking once."""
        if frame.is_closing:
            overrule(frame, EndRun(frame.number, RunStatus.CANCELLED, reason=reason))
        elif frame.cancel_reason is None and frame.task is not None:
            frame.cancel_reason = reason
            frame.task.cancel()

    def cancel_child(self, call: ChildCall, reason: str) -> None:
        """Ask a child to stop, or to stop as soon as it exists."""
        call.is_cancelled = True
        if call.frame is not None:
            self.cancel_frame(call.frame, reason)

    def time_out(self, frame: Frame) -> None:
        """The deadline of a run has come."""
        if frame.is_closing:
            overrule(frame, EndRun(frame.number, RunStatus.TIMED_OUT))
        elif frame.task is not None:
            frame.is_timed_out = True
            frame.task.cancel()

    def waits(self) -> tuple[Wait, ...]:
        """Everything that could move the run, as data."""
        return waits_of(self.timers, self.calls.values(), self.frames.values(), self.end_waiters)

    def find(self, event: AnyEvent, run: int, name: str, kind: type[CallT], told: str) -> CallT:
        """The call that an event answers; without one the event contradicts the code."""
        call = self.calls.get((run, name))
        if not isinstance(call, kind):
            raise unasked(self, event, told)
        return call

    def differ(self, event: AnyEvent, run: int, call: str) -> None:
        """The code makes a call of this run with other arguments than the journal has.

        Raises:
            DivergenceError: its workflow wants that to be a contradiction (`strict_arguments`).
        """
        spec = self.frames[run].spec
        if spec.strict_arguments:
            raise other_arguments(self, event, call)
        self.differences.setdefault((run, call), Difference(self.events, f"{spec.name}@{spec.version}", run, call))
