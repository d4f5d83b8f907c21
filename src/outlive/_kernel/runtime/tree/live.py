"""A tree of runs that a worker owns: its execution, its place in the journal, and its next change.

Feed early, act late
--------------------
Something happens (a step returned, a timer is due, a message came). `happen` makes it an event, seals it into the
draft of the next change, folds it into the run rows (by the same fold that `fsck` uses) and feeds it to the execution
at once, before it is on the disk. What the workflow then asks for that is only journal (a child, an end, a wait) joins
the same draft. What would be an effect (a step to start or to cancel) is kept with the draft and happens when the
change is durable, not before. If the change conflicts, another worker owns the tree: the worker discards the tree, and
nothing of it was ever visible.

How it comes into memory is in `rebuilding`, and where it stands there in `phase`.
"""

from __future__ import annotations

from collections import deque
from typing import assert_never

import msgspec

from outlive._kernel.journal.change import changed_by, wanted_change
from outlive._kernel.journal.codec import BITS_32, NO_ROWS, ODD, next_digest, salt_of, seal
from outlive._kernel.journal.event import (
    AnyEvent,
    AskAnswered,
    PatchTaken,
    RunParked,
    RunPublished,
    RunReleased,
    RunSuspended,
    RunTagged,
    SnapshotTaken,
    StepFailed,
    StepIntended,
    TimerFired,
)
from outlive._kernel.journal.failure import storable
from outlive._kernel.journal.fold import Fold
from outlive._kernel.model import Payload, Run, RunStatus
from outlive._kernel.model.long_journal import long_journal_shown
from outlive._kernel.model.payload import Blob
from outlive._kernel.model.under_way import Interrupted
from outlive._kernel.replay.call import ChildCall, StepCall
from outlive._kernel.replay.command import (
    AwaitEnd,
    CancelStep,
    Command,
    Emit,
    EndRun,
    Park,
    RecordFact,
    RunStep,
    StartChild,
    StartDetached,
    StepKind,
    Successor,
    TakeSnapshot,
    WorkflowSpec,
)
from outlive._kernel.replay.execution import Execution
from outlive._kernel.replay.feeding import feed
from outlive._kernel.replay.undo_deadline import DeadlineTimer, UndoDeadline
from outlive._kernel.runtime.environment import Environment
from outlive._kernel.runtime.tree.asks import answer_of, judged
from outlive._kernel.runtime.tree.attempt import Attempt
from outlive._kernel.runtime.tree.draft import Draft, Effect
from outlive._kernel.runtime.tree.events import event_of_message
from outlive._kernel.runtime.tree.holding import TreeHold
from outlive._kernel.runtime.tree.intent import intent_of, interruption_of, is_interrupted, unbegun
from outlive._kernel.runtime.tree.interrupted import interrupted_by
from outlive._kernel.runtime.tree.item import item_of
from outlive._kernel.runtime.tree.observer_calls import ObserverCalls
from outlive._kernel.runtime.tree.observer_facts import ObserverFacts
from outlive._kernel.runtime.tree.payloads import TreePayloads
from outlive._kernel.runtime.tree.phase import FOLLOWS, TreePhase
from outlive._kernel.runtime.tree.run_log import NOTABLE
from outlive._kernel.runtime.tree.stream_lines import emitted
from outlive._kernel.runtime.tree.translating import TRANSLATED, Translated, event_of_command
from outlive._kernel.runtime.tree.undo import undo_cut_off, undo_failed
from outlive._kernel.store.contract import Change, Claim, InboxMessage, MessageKind, MessageRefusal
from outlive._kernel.store.streams import StreamLines
from outlive.errors import OutliveError
from outlive.errors.store import HistoryTooLongError
from outlive.telemetry import log, run_fields

FAILED_MAX = 20
"""Calls with failures whose arguments are remembered."""
EVENTS_AT_ONCE = 250
"""So many events of what a run asks for are recorded in one turn of the event loop; the next turns record more."""


class LiveTree:
    """One tree that this worker owns."""

    __slots__ = (
        "_counters",
        "_history_mark",
        "_history_max",
        "_limits",
        "_observer_calls",
        "_salt",
        "attempts",
        "begun",
        "cancelled_turns",
        "clock",
        "crc",
        "deferred",
        "digest",
        "draft",
        "execution",
        "failed",
        "fold",
        "has_readers",
        "hold",
        "id",
        "in_flight",
        "interrupted",
        "journal",
        "lookups",
        "moved_at",
        "moving",
        "observers",
        "payloads",
        "phase",
        "refusals",
        "retries",
        "seq",
        "todo",
        "tracer",
        "unread",
        "unsaid",
    )

    def __init__(
        self, root_id: str, environment: Environment, *, nonce: int, journal: int, observer_calls: ObserverCalls
    ) -> None:
        limits = environment.limits
        self.id = root_id
        self.clock, self.tracer = environment.clock, environment.tracer
        self.phase, self.journal = TreePhase.MOVING, journal
        """The store's handle; 0 until the tree is stored."""
        self.payloads = TreePayloads(root_id, nonce=nonce, packer=environment.packer)
        self.execution = Execution(
            root_id,
            resolve=environment.registry.workflow,
            unpack=self.payloads.unpack,
            unpack_foreign=self.payloads.unpack_foreign,
            turns_max=limits.turns_per_event_max,
            retry=environment.retry,
            around=environment.around,
        )
        self.execution.refuses_plain, self.execution.redaction = environment.packer.refuses_plain, environment.redaction
        self.fold = Fold(root_id)
        self.seq = -1
        """The seq of the last event, durable or not."""
        self.crc: int | None = None
        self.digest = NO_ROWS
        """The checksum of that event, None if there is none; and the digest of all, 0 while they are not in memory."""
        self.draft: Draft | None = None
        self.in_flight = 0
        """Changes handed to the committer and not answered."""
        self.lookups = 0
        """Waits for ends of other trees that the store does not know of yet, and refusals that it does not have yet;
        until then the tree is not suspended."""
        self.moving = self.moved_at = 0
        """Steps asked for that have neither ended nor wait for a later attempt; and when the tree last moved, 0 if that
        was here."""
        self.attempts: dict[tuple[int, str], Attempt] = {}
        self.begun: set[tuple[int, str]] = set()
        """Steps that are called once and were called here, and whose outcome the run has not got."""
        self.retries: dict[tuple[int, str], RunStep] = {}
        self.hold: TreeHold | None = None
        """Set when it may begin nothing more."""
        self.cancelled_turns: dict[tuple[int, str], RunStep] = {}
        """Steps that were lined up in a rate limit and that the run has cancelled since."""
        self.interrupted: tuple[Interrupted, ...] = ()
        """Steps that were under way when their run was asked to stop, or its time was over."""
        self.deferred: list[Command] = []
        """Commands from the change that creates the tree which need the handle of its journal."""
        self.observers: ObserverFacts | None = None
        """For the observers of its workflows; None if there are none."""
        self.refusals: list[MessageRefusal] = []
        """Asks that the run has refused, and that the store does not know to be refused."""
        self.failed: tuple[RunStep | StartChild, ...] = ()
        """The last calls that had a failure to log."""
        self.has_readers = False
        """Whether it has published or emitted something here, so that others may read along."""
        self.unsaid: list[StreamLines] = []
        """Items that its workflows emitted when there was no change to write them with; the next change has them."""
        self._observer_calls, self._limits, self._counters = observer_calls, limits, environment.counters
        self._history_max = limits.history_events_max
        self._history_mark = min(limits.history_events_advised_max, limits.history_events_max)
        self._salt = salt_of(nonce)
        # Not recorded yet. While there is anything after a turn of the event loop, nothing else happens to the tree.
        self.todo: deque[AnyEvent | Translated | AwaitEnd] = deque()
        self.unread: list[InboxMessage] = []
        """Messages that it takes when those before them are durable; until then it is not suspended."""

    # -- Its phase -------------------------------------------------------------------------------------------

    def enter(self, phase: TreePhase) -> None:
        """Change the phase."""
        if phase is not self.phase:
            assert phase in FOLLOWS[self.phase], f"{phase} after {self.phase}"
            self.phase = phase
            if phase is not TreePhase.MOVING:
                self.todo.clear()
                self.unread = []

    def claimed(self, claim: Claim) -> None:
        """Claimed, and not in memory: its journal is to be replayed."""
        self.seq, self.crc, self.digest = claim.seq, claim.crc, 0
        self.fold.runs[0] = claim.run
        self.phase = TreePhase.REPLAYING

    def reclaimed(self, claim: Claim) -> None:
        """Claimed again while it was still in memory."""
        self.seq, self.crc, self.digest = claim.seq, claim.crc, self.digest and next_digest(self.digest, claim.crc)
        self.execution.events += 1
        self.fold.events += 1
        self.fold.runs[0] = claim.run
        self.enter(TreePhase.MOVING)

    def discard(self) -> None:
        """Discard the tree and its execution, at once."""
        self.enter(TreePhase.GONE)
        self.execution.drop()

    @property
    def is_declined(self) -> bool:
        """Whether it was released because this worker cannot go on with it: newer code has moved it, or a step of it
        needs more time than the worker has."""
        root = self.fold.root
        return root.status is RunStatus.PENDING and bool(root.reason)

    def wake_at(self) -> int | None:
        """When the next timer or retry is due."""
        due_at = self.execution.wake_at()
        for command in self.retries.values():
            if due_at is None or command.not_before_at < due_at:
                due_at = command.not_before_at
        return due_at

    # -- The next change -------------------------------------------------------------------------------------

    def open_draft(self) -> Draft:
        """The draft of the next change, a new one if there is none."""
        if self.draft is None:
            forgets = self.execution.forgets
            change = Change(journal=self.journal, after=self.seq, prior=self.crc, rows=[], is_guarded=forgets)
            self.draft = Draft(change, digest=self.digest)
        return self.draft

    def take_draft(self) -> Draft | None:
        """The draft to commit, if there is one; nothing may be added to it from now on."""
        draft, self.draft = self.draft, None
        if draft is not None:
            self.in_flight += 1
            if draft.runs:
                draft.change.runs = list(draft.runs.values())
            if self.unsaid:
                draft.change.streams = [*self.unsaid, *draft.change.streams]
                self.unsaid = []
        return draft

    def committed(self, draft: Draft, journal: int) -> None:
        """A draft has become durable."""
        self.in_flight -= 1
        self.journal = journal
        if self.payloads.blobs and not self.todo:
            self.payloads.keep_only(self.execution.unread())

    def record(self, event: AnyEvent) -> None:
        """Write an event into the draft, and fold it into the run rows."""
        draft = self.draft or self.open_draft()
        row = seal(event, salt=self._salt, seq=self.seq + 1)
        draft.change.rows.append(row)
        self.seq, self.crc, self.digest = row[0], row[2], self.digest and (self.digest * ODD + row[2]) & BITS_32
        if self.observers is not None:
            self.observers.note(event)
        if self.execution.has_items and (item := item_of(event, self.execution)) is not None:
            draft.change.items.append(item)
        if type(event) is AskAnswered and not event.forks:
            # Not before its event is recorded: an answer without one would be given, and then given again.
            draft.change.answers.append(answer_of(event, self.id))
            draft.change.rings = self.id
        run = self.fold.apply(event)
        if type(event) in NOTABLE:
            draft.notable.append((event, self.fold.runs[event.run]))
            self._note_call(event)
        if run is not None:
            draft.runs[run.number] = run
            if self.has_readers or type(event) is RunPublished:
                self.has_readers = True
                draft.change.rings = self.id
            if run.number == 0 and not run.owner:
                self.enter(TreePhase.LEAVING)
                # It has ended, is parked or released: callers in other processes may wait for that.
                if type(event) is not RunSuspended:
                    draft.change.rings = self.id

    def _note_call(self, event: AnyEvent) -> None:
        """Remember the arguments of what has failed: the log hides them where people may not see them."""
        calls = self.execution.calls
        call = calls.get((event.run, getattr(event, "call", ""))) or self.execution.children.get(event.run)
        if isinstance(call, StepCall | ChildCall):
            self.failed = (*self.failed, call.command)[-FAILED_MAX:]

    def pack(self, data: bytes, what: str, *, of: str = "") -> Payload:
        """Store a value with the next change; `of` is its owner, if that is not the tree."""
        payloads = self.payloads
        payload, blob = payloads.packer.pack(data, what, of=of or payloads.owner)
        if blob is not None:
            payloads.blobs[blob.id] = blob.data
            self.open_draft().change.blobs.append(blob)
        return payload

    def store_blobs(self, blobs: list[Blob]) -> None:
        """Store blobs with the next change."""
        if blobs:
            self.open_draft().change.blobs.extend(blobs)
            self.payloads.add({blob.id: blob.data for blob in blobs})

    def add_effect(self, effect: Effect) -> None:
        """Do something once everything recorded so far is durable."""
        self.open_draft().effects.append(effect)

    def reset_to(self, run: Run) -> None:
        """Undo what a replay did to the draft and to the row of the root: the next event is about that row alone."""
        if self.draft is not None:
            self.seq, self.crc, self.digest = self.draft.change.after, self.draft.change.prior, self.draft.digest
            self.draft = None
        self.fold.runs[0] = run

    # -- Observers -------------------------------------------------------------------------------------------

    def listen(self, spec: WorkflowSpec) -> None:
        """A run of this workflow is in the tree: its observers, if it has any, are called."""
        if spec.observers:
            if self.observers is None:
                self.observers = ObserverFacts(
                    self.execution,
                    observer_calls=self._observer_calls,
                    now=self.clock.now,
                    open_draft=self.open_draft,
                )
            self.execution.on_stage = self.observers.moved

    def call_hooks(self, draft: Draft) -> None:
        """A draft is durable: call the hooks of observers, once."""
        calls, draft.hook_calls = draft.hook_calls, []
        if calls:
            self._observer_calls.add(self.id, calls)

    # -- What happens ----------------------------------------------------------------------------------------

    def happen(self, event: AnyEvent) -> None:
        """Record an event, feed it to the execution, and follow the commands that it brings."""
        self.moved_at = 0
        self.record(event)
        for command in feed(self.execution, event):
            self._follow(command)
        if self.todo or self.seq - self.execution.base >= self._history_mark:
            self.record_todo()

    def catch_up(self) -> None:
        """Record everything that it is behind with at once, because something else has happened."""
        while self.todo:
            self.record_todo()

    def record_todo(self) -> None:
        """Record the events of commands that are only journal, and what follows from them: as many as fit into a turn
        of the event loop, or all when the code of the root has ended. The rest has drafts of its own."""
        todo, room = self.todo, EVENTS_AT_ONCE
        while todo and self.phase is TreePhase.MOVING:
            if room <= 0 and type(todo[0]) is not AwaitEnd and not self.execution.has_code_ended:
                break
            room -= 1
            asked = todo.popleft()
            if isinstance(asked, AwaitEnd):
                self.open_draft().lookups.append(asked)  # It belongs to the draft that may start that very run.
                continue
            event = event_of_command(self, asked) if isinstance(asked, TRANSLATED) else asked
            if type(event) is PatchTaken:
                # Not earlier: a replay compares it with what the code waits for after all events before this one.
                event = self.execution.mark(event)
            if isinstance(event, StepIntended | StepFailed) and (event.run, event.call) not in self.execution.calls:
                continue  # The run has cancelled the call since.
            if type(event) is StepFailed:
                self.moving -= 1
            self.record(event)
            if type(event) is RunTagged:
                self.open_draft().change.retagged.append(event.run)
            if isinstance(asked, TakeSnapshot) and isinstance(event, SnapshotTaken):
                # Not before the snapshot is recorded: a draft that forgets without it would leave nothing of the run.
                self.open_draft().forget(event.events, asked.next_number)
            for command in feed(self.execution, event):
                self._follow(command)
        length = self.seq - self.execution.base
        if length >= self._history_mark and self.phase is TreePhase.MOVING:
            self._note_length(length)

    def _note_length(self, length: int) -> None:
        """The journal has become long, or too long."""
        if length >= self._history_max:
            self.park(str(HistoryTooLongError(self.id, length + 1, self._history_max)))
        elif advice := long_journal_shown(workflow := self.fold.root.workflow, self._history_mark):
            log.warning("run %s goes on, but %s", self.id, advice, extra=run_fields(self.id, workflow))
        self._history_mark = self._history_max

    def follow_all(self, commands: list[Command]) -> None:
        """Take up what a replay left to do."""
        undos: list[StepFailed] = []
        for command in commands:
            if is_interrupted(command):
                assert type(command) is RunStep
                event = interruption_of(command, self.fold.runs[command.run], at=self.clock.now())
                if command.options.parks:
                    undos.append(event)
                    continue
                # Until the run gets this failure. It may never: an earlier one can make it cancel the call.
                self.moving += 1
                self.todo.append(event)
            else:
                self._follow(command)
        if self.todo:
            self.record_todo()
        if undos:
            self.catch_up()
            if self.phase is TreePhase.MOVING:
                self.park_undo(undos[0])

    def follow_deferred(self) -> None:
        """The tree is stored now: follow the commands that waited for that."""
        deferred, self.deferred = self.deferred, []
        if self.phase is TreePhase.MOVING:
            self.follow_all(deferred)

    def take_message(self, message: InboxMessage) -> None:
        """Turn a message of the inbox into an event; its row is deleted in the same transaction. An ask that the run
        refuses becomes none."""
        self.catch_up()
        if self.phase is not TreePhase.MOVING:
            return
        if message.fault and message.run not in self.fold.runs:
            message = msgspec.structs.replace(message, run=0)  # The tree has no such run: that is damage too.
        if message.kind is MessageKind.CHANGE and not message.fault:
            self._take_change(message)
            return
        event = event_of_message(message, at=self.clock.now())
        if message.kind is MessageKind.ASK:
            event, refusal = judged(event, message, self.execution, journal=self.journal)
            if refusal is not None:
                self.refusals.append(refusal)
                return
        self.happen(event)
        self.open_draft().change.consumed.append(message.id)

    def _take_change(self, message: InboxMessage) -> None:
        """A person changes the run; a run that has ended meanwhile stays as it is."""
        run = self.fold.runs[message.run]
        if not run.status.is_terminal:
            event = changed_by(wanted_change(message.name), run, at=self.clock.now())
            self.happen(event)
            if event.tags is not None:
                self.open_draft().change.retagged.append(event.run)
        self.open_draft().change.consumed.append(message.id)

    def fire_due(self) -> None:
        """Fire every timer that is due, in order."""
        now_at = self.clock.now()
        while (
            self.phase is TreePhase.MOVING
            and self.hold is None
            and not self.todo
            and (timer := self.execution.due_timer(now_at)) is not None
        ):
            if isinstance(timer, DeadlineTimer):
                self.park_rollback(timer.deadline)
            else:
                self.happen(TimerFired(at=now_at, run=timer.run, call=timer.name))
                self._counters.timers_fired += 1

    def take_due_retries(self) -> list[RunStep]:
        """The attempts whose back-off is over; they count as moving from now on."""
        if self.hold is not None or self.todo:
            return []
        now_at = self.clock.now()
        due = [key for key, command in self.retries.items() if command.not_before_at <= now_at]
        self.moving += len(due)
        commands = [self.retries.pop(key) for key in due]
        for command in commands:
            if command.step.kind is not None and command.lacks_intent and self.phase is TreePhase.MOVING:
                self.happen(intent_of(command, at=now_at))
        # Steps with an intent begin when the intent is recorded: feeding it brings their command again.
        return [command for command in commands if command.step.kind is not StepKind.ONCE]

    def put_off(self, command: RunStep) -> None:
        """Begin an attempt later that counts as moving: it does so no more, and the run may withdraw it meanwhile."""
        self.moving -= 1
        self.retries[command.run, command.call] = command

    def suspend(self) -> None:
        """Release it until one of its waits ends."""
        execution = self.execution
        event = RunSuspended(
            at=self.clock.now(),
            waits=execution.waits(),
            wake_at=self.wake_at(),
            gives_way=execution.gives_way,
            unread=execution.unread_places(),
        )
        self._record_unfed(event)

    def release(self, *, interrupted: bool = False) -> None:
        """Release it in the middle of its work, or of its replay: any worker may go on at once. `interrupted`: in the
        middle of a step."""
        if self.phase is TreePhase.REPLAYING:
            # Nothing of it has begun here, and half of a journal says nothing about its intents.
            self.reset_to(self.fold.root)
            self.enter(TreePhase.MOVING)
        else:
            self._withdraw_intents()
        self._record_unfed(RunReleased(at=self.clock.now(), interrupted=interrupted))

    def leave_held(self) -> None:
        """Leave memory, as its hold says, if nothing of it runs any more."""
        assert self.hold is not None
        if self.moving or self.deferred:
            return
        if not self.hold.reason:
            self.release()
            return
        self._withdraw_intents()
        if self.hold.is_unfit:
            # All workers that it does not fit find one instant, so that each of them can see that nothing has moved.
            self.decline(self.hold.reason, moved_at=self.moved_at or self.clock.now())
            return
        self.park(self.hold.reason)
        self.open_draft().change.consumed += self.hold.consumed

    def decline(self, reason: str, *, moved_at: int) -> None:
        """Release it for a worker that can go on with it."""
        self._record_unfed(RunReleased(at=self.clock.now(), reason=storable(reason), moved_at=moved_at))

    def _withdraw_intents(self) -> None:
        """Withdraw the intents of attempts that this worker has not begun and will not begin."""
        for intent in unbegun(self.execution.outstanding(), self.begun, at=self.clock.now()):
            self._record_unfed(intent)

    def park(self, reason: str) -> None:
        """Stop until a person resumes it; the reason is for the person."""
        self._record_unfed(RunParked(at=self.clock.now(), reason=storable(reason)))

    def park_undo(self, event: StepFailed) -> None:
        """Park it in the middle of a roll-back that cannot go on. See `undo`."""
        failed, reason = undo_failed(self.execution, event)
        self.happen(failed)
        if self.phase is TreePhase.MOVING:
            self.park(reason)

    def park_rollback(self, deadline: UndoDeadline) -> None:
        """Park it in the middle of a roll-back that takes too long. See `undo`."""
        reason = str(deadline.over())
        for attempt in [each for each in self.attempts.values() if each.command.options.parks and each.has_begun]:
            if self.phase is TreePhase.MOVING and (attempt.command.run, attempt.command.call) in self.execution.calls:
                self.happen(undo_cut_off(attempt.command, deadline, at=self.clock.now()))
        if self.phase is TreePhase.MOVING:
            self._withdraw_intents()
            self.park(reason)

    @property
    def is_late(self) -> bool:
        """Whether the time of a roll-back is over, and nothing of it may begin any more."""
        return any(deadline.due_at <= self.clock.now() for deadline in self.execution.undo_deadlines)

    def park_if_moving(self, reason: str) -> None:
        """Park it where it cannot go on. What was recorded so far stays in the draft."""
        if self.phase is TreePhase.MOVING:
            self.park(reason)

    def _record_unfed(self, event: RunSuspended | RunReleased | RunParked | StepIntended) -> None:
        self.record(event)
        self.execution.events += 1

    def emit(self, command: Emit) -> None:
        """Write what a workflow emits with the next change, or park the tree if it cannot be written."""
        draft = self.open_draft()
        try:
            run, packer, blobs = self.fold.runs[command.run], self.payloads.packer, draft.change.blobs
            draft.change.streams.append(emitted(command, run, self.id, packer, blobs, self._limits))
        except OutliveError as error:  # Too large, or a payload codec of the user's that raises.
            self.todo.clear()
            self.todo.append(RunParked(at=self.clock.now(), reason=storable(error.summary)))
            return
        draft.change.rings, self.has_readers = self.id, True

    # -- What the run asks for -------------------------------------------------------------------------------

    def _follow(self, command: Command) -> None:
        match command:
            case RunStep():
                self.moving += 1
                if command.step.kind is not None:
                    if command.intended == command.attempt:
                        self.moving -= 1  # It was counted when it was asked for; its intent is recorded now.
                    elif command.lacks_intent and not command.not_before_at:
                        self.todo.append(intent_of(command, at=self.clock.now()))
                        return
                (self.draft or self.open_draft()).effects.append(command)
            case CancelStep():
                self.interrupted += interrupted_by(command, self)
                waiting = self.retries.pop((command.run, command.call), None)
                if waiting is None:
                    self.moving -= 1
                elif waiting.has_turn:
                    self.cancelled_turns[command.run, command.call] = waiting
                self.open_draft().effects.append(command)
            case EndRun(successor=Successor()) if not self.journal:
                self.deferred.append(command)
            case StartChild() | StartDetached() | RecordFact() | EndRun() | TakeSnapshot():
                # Not yet an event: what goes with it belongs to its draft, and a snapshot to the events before it.
                self.todo.append(command)
            case Emit():
                self.emit(command)
            case AwaitEnd():
                self.lookups += 1
                self.todo.append(command)
            case Park():
                self.todo.clear()
                self.todo.append(RunParked(at=self.clock.now(), reason=command.reason))
            case _:
                assert_never(command)
