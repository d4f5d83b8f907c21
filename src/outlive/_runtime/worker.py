"""The worker: owns trees of runs, moves them, and lets go of them.

Everything that moves a run arrives as a plain callback on one event loop: outcomes of steps, alarms of timers, claims,
messages, answers of the committer. Each ends in `_settle`, which decides what the run does next: commit what it has to
say, wait hot for a near timer, suspend and leave memory, or end.

    claimer --claims--> revive --replay--> [ LiveRun ] --drafts--> committer --durable--> effects --> executor
                                              ^                                                        |
                                              +----------------------- outcomes -----------------------+
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import msgspec

from outlive._journal.event import AnyEvent, RunCreated, StepProgressed
from outlive._journal.packing import Packer
from outlive._model import Limits, Run, RunStatus
from outlive._model.payload import Blob
from outlive._replay.command import CancelStep, RunStep, WorkflowSpec
from outlive._runtime.alarms import Alarms
from outlive._runtime.attempt import Attempt
from outlive._runtime.clock import MICROSECONDS, Clock
from outlive._runtime.committer import Answer, Committer
from outlive._runtime.draft import Draft
from outlive._runtime.executor import Executor
from outlive._runtime.fact import fact_of_success
from outlive._runtime.found import Found
from outlive._runtime.holdings import Holdings
from outlive._runtime.live import LiveRun
from outlive._runtime.threads import ThreadLane
from outlive._runtime.trust import Trust
from outlive._store.contract import Claim, Inbound, MessageKind, Outcome
from outlive.client.birth import birth
from outlive.errors import PayloadTooLargeError
from outlive.telemetry import Counters, log

LINGER_SECONDS = 1.0
"""A run whose next timer is nearer than this stays in memory and keeps its owner: suspending it would cost more."""


class Worker:
    """Moves the runs that this process owns."""

    def __init__(
        self,
        *,
        clock: Clock,
        committer: Committer,
        packer: Packer,
        resolve: Callable[[str, int], WorkflowSpec],
        limits: Limits,
        counters: Counters,
        ended: Callable[[Run], None],
        trust: Trust,
        look_up: Callable[[str, list[str]], None],
        ring: Callable[[], None],
        has_room: Callable[[], None],
    ) -> None:
        self.id = clock.new_id()
        self._clock = clock
        self._committer = committer
        self._packer = packer
        self._resolve = resolve
        self._limits = limits
        self._counters = counters
        self._ended = ended
        self._look_up = look_up
        self._ring = ring
        self._has_room = has_room
        self._loop = asyncio.get_running_loop()
        self._threads = ThreadLane(clock, threads_max=limits.threads_max)
        self._executor = Executor(
            clock=clock,
            threads=self._threads,
            counters=counters,
            steps_max=limits.steps_running_max,
            progress_bytes_max=limits.payload_bytes_max,
            trust=trust,
            report=self._on_outcome,
            save_progress=self._save_progress,
        )
        self._starting = 0
        self._holdings = Holdings(cached_max=limits.runs_cached_max, counters=counters)
        self._outcomes: list[tuple[LiveRun, Attempt, bytes | None, AnyEvent | None]] = []
        self._alarms = Alarms(clock, self._on_alarm)
        self.is_stopping = False

    # -- What others ask -------------------------------------------------------------------------------------

    @property
    def room(self) -> int:
        """How many more trees it can take."""
        if self.is_stopping:
            return 0
        return max(0, self._limits.runs_active_max - len(self._holdings) - self._starting)

    def moves(self, run_id: str) -> bool:
        """Whether a root run is in motion here."""
        return self._holdings.moves(run_id)

    def takes_mail(self, journal: int) -> bool:
        """Whether messages may be read for a tree and delivered to it."""
        return self._holdings.takes_mail(journal)

    def take_cached(self, claim: Claim) -> LiveRun | None:
        """The claimed tree from memory, if it can be used as it is: it needs no replay."""
        return self._holdings.take(claim)

    def begin(self, run_id: str, event: RunCreated, blobs: list[Blob], answer: Answer) -> None:
        """Create a tree and own it in one commit; `answer` hears of the outcome."""
        live = self._new_live(run_id, nonce=event.nonce, journal=0)
        live.store_blobs(blobs)
        try:
            live.happen(msgspec.structs.replace(event, worker=self.id))
            if live.moving == 0 and not live.is_over and not self._is_near(live.wake_at()):
                live.suspend()
        except Exception:
            # The run must exist all the same; whoever claims it will say what is wrong with it.
            log.exception("run %s could not be begun", run_id)
            self._committer.submit(birth(run_id, event, blobs), answer)
            return
        draft = live.take_draft()
        assert draft is not None
        self._starting += 1
        self._holdings.expect(run_id)
        self._committer.submit(draft.close(), partial(self._on_begun, live, draft, answer))

    def _on_begun(self, live: LiveRun, draft: Draft, answer: Answer, outcome: Outcome, journal: int) -> None:
        self._starting -= 1
        if outcome is Outcome.COMMITTED:
            self._counters.runs_started += 1
            self._holdings.add(journal, live)
        answer(outcome, journal)
        self._on_committed(live, draft, outcome, journal)
        if not live.is_over and not live.is_lost:
            # Its timers count from its creation on, but nothing of it may move before that is durable.
            self._settle(live)

    # -- Claims ----------------------------------------------------------------------------------------------

    def revive(self, claim: Claim, live: LiveRun | None, found: Found) -> None:
        """Go on with a claimed tree: from memory, or from its journal."""
        assert asyncio.current_task() is None, "executions are fed from plain callbacks only"
        self._counters.runs_claimed += 1
        mail = found.mail.get(claim.run.journal, [])
        if live is not None:
            live.reclaimed(claim.run)
        else:
            live = self._new_live(claim.run.id, nonce=claim.run.nonce, journal=claim.run.journal)
            live.seq = claim.seq
        self._holdings.add(claim.run.journal, live)
        live.add_blobs(found.blobs)
        if live.fold.events == 0:
            self._counters.runs_replayed += 1
            rows = found.journals.get(claim.run.journal, [])
            is_resumed = any(message.kind is MessageKind.RESUME for message in mail)
            live.rebuild(claim.run, rows, attempts_max=self._limits.attempts_max, is_resumed=is_resumed)
            live.spend_resumes(mail)
            if not mail:
                # What the world said meanwhile may be that none of this is wanted any more.
                self._release_durable(live)
            if live.execution.end_waiters:
                self._look_up(live.id, list(live.execution.end_waiters))
        with self._guarding(live):
            self._take_mail(live, mail)
            live.fire_due()
            self._start_due_retries(live)
        self._settle(live)

    def _release_durable(self, live: LiveRun) -> None:
        """After a replay everything asked for follows from durable events: steps need not wait for another commit."""
        draft = live.draft
        if draft is not None and not draft.change.rows and not live.is_over:
            live.draft = None
            self._release(live, draft)

    def deliver(self, journal: int, mail: list[Inbound], blobs: dict[str, bytes]) -> None:
        """Give messages to a tree in motion; one that is not here any more is woken by the store."""
        live = self._holdings.find(journal)
        if live is None or live.is_over or live.is_lost:
            return
        live.add_blobs(blobs)
        with self._guarding(live):
            self._take_mail(live, mail)
        self._settle(live)

    def _take_mail(self, live: LiveRun, mail: list[Inbound]) -> None:
        if mail and not live.is_over:
            self._holdings.mail_taken(live)
            for message in mail:
                self._counters.signals_taken += message.kind is MessageKind.SIGNAL
                live.take_message(message)
            live.add_effect(partial(self._mail_saved, live))

    def _mail_saved(self, live: LiveRun) -> None:
        if self._holdings.mail_saved(live):
            self._ring()

    # -- Outcomes --------------------------------------------------------------------------------------------

    def _on_outcome(self, live: LiveRun, attempt: Attempt, result: bytes | None, event: AnyEvent | None) -> None:
        if not self._outcomes:
            self._loop.call_soon(self._take_outcomes)
        self._outcomes.append((live, attempt, result, event))

    def _take_outcomes(self) -> None:
        outcomes, self._outcomes = self._outcomes, []
        touched = {}
        for live, attempt, result, event in outcomes:
            command = attempt.command
            if live.is_lost or not live.execution.expects(command.run, command.call):
                continue
            live.moving -= 1
            try:
                live.happen(self._success(live, command, result) if event is None else event)
            except Exception as error:
                self._break_off(live, error)
            touched[id(live)] = live
        for live in touched.values():
            self._settle(live)

    def _success(self, live: LiveRun, command: RunStep, result: bytes | None) -> AnyEvent:
        assert result is not None
        try:
            payload = live.pack(result, f"result of step {command.call}")
        except PayloadTooLargeError as error:
            return self._executor.failed(command, error)
        return fact_of_success(command, at=self._clock.now(), result=payload)

    def _save_progress(self, live: LiveRun, attempt: Attempt) -> None:
        command, data = attempt.command, attempt.progress
        # The step may have ended, or been given up, while its last progress waited for its turn.
        if live.is_lost or live.is_over or data is None or not live.execution.expects(command.run, command.call):
            return
        attempt.progress, attempt.is_saving = None, True
        with self._guarding(live):
            payload = live.pack(data, f"the progress of step {command.call}")
            live.happen(StepProgressed(at=self._clock.now(), run=command.run, call=command.call, progress=payload))

        def saved() -> None:
            attempt.is_saving = False
            self._save_progress(live, attempt)

        live.add_effect(saved)
        self._settle(live)

    # -- Timers and retries ----------------------------------------------------------------------------------

    def _on_alarm(self, live: LiveRun) -> None:
        if not live.is_lost and not live.is_over:
            with self._guarding(live):
                live.fire_due()
                self._start_due_retries(live)
            self._settle(live)

    def _start_due_retries(self, live: LiveRun) -> None:
        for command in live.take_due_retries():
            self._start(live, command)

    @contextmanager
    def _guarding(self, live: LiveRun) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._break_off(live, error)

    def _break_off(self, live: LiveRun, error: Exception) -> None:
        """Nothing that goes wrong with one run may hurt another, or leave it silently stuck: it is parked."""
        log.error("run %s could not be moved", live.id, exc_info=error)
        live.break_off(f"{type(error).__qualname__}: {error}; this is a bug in Outlive, please report it")

    # -- What a run does next --------------------------------------------------------------------------------

    def _settle(self, live: LiveRun) -> None:
        """Decide what becomes of a run that has just moved: wait hot for what is near or runs, else let go."""
        if not live.is_over:
            wake_at = live.wake_at()
            if live.moving or live.attempts or self._is_near(wake_at):
                self._alarms.set(live, wake_at)
            else:
                live.suspend()
        draft = live.take_draft()
        if draft is not None:
            self._committer.submit(draft.close(), partial(self._on_committed, live, draft))

    def _is_near(self, wake_at: int | None) -> bool:
        return wake_at is not None and wake_at <= self._clock.now() + LINGER_SECONDS * MICROSECONDS

    def _on_committed(self, live: LiveRun, draft: Draft, outcome: Outcome, journal: int) -> None:
        if outcome is Outcome.CONFLICT:
            self.discard(live)
            return
        live.committed(draft, journal)
        self._announce_ends(draft)
        if live.is_lost:
            return
        self._release(live, draft)
        if draft.change.starts:
            self._look_up(live.id, [start.runs[0].id for start in draft.change.starts])
        if draft.change.starts or draft.change.messages:
            # Another tree is due now, and this worker may be the one to run it.
            self._ring()
        if live.is_over and live.in_flight == 0 and live.draft is None:
            self._let_go(live)

    def _announce_ends(self, draft: Draft) -> None:
        for run in draft.runs.values():
            if run.status.is_terminal:
                self._counters.runs_ended += 1
                self._ended(run)

    def _release(self, live: LiveRun, draft: Draft) -> None:
        """The draft is durable: now its effects may happen."""
        for effect in draft.effects:
            if live.is_over:
                break
            if type(effect) is RunStep:
                if live.execution.expects(effect.run, effect.call):
                    self._start(live, effect)
            elif type(effect) is CancelStep:
                self._executor.cancel(live, effect.run, effect.call)
            else:
                effect()  # type: ignore[operator]

    def _start(self, live: LiveRun, command: RunStep) -> None:
        if command.not_before_at and command.not_before_at > self._clock.now():
            live.moving -= 1
            live.retries[command.run, command.call] = command
            self._loop.call_soon(self._settle_later, live)
        elif not self.is_stopping:
            self._executor.start(live, command)

    def _settle_later(self, live: LiveRun) -> None:
        if not live.is_lost and not live.is_over and live.retries:
            self._settle(live)

    def _let_go(self, live: LiveRun) -> None:
        """The tree has ended, is parked, suspended or released: it is in motion no longer."""
        self._executor.cancel_all(live)
        self._holdings.remove(live)
        status = live.fold.root.status
        if status.is_terminal:
            live.is_lost = True
            live.execution.drop()
        elif status is RunStatus.WAITING:
            self._holdings.keep(live)
        else:
            self._counters.runs_parked += status is RunStatus.PARKED
            live.is_lost = True
            live.execution.drop()
        self._has_room()

    def discard(self, live: LiveRun) -> None:
        """Another worker owns the tree: throw away everything, at once."""
        if live.is_lost:
            return
        live.is_lost = True
        log.info("run %s is no longer ours; its other owner goes on", live.id)
        self._executor.cancel_all(live)
        self._holdings.remove(live)
        live.execution.drop()

    def disown(self, journal: int) -> None:
        """A tree was ended from outside: what runs of it here stops."""
        if (live := self._holdings.find(journal)) is not None:
            self.discard(live)

    def discard_all(self) -> None:
        """This worker must assume that others own its runs: stop everything, commit nothing more."""
        for live in self._holdings.active():
            self.discard(live)
        self._holdings.clear_cache()

    # -- Stopping --------------------------------------------------------------------------------------------

    @property
    def steps_running(self) -> int:
        """Attempts that run now."""
        return self._executor.running

    def release_all(self) -> None:
        """Let go of every tree in motion so that others go on at once."""
        for live in self._holdings.active():
            self._executor.cancel_all(live)
            if not live.is_over and not live.is_lost:
                live.release()
                self._settle(live)

    def close(self) -> None:
        """Leave nothing behind in memory."""
        self._alarms.close()
        self.discard_all()
        self._threads.close()

    def _new_live(self, run_id: str, *, nonce: int, journal: int) -> LiveRun:
        return LiveRun(
            run_id,
            nonce=nonce,
            journal=journal,
            clock=self._clock,
            packer=self._packer,
            resolve=self._resolve,
            turns_max=self._limits.turns_per_event_max,
            history_max=self._limits.history_events_max,
        )
