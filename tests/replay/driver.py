"""A worker in one page: no engine, no store, no thread, and an integer for a clock.

This is the specification of "events in, commands out". A run begins with `RunCreated`; from then on the worker does
nothing but

1. pick one thing that may happen now: a step ends, a timer is due, a child begins, a run ends, a message arrives;
2. make it an event, write it (`seal`) and read it back (`open_row`), as a store would;
3. feed it, and note what the run asks for because of it.

What may happen now is what the run asked for and the journal has not answered: the books. Which of several things
happens first is decided by a seeded shuffle. Without a seed the world is as fast as it can be: everything that needs no
waiting comes before the clock moves. With `crash_at` the worker dies before these events, and another one that knows
nothing but the journal takes over: it must find the same books.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, assert_never

import msgspec

from outlive._kernel.journal.codec import open_row, salt_of, seal
from outlive._kernel.journal.event import AnyEvent, Ending
from outlive._kernel.journal.failure import failure_of
from outlive._kernel.model import RunStatus
from outlive._kernel.model.policy import NO_RETRY, delay_seconds, is_last
from outlive._kernel.replay.command import (
    AwaitEnd,
    CancelStep,
    Command,
    Emit,
    EndRun,
    Park,
    Recorded,
    RecordFact,
    RunStep,
    StartChild,
    StartDetached,
    TakeSnapshot,
)
from outlive._kernel.replay.feeding import feed
from outlive._kernel.runtime.tree.events import event_of_record
from outlive.events import (
    AttemptFailed,
    DetachedStarted,
    PatchTaken,
    RunCancelled,
    RunContinued,
    RunCreated,
    RunFailed,
    RunSucceeded,
    RunTimedOut,
    StepFailed,
    StepSucceeded,
    TimerFired,
)
from outlive.types import Workflow
from tests.replay.define import NONCE, SECOND, START_AT, TURNS_MAX, Code, created, finish, pack
from tests.replay.life import Key, Life, call_name, describe, is_inside_transaction, key_of, read_books, sort_asked

EVENTS_MAX = 10_000
SALT = salt_of(NONCE)
ROOT_END: Key = ("end", 0, "")

Happening = Callable[[], AnyEvent]


def live(of: Workflow[..., Any], *args: Any, **options: Any) -> Life:
    """Run a workflow; see `Driver` for the options."""
    return Driver(of, *args, **options).run()


class Driver:
    """Drives one tree of runs to its end, or to where only the world can move it."""

    def __init__(
        self,
        of: Workflow[..., Any],
        *args: Any,
        code: Code | None = None,
        seed: int | None = None,
        outcomes: Mapping[str, Sequence[Any]] | None = None,
        inject: Mapping[int, Sequence[AnyEvent]] | None = None,
        messages: Sequence[AnyEvent] = (),
        crash_at: Iterable[int] = (),
        journal: Sequence[AnyEvent] = (),
        timeout: float | None = None,
        turns_max: int = TURNS_MAX,
        **kwargs: Any,
    ) -> None:
        """Make ready to run `of(*args, **kwargs)`.

        Args:
            code: what is deployed, when that is more than `of`.
            seed: in which order things happen; None for the simplest order.
            outcomes: what the attempts of a step return or raise, by its identity or name; else its function is called.
            inject: messages to deliver one after the other from event number k on.
            messages: to deliver in this order, whenever the seed says so (without one: before the clock moves).
            crash_at: the worker dies before these events.
            journal: what has happened already, maybe with other code; the run goes on from there.
            timeout: seconds that the run may take.
        """
        self.life = Life(code or Code(of), of)
        self.now_at = START_AT
        self._turns_max = turns_max
        self._random = None if seed is None else random.Random(seed)
        self._outcomes = outcomes or {}
        self._inject = {at: list(events) for at, events in (inject or {}).items()}
        self._messages = list(messages)
        self._crash_at = frozenset(crash_at)
        self._open: dict[Key, Command] = {}
        self._execution = self.life.code.execution(turns_max=turns_max)
        if journal:
            self._take_over(journal)
            return
        timeout_at = None if timeout is None else START_AT + round(timeout * SECOND)
        self._take(created(of, *args, timeout_at=timeout_at, **kwargs))

    def run(self) -> Life:
        """Let things happen until nothing can."""
        life = self.life
        while life.park is None and life.end is None and (event := self._next_event()) is not None:
            at = len(life.journal)
            if at in self._crash_at and not is_inside_transaction([*life.journal, event], at):
                self._crash()
            self._take(event)
            assert len(life.journal) < EVENTS_MAX, "the run does not come to an end"
        self._execution.drop()
        return life

    # -- Events in, commands out -------------------------------------------------------------------------------

    def _take(self, event: AnyEvent) -> None:
        """Write an event, read it back, feed it."""
        life = self.life
        event = open_row(seal(event, salt=SALT, seq=len(life.journal)), salt=SALT, run_id="r")
        life.journal.append(event)
        self._strike_off(event)
        commands = feed(self._execution, event)
        life.asked.append([describe(command) for command in commands])
        for command in commands:
            self._note(command)
        life.books.append(read_books(self._execution))
        assert life.park is not None or life.books[-1].outstanding == sort_asked(self._open.values())

    def _strike_off(self, event: AnyEvent) -> None:
        """Remove from the books what the event answers."""
        match event:
            case StepSucceeded() | StepFailed() | DetachedStarted():
                del self._open["call", event.run, event.call]
            case RunCreated() if event.run:
                del self._open["call", event.parent, event.call]
            case RunSucceeded() | RunFailed() | RunCancelled() | RunTimedOut() | RunContinued():
                del self._open["end", event.run, ""]
            case _ if isinstance(event, Recorded) and event.call:
                self._open.pop(("call", event.run, event.call), None)
            case _:
                pass

    def _note(self, command: Command) -> None:
        """Enter what the run asks for into the books."""
        match command:
            case CancelStep():
                del self._open[key_of(command)]
            case AwaitEnd():
                """No event answers it: the end of the other run does, whenever that comes."""
            case Park():
                self.life.park = command.reason
            case Emit():
                """It is written with the event, and no answer comes."""
            case RunStep() | StartChild() | StartDetached() | RecordFact() | TakeSnapshot() | EndRun():
                self._open[key_of(command)] = command
            case _:
                assert_never(command)

    def _take_over(self, journal: Sequence[AnyEvent]) -> None:
        """Go on with a run that another worker has begun."""
        life = self.life
        self._execution.look_ahead(journal)
        for event in journal:
            life.journal.append(event)
            commands = feed(self._execution, event)
            life.asked.append([describe(command) for command in commands])
            life.park = next((command.reason for command in commands if isinstance(command, Park)), life.park)
            life.books.append(read_books(self._execution))
        self.now_at = max(event.at for event in journal)
        self._open = {key_of(command): command for command in self._execution.outstanding()}

    def _crash(self) -> None:
        """Die, and be replaced."""
        before = read_books(self._execution)
        self._execution.drop()
        self._execution = self.life.code.execution(turns_max=self._turns_max)
        self._execution.look_ahead(self.life.journal)
        for seq, event in enumerate(self.life.journal):
            asked = [describe(command) for command in feed(self._execution, event)]
            assert asked == self.life.asked[seq], f"event {seq} replays otherwise"
        assert read_books(self._execution) == before
        self._open = {key_of(command): command for command in self._execution.outstanding()}

    # -- What may happen now -----------------------------------------------------------------------------------

    def _next_event(self) -> AnyEvent | None:
        for command in self._open.values():
            if isinstance(command, RecordFact):
                # A worker writes it with the event that caused it: nothing can come between.
                return self._become_fact(command)
        for at, messages in self._inject.items():
            if messages and at <= len(self.life.journal):
                return self._deliver(messages.pop(0))
        choices = self._choices()
        if not choices:
            return None
        return (self._random.choice(choices) if self._random else choices[0])()

    def _choices(self) -> list[Happening]:
        """Everything that may happen now; what needs no waiting comes first."""
        commands = [command for key, command in self._open.items() if key != ROOT_END]
        choices: list[Happening] = [
            partial(self._become_fact, command)
            for command in commands
            if isinstance(command, StartChild | StartDetached | EndRun)
        ]
        choices += [
            partial(self._attempt, command)
            for command in commands
            if isinstance(command, RunStep) and command.not_before_at <= self.now_at
        ]
        if self._messages:
            choices.append(lambda: self._deliver(self._messages.pop(0)))
        if self._execution.due_timer(self.now_at) is not None:
            choices.append(self._fire_timer)
        elif self._next_instant() is not None:
            choices.append(self._wait)
        end = self._open.get(ROOT_END)
        if isinstance(end, EndRun) and not choices:
            # The end of the tree is the last event of its journal.
            choices.append(partial(self._become_fact, end))
        return choices

    def _next_instant(self) -> int | None:
        """When something is due that is not due now."""
        instants = [command.not_before_at for command in self._open.values() if isinstance(command, RunStep)]
        wake_at = self._execution.wake_at()
        instants += [] if wake_at is None else [wake_at]
        return min((at for at in instants if at > self.now_at), default=None)

    def _wait(self) -> AnyEvent:
        """Let the clock move to the next such instant."""
        at = self._next_instant()
        assert at is not None
        self.now_at = at
        event = self._next_event()
        assert event is not None
        return event

    def _fire_timer(self) -> AnyEvent:
        timer = self._execution.due_timer(self.now_at)
        assert timer is not None
        return TimerFired(at=self.now_at, run=timer.run, call=timer.name)

    def _deliver(self, message: AnyEvent) -> AnyEvent:
        return msgspec.structs.replace(message, at=self.now_at)

    def _become_fact(self, command: StartChild | StartDetached | RecordFact | EndRun) -> AnyEvent:
        """Journal commands are nothing but the next facts."""
        match command:
            case StartChild():
                return RunCreated(
                    at=self.now_at,
                    run=command.run,
                    parent=command.parent,
                    call=command.call,
                    workflow=command.workflow.name,
                    version=command.workflow.version,
                    input=pack(command.arguments),
                    digest=command.digest,
                    timeout_at=command.timeout_at,
                )
            case StartDetached():
                digest = command.digest
                return DetachedStarted(
                    at=self.now_at, run=command.run, call=command.call, run_id=command.run_id, digest=digest
                )
            case RecordFact():
                payload = None if command.data is None else pack(command.data)
                event = event_of_record(command, at=self.now_at, payload=payload)
                return self._execution.mark(event) if isinstance(event, PatchTaken) else event
            case EndRun():
                return end_event(command, self.now_at)
            case _:
                assert_never(command)

    def _attempt(self, command: RunStep) -> AnyEvent:
        """Run one attempt of a step; failed attempts are tried again as its options say, without jitter."""
        at, run, call, digest, attempt = self.now_at, command.run, command.call, command.digest, command.attempt
        self.life.steps_run.append(call_name(run, call))
        try:
            value = self._outcome(command)
        except Exception as error:
            failure, retry = failure_of(error), command.options.retry or NO_RETRY
            is_over = is_last(retry, attempt) or not isinstance(error, retry.on)
            if is_over and not command.options.parks:
                return StepFailed(at=at, run=run, call=call, failure=failure, digest=digest, attempt=attempt)
            # An undo that is at its end parks its run; here it is resumed at once.
            retry_at = at if is_over else at + round(delay_seconds(retry, attempt, 0.0) * SECOND)
            return AttemptFailed(
                at=at, run=run, call=call, failure=failure, digest=digest, attempt=attempt, retry_at=retry_at
            )
        result = pack(command.step.signature.result.encode(value, "the result"))
        return StepSucceeded(at=at, run=run, call=call, result=result, digest=digest, attempt=attempt)

    def _outcome(self, command: RunStep) -> Any:
        scripted = self._outcomes.get(command.call) or self._outcomes.get(command.step.name)
        if scripted:
            value = scripted[min(command.attempt, len(scripted)) - 1]
            if isinstance(value, Exception):
                raise value
            return value
        args, kwargs = command.step.signature.decode(command.arguments)
        value = command.step.fn(*args, **kwargs)
        return finish(value) if inspect.iscoroutine(value) else value


def end_event(command: EndRun, at: int) -> Ending:
    """The end of a run as a fact."""
    match command.status:
        case RunStatus.SUCCEEDED:
            assert command.result is not None
            return RunSucceeded(at=at, run=command.run, result=pack(command.result))
        case RunStatus.FAILED:
            assert command.failure is not None
            return RunFailed(at=at, run=command.run, failure=command.failure)
        case RunStatus.CANCELLED:
            return RunCancelled(at=at, run=command.run, reason=command.reason)
        case RunStatus.TIMED_OUT:
            return RunTimedOut(at=at, run=command.run)
        case RunStatus.CONTINUED:
            return RunContinued(at=at, run=command.run, workflow="", version=0)
        case RunStatus.DAMAGED | RunStatus.PENDING | RunStatus.RUNNING | RunStatus.WAITING | RunStatus.PARKED:
            raise AssertionError(f"{command.status} is not an end")
        case _:
            assert_never(command.status)
