"""The worker: takes trees of runs in, moves them, and releases them.

    claimer --claims--> revive --replay--> [ LiveTree ] <-----------------------+
    client  --starts--> begin ----------------^   |                            |
                                                  +--draft--> committer --> durable --> executor --outcome--> happen

A tree is held by at most one worker of a process, and begins here in one of two ways: created and owned in one commit,
or claimed and rebuilt from its journal (or from memory, if it is still there just as the journal has it).

Everything arrives as a plain callback on the worker's event loop: claims, outcomes of steps, alarms of timers, answers
of the committer. Each ends in `settle`, which decides what the tree does next: commit its draft, wait in memory for a
near timer, suspend, or end.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import msgspec

from outlive._kernel.client.access import CommitAnswer
from outlive._kernel.client.birth import birth
from outlive._kernel.client.waiters import Waiters
from outlive._kernel.journal.event import AnyEvent, RunCreated, StepFailed, StepSucceeded
from outlive._kernel.model import Run, RunStatus
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.payload import Blob
from outlive._kernel.replay.command import CancelStep, RunStep
from outlive._kernel.runtime.commit.committer import Committer, Within
from outlive._kernel.runtime.environment import Environment
from outlive._kernel.runtime.gate.gate import Gate
from outlive._kernel.runtime.lease_deadline import LeaseDeadline
from outlive._kernel.runtime.reporter import Reporter
from outlive._kernel.runtime.session.ends import RunEnds
from outlive._kernel.runtime.session.inboxes import TreeInboxes
from outlive._kernel.runtime.session.replays import Replays
from outlive._kernel.runtime.session.requests import ClaimerRequests
from outlive._kernel.runtime.steps.executor import Executor
from outlive._kernel.runtime.tree.alarms import Alarms
from outlive._kernel.runtime.tree.attempt import Attempt
from outlive._kernel.runtime.tree.claim_data import ClaimData, blob_ids
from outlive._kernel.runtime.tree.draft import Draft, Effect
from outlive._kernel.runtime.tree.emitter import ItemSource
from outlive._kernel.runtime.tree.events import with_arguments
from outlive._kernel.runtime.tree.holding import TreeHold
from outlive._kernel.runtime.tree.live import EVENTS_AT_ONCE, LiveTree
from outlive._kernel.runtime.tree.observer_calls import ObserverCalls
from outlive._kernel.runtime.tree.phase import TreePhase
from outlive._kernel.runtime.tree.rebuilding import Replay
from outlive._kernel.runtime.tree.replay_notes import ReplayNotes
from outlive._kernel.runtime.tree.run_log import RunLog, log_discarded, log_taken_over
from outlive._kernel.runtime.tree.step_reports import StepOutcome, StepReports, publish_pending
from outlive._kernel.runtime.tree.stream_writer import StreamWriter
from outlive._kernel.runtime.tree.trees import LiveTrees, is_stray
from outlive._kernel.store.contract import (
    Action,
    Claim,
    InboxMessage,
    MessageKind,
    Outcome,
    Store,
    Transaction,
    WorkerInfo,
)
from outlive.errors import OutliveError, PayloadTooLargeError
from outlive.errors.program import WorkflowNotFoundError
from outlive.telemetry import log, run_fields

LINGER_SECONDS = 1.0
"""A run whose next timer is nearer than this stays in memory and keeps its owner: suspending it would cost more."""
IN_FLIGHT_MAX = 2
"""A tree that has asked for very much records no more while so many of its changes are being written: a batch of them
would keep the store from all others."""


class SessionWorker:
    """Moves the runs that this process owns, for one session."""

    def __init__(
        self,
        environment: Environment,
        *,
        info: WorkerInfo,
        store: Store,
        committer: Committer,
        gate: Gate,
        lease: LeaseDeadline,
        requests: ClaimerRequests,
        waiters: Waiters,
        observer_calls: ObserverCalls,
        run_log: RunLog,
    ) -> None:
        clock, counters, limits = environment.clock, environment.counters, environment.limits
        self.id, self._name = info.id, info.name
        self._environment = environment
        self._clock = clock
        self._counters = counters
        self._limits = limits
        self._recording, self._lifetime = environment.recording, environment.lifetime
        self._resolve = environment.registry.workflow
        self._committer = committer
        self._requests = requests
        self._waiters = waiters
        self._observer_calls = observer_calls
        self._run_log = run_log
        self._ends = RunEnds(counters, waiters=waiters, requests=requests, tracer=environment.tracer)
        self._loop = asyncio.get_running_loop()
        self.notes = ReplayNotes(counters)
        self.trees = LiveTrees(cached_max=limits.runs_cached_max, counters=counters, monotonic=clock.monotonic)
        self._alarms = Alarms(clock, self._on_alarm)
        self._reports = StepReports(clock, self)
        self._streams = StreamWriter(environment, store, ring=waiters.followers.ring)
        self.reporter = Reporter(store, info.id, clock=clock)
        self.replays = Replays(
            environment,
            store=store,
            notes=self.notes,
            reporter=self.reporter,
            worker=info.name,
            finish=self._on_replayed,
            fail=self._discard_and_look,
        )
        self._executor = Executor(
            environment,
            committer=committer,
            gate=gate,
            lease=lease,
            reports=self._reports,
            streams=self._streams,
            reporter=self.reporter,
            turn_back=self._turn_back,
        )
        self.inboxes = TreeInboxes(
            self, trees=self.trees, executor=self._executor, requests=requests, counters=counters
        )
        self._cut_off: set[LiveTree] = set()
        """The trees of which a step was cancelled, without progress, because the worker stops."""
        self._behind: dict[LiveTree, list[Effect]] = {}
        """Trees that have asked for more than one turn of the event loop records, each with its durable effects: they
        wait for the rest."""
        self._going_on: set[LiveTree] = set()
        """The trees in `_behind` for which a turn of the event loop is coming."""
        self._effects: dict[LiveTree, deque[Effect]] = {}
        """Durable effects of trees that have more than one turn of the event loop brings about."""
        self._outcomes: dict[LiveTree, deque[StepOutcome]] = {}
        """Outcomes of steps of trees that have more than one turn of the event loop, or the store, takes."""
        self.is_stopping = False
        """Take nothing more in, and begin no more steps."""

    # -- New trees -------------------------------------------------------------------------------------------

    @property
    def room(self) -> int:
        """How many more trees it can take."""
        if self.is_stopping:
            return 0
        room = max(0, self._limits.runs_active_max - len(self.trees))
        if self._lifetime is not None and (left := self._lifetime.runs_left) is not None:
            return min(room, left)
        return room

    def begin(
        self, run_id: str, event: RunCreated, blobs: list[Blob], answer: CommitAnswer, audit: Action | None = None
    ) -> None:
        """Create a tree and own it in one commit; `answer` is called with the outcome."""
        live = self._new_live(run_id, nonce=event.nonce, journal=0)
        if blobs:
            live.store_blobs(blobs)
        try:
            spec = self._resolve(event.workflow, event.version)
            if spec.observers:
                live.listen(spec)
            live.happen(msgspec.structs.replace(event, worker=self.id))
            self._suspend_if_idle(live)
        except Exception:
            # The run must exist all the same; the worker that claims it will log what is wrong with it.
            log.exception("run %s could not be begun", run_id, extra=run_fields(run_id, event.workflow))
            live.discard()
            self._committer.submit(birth(run_id, event, blobs, audit), answer)
            return
        draft = live.take_draft()
        assert draft is not None
        draft.change.eager = event.queue
        if audit is not None:
            draft.change.audit = [audit]
        self.trees.expect(live)
        self._committer.submit(draft.change, partial(self._on_begun, live, draft, answer))

    def _on_begun(self, live: LiveTree, draft: Draft, answer: CommitAnswer, outcome: Outcome, journal: int) -> None:
        if outcome is not Outcome.COMMITTED:
            # Another run has the id, or it has to get in line: it was never stored, so there is nothing to look for.
            live.in_flight -= 1
            self._requests.open_queues.discard(draft.change.eager)
            self.discard(live)
            answer(outcome, journal)
            return
        if draft.hook_calls:
            live.call_hooks(draft)  # Before the caller of `start` can see that the run has ended.
        if live.phase is not TreePhase.GONE:
            self._counters.runs_started += 1
            self.trees.add(journal, live)
            if self.inboxes.pauses and self.inboxes.is_paused(live.fold.root.workflow):
                live.hold = TreeHold()  # It was paused while its creation was under way.
        answer(outcome, journal)
        self._on_committed(live, draft, outcome, journal)
        if live.phase is TreePhase.MOVING:
            # Its timers count from its creation, but may not fire before the creation is durable.
            self.settle(live)

    # -- Claims ----------------------------------------------------------------------------------------------

    def revive(self, claim: Claim, live: LiveTree | None, found: ClaimData, is_over: Callable[[], bool]) -> None:
        """Go on with a claimed tree: from memory, or from its journal. Where the slice is over, `replays` goes on."""
        assert asyncio.current_task() is None, "executions are fed from plain callbacks only"
        run, journal = claim.run, claim.run.journal
        self._counters.runs_claimed += 1
        self._counters.orphans_claimed += claim.interrupted
        if claim.interrupted:
            log_taken_over(run, found.last_words.get(journal, ""))
        inbox = found.inbox.get(journal, [])
        if (older := self.trees.find(journal)) is not None and older.phase.is_owned:
            self.discard(older, "another worker has had it meanwhile")  # Its steps are of an old claim.
        if live is not None:
            live.reclaimed(claim)
        else:
            live = self._new_live(run.id, nonce=run.nonce, journal=journal)
            live.claimed(claim)
            self._listen(live, run)
        self.trees.add(journal, live)
        if self.inboxes.is_paused(run.workflow):
            live.hold = TreeHold()  # It was claimed before the pause was known here.
        if found.blobs:
            ids = blob_ids([found.journals.get(journal, [])], [inbox])
            live.payloads.add({id: found.blobs[id] for id in ids if id in found.blobs})
        if live.phase is TreePhase.MOVING:
            self._take_up(live, inbox)
        else:
            self._counters.runs_replayed += 1
            self.replays.begin(live, claim, found, is_over)

    def _on_replayed(self, replay: Replay) -> None:
        """The replay of a tree is over: it goes on, or is parked."""
        live = replay.live
        inbox = [message for message in replay.inbox if message.kind is not MessageKind.SKIP]
        if not inbox:
            # Only without inbox: a message may cancel the run, and then these steps must not begin.
            self.start_durable(live)
        if live.execution.end_waits:
            self._look_up_old_waits(live)
        self.inboxes.saved(live)  # There may be more, which came while it was replayed.
        self._take_up(live, inbox)

    def _take_up(self, live: LiveTree, inbox: list[InboxMessage]) -> None:
        with self.guarding(live):
            self.inboxes.take(live, inbox)
            live.fire_due()
            self._start_due_retries(live)
        self.settle(live)

    def _look_up_old_waits(self, live: LiveTree) -> None:
        """See to the ends that a tree waited for before it was replayed. Ends that it waits for since then follow when
        its draft is durable: the draft may start the very run."""
        new = [*(live.draft.lookups if live.draft is not None else ()), *live.todo]
        waits = [wait.command for wait in live.execution.end_waits.values() if wait.command not in new]
        if waits:
            live.lookups += len(waits)
            self._requests.look_up(live, waits)

    def _listen(self, live: LiveTree, run: Run) -> None:
        """Call the observers of a claimed tree from now on, also if it cannot be replayed."""
        try:
            spec = self._resolve(run.workflow, run.version)
        except WorkflowNotFoundError:
            return  # The replay will park the run for it.
        live.listen(spec)
        if live.observers is not None:
            live.observers.claimed(run, spec)

    def start_durable(self, live: LiveTree) -> None:
        """After a replay every command follows from durable events: steps need not wait for another commit."""
        draft = live.draft
        # A tree whose roll-back has run out of time is about to be parked, unless it is held: then it begins nothing.
        is_late = live.hold is None and live.is_late
        if draft is not None and not draft.change.rows and live.phase is TreePhase.MOVING and not is_late:
            live.draft = None
            live.call_hooks(draft)
            if draft.change.streams:
                self._say(live, draft)
            self._run_effects(live, draft.effects)

    def _say(self, live: LiveTree, draft: Draft) -> None:
        """Write at once what a workflow has emitted while no change is due. The next change has it too, because that
        change must not be committed without it. The store takes it once."""
        said = live.unsaid = draft.change.streams

        def done() -> None:
            if live.unsaid is said:
                live.unsaid = []

        source = ItemSource(live.id, live.journal, epoch=live.fold.root.epoch)
        self._streams.say(source, said, done, blobs=draft.change.blobs)

    def deliver(self, journal: int, inbox: list[InboxMessage], blobs: dict[str, bytes]) -> None:
        """Give messages to a tree in motion; if it has left memory, the store makes it due."""
        live = self.trees.find(journal)
        if live is None or live.phase is TreePhase.GONE or not self.trees.takes_messages(journal):
            return
        live.payloads.add(blobs)
        with self.guarding(live):
            self.inboxes.take(live, inbox)
        self.settle(live)

    def discard_strays(self, held: list[LiveTree], runs: dict[str, Run]) -> None:
        """Discard the trees of `held` that are no longer ours by `runs`, which was read from the store after `held`."""
        for live in held:
            if not live.phase.is_owned or not is_stray(live, runs.get(live.id), worker_id=self.id):
                continue
            self._counters.runs_disowned += 1
            self.discard(live, "the store says that another worker has taken it over, or that it has ended")

    def discard_tree(self, journal: int) -> None:
        """Discard the tree with this journal, if it is in motion here: a client has ended it, or it is not intact."""
        if (live := self.trees.find(journal)) is not None:
            self.discard(live)

    # -- Messages --------------------------------------------------------------------------------------------

    def refused(self, live: LiveTree) -> None:
        """The store was given the answers to asks that a tree has refused. Whether it has taken them, which it does
        only if the tree is still ours, the callers see there."""
        self._waiters.answers.look()
        self.looked_up(live, 1)

    # -- Outcomes --------------------------------------------------------------------------------------------

    def take_outcomes(self, outcomes: list[StepOutcome]) -> None:
        """Go on with the trees whose attempts have ended."""
        touched = {}
        step_seconds = self._counters.measures.step_seconds
        for outcome in outcomes:
            live, attempt, result, failure = outcome
            command = attempt.command
            if live.todo:
                if attempt.transaction is None:
                    self._fall_behind(live).append(partial(self.take_outcomes, [outcome]))
                    continue
                # The store may write nothing else before this transaction has ended.
                with self.guarding(live):
                    live.catch_up()
            draft = live.draft
            if attempt.transaction is None and (
                live.in_flight >= IN_FLIGHT_MAX
                or live in self._outcomes
                or (draft is not None and len(draft.change.rows) >= EVENTS_AT_ONCE)
            ):
                # The store has not taken what came before: this waits, and so it comes in one change with others.
                self._outcomes.setdefault(live, deque()).append(outcome)
                continue
            if live.phase is not TreePhase.MOVING or (command.run, command.call) not in live.execution.calls:
                if attempt.transaction is not None:
                    self._committer.roll_back(attempt.transaction)
                continue
            live.moving -= 1
            live.begun.discard((command.run, command.call))
            if attempt.transaction is not None:
                self._happen_within(live, attempt, attempt.transaction, result)
                continue
            try:
                if attempt.unpublished:
                    publish_pending(live, attempt, at=self._clock.now())
                event = self._success(live, attempt, result) if failure is None else failure
                if self._recording is not None:
                    event = with_arguments(event, command, hidden=self._recording, pack=live.pack)
                if attempt.began_at:
                    # `Histogram.add`, written out without a call for every step.
                    took = getattr(event, "took", 0)
                    times = step_seconds[command.step.name, "succeeded" if type(event) is StepSucceeded else "failed"]
                    times.counts[bisect_left(times.bounds, took)] += 1
                    times.sum += took
                if isinstance(event, StepFailed) and (command.options.parks or attempt.has_left_effect):
                    live.park_undo(event)
                else:
                    live.happen(event)
            except Exception as error:
                self._park_after_error(live, error)
            touched[id(live)] = live
        for live in touched.values():
            self.settle(live)

    def _take_held(self, live: LiveTree) -> None:
        """Take the outcomes of steps that have waited for the store, as many as fit into a turn."""
        held = self._outcomes.pop(live)
        first = [held.popleft() for _ in range(min(len(held), EVENTS_AT_ONCE))]
        self.take_outcomes(first)
        if held:
            self._outcomes.setdefault(live, deque()).extend(held)

    def _happen_within(self, live: LiveTree, attempt: Attempt, transaction: Transaction, result: bytes | None) -> None:
        """A step that wrote in a transaction has returned: commit its outcome, and what follows, in the transaction."""
        if attempt.unpublished:
            with self.guarding(live):
                publish_pending(live, attempt, at=self._clock.now())
        if (draft := live.take_draft()) is not None:
            # Earlier events do not depend on this transaction.
            self._committer.submit(draft.change, partial(self._on_committed, live, draft))
        event: AnyEvent | None = None
        with self.guarding(live):
            event = self._success(live, attempt, result)
            if self._recording is not None:
                event = with_arguments(event, attempt.command, hidden=self._recording, pack=live.pack)
            live.happen(event)
        if type(event) is StepSucceeded:
            self._counters.measures.step_seconds[attempt.command.step.name, "succeeded"].add(event.took)
            self.settle(
                live, partial(Within, transaction, void=partial(self._on_void, live, attempt.command, transaction))
            )
        else:
            self._committer.roll_back(transaction)
            self.settle(live)

    def _on_void(self, live: LiveTree, command: RunStep, transaction: Transaction, reason: Exception | None) -> None:
        """The transaction of a step was not committed, so the step has not returned: rebuild the tree without it."""
        text = "what step %s of run %s wrote could not be committed: %s"
        why = reason or "the store was away, or another worker has the run"
        log.warning(text, command.call, live.id, why, extra=_fields(live, command))
        if reason is not None:
            self._executor.caller.transactions.void(live.journal, command, transaction, reason)
        live.in_flight -= 1
        self._discard_and_look(live)

    def _success(self, live: LiveTree, attempt: Attempt, result: bytes | None) -> AnyEvent:
        assert result is not None
        command = attempt.command
        try:
            payload = live.pack(result, f"result of step {command.call}")
        except PayloadTooLargeError as error:
            return self._executor.failed(command, error, attempt.began_at)
        at = self._clock.now()
        return StepSucceeded(
            at=at,
            run=command.run,
            call=command.call,
            result=payload,
            digest=command.digest,
            attempt=command.attempt,
            took=max(0, at - attempt.began_at),  # The clock may have been set back.
        )

    # -- Timers and retries ----------------------------------------------------------------------------------

    def _on_alarm(self, live: LiveTree) -> None:
        if live.phase is TreePhase.MOVING:
            with self.guarding(live):
                live.fire_due()
                self._start_due_retries(live)
            self.settle(live)

    def _start_due_retries(self, live: LiveTree) -> None:
        """Begin the attempts whose back-off is over."""
        for command in live.take_due_retries():
            self._start(live, command)

    @contextmanager
    def guarding(self, live: LiveTree) -> Iterator[None]:
        """Park the tree if the code inside raises: no other tree is affected."""
        try:
            yield
        except Exception as error:
            self._park_after_error(live, error)

    def _park_after_error(self, live: LiveTree, error: Exception) -> None:
        """Park a tree that cannot be moved on: it must not affect others, nor hang without a reason that is shown."""
        extra = run_fields(live.id, live.fold.root.workflow)
        log.error("run %s could not be moved", live.id, exc_info=error, extra=extra)
        bug = f"{type(error).__qualname__}: {error}; this is a bug in Outlive, please report it"
        live.park_if_moving(error.summary if isinstance(error, OutliveError) else bug)

    # -- What a run does next --------------------------------------------------------------------------------

    def settle(self, live: LiveTree, within: Callable[..., Within] | None = None) -> None:
        """Decide what a tree that has just moved does next: it stays in memory if a step runs or a timer is near, else
        it is suspended. Commit its draft."""
        wake_at = self._suspend_if_idle(live)
        if wake_at is not None:
            self._alarms.set(live, wake_at)
        if live.todo:
            self._fall_behind(live)
        draft = live.take_draft()
        if draft is None:
            return
        answer = partial(self._on_committed, live, draft)
        if within is None:
            self._committer.submit(draft.change, answer)
        else:
            self._committer.submit_within(within(change=draft.change, answer=answer))

    def _fall_behind(self, live: LiveTree) -> list[Effect]:
        """Let a turn of the event loop record more of what a tree has asked for, when the store has taken most of what
        was recorded. The effects that wait for all of it."""
        if live.in_flight < IN_FLIGHT_MAX and live not in self._going_on:
            self._going_on.add(live)
            self._loop.call_soon(self._go_on, live)
        return self._behind.setdefault(live, [])

    def _go_on(self, live: LiveTree) -> None:
        self._going_on.discard(live)
        held = self._behind.pop(live, [])
        if live.phase is not TreePhase.MOVING:
            return
        with self.guarding(live):
            live.record_todo()
            if live.todo:
                self._behind[live] = held
            else:
                self._run_effects(live, held)
                live.fire_due()
                self._start_due_retries(live)
        self.settle(live)
        if live in self._outcomes and not live.in_flight and not live.todo:
            self._take_held(live)  # No commit that would do so is under way.

    def _suspend_if_idle(self, live: LiveTree) -> int | None:
        """Suspend a tree that has nothing to do. When to look at it again, or None if no timer or retry is ahead."""
        if live.phase is not TreePhase.MOVING or live.todo or live.unread:
            return None
        if live.hold is not None:
            live.leave_held()
            if live.hold.is_unfit and live.is_declined:
                self.notes.leave_alone(live)
            return None
        wake_at = live.wake_at() if live.retries or live.execution.timers.by_run else None
        is_near = wake_at is not None and wake_at <= self._clock.now() + LINGER_SECONDS * MICROSECONDS
        if live.moving or live.lookups or live.deferred or (is_near and not live.execution.gives_way):
            return wake_at
        live.suspend()
        return None

    def _on_committed(self, live: LiveTree, draft: Draft, outcome: Outcome, journal: int) -> None:
        """A change has its outcome: go on if it is durable, discard the tree if another writer was first."""
        if outcome is Outcome.CONFLICT:
            live.in_flight -= 1
            self._discard_and_look(live, "another worker has gone on with it, or a client has ended it")
            return
        live.committed(draft, journal)
        if draft.notable:
            self._run_log.write(draft.notable, live)
        if draft.hook_calls:
            live.call_hooks(draft)
        if draft.change.answers:
            self._waiters.answers.announce(draft.change.answers)
        if draft.runs:
            self._ends.announce(live, draft)
        if draft.change.rings and self._waiters.followers.bells:
            self._waiters.followers.ring(live.id)
        if live.phase is TreePhase.GONE:
            self._discard_and_look(live)
            return
        if live.todo:
            self._fall_behind(live).extend(draft.effects)
        else:
            held = self._behind.pop(live, ()) if self._behind else ()  # A message has made it catch up.
            self._run_effects(live, [*held, *draft.effects] if held else draft.effects)
        if live.deferred:
            with self.guarding(live):
                live.follow_deferred()
            self.settle(live)
        if self._outcomes and live in self._outcomes and not live.todo:
            self._take_held(live)
        if draft.lookups:
            self._requests.look_up(live, draft.lookups)
        if draft.change.starts or draft.change.messages:
            # The change made another tree due, and this worker may run it.
            self._requests.look()
        if live.phase is not TreePhase.MOVING and live.in_flight == 0 and live.draft is None:
            self._leave(live)

    def _run_more(self, live: LiveTree) -> None:
        """Bring about more of what a tree has asked for."""
        effects = self._effects.pop(live, None)
        if effects is None:
            return
        first = [effects.popleft() for _ in range(min(len(effects), EVENTS_AT_ONCE))]
        self._run_effects(live, first)
        if effects and live.phase is TreePhase.MOVING:
            self._effects[live] = effects
            self._loop.call_soon(self._run_more, live)

    def _run_effects(self, live: LiveTree, effects: list[Effect]) -> None:
        """Start and cancel steps. The events that asked for these effects are durable. More than a turn of the event
        loop brings about are left to the next turns."""
        if len(effects) > EVENTS_AT_ONCE or live in self._effects:
            if live not in self._effects:
                self._effects[live] = deque()
                self._loop.call_soon(self._run_more, live)
            self._effects[live].extend(effects)
            return
        for effect in effects:
            if live.phase is not TreePhase.MOVING:
                break
            if type(effect) is RunStep:
                if (effect.run, effect.call) not in live.execution.calls:
                    continue  # The run has withdrawn it since, and that was counted.
                if live.hold is not None:
                    live.put_off(effect)
                    self._loop.call_soon(self._settle_later, live)
                else:
                    self._start(live, effect)
            elif type(effect) is CancelStep:
                self._executor.cancel(live, effect.run, effect.call)
            else:
                effect()  # type: ignore[operator]

    def _start(self, live: LiveTree, command: RunStep) -> None:
        # A step with an intent was due when the intent was written: it is called now, whatever the clock says.
        if command.not_before_at and (
            command.lacks_intent or (command.not_before_at > self._clock.now() and not command.intended)
        ):
            live.put_off(command)
            self._loop.call_soon(self._settle_later, live)
        elif not self.is_stopping:
            self._executor.start(live, command)

    def _turn_back(self, live: LiveTree, command: RunStep) -> None:
        """A step would not end before this worker does: begin nothing more of its tree, and release it for a worker
        that has more time."""
        if live.phase is not TreePhase.MOVING or (command.run, command.call) not in live.execution.calls:
            return
        assert self._lifetime is not None
        live.put_off(command)
        if live.hold is None:
            why = self._lifetime.lacks(command.call, command.options.timeout_seconds, self._name)
            log.info("run %s is released: %s", live.id, why, extra=_fields(live, command))
            self.inboxes.hold(live, TreeHold(why, is_unfit=True))
        self.settle(live)

    def looked_up(self, live: LiveTree, asked: int) -> None:
        """The store knows `asked` more of the ends that a tree waits for, or has answered so many asks for it."""
        live.lookups -= asked
        if live.phase is TreePhase.MOVING:
            self.settle(live)

    def _settle_later(self, live: LiveTree) -> None:
        if live.phase is TreePhase.MOVING and (live.retries or live.hold is not None):
            self.settle(live)

    def _leave(self, live: LiveTree) -> None:
        """A tree has ended, is parked, suspended or released, and that is durable: it is in motion no longer."""
        root = live.fold.root
        status = root.status
        if status.is_terminal:
            self._executor.cancel_rest(live)
        self._executor.cancel_all(live)
        self._alarms.forget(live)
        self._forget_rest(live)
        self.inboxes.saved(live)  # A message that came while it was leaving has made it due.
        self.trees.remove(live)
        if status is RunStatus.WAITING:
            live.enter(TreePhase.SUSPENDED)
            self.trees.keep(live)
        else:
            self._counters.runs_parked += status is RunStatus.PARKED
            live.discard()
        if root.queue:
            self._requests.look()  # Its slot, or its place in this worker, is free for those in line.
        else:
            self._requests.has_room()

    def _forget_rest(self, live: LiveTree) -> None:
        """Effects and outcomes that waited never happen: the tree is in motion no longer."""
        if self._effects or self._outcomes:
            self._effects.pop(live, None)
            self._outcomes.pop(live, None)

    def _discard_and_look(self, live: LiveTree, why: str = "") -> None:
        """Discard a tree that cannot go on from memory. When all its changes have their outcomes, the claimer looks
        whether it is still ours (a transaction was lost) and claims it again."""
        self.discard(live, why)
        if not live.in_flight:
            self.trees.answered(live)
            self._requests.look_for_unheld()

    def discard(self, live: LiveTree, why: str = "") -> None:
        """Discard everything of a tree, at once: it is not ours, or never was. `why` is for the log."""
        if live.phase is TreePhase.GONE:
            return
        live.enter(TreePhase.GONE)
        if why:
            log_discarded(live.fold.root, why)
        self._behind.pop(live, None)
        self._forget_rest(live)
        self._executor.cancel_all(live)
        self._alarms.forget(live)
        self.trees.remove(live)
        live.discard()

    def _new_live(self, run_id: str, *, nonce: int, journal: int) -> LiveTree:
        return LiveTree(run_id, self._environment, nonce=nonce, journal=journal, observer_calls=self._observer_calls)

    # -- Stopping --------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Take nothing more in, and begin no more steps."""
        self.is_stopping = True

    @property
    def steps_running(self) -> int:
        """Attempts that run now."""
        return self._executor.running

    @property
    def has_outcomes(self) -> bool:
        """Whether attempts have ended and their runs have not got the outcome."""
        return bool(self._reports.outcomes or self._outcomes or self._behind)

    @property
    def is_resting(self) -> bool:
        """Whether every tree waits for an alarm, a message, or a step that runs: nothing else is under way."""
        return (
            self._executor.is_resting
            and self.replays.is_resting
            and self._streams.is_resting
            and self.reporter.is_resting
            and not self._reports.outcomes
            and not self._behind
            and not self._outcomes
            and not self._effects
            and not any(live.in_flight or live.lookups or live.draft is not None for live in self.trees.active())
        )

    def close(self) -> None:
        """Stop everything at once."""
        self.reporter.close()
        self._alarms.close()
        self.replays.close()
        self.discard_all()
        self._executor.close()
        self._streams.close()

    def cancel_steps(self) -> None:
        """Cancel all attempts that run; the worker that goes on with their runs makes them again."""
        for live in self.trees.active():
            if any(attempt.has_begun and not attempt.has_progressed for attempt in live.attempts.values()):
                self._cut_off.add(live)
            self._executor.cancel_all(live)

    def release_trees(self) -> None:
        """Release every tree in motion so that other workers go on at once; their steps have been cancelled."""
        for live in self.trees.active():
            if not live.journal:
                # Another open transaction holds its id: the tree is not stored yet and has no journal to write to.
                self.discard(live)
            elif live.phase.is_owned:
                live.release(interrupted=live in self._cut_off)
                self._counters.runs_released += 1
                self.settle(live)

    def discard_all(self, why: str = "") -> None:
        """Discard every tree, because other workers may own them by now; nothing more is committed."""
        for live in self.trees.active():
            self.discard(live, why)
        self.trees.clear_cache()


def _fields(live: LiveTree, command: RunStep) -> dict[str, object]:
    run = live.fold.runs[command.run]
    return run_fields(run.id, run.workflow, step=command.step.name, attempt=command.attempt)
