"""The facts that must be taken back so that a run which has ended can go on: the facts that made it end, and their
consequences.

The journal of a failed run says which steps failed, and not for which of them the workflow gave up: it may have caught
one failure, and cleaned up after another. So the code is asked, by replay. A *trial* leaves out some facts (a step that
failed, the cancel, the end) and feeds the rest. Behind the first fact that is left out, an event counts only if the
code asks for it: steps that ran beside the failed one are asked for, and stay; what a `finally` block did after the
failure is not, and is taken back too. If the workflow is open at the end of the trial, the trial has found what failed.

Sets of facts are tried in this order, and the first one that leaves the workflow open is taken:

1. only the end: new code may go on where the old code raised;
2. every failure, if the code asks for all these steps again and no completed one is lost by that;
3. the failures that the error of the run names, in its chain of causes;
4. the newest failure, then the two newest, and so on.

A roll-back is not taken back: what it has undone would be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence

import msgspec

from outlive._kernel.journal import event as journal
from outlive._kernel.journal.event import AnyEvent, Ending
from outlive._kernel.journal.fold import STATUS
from outlive._kernel.model import Failure, RunStatus
from outlive._kernel.model.approval import OpenRequest
from outlive._kernel.model.wait import DEADLINE
from outlive._kernel.replay.call import ChildCall, SnapshotCall, StepCall
from outlive._kernel.replay.command import Park, RunStep
from outlive._kernel.replay.execution import Execution
from outlive._kernel.replay.feeding import feed, feed_again
from outlive._kernel.replay.lookahead import first_number, undone_in
from outlive._kernel.replay.snapshot import SNAPSHOT

TRIALS_MAX = 50
"""Failures that are tried one after the other; after that many, all of them at once."""
_OF_ATTEMPTS = (journal.AttemptFailed, journal.StepDelayed, journal.StepIntended)
"""Events that are forgotten of a failed step, so that it is called as if for the first time."""
_WELL = (RunStatus.SUCCEEDED, RunStatus.CONTINUED)
_COMPLETED = (journal.StepSucceeded, journal.RunSucceeded, journal.StateLeft)
_OF_STEPS = (*_OF_ATTEMPTS, journal.StepSucceeded, journal.StepFailed, journal.StepProgressed)


class CannotRetry(Exception):
    """Why a run cannot be retried, for a person."""


class TakenBack(msgspec.Struct, frozen=True):
    """How a run that has ended can go on."""

    undone: tuple[int, ...]
    """The events that are taken back, ascending."""
    since: int
    """The first of them that the code had seen the effect of."""
    next_number: int
    children: tuple[int, ...]
    """The numbers of the children that go on."""
    approvals: tuple[tuple[int, str], ...]
    """Requests for approval that were taken back although they were decided, by run and call."""
    requests: dict[int, tuple[OpenRequest, ...]]
    """Requests for approval that are open again, by run."""


class _Trial(msgspec.Struct):
    """The result of one replay that left something out."""

    left_out: set[int]
    since: int
    dropped: list[int] = []
    """Events that the code did not ask for."""
    contradiction: str = ""
    is_open: bool = False
    is_lost: bool = False
    """Whether the code does not ask for a step whose failure was left out: it has caught an earlier one."""
    children: tuple[int, ...] = ()
    requests: dict[int, tuple[OpenRequest, ...]] = {}
    """The approvals that the code waits for at the end of the trial, by run."""


class Search:
    """Looks for what must be taken back of one journal, whose tree has ended."""

    def __init__(self, events: Sequence[AnyEvent], make: Callable[[], Execution]) -> None:
        """`make` gives a new execution, which has been fed nothing."""
        self._make = make
        self._events = events
        self._numbered = list(enumerate(events, first_number(events)))
        self._before = undone_in(events)
        self._standing = [(number, event) for number, event in self._numbered if number not in self._before]
        retried = max((number for number, event in self._numbered if type(event) is journal.RunRetried), default=0)
        self._life = [(number, event) for number, event in self._standing if number > retried]
        """The events since the run was last retried."""
        self._end, ending = self._numbered[-1]
        assert isinstance(ending, Ending)
        self._ending = ending
        self._last_ends = self._end
        while isinstance(self._numbered[self._last_ends - 1 - self._numbered[0][0]][1], Ending):
            self._last_ends -= 1
        self._next_number = 1 + max(event.run for event in events)
        self._undos: set[tuple[int, str]] = set()
        """Calls that undo something, as the trials have seen them."""
        self._trouble = ""

    def run(self) -> Generator[None, None, TakenBack]:
        """Find the facts that must be taken back. It yields at each event of each trial.

        Raises:
            CannotRetry: nothing would help, or a roll-back stands in the way.
        """
        end = {self._end: self._last_ends}
        requests = {number: number for number, event in self._life if self._is_request(event)}
        only_end = yield from self._try(end)
        # No event asked for the cancel of a run that was not in motion: only its end is taken back.
        if not requests and self._is_good(only_end):
            return self._found(only_end)
        failures = {number: event for number, event in self._life if _is_failure(event)}
        for taken, is_careful in self._choices(end | requests, failures):
            trial = yield from self._try(taken)
            if self._is_good(trial, is_careful=is_careful):
                return self._found(trial)
        raise CannotRetry(self._trouble or self._same_end())

    def _choices(self, base: dict[int, int], failures: dict[int, AnyEvent]) -> Iterable[tuple[dict[int, int], bool]]:
        """The facts to leave out, best choice first: the number of each event, with the number from which its effect is
        seen; and whether the choice is right only if no completed step is lost and every failed one asked for."""
        if len(base) > 1:
            yield base, False
        if not failures:
            return
        yield base | self._facts_of(failures.values(), failures), True
        named = self._named(failures)
        if named:
            yield base | self._facts_of(named.values(), named), False
        taken = dict(base)
        for number in sorted(failures, reverse=True)[:TRIALS_MAX]:
            taken |= self._facts_of([failures[number]], [number])
            yield dict(taken), False
        yield base | self._facts_of(failures.values(), failures), False

    def _facts_of(self, failures: Iterable[AnyEvent], numbers: Iterable[int]) -> dict[int, int]:
        """These failures, and the attempts that came before them."""
        calls = {(event.run, event.call) for event in failures if isinstance(event, journal.StepFailed)}
        facts = {number: number for number in numbers}
        for number, event in self._standing:
            if isinstance(event, _OF_ATTEMPTS) and (event.run, event.call) in calls:
                facts[number] = self._end
        return facts

    def _named(self, failures: dict[int, AnyEvent]) -> dict[int, AnyEvent]:
        """The newest failure for each error in the chain of causes of the run's own."""
        named: dict[int, AnyEvent] = {}
        error = self._ending.failure if isinstance(self._ending, journal.RunFailed) else None
        while error is not None:
            for number in sorted(failures, reverse=True):
                if number not in named and _is_of(failures[number], error):
                    named[number] = failures[number]
                    break
            error = error.cause
        return named

    def _is_request(self, event: AnyEvent) -> bool:
        """Whether an event wanted the whole run to end, and it did so for that."""
        if event.run:
            return False
        if isinstance(self._ending, journal.RunCancelled):
            return isinstance(event, journal.CancelRequested)
        is_deadline = isinstance(event, journal.TimerFired) and event.call == DEADLINE
        return is_deadline and isinstance(self._ending, journal.RunTimedOut)

    # -- Trials ----------------------------------------------------------------------------------------------

    def _try(self, taken: dict[int, int]) -> Generator[None, None, _Trial]:
        trial = _Trial(set(taken), since=min(taken.values()))
        execution = self._make()
        # A call with other arguments was made only because of the failure.
        execution.compares_arguments = True
        execution.look_ahead([*self._events, self._retried(trial.left_out, trial.since)])
        try:
            for number, event in self._numbered:
                yield
                if number in execution.ahead.undone and number:
                    feed_again(execution, event)
                    continue
                if number >= trial.since and not is_asked_for(execution, event):
                    trial.dropped.append(number)
                    execution.next_number = max(execution.next_number, self._next_number)
                    execution.events += 1
                    continue
                for command in feed(execution, event):
                    if isinstance(command, Park):
                        trial.contradiction = command.reason
                        return trial
                    if isinstance(command, RunStep) and command.options.parks:
                        self._undos.add((command.run, command.call))
            root = execution.frames.get(0)
            trial.is_open = root is not None and (root.outcome is None or root.outcome.status in _WELL)
            trial.children = tuple(sorted(number for number in execution.frames if number))
            trial.requests = {
                number: tuple(OpenRequest(asked.call, asked.assignees) for asked in frame.approvals.values())
                for number, frame in execution.frames.items()
            }
            failed = [event for number, event in self._numbered if number in trial.left_out]
            trial.is_lost = any(
                isinstance(event, journal.StepFailed) and (event.run, event.call) not in execution.calls
                for event in failed
            )
        finally:
            execution.drop()
        return trial

    def _retried(self, undone: Iterable[int], since: int) -> journal.RunRetried:
        return journal.RunRetried(
            at=self._ending.at, undone=tuple(sorted(undone)), since=since, next_number=self._next_number
        )

    def _is_good(self, trial: _Trial, *, is_careful: bool = False) -> bool:
        if trial.contradiction:
            self._trouble = self._trouble or trial.contradiction
            return False
        numbers = set(trial.dropped)
        dropped = [event for number, event in self._numbered if number in numbers]
        undos = [event for event in dropped if isinstance(event, _OF_STEPS) and (event.run, event.call) in self._undos]
        if undos and trial.is_open:
            names = ", ".join(dict.fromkeys(event.call for event in undos))
            gone = "so what its completed steps did is no longer there; start a new run"
            self._trouble = f"its saga was rolled back ({names}), {gone}"
            return False
        loses = trial.is_lost or any(isinstance(event, _COMPLETED) for event in dropped)
        return trial.is_open and not (is_careful and loses)

    def _found(self, trial: _Trial) -> TakenBack:
        undone = trial.left_out | {*trial.dropped}
        asked = {
            number: (event.run, event.call)
            for number, event in self._numbered
            if isinstance(event, journal.ApprovalRequested)
        }
        gone = {key for number, key in asked.items() if number in undone}
        # A call that the code makes only now is yet to be written down.
        written = {key for number, key in asked.items() if number not in undone and number not in self._before}
        decided = [
            (event.run, event.approval) for _, event in self._standing if isinstance(event, journal.ApprovalDecided)
        ]
        return TakenBack(
            undone=tuple(sorted(undone)),
            since=trial.since,
            next_number=self._next_number,
            children=trial.children,
            approvals=tuple(each for each in decided if each in gone),
            requests={
                number: tuple(request for request in requests if (number, request.call) in written)
                for number, requests in trial.requests.items()
            },
        )

    def _same_end(self) -> str:
        if isinstance(self._ending, journal.RunFailed):
            failure = self._ending.failure
            how = f"no step failed: its workflow raised {failure.type}: {failure.message}"
        else:
            how = f"its workflow ended as {STATUS[type(self._ending)].value} by itself"
        return f"{how}, and with this code it would end like that again; change the code first"


def _is_failure(event: AnyEvent) -> bool:
    """Whether an event may be why a workflow gave up."""
    match event:
        case journal.StepFailed():
            return True
        case journal.DetachedEnded():
            return event.status is not RunStatus.SUCCEEDED
        case journal.TimerFired():
            return bool(event.run) and event.call == DEADLINE
        case journal.CancelRequested():
            return bool(event.run)
        case _:
            return False


def _is_of(event: AnyEvent, error: Failure) -> bool:
    failure = event.failure if isinstance(event, journal.StepFailed | journal.DetachedEnded) else None
    return failure is not None and (failure.class_name, failure.message) == (error.class_name, error.message)


def is_asked_for(execution: Execution, event: AnyEvent) -> bool:
    """Whether the code, as it stands, takes an event: it has made the call that the event answers, with the same
    arguments. What the world says to a run is always taken."""
    match event:
        case journal.RunCreated():
            child = execution.calls.get((event.parent, event.call))
            return (
                isinstance(child, ChildCall)
                and (child.command.run, child.command.digest) == (event.run, event.digest)
                and child.command.workflow.name == event.workflow
            )
        case journal.TimerFired():
            return event.call in execution.timers.by_run.get(event.run, {})
        case journal.StepEndedLate():
            return True  # It answers nothing.
        case journal.SnapshotTaken():
            return isinstance(execution.calls.get(SNAPSHOT), SnapshotCall)
        case _ if isinstance(event, Ending):
            frame = execution.frames.get(event.run)
            ending = None if frame is None else frame.ending
            return ending is not None and ending.status is STATUS[type(event)]
        case _ if isinstance(event, _OF_STEPS):
            call = execution.calls.get((event.run, event.call))
            return isinstance(call, StepCall) and getattr(event, "digest", call.command.digest) == call.command.digest
        case _:
            name = getattr(event, "call", "")
            return not name or (event.run, name) in execution.calls
