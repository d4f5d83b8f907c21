"""A tree of runs in motion: its execution, its place in the journal, and what it has to say next.

Feed early, act late
--------------------
Something happens (a step returned, a timer is due, a message came). `happen` makes it an event, writes it into the
draft of the next change, folds it into the run rows and feeds it to the execution at once, while it is still on its way
to the disk. What the workflow then asks for that is only journal (a child, an end, a wait) joins the same draft. What
would be an effect (a step to start or to cancel) is kept with the draft and released when that change is durable, not
before. If the change conflicts, another worker owns the tree: the whole thing is thrown away, and nothing of it was
ever visible.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import assert_never

import msgspec

from outlive._journal.event import (
    AnyEvent,
    PatchTaken,
    RunParked,
    RunReleased,
    RunSuspended,
    SnapshotTaken,
    StepFailed,
    StepIntended,
    TimerFired,
)
from outlive._journal.failure import storable
from outlive._journal.packing import Packer
from outlive._replay.bound import BoundTimer, UndoBound
from outlive._replay.command import (
    CancelStep,
    Command,
    EndRun,
    Heir,
    Park,
    Record,
    RunStep,
    StartChild,
    StartDetached,
    StepKind,
    TakeSnapshot,
    WorkflowSpec,
)
from outlive._runtime.attempt import Attempt
from outlive._runtime.clock import Clock
from outlive._runtime.drafted import DraftedRun
from outlive._runtime.fact import fact_of_message
from outlive._runtime.herald import Herald
from outlive._runtime.intent import intent_of, interruption_of, is_interrupted, unbegun
from outlive._runtime.translating import fact_of, snapshot_of
from outlive._runtime.undo import undo_cut_off, undo_failed
from outlive._store.contract import Inbound
from outlive.errors import HistoryTooLongError
from outlive.telemetry import log, run_fields


class MovingRun(DraftedRun):
    """One tree that this worker owns, while it moves."""

    __slots__ = ("_history_max", "_todo", "attempts", "deferred", "is_lost", "moving", "retries", "turns")

    def __init__(
        self,
        root_id: str,
        *,
        nonce: int,
        journal: int,
        clock: Clock,
        packer: Packer,
        resolve: Callable[[str, int], WorkflowSpec],
        turns_max: int,
        history_max: int,
        herald: Herald | None = None,
    ) -> None:
        super().__init__(
            root_id,
            nonce=nonce,
            journal=journal,
            clock=clock,
            packer=packer,
            resolve=resolve,
            turns_max=turns_max,
            herald=herald,
        )
        self._history_max = history_max
        self.moving = 0
        """Steps asked for that have neither ended nor wait for a later attempt."""
        self.attempts: dict[tuple[int, str], Attempt] = {}
        self.retries: dict[tuple[int, str], RunStep] = {}
        self.turns: dict[tuple[int, str], RunStep] = {}
        """Steps that were lined up in a rate limit and that the run has given up since."""
        self.deferred: list[Command] = []
        """Asked for in the change that creates the tree, and possible only when its journal has a handle."""
        self.is_lost = False
        """Another worker owns the tree, or this one must assume so."""
        self._todo: deque[AnyEvent | TakeSnapshot] = deque()

    # -- Where it stands -------------------------------------------------------------------------------------

    @property
    def has_alarms(self) -> bool:
        """Whether a timer or a retry lies ahead."""
        return bool(self.retries) or bool(self.execution.timers)

    @property
    def length(self) -> int:
        """How many events it has behind its first one."""
        return self.seq - self.execution.base

    def wake_at(self) -> int | None:
        """When the next timer or retry is due."""
        due_at = self.execution.wake_at()
        for command in self.retries.values():
            if due_at is None or command.not_before_at < due_at:
                due_at = command.not_before_at
        return due_at

    # -- What happens ----------------------------------------------------------------------------------------

    def happen(self, event: AnyEvent) -> None:
        """Make a fact, and follow what the run asks for because of it."""
        self.record(event)
        for command in self.execution.feed(event):
            self._follow(command)
        if self._todo or self.length >= self._history_max:
            self._make_rest()

    def _make_rest(self) -> None:
        """The facts that follow from what the run has asked for, in the same draft."""
        todo = self._todo
        while todo and not self.is_over:
            asked = todo.popleft()
            event = snapshot_of(self, asked) if isinstance(asked, TakeSnapshot) else asked
            if type(event) is PatchTaken:
                # Not earlier: a replay compares it with what the code waits for after all events before this one.
                event = self.execution.mark(event)
            if isinstance(event, StepIntended | StepFailed) and not self.execution.expects(event.run, event.call):
                continue  # The run has taken the call back since.
            if type(event) is StepFailed:
                self.moving -= 1
            self.record(event)
            if isinstance(asked, TakeSnapshot) and isinstance(event, SnapshotTaken):
                # Not before it is written down: a draft that forgets without it would leave nothing of the run.
                self.open_draft().forget(event.events, asked.next_number)
            for command in self.execution.feed(event):
                self._follow(command)
        todo.clear()
        if self.length >= self._history_max and not self.is_over:
            self.park(str(HistoryTooLongError(self.id, self.length + 1, self._history_max)))

    def follow_all(self, commands: list[Command]) -> None:
        """Take up what a replay left to do."""
        undos: list[StepFailed] = []
        for command in commands:
            if is_interrupted(command):
                assert type(command) is RunStep
                run = self.fold.runs[command.run]
                extra = run_fields(run.id, run.workflow, step=command.step.name, attempt=command.attempt)
                text = "step %s of run %s was interrupted and is not called again"
                log.warning(text, command.call, run.id, extra=extra)
                event = interruption_of(command, run, at=self.clock.now())
                if command.options.parks:
                    undos.append(event)
                    continue
                # Until the run hears of it, which it may not: one that comes before can make it give this one up.
                self.moving += 1
                self._todo.append(event)
            else:
                self._follow(command)
        if self._todo:
            self._make_rest()
        if undos and not self.is_over:
            self.park_undo(undos[0])

    def follow_deferred(self) -> None:
        """The tree is stored now: what had to wait for that can happen."""
        deferred, self.deferred = self.deferred, []
        if not self.is_over:
            self.follow_all(deferred)

    def take_message(self, message: Inbound) -> None:
        """Turn a message of the inbox into a fact; the row goes in the same transaction."""
        if self.is_over:
            return
        if message.fault and message.run not in self.fold.runs:
            message = msgspec.structs.replace(message, run=0)  # It is for none of its runs: that is damage too.
        event = fact_of_message(message, at=self.clock.now())
        self.happen(event)
        self.open_draft().change.consumed.append(message.id)

    def fire_due(self) -> None:
        """Fire every timer that is due, in order."""
        now_at = self.clock.now()
        while not self.is_over and (timer := self.execution.due_timer(now_at)) is not None:
            if isinstance(timer, BoundTimer):
                self.park_rollback(timer.bound)
            else:
                self.happen(TimerFired(at=max(now_at, timer.due_at), run=timer.run, call=timer.name))

    def take_due_retries(self) -> list[RunStep]:
        """The attempts whose back-off is over; they count as moving from now on."""
        now_at = self.clock.now()
        due = [key for key, command in self.retries.items() if command.not_before_at <= now_at]
        self.moving += len(due)
        commands = [self.retries.pop(key) for key in due]
        for command in commands:
            if command.step.kind is not None and command.lacks_intent and not self.is_over:
                self.happen(intent_of(command, at=now_at))
        # Those whose intent is on its way come back with it.
        return [command for command in commands if command.step.kind is not StepKind.ONCE]

    def suspend(self) -> None:
        """Let go until one of the waits ends."""
        self._book(RunSuspended(at=self.clock.now(), waits=self.execution.waits(), wake_at=self.wake_at()))

    def release(self) -> None:
        """Let go in the middle of the work: any worker may go on at once."""
        self._take_back_intents()
        self._book(RunReleased(at=self.clock.now()))

    def decline(self, reason: str, *, moved_at: int) -> None:
        """Let go of it for a worker whose code can go on with it."""
        self._book(RunReleased(at=self.clock.now(), reason=storable(reason), moved_at=moved_at))

    def _take_back_intents(self) -> None:
        """Those of attempts that were not begun and will not be, here."""
        for intent in unbegun(self.execution.outstanding(), at=self.clock.now()):
            self._book(intent)

    def park(self, reason: str) -> None:
        """Stop, with a reason for a person."""
        self._book(RunParked(at=self.clock.now(), reason=storable(reason)))

    def park_undo(self, event: StepFailed) -> None:
        """Park it in the middle of a roll-back that cannot go on. See `undo`."""
        failed, reason = undo_failed(self.execution, event)
        self.happen(failed)
        if not self.is_over:
            self.park(reason)

    def park_rollback(self, bound: UndoBound) -> None:
        """Park it in the middle of a roll-back that takes too long. See `undo`."""
        reason = str(bound.over())
        for attempt in [each for each in self.attempts.values() if each.command.options.parks and each.has_begun]:
            if not self.is_over and self.execution.expects(attempt.command.run, attempt.command.call):
                self.happen(undo_cut_off(attempt.command, bound, at=self.clock.now()))
        if not self.is_over:
            self._take_back_intents()
            self.park(reason)

    @property
    def is_late(self) -> bool:
        """Whether the time of a roll-back is over, and nothing of it may begin any more."""
        now_at = self.clock.now()
        return any(bound.due_at <= now_at for bound in self.execution.bounds)

    def break_off(self, reason: str) -> None:
        """Park it where it cannot go on. What has happened so far has happened, and stays in the draft."""
        if not self.is_over:
            self.park(reason)

    def _book(self, event: RunSuspended | RunReleased | RunParked | StepIntended) -> None:
        self.record(event)
        self.execution.events += 1

    # -- What the run asks for -------------------------------------------------------------------------------

    def _follow(self, command: Command) -> None:
        match command:
            case RunStep():
                self.moving += 1
                if command.step.kind is not None:
                    if command.intended == command.attempt:
                        self.moving -= 1  # It was asked for before, and its intent has brought it back.
                    elif command.lacks_intent and not command.not_before_at:
                        self._todo.append(intent_of(command, at=self.clock.now()))
                        return
                self.open_draft().effects.append(command)
            case CancelStep():
                waiting = self.retries.pop((command.run, command.call), None)
                if waiting is None:
                    self.moving -= 1
                elif waiting.has_turn:
                    self.turns[command.run, command.call] = waiting
                self.open_draft().effects.append(command)
            case EndRun(heir=Heir()) if not self._journal:
                self.deferred.append(command)
            case StartChild() | StartDetached() | Record() | EndRun():
                self._todo.append(fact_of(self, command))
            case TakeSnapshot():
                # Not yet an event: what it stands for is complete when the facts before it are recorded.
                self._todo.append(command)
            case Park():
                self._todo.clear()
                self._todo.append(RunParked(at=self.clock.now(), reason=command.reason))
            case _:
                assert_never(command)
