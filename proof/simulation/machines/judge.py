"""What must have come of a run that is a machine: see the package."""

from __future__ import annotations

from collections.abc import Callable
from itertools import dropwhile
from typing import Any

from outlive._kernel.journal.event import (
    AnyEvent,
    CancelRequested,
    RunCancelled,
    RunClaimed,
    RunParked,
    SnapshotTaken,
    StateLeft,
    StepFailed,
    StepSucceeded,
)
from outlive._kernel.model import Payload, Run, RunStatus
from outlive.errors.step import UNDO_FAILED
from proof.simulation.book import Book
from proof.simulation.machines.course import Course, course_of, held, is_logged
from proof.simulation.machines.effects import Deeds, Effects
from proof.simulation.machines.play import SNAPSHOT_AFTER
from proof.simulation.machines.seen import see
from proof.simulation.program import Case
from proof.simulation.world import World

EXITS = ("DONE", "LOST")
OUTCOME = {"to", "wait", "cursor"}
FAILURES = ("Bumped", "SplitFailedError", "StepInterruptedError", "StepTimeoutError")
"""What a machine, or one inside it, fails with: on purpose, or by bad luck."""
RESTS_MAX = 2
"""How often a worker may leave a state when the journal is long enough: the snapshot comes right behind the second one.
Behind the first one it may not, as a state that is more than one step is left before the machine has heard of that."""


class MachineJudge:
    """Looks at the machines of one episode."""

    def __init__(self, world: World, effects: Effects, value: Callable[[Payload], Any]) -> None:
        self._world = world
        self._effects = effects
        self._value = value

    def shown_end(self, run: Run) -> str:
        """What a user who waited for the result of a machine must have got, if it came to its exit."""
        result = {} if run.result is None else self._value(run.result)
        return f"{result['state']} {result['data']['log']}" if result else ""

    def judge(self, case: Case, run: Run, book: Book) -> None:
        """Complain about all that is not as it must be."""
        course, deeds = course_of(case.program), self._effects.trees.get(book.nonce, Deeds())
        self._judge_end(case, course, run, book, deeds)
        self._judge_path(course, run, book)
        self._judge_order(course, run, deeds)
        self._judge_undos(run, book, deeds)
        self._judge_length(case, run, book, deeds)
        see(self._world.sometimes, case.program, book, deeds)

    def _complain(self, run: Run, what: str) -> None:
        self._world.complain(f"machine {run.id}, {run.status.value}: {what}")

    # -- How it ended ----------------------------------------------------------------------------------------

    def _judge_end(self, case: Case, course: Course, run: Run, book: Book, deeds: Deeds) -> None:
        may_end = {RunStatus.FAILED if course.fails else RunStatus.SUCCEEDED}
        if course.may_fail_at:
            may_end.add(RunStatus.FAILED)
        if case.cancel_seconds is not None:
            may_end.add(RunStatus.CANCELLED)
        if case.timeout_seconds is not None:
            may_end.add(RunStatus.TIMED_OUT)
        if run.status not in may_end:
            self._complain(run, f"ended otherwise than planned: {run.failure or run.reason}; its legs: {case.program}")
            return
        failure = run.failure
        if failure is not None and not any(name in f"{failure.type}: {failure.message}" for name in FAILURES):
            self._complain(run, f"failed with what none of its legs has: {run.failure}")
        parked = _given_up(book)
        if parked is not None:
            # A roll-back that a user has ended; that it went newest first is looked at all the same.
            self._world.sometimes["cancel gave up on a parked machine"] += 1
            if parked.reason.startswith(UNDO_FAILED) and parked.reason not in run.reason:
                self._complain(run, f"its roll-back was given up, and it ended as if nothing was left: {run.reason}")
            return
        kept: set[str] = set()
        if run.status is RunStatus.SUCCEEDED:
            assert run.result is not None
            result = self._value(run.result)
            log = result["data"]["log"]
            if result["state"] != case.program[-1][1] or not is_logged(case.program, log):
                self._complain(run, f"gave {result}, and its legs are {case.program}")
                return
            kept = held(case.program, log)
            self._judge_shown(case, run)
        if kept != deeds.kept:
            lost, left = sorted(kept - deeds.kept), sorted(deeds.kept - kept)
            self._complain(run, f"it lacks {lost} and has {left} left; done {deeds.done}, undone {deeds.undone}")

    def _judge_shown(self, case: Case, run: Run) -> None:
        asks = [leg[1] for leg in case.program if leg[0] == "ask"]
        shown = None if run.published is None else self._value(run.published)
        if shown != ({"at": asks[-1]} if asks else None):
            self._complain(run, f"it shows {shown}, and went through {asks}")

    def _judge_path(self, course: Course, run: Run, book: Book) -> None:
        """The journal, with all that snapshots have put away, has the transitions of the course."""
        path = [to for event in book.events if (to := self._goes_to(event))]
        wanted = course.path
        is_unlucky = run.status is RunStatus.FAILED and len(path) in course.may_fail_at
        if is_unlucky or run.status in (RunStatus.CANCELLED, RunStatus.TIMED_OUT):
            wanted = wanted[: len(path)]
        if path != wanted:
            self._complain(run, f"its states were {path}, and should be {wanted}")

    def _goes_to(self, event: AnyEvent) -> str:
        """Where a transition of the machine goes; empty for everything else."""
        outcome = self._outcome(event)
        return "" if outcome is None else str(outcome.get("to", ""))

    def _outcome(self, event: AnyEvent) -> dict[str, Any] | None:
        """How a call of a handler ended, if this event says so."""
        if event.run or not isinstance(event, StateLeft | StepSucceeded):
            return None
        value = self._value(event.payload if isinstance(event, StateLeft) else event.result)
        return value if isinstance(value, dict) and value.keys() & OUTCOME else None

    def _judge_order(self, course: Course, run: Run, deeds: Deeds) -> None:
        """Everything is begun for the first time in the order of the course, and nothing besides."""
        places = {name: place for place, group in enumerate(course.groups) for name in group.names}
        last = 0
        for name, is_undo in deeds.keys:
            if is_undo:
                continue
            place = places.get(name)
            if place is None or place < last:
                self._complain(run, f"{name} was begun, and that is not next; begun: {[*deeds.keys]}")
                return
            lacks = [each for group in course.groups[last:place] if not group.may_lack for each in group.names]
            if any((each, False) not in deeds.keys for each in lacks):
                self._complain(run, f"{name} was begun, and not all of {lacks} before it")
                return
            last = place

    def _judge_undos(self, run: Run, book: Book, deeds: Deeds) -> None:
        """What is undone is what was done last."""
        done: list[str] = []
        for event in book.events:
            if not isinstance(event, StepSucceeded):
                continue
            tried = deeds.calls.get((event.run, event.call))
            if tried is None or tried.name not in deeds.done:
                continue
            if not tried.is_undo:
                done.append(tried.name)
            elif not done or done.pop() != tried.name:
                self._complain(run, f"{tried.name} was undone, and it was not the last: {done}")

    def _judge_length(self, case: Case, run: Run, book: Book, deeds: Deeds) -> None:
        """A snapshot is taken at the first rest at which the journal has grown long enough."""
        after = SNAPSHOT_AFTER[case.machine]
        base = rests = owed = 0
        for seq, event in enumerate(book.events):
            # What may have to be undone is written down in a snapshot, which is worth it only now and then.
            owed += self._is_owed(event, deeds)
            if isinstance(event, SnapshotTaken):
                base, rests = seq, 0
            elif isinstance(event, RunClaimed):
                rests = 0
            elif isinstance(event, CancelRequested) and not event.run:
                return
            elif after is not None and self._outcome(event) is not None and self._goes_to(event) not in EXITS:
                rests += seq - base >= max(after, owed)
                if rests > RESTS_MAX:
                    self._complain(run, f"its journal had {seq + 1 - base} events, and there was no snapshot")
                    return

    def _is_owed(self, event: AnyEvent, deeds: Deeds) -> bool:
        if not isinstance(event, StepSucceeded | StepFailed):
            return False
        tried = deeds.calls.get((event.run, event.call))
        return tried is not None and not tried.is_undo and (isinstance(event, StepFailed) or tried.name in deeds.done)


def _given_up(book: Book) -> RunParked | None:
    """Why it was parked when a user cancelled it, if that was so: then it ends where it stands, with its children."""
    rest = list(dropwhile(lambda event: isinstance(event, RunCancelled), reversed(book.events)))
    return rest[0] if len(rest) < len(book.events) and isinstance(rest[0], RunParked) else None
