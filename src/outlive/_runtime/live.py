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

from outlive._journal.codec import Row, open_journal, open_row, salt_of, seal
from outlive._journal.event import (
    AnyEvent,
    DetachedCancelled,
    DetachedStarted,
    RunClaimed,
    RunParked,
    RunReleased,
    RunSuspended,
    StepFailed,
    StepIntended,
    TimerFired,
)
from outlive._journal.failure import storable
from outlive._journal.fold import Fold
from outlive._journal.packing import Packer, mail_mark, tree_mark
from outlive._journal.value import Stored
from outlive._model import Payload, Run
from outlive._model.payload import Blob
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
    WorkflowSpec,
)
from outlive._replay.execution import Execution
from outlive._replay.frame import NOTHING_PUBLISHED
from outlive._runtime.attempt import Attempt
from outlive._runtime.clock import Clock
from outlive._runtime.draft import Draft, Effect
from outlive._runtime.fact import fact_of_child, fact_of_end, fact_of_message, fact_of_record, message_to_starter
from outlive._runtime.generation import next_generation
from outlive._runtime.intent import intent_of, interruption_of, is_interrupted, unbegun
from outlive._runtime.item import item_of
from outlive._store.contract import Inbound, Message, MessageKind
from outlive.client.birth import new_tree
from outlive.client.message_key import key_of_cancel
from outlive.errors import HistoryTooLongError, OutliveError
from outlive.telemetry import log

_QUARANTINED = (
    "quarantined: {attempts} workers were interrupted while they ran it and it made no progress; look at what it does "
    "next, then resume or cancel it"
)


class LiveRun:
    """One tree that this worker owns."""

    __slots__ = (
        "_blobs",
        "_clock",
        "_history_max",
        "_journal",
        "_owners",
        "_packer",
        "_salt",
        "_todo",
        "attempts",
        "deferred",
        "draft",
        "execution",
        "fold",
        "in_flight",
        "is_lost",
        "is_over",
        "lookups",
        "moving",
        "retries",
        "seq",
    )

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
    ) -> None:
        self._clock = clock
        self._packer = packer
        self._salt = salt_of(nonce)
        self._owners = (tree_mark(nonce), mail_mark(root_id))
        self._journal = journal
        self._history_max = history_max
        self._blobs: dict[str, bytes] = {}
        self.execution = Execution(
            root_id, resolve=resolve, unpack=self._unpack, unpack_foreign=self._unpack_foreign, turns_max=turns_max
        )
        self.fold = Fold(root_id)
        self.seq = -1
        """The seq of the last event, durable or on its way."""
        self.draft: Draft | None = None
        self.in_flight = 0
        """Changes handed to the committer and not answered."""
        self.moving = 0
        """Steps asked for that have neither ended nor wait for a later attempt."""
        self.attempts: dict[tuple[int, str], Attempt] = {}
        self.retries: dict[tuple[int, str], RunStep] = {}
        self.lookups = 0
        """Detached runs of which nobody has looked whether they will tell of their end; until then it may not rest."""
        self.deferred: list[Command] = []
        """Asked for in the change that creates the tree, and possible only when its journal has a handle."""
        self.is_over = False
        """Nothing can move it here any more: it has ended, is parked, or was let go."""
        self.is_lost = False
        """Another worker owns the tree, or this one must assume so."""
        self._todo: deque[AnyEvent] = deque()

    # -- Where it stands -------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The id of the root run."""
        return self.fold.root_id

    @property
    def journal(self) -> int:
        """The store's handle; 0 until the tree is stored."""
        return self._journal

    @property
    def has_alarms(self) -> bool:
        """Whether a timer or a retry lies ahead."""
        return bool(self.retries) or bool(self.execution.timers)

    def wake_at(self) -> int | None:
        """When the next timer or retry is due."""
        due_at = self.execution.wake_at()
        for command in self.retries.values():
            if due_at is None or command.not_before_at < due_at:
                due_at = command.not_before_at
        return due_at

    # -- Coming into memory ----------------------------------------------------------------------------------

    def rebuild(self, run: Run, rows: list[Row], *, attempts_max: int, is_resumed: bool) -> None:
        """Replay a claimed tree from its journal, or park it with the reason why that cannot be done."""
        try:
            if run.attempts > attempts_max and not (is_resumed and not self._is_interrupted(rows)):
                # Before anything of it is parsed: whatever it is that kills workers, it does not get another one.
                reason = _QUARANTINED.format(attempts=run.attempts)
            else:
                reason = self._replay(open_journal(rows, nonce=run.nonce, run_id=run.id))
            if not reason:
                self.follow_all(self.execution.outstanding())
        except OutliveError as error:
            reason = str(error)
        except Exception as error:  # Whatever it is, it is this run's trouble and nobody else's.
            log.exception("run %s could not be replayed", run.id)
            reason = f"it could not be replayed: {type(error).__qualname__}: {error}"
        if reason:
            self._park_as(run, reason)

    def _is_interrupted(self, rows: list[Row]) -> bool:
        """Whether the claim that ends a journal took the tree from a worker that did not let go: a wish to resume is
        good for one claim, and not for the next one after that has been interrupted too."""
        claim = open_row(rows[-1], salt=self._salt, run_id=self.id)
        return not isinstance(claim, RunClaimed) or claim.interrupted

    def _replay(self, events: list[AnyEvent]) -> str:
        """Feed the whole journal; empty, or why the code cannot go on with it."""
        self.fold.runs.clear()
        self.execution.foresee(events)
        for event in events:
            self.fold.apply(event)
            for command in self.execution.feed(event):
                if isinstance(command, Park):
                    return command.reason
        return ""

    def reclaimed(self, run: Run) -> None:
        """Claimed again while it was still in memory."""
        self.seq += 1
        self.execution.events += 1
        self.fold.events += 1
        self.fold.runs[0] = run
        self.is_over = False

    def _park_as(self, run: Run, reason: str) -> None:
        """Park a tree that cannot be rebuilt, from its row alone."""
        if self.draft is not None:
            self.seq = self.draft.change.after
            self.draft = None
        self._todo.clear()
        self.fold.runs[0] = run
        self.park(reason)

    def spend_resumes(self, mail: list[Inbound]) -> None:
        """A person's wish to resume is spent by this claim, whether the run can go on now or is parked again."""
        if self.is_over:
            draft = self._open_draft()
            draft.change.consumed += [message.id for message in mail if message.kind is MessageKind.RESUME]

    # -- What happens ----------------------------------------------------------------------------------------

    def happen(self, event: AnyEvent) -> None:
        """Make a fact, and follow what the run asks for because of it."""
        self._make(event)
        self._make_rest()

    def _make(self, event: AnyEvent) -> None:
        self._record(event)
        for command in self.execution.feed(event):
            self._follow(command)

    def _make_rest(self) -> None:
        """The facts that follow from what the run has asked for, in the same draft."""
        todo = self._todo
        while todo and not self.is_over:
            event = todo.popleft()
            if isinstance(event, StepIntended | StepFailed) and not self.execution.expects(event.run, event.call):
                continue  # The run has taken the call back since.
            if type(event) is StepFailed:
                self.moving -= 1
            self._make(event)
        todo.clear()
        if self.seq >= self._history_max and not self.is_over:
            self.park(str(HistoryTooLongError(self.id, self.seq + 1, self._history_max)))

    def follow_all(self, commands: list[Command]) -> None:
        """Take up what a replay left to do."""
        for command in commands:
            if is_interrupted(command):
                assert type(command) is RunStep
                run = self.fold.runs[command.run]
                log.warning("step %s of run %s was interrupted and is not called again", command.call, run.id)
                # Until the run hears of it, which it may not: one that comes before can make it give this one up.
                self.moving += 1
                self._todo.append(interruption_of(command, run, at=self._clock.now()))
            else:
                self._follow(command)
        if self._todo:
            self._make_rest()

    def follow_deferred(self) -> None:
        """The tree is stored now: what had to wait for that can happen."""
        deferred, self.deferred = self.deferred, []
        if not self.is_over:
            self.follow_all(deferred)

    def take_message(self, message: Inbound) -> None:
        """Turn a message of the inbox into a fact; the row goes in the same transaction."""
        if self.is_over:
            return
        event = fact_of_message(message, at=self._clock.now())
        self.happen(event)
        self._open_draft().change.consumed.append(message.id)

    def fire_due(self) -> None:
        """Fire every timer that is due, in order."""
        now_at = self._clock.now()
        while not self.is_over and (timer := self.execution.due_timer(now_at)) is not None:
            self.happen(TimerFired(at=max(now_at, timer.due_at), run=timer.run, call=timer.name))

    def take_due_retries(self) -> list[RunStep]:
        """The attempts whose back-off is over; they count as moving from now on."""
        now_at = self._clock.now()
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
        self._book(RunSuspended(at=self._clock.now(), waits=self.execution.waits(), wake_at=self.wake_at()))

    def release(self) -> None:
        """Let go in the middle of the work: any worker may go on at once."""
        for intent in unbegun(self.execution.outstanding(), at=self._clock.now()):
            self._book(intent)
        self._book(RunReleased(at=self._clock.now()))

    def park(self, reason: str) -> None:
        """Stop, with a reason for a person."""
        self._book(RunParked(at=self._clock.now(), reason=storable(reason)))

    def break_off(self, reason: str) -> None:
        """Park it where it cannot go on. What has happened so far has happened, and stays in the draft."""
        self._todo.clear()
        if not self.is_over:
            self.park(reason)

    def _book(self, event: RunSuspended | RunReleased | RunParked | StepIntended) -> None:
        self._record(event)
        self.execution.events += 1

    # -- The draft -------------------------------------------------------------------------------------------

    def take_draft(self) -> Draft | None:
        """What there is to commit, if anything."""
        draft, self.draft = self.draft, None
        if draft is not None:
            self.in_flight += 1
        return draft

    def committed(self, draft: Draft, journal: int) -> None:
        """A draft has become durable."""
        self.in_flight -= 1
        self._journal = journal

    def pack(self, data: bytes, what: str) -> Payload:
        """Store a value with the next change."""
        payload, blob = self._packer.pack(data, what, of=self._owners[0])
        if blob is not None:
            self._open_draft().change.blobs.append(blob)
            self._blobs[blob.id] = blob.data
        return payload

    def store_blobs(self, blobs: list[Blob]) -> None:
        """Blobs that come into being with the next change."""
        if blobs:
            self._open_draft().change.blobs.extend(blobs)
            self._blobs.update((blob.id, blob.data) for blob in blobs)

    def add_blobs(self, blobs: dict[str, bytes]) -> None:
        """The blobs that the journal refers to, read for a replay."""
        self._blobs.update(blobs)

    def add_effect(self, effect: Effect) -> None:
        """Do something once everything said so far is durable."""
        self._open_draft().effects.append(effect)

    def _unpack(self, payload: Payload) -> Stored:
        return self._packer.unpack(payload, self._blobs, owners=self._owners)

    def _unpack_foreign(self, payload: Payload) -> Stored:
        return self._packer.unpack(payload, self._blobs)

    def _open_draft(self) -> Draft:
        if self.draft is None:
            self.draft = Draft(self._journal, self.seq)
        return self.draft

    def _record(self, event: AnyEvent) -> None:
        draft = self._open_draft()
        draft.change.rows.append(seal(event, salt=self._salt, seq=self.seq + 1))
        self.seq += 1
        if self.execution.has_items and (item := item_of(event, self.execution)) is not None:
            draft.change.items.append(item)
        run = self.fold.apply(event)
        if run is not None:
            draft.runs[run.number] = run
            if run.number == 0:
                self.is_over = not run.owner

    # -- What the run asks for -------------------------------------------------------------------------------

    def _follow(self, command: Command) -> None:
        match command:
            case RunStep():
                if command.step.kind is not None and command.intended == command.attempt:
                    self.moving -= 1  # It was asked for before, and its intent has brought it back.
                self.moving += 1
                if command.step.kind is not None and command.lacks_intent and not command.not_before_at:
                    self._todo.append(intent_of(command, at=self._clock.now()))
                else:
                    self._open_draft().effects.append(command)
            case CancelStep():
                if self.retries.pop((command.run, command.call), None) is None:
                    self.moving -= 1
                self._open_draft().effects.append(command)
            case EndRun(heir=Heir()) if not self._journal:
                self.deferred.append(command)
            case StartChild() | StartDetached() | Record() | EndRun():
                self._todo.append(self._fact_of(command))
            case Park():
                self._todo.clear()
                self._todo.append(RunParked(at=self._clock.now(), reason=command.reason))
            case _:
                assert_never(command)

    def _fact_of(self, command: StartChild | StartDetached | Record | EndRun) -> AnyEvent:
        try:
            match command:
                case StartChild():
                    arguments = self.pack(command.arguments, f"the arguments of {command.workflow.name}")
                    return fact_of_child(command, at=self._clock.now(), arguments=arguments)
                case StartDetached():
                    return self._start_detached(command)
                case Record():
                    return self._record_of(command)
                case EndRun():
                    return self._end(command)
        except Exception as error:  # Too large, or a payload codec of the user's that raises.
            # Failing the run would throw it away; with another limit or codec it can go on from here.
            reason = str(error) if isinstance(error, OutliveError) else f"{type(error).__qualname__}: {error}"
            return RunParked(at=self._clock.now(), reason=storable(reason))

    def _record_of(self, command: Record) -> AnyEvent:
        at, payload = self._clock.now(), None
        if command.data is not None:
            payload = self.pack(command.data, f"{type(command.fact).__name__} {command.call}")
        if isinstance(command.fact, DetachedCancelled):
            message = Message(
                run_id=command.fact.run_id,
                kind=MessageKind.CANCEL,
                at=at,
                name="cancelled by its starter",
                key=key_of_cancel(0),
            )
            self._open_draft().change.messages.append(message)
        return fact_of_record(command, at=at, payload=payload)

    def _start_detached(self, command: StartDetached) -> DetachedStarted:
        at = self._clock.now()
        change = new_tree(
            run_id=command.run_id,
            workflow=command.workflow,
            arguments=command.arguments,
            packer=self._packer,
            at=at,
            nonce=self._clock.nonce(),
            tags=command.tags,
            timeout_seconds=command.timeout_seconds,
            notify=self.id,
            payload=command.payload,
        )
        self._open_draft().change.starts.append(change)
        self.lookups += 1
        return DetachedStarted(at=at, run=command.run, call=command.call, run_id=command.run_id, digest=command.digest)

    def _end(self, command: EndRun) -> AnyEvent:
        run = self.fold.runs[command.run]
        result = None if command.result is None else self.pack(command.result, f"the result of run {run.id}")
        event = fact_of_end(command, at=self._clock.now(), result=result)
        if command.heir is not None:
            self._continue_as(command.heir, event)
        message = message_to_starter(run, event) if command.run == 0 else None
        if message is not None:
            self._open_draft().change.messages.append(message)
        return event

    def _continue_as(self, heir: Heir, event: AnyEvent) -> None:
        """The next generation comes into being with the end of this one."""
        frame, nonce = self.execution.frames[0], self._clock.nonce()
        # Packed anew: what a payload codec has bound to the old tree could not be read in the new one.
        owner = tree_mark(nonce)
        arguments, blob = self._packer.pack(heir.arguments, f"the arguments of {heir.workflow.name}", of=owner)
        published, shown = None, None
        if frame.published != NOTHING_PUBLISHED:
            published, shown = self._packer.pack(frame.published, "what is published", of=owner)
        fold = Fold(self.id)
        fold.runs = dict(self.fold.runs)
        fold.apply(event)
        change = next_generation(
            heir,
            fold.runs,
            journal=self._journal,
            generation=self.execution.generation,
            at=event.at,
            nonce=nonce,
            arguments=arguments,
            published=published,
            blobs=[each for each in (blob, shown) if each is not None],
            signals=frame.buffered_signals(),
        )
        self._open_draft().change.starts.append(change)
