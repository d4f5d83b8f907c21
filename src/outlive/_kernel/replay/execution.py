"""One tree of runs in memory: its frames, the calls that wait for an answer, its timers, its loop.

    execution = Execution(root_id, resolve=..., unpack=...)
    for event in journal:
        commands = feed(execution, event)

What the journal's events do to it is in `feeding`, what workflow code may ask of it in `ask`. This is the state that
both share, what more than one of them does to it, and what it says of itself (`waits`, `wake_at`, `outstanding`).

What this is not: it has no clock, does no I/O, knows no store and no thread. It does not decide when a timer is due or
a step is retried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, NoReturn, TypeVar
from zlib import crc32

import msgspec

from outlive._kernel.journal.event import UNREAD_MAX, AnyEvent, DetachedEnded, PatchTaken, RunCreated
from outlive._kernel.journal.redaction import Redaction
from outlive._kernel.journal.value import Stored
from outlive._kernel.model import Payload, Retry, RunStatus, Wait, WaitKind
from outlive._kernel.model.run import definition_shown
from outlive._kernel.replay.call import Call, ChildCall, DetachedCall, EndWait, RecordCall, StepCall
from outlive._kernel.replay.command import Command, EndRun, Park, Recorded, RecordFact, WorkflowSpec
from outlive._kernel.replay.frame import PATCH, Frame
from outlive._kernel.replay.lookahead import NOTHING_AHEAD, Lookahead
from outlive._kernel.replay.loop import RunLoop
from outlive._kernel.replay.timers import Timer
from outlive._kernel.replay.undo_deadline import UndoDeadline
from outlive.errors import OutliveError, UndoFailedError
from outlive.errors.base import facts_of
from outlive.errors.program import DivergenceError, RunDropped

CallT = TypeVar("CallT", StepCall, ChildCall, DetachedCall, RecordCall)

EMISSION_BITS = 24
"""How many bits the number of an emitted item has: a run cannot emit as many items between two events."""
ASKED_MAX = 64
"""Calls that are looked at to tell one way of the code from another: the newest ones."""
ASKED_SHOWN_MAX = 8


class Difference(NamedTuple):
    """A call that the code makes with other arguments than the journal has."""

    seq: int
    """The first event that has other arguments."""
    definition: str
    run: int
    call: str


class Execution:
    """The workflow code of one tree and where it stands; rebuilt by every replay."""

    park_facts: dict[str, Any]
    """Set when it is parked: the attributes of the error, such as what the journal has and what the code asks for."""
    compares_arguments: bool = False
    """Whether a replay encodes the arguments of calls that the journal has answered, to see if they are others now
    (`differences`). A worker does so only for workflows with `strict_arguments`."""
    refuses_plain: bool = False
    """Whether `unpack` has to be asked for what is JSON already, too: it refuses that."""
    redaction: Redaction | None = None
    """The fields that people may not see, for code that writes something for them; None where nothing is shown."""
    secrets: frozenset[str] = frozenset()
    """Texts in the journal that people may not see, as far as workflow code has come upon them. What is logged of the
    tree does not repeat them."""
    gives_way: bool = False
    """Whether it waits for nothing but its next turn in its queue."""
    spends_names: bool = False
    """Whether names are spent, by the first event of the journal: see `RunCreated.spends_names`."""

    def __init__(
        self,
        root_id: str,
        *,
        resolve: Callable[[str, int], WorkflowSpec],
        unpack: Callable[[Payload], Stored],
        unpack_foreign: Callable[[Payload], Stored] | None = None,
        turns_max: int = 1_000_000,
        retry: Retry | None = None,
        around: Callable[[Callable[[], Any]], Any] | None = None,
    ) -> None:
        self.root_id = root_id
        self.retry = retry
        """For steps that have none of their own, in workflows that have none."""
        self.around = around
        """Makes the coroutine of a run of what calls its workflow, if something stands around workflows."""
        self.nonce = self.generation = 0
        self.seed = 0
        """The seed of the random numbers: the nonce of the tree, or for a fork the seed of its origin."""
        self.created: RunCreated | None = None
        """How the root run began."""
        self.headers: dict[str, str] = {}
        """The headers of all runs of the tree."""
        self.events = 0
        """How many events there were: the seq of the next one."""
        self.base = 0
        """The seq of the last snapshot, if there is one."""
        self.retried = 0
        """The number of the last event that brought it back after its end, if there is one."""
        self.forgets = False
        """Whether snapshots are taken of the root run."""
        self.is_parked = False
        self.parked_for: tuple[type[OutliveError], int] | None = None
        """Why it is parked, and in which run. Not the error itself: its traceback would hold everything."""
        self.on_stage: Callable[[Frame, str], None] | None = None
        """Called when a run comes to another stage, with the stage that it has left if the journal says so, else "".
        None while old events are replayed."""
        self.ahead = NOTHING_AHEAD
        self._emission = 0
        self.has_items = False
        """Whether outcomes of steps and children may be those of items."""
        self.frames: dict[int, Frame] = {}
        # Everything that a workflow may not use is refused by methods that are set after the class body; mypy cannot
        # see them.
        self.loop = RunLoop(self, turns_max=turns_max)  # type: ignore[abstract]
        self.timers = self.loop.timers
        self.resolve, self.unpack = resolve, unpack
        self.unpack_foreign = unpack_foreign or unpack
        """For values that another tree made: the results of detached runs."""
        self.commands: list[Command] = []
        self.calls: dict[tuple[int, str], Call] = {}
        self.children: dict[int, ChildCall] = {}
        """The calls that started runs of this tree, by the number of the child, until it has ended."""
        self.closing: list[Frame] = []
        """Runs whose workflow has ended and whose last tasks and children have not."""
        self.undo_deadlines: list[UndoDeadline] = []
        """The deadlines of the roll-backs under way."""
        self.next_number = 1
        self.unasked_marks: dict[tuple[int, str], None] = {}
        """Marks that the journal has and the code has not asked for, by run and call."""
        self.differences: dict[tuple[int, str], Difference] = {}
        """The differences that a replay has found, by run and call."""
        self.ended: dict[str, DetachedEnded] = {}
        self.end_waits: dict[str, EndWait] = {}  # For the ends of other trees, by the ids of their roots.

    # -- Replay ----------------------------------------------------------------------------------------------

    def look_ahead(self, events: Sequence[AnyEvent]) -> None:
        """Before a replay: the whole journal that is about to be fed."""
        for _ in self.looking_ahead(events):
            """In one go."""

    def looking_ahead(self, events: Sequence[AnyEvent]) -> Iterator[None]:
        """Look ahead with a stop now and then: yields between portions of the journal."""
        self.ahead = Lookahead(events)
        yield from self.ahead.note(events)

    @property
    def is_replaying(self) -> bool:
        """Whether the code that runs now has run before: older code has lived through the events that it is fed."""
        return self.events <= self.ahead.seen

    def drop(self) -> None:
        """Leave memory without a trace: nothing in a `finally` block of the workflow can be seen from outside.

        Takes itself apart afterwards. Loop, tasks, contexts and frames refer to each other in circles, and thousands of
        runs an instant are more than the garbage collector should have to find.
        """
        self.loop.is_dropped = True
        if self.frames:
            self.loop.drop([task for frame in self.frames.values() for task in frame.tasks])
        for frame in self.frames.values():
            frame.forget_tasks()
        for things in (self.commands, self.frames, self.calls, self.children, self.ended, self.end_waits):
            things.clear()
        self.closing.clear()
        if self.timers.by_run:
            self.timers.clear()
        self.on_stage = None
        self.unpack = self.unpack_foreign = _refuse_dropped
        self.loop.execution = None

    # -- What both sides do to it ----------------------------------------------------------------------------

    def next_emission(self) -> int:
        """A number for the next item of a stream: above all earlier ones, and the same in every replay. It is made of
        the event that the code follows, and of its place behind that."""
        self._emission = max(self._emission, self.events << EMISSION_BITS) + 1
        return self._emission

    def record(self, fact: Recorded, data: bytes | None = None) -> None:
        """Write a fact of the run's own into the journal, with `data` as its payload; it has `at=0` until then."""
        command = RecordFact(fact.run, fact.call, fact, data)
        self.calls[fact.run, fact.call] = RecordCall(command)
        self.commands.append(command)

    def enter_stage(self, frame: Frame, stage: str, *, is_written: bool) -> None:
        """The workflow says that it is in another stage now; `is_written` says whether the journal has that, or it only
        follows from what the journal has."""
        left, frame.stage = frame.stage, stage
        if self.on_stage is not None:
            self.on_stage(frame, left if is_written else "")

    def refuse_if_dropped(self) -> None:
        """A dropped run's `finally` blocks may ask for nothing."""
        if self.loop.is_dropped and self.loop.may_refuse():
            raise RunDropped

    def park(self, error: OutliveError, run: int = 0) -> None:
        """Stop here: going on would be wrong, failing would lose the run."""
        if not self.is_parked:
            self.is_parked, self.parked_for, self.park_facts = True, (type(error), run), facts_of(error)
            lacks = next((call for _, call in self.unasked_marks), "").removeprefix(PATCH)
            reason = error.summary
            if not isinstance(error, DivergenceError | UndoFailedError):
                # Whatever the reason is, a person must see in which code and at which event.
                reason = f"{self._definition(run)} stopped at event {self.events}: {reason}"
            self.commands = [Park(reason, lacks)]

    def cancel_frame(self, frame: Frame, reason: str) -> None:
        """Ask a run to stop; asking twice is asking once."""
        if frame.is_closing:
            _end_instead(frame, EndRun(frame.number, RunStatus.CANCELLED, reason=reason))
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
            _end_instead(frame, EndRun(frame.number, RunStatus.TIMED_OUT))
        elif frame.task is not None:
            frame.is_timed_out = True
            frame.task.cancel()

    # -- When the journal and the code contradict each other -------------------------------------------------

    def find(self, event: AnyEvent, run: int, name: str, kind: type[CallT], journal: str) -> CallT:
        """The call that an event answers; without one the event contradicts the code."""
        call = self.calls.get((run, name))
        if not isinstance(call, kind):
            self.refuse_unasked(event, journal)
        return call

    def differ(self, event: AnyEvent, run: int, call: str) -> None:
        """The code makes a call of this run with other arguments than the journal has.

        Raises:
            DivergenceError: its workflow wants that to be a contradiction (`strict_arguments`).
        """
        spec = self.frames[run].spec
        if spec.strict_arguments:
            journal, code = f"{call} with the arguments of that time", f"{call} with other arguments"
            raise self.contradiction(event, journal, code)
        definition = definition_shown(spec.name, spec.version)
        self.differences.setdefault((run, call), Difference(self.events, definition, run, call))

    def refuse_unasked(self, event: AnyEvent, journal: str) -> NoReturn:
        """The journal answers something that the code did not ask for."""
        waits = self.waits()
        asked = [str(call) for call in self.calls.values()]
        asked += [f"timer {timer.name}" for timer in self.timers]
        asked += [f"signal {wait.name}" for wait in waits if wait.kind is WaitKind.SIGNAL]
        asked += [f"ask {wait.name}" for wait in waits if wait.kind is WaitKind.ASK]
        asked += [f"promise {wait.name}" for wait in waits if wait.kind is WaitKind.PROMISE]
        asked += [f"approval {wait.name}" for wait in waits if wait.kind is WaitKind.APPROVAL]
        asked += [f"the end of {wait.name}" for wait in waits if wait.kind is WaitKind.CHILD]
        if len(asked) > ASKED_SHOWN_MAX:
            asked = [*asked[:ASKED_SHOWN_MAX], f"and {len(asked) - ASKED_SHOWN_MAX} more"]
        raise self.contradiction(event, journal, "waits for " + ", ".join(asked) if asked else "has ended")

    def contradiction(self, event: AnyEvent, journal: str, code: str) -> DivergenceError:
        """An error that names the event in the journal, the call of the code, their place and the version."""
        return DivergenceError(definition=self._definition(event.run), seq=self.events, journal=journal, code=code)

    def _definition(self, run: int) -> str:
        frame = self.frames.get(run) or self.frames.get(0)
        return definition_shown(frame.spec.name, frame.spec.version) if frame else f"run {self.root_id}"

    # -- What it waits for -----------------------------------------------------------------------------------

    @property
    def has_code_ended(self) -> bool:
        """Whether the code of the root has returned or raised."""
        root = self.frames.get(0)
        return root is None or root.ending is not None

    def outstanding(self) -> list[Command]:
        """Everything asked for and not answered so far, oldest first: what is left to do after a replay."""
        if self.is_parked:
            return []
        asked = [call for call in self.calls.values() if not (isinstance(call, ChildCall) and call.frame is not None)]
        endings = [frame.ending for frame in self.frames.values() if frame.ending is not None]
        return [*(call.command for call in asked), *endings]

    def waits(self) -> tuple[Wait, ...]:
        """Everything that could move the tree, as data."""
        waits = [Wait(kind=WaitKind.TIMER, name=each.name, until_at=each.due_at, run=each.run) for each in self.timers]
        for call in self.calls.values():
            if isinstance(call, StepCall):
                step = call.command
                until_at = step.not_before_at or None
                kind = WaitKind.LIMIT if step.delayed_by else WaitKind.RETRY
                waits.append(Wait(kind=kind, name=step.call, until_at=until_at, run=step.run, detail=step.delayed_by))
        for frame in self.frames.values():
            waits += frame.waits()
        waits += [Wait(kind=WaitKind.CHILD, name=run_id) for run_id in self.end_waits]
        return tuple(waits)

    def wake_at(self) -> int | None:
        """When the next timer is due."""
        timer = self.timers.next()
        return None if timer is None else timer.due_at

    def due_timer(self, now_at: int) -> Timer | None:
        """The timer to fire first, if one is due."""
        timer = self.timers.next()
        return timer if timer is not None and timer.due_at <= now_at else None

    def unread(self) -> Iterator[Payload]:
        """Payloads that the run received and may read later: signals that no code took, open asks, results of detached
        runs."""
        for frame in self.frames.values():
            for _, payload in frame.buffered_signals():
                yield payload
            for ask in frame.open_asks():
                yield ask.payload
        for ended in self.ended.values():
            if ended.result is not None:
                yield ended.result

    def unread_places(self) -> tuple[str, ...]:
        """Where in the journal the signals are that no code took, oldest first."""
        frames = [frame for frame in self.frames.values() if frame.buffer]
        if not frames:
            return ()
        places = [signal.place for frame in frames for signals in frame.buffer.values() for signal in signals]
        return tuple(sorted(places, key=lambda place: [*map(int, place.split("."))])[:UNREAD_MAX])

    def mark(self, event: PatchTaken) -> PatchTaken:
        """The mark as it is written now: with what the code waits for behind it."""
        frame = self.frames.get(event.run)
        return event if frame is None else msgspec.structs.replace(event, asked=self.asked_by(frame))

    def asked_by(self, frame: Frame) -> int:
        """A CRC-32 of what the code of a run waits for, by name: the newest calls and timers, approvals, signals, asks.

        Marks of changes are left out, so that it is the same with and without them.
        """
        run = frame.number
        newest = islice(reversed(self.calls), ASKED_MAX)
        names = [name for number, name in newest if number == run and not name.startswith(PATCH)]
        names += self.timers.names(run, ASKED_MAX)
        names += islice(reversed(frame.approvals), ASKED_MAX)
        names += [f"signal {name}" for name in frame.awaited_signals()[:ASKED_MAX]]
        names += [f"ask {name}" for name in frame.awaited_asks()[:ASKED_MAX]]
        return crc32("\n".join(names).encode()) or 1


def _end_instead(frame: Frame, ending: EndRun) -> None:
    """A cancel or a deadline reached a run that is being wound up to go on as a new one: now it ends."""
    if frame.outcome is not None and frame.outcome.status is RunStatus.CONTINUED and frame.ending is None:
        frame.outcome = ending


def _refuse_dropped(payload: Payload) -> Stored:
    raise RunDropped
