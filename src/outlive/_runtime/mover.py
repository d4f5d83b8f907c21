"""How a run that has just moved goes on: the circle of a step.

    outcome --happen--> draft --commit--> durable --release--> executor --> outcome

Everything arrives here as a plain callback on the worker's event loop: outcomes of steps, alarms of timers, answers of
the committer. Each ends in `settle`, which decides what the run does next: commit what it has to say, wait hot for a
near timer, suspend and leave memory, or end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from outlive._journal.event import AnyEvent, StepFailed, StepSucceeded
from outlive._model import Limits, Run, RunStatus
from outlive._replay.command import CancelStep, RunStep
from outlive._runtime.alarms import Alarms
from outlive._runtime.attempt import Attempt
from outlive._runtime.clock import MICROSECONDS, Clock
from outlive._runtime.committer import Committer, Within
from outlive._runtime.draft import Draft
from outlive._runtime.executor import Executor
from outlive._runtime.fact import fact_of_success
from outlive._runtime.gate import Gate
from outlive._runtime.holdings import Holdings
from outlive._runtime.live import LiveRun
from outlive._runtime.news import News, publish_pending
from outlive._runtime.processes import ProcessLane
from outlive._runtime.reporter import Reporter, tell_let_go
from outlive._runtime.threads import ThreadLane
from outlive._runtime.trust import Trust
from outlive._store.contract import Inbound, MessageKind, Outcome, Transaction
from outlive.errors import OutliveError, PayloadTooLargeError
from outlive.telemetry import Counters, log, run_fields

LINGER_SECONDS = 1.0
"""A run whose next timer is nearer than this stays in memory and keeps its owner: suspending it would cost more."""


class Mover:
    """Moves the trees that a worker holds."""

    def __init__(
        self,
        *,
        clock: Clock,
        committer: Committer,
        holdings: Holdings,
        limits: Limits,
        counters: Counters,
        trust: Trust,
        gate: Gate,
        reporter: Reporter,
        ended: Callable[[Run], None],
        look_up: Callable[[LiveRun, list[str]], None],
        ring: Callable[[], None],
        has_room: Callable[[], None],
        heal: Callable[[], None],
    ) -> None:
        self._clock = clock
        self._committer = committer
        self._holdings = holdings
        self._counters = counters
        self._reporter = reporter
        self._ended = ended
        self._look_up = look_up
        self._ring = ring
        self._has_room = has_room
        self._heal = heal
        self._loop = asyncio.get_running_loop()
        self._threads = ThreadLane(clock, threads_max=limits.threads_max)
        self._processes = ProcessLane(clock, counters=counters, processes_max=limits.processes_max)
        news = News(clock, guarding=self.guarding, settle=self.settle, is_stopping=lambda: self.is_stopping)
        self._executor = Executor(
            clock=clock,
            threads=self._threads,
            processes=self._processes,
            counters=counters,
            steps_max=limits.steps_running_max,
            progress_bytes_max=limits.payload_bytes_max,
            trust=trust,
            gate=gate,
            begin=partial(committer.begin, seconds_max=limits.transaction_seconds_max),
            report=self._on_outcome,
            save_progress=news.save_progress,
            save_published=news.save_published,
        )
        self._outcomes: list[tuple[LiveRun, Attempt, bytes | None, AnyEvent | None]] = []
        self._alarms = Alarms(clock, self._on_alarm)
        self.is_stopping = False
        """Begin no more steps."""

    @property
    def steps_running(self) -> int:
        """Attempts that run now."""
        return self._executor.running

    @property
    def has_outcomes(self) -> bool:
        """Whether attempts have ended and their runs have not heard of that."""
        return bool(self._outcomes)

    @property
    def is_resting(self) -> bool:
        """Whether every tree waits for an alarm, the world, or a step that runs: nothing is on its way."""
        return (
            self._executor.is_resting
            and not self._outcomes
            and not any(live.in_flight or live.lookups or live.draft is not None for live in self._holdings.active())
        )

    def close(self) -> None:
        """Stop everything at once."""
        self._alarms.close()
        self.discard_all()
        self._executor.close()
        self._threads.close()
        self._processes.close()

    def release_all(self) -> None:
        """Let go of every tree in motion so that others go on at once."""
        for live in self._holdings.active():
            self._executor.cancel_all(live)
            if not live.journal:
                # Somebody else holds its id: it has not begun, and nothing may be said of it.
                self.discard(live)
            elif not live.is_over and not live.is_lost:
                live.release()
                self.settle(live)

    def discard_all(self, why: str = "") -> None:
        """Others may own the trees by now: stop everything, commit nothing more."""
        for live in self._holdings.active():
            self.discard(live, why)
        self._holdings.clear_cache()

    # -- Messages --------------------------------------------------------------------------------------------

    def take_mail(self, live: LiveRun, mail: list[Inbound]) -> None:
        """Turn messages into facts; no more are read for this tree until these are durable."""
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
        for live, attempt, result, failure in outcomes:
            command = attempt.command
            if live.is_lost or live.is_over or not live.execution.expects(command.run, command.call):
                if attempt.transaction is not None:
                    self._committer.roll_back(attempt.transaction)
                continue
            live.moving -= 1
            if attempt.transaction is not None:
                self._happen_within(live, attempt, attempt.transaction, result)
                continue
            try:
                if attempt.unpublished:
                    publish_pending(live, attempt, at=self._clock.now())
                event = self._success(live, command, result) if failure is None else failure
                if isinstance(event, StepFailed) and (command.options.parks or attempt.is_left):
                    live.park_undo(event)
                else:
                    live.happen(event)
            except Exception as error:
                self._break_off(live, error)
            touched[id(live)] = live
        for live in touched.values():
            self.settle(live)

    def _happen_within(self, live: LiveRun, attempt: Attempt, transaction: Transaction, result: bytes | None) -> None:
        """A step returned that wrote in a transaction: that it did, and what follows from that, commits there."""
        if attempt.unpublished:
            with self.guarding(live):
                publish_pending(live, attempt, at=self._clock.now())
        if (draft := live.take_draft()) is not None:
            # What happened before does not hang on it.
            self._committer.submit(draft.close(), partial(self.on_committed, live, draft))
        event: AnyEvent | None = None
        with self.guarding(live):
            event = self._success(live, attempt.command, result)
            live.happen(event)
        if type(event) is StepSucceeded:
            self.settle(live, partial(Within, transaction, void=partial(self._on_void, live, attempt.command)))
        else:
            self._committer.roll_back(transaction)
            self.settle(live)

    def _on_void(self, live: LiveRun, command: RunStep, reason: Exception | None) -> None:
        """What a step wrote in its transaction is not there, and so the step has not returned: go back to before."""
        text = "what step %s of run %s wrote could not be committed: %s"
        why = reason or "the store was away, or others have the run"
        log.warning(text, command.call, live.id, why, extra=_fields(live, command))
        if reason is not None:
            self._executor.refuse(live.journal, command, reason)
        live.in_flight -= 1
        self._give_up(live)

    def _success(self, live: LiveRun, command: RunStep, result: bytes | None) -> AnyEvent:
        assert result is not None
        try:
            payload = live.pack(result, f"result of step {command.call}")
        except PayloadTooLargeError as error:
            return self._executor.failed(command, error)
        return fact_of_success(command, at=self._clock.now(), result=payload)

    # -- Timers and retries ----------------------------------------------------------------------------------

    def _on_alarm(self, live: LiveRun) -> None:
        if not live.is_lost and not live.is_over:
            with self.guarding(live):
                live.fire_due()
                self.start_due_retries(live)
            self.settle(live)

    def start_due_retries(self, live: LiveRun) -> None:
        """Begin the attempts whose back-off is over."""
        for command in live.take_due_retries():
            self._start(live, command)

    @contextmanager
    def guarding(self, live: LiveRun) -> Iterator[None]:
        """Whatever goes wrong inside is this run's trouble only."""
        try:
            yield
        except Exception as error:
            self._break_off(live, error)

    def _break_off(self, live: LiveRun, error: Exception) -> None:
        """Nothing that goes wrong with one run may hurt another, or leave it silently stuck: it is parked."""
        extra = run_fields(live.id, live.fold.root.workflow)
        log.error("run %s could not be moved", live.id, exc_info=error, extra=extra)
        bug = f"{type(error).__qualname__}: {error}; this is a bug in Outlive, please report it"
        live.break_off(str(error) if isinstance(error, OutliveError) else bug)

    # -- What a run does next --------------------------------------------------------------------------------

    def settle(self, live: LiveRun, within: Callable[..., Within] | None = None) -> None:
        """Decide what becomes of a run that has just moved: wait hot for what is near or runs, else let go."""
        wake_at = self.rest(live)
        if wake_at is not None:
            self._alarms.set(live, wake_at)
        draft = live.take_draft()
        if draft is None:
            return
        answer = partial(self.on_committed, live, draft)
        if within is None:
            self._committer.submit(draft.close(), answer)
        else:
            self._committer.submit_within(within(change=draft.close(), answer=answer))

    def rest(self, live: LiveRun) -> int | None:
        """Suspend a run that has nothing to do; one that stays in motion says when to look at it again, if ever."""
        if live.is_over:
            return None
        wake_at = live.wake_at() if live.has_alarms else None
        is_near = wake_at is not None and wake_at <= self._clock.now() + LINGER_SECONDS * MICROSECONDS
        if live.moving or live.lookups or live.deferred or is_near:
            return wake_at
        live.suspend()
        return None

    def on_committed(self, live: LiveRun, draft: Draft, outcome: Outcome, journal: int) -> None:
        """A change has its outcome: go on if it is durable, give the tree up if another writer was first."""
        if outcome is Outcome.CONFLICT:
            live.in_flight -= 1
            self._give_up(live, "another worker has gone on with it, or a client has ended it")
            return
        live.committed(draft, journal)
        if draft.notable:
            self._reporter.tell(draft.notable)
        if draft.told:
            live.tell(draft)
        if draft.runs:
            self._announce(draft)
        if live.is_lost:
            self._give_up(live)
            return
        self.release(live, draft)
        if live.deferred:
            with self.guarding(live):
                live.follow_deferred()
            self.settle(live)
        if detached := [start.runs[0].id for start in draft.change.starts if not start.heir_of]:
            self._look_up(live, detached)
        if draft.change.starts or draft.change.messages:
            # Another tree is due now, and this worker may be the one to run it.
            self._ring()
        if live.is_over and live.in_flight == 0 and live.draft is None:
            self._let_go(live)

    def _announce(self, draft: Draft) -> None:
        """Runs of it have ended, or it is parked: those who wait for them hear of it."""
        for run in (*draft.forgotten, *draft.runs.values()):
            if run.status.is_terminal and run.status is not RunStatus.CONTINUED:
                self._counters.runs_ended += 1
                self._ended(run)
            elif run.status is RunStatus.PARKED:
                self._ended(run)

    def release(self, live: LiveRun, draft: Draft) -> None:
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
        # One with an intent was due when that was written, and is to be called now, whatever the clock says meanwhile.
        is_early = command.lacks_intent or (command.not_before_at > self._clock.now() and not command.intended)
        if command.not_before_at and is_early:
            live.moving -= 1
            live.retries[command.run, command.call] = command
            self._loop.call_soon(self._settle_later, live)
        elif not self.is_stopping:
            self._executor.start(live, command)

    def looked_up(self, live: LiveRun, asked: int) -> None:
        """Questions about detached runs are answered."""
        live.lookups -= asked
        if not live.is_lost and not live.is_over:
            self.settle(live)

    def _settle_later(self, live: LiveRun) -> None:
        if not live.is_lost and not live.is_over and live.retries:
            self.settle(live)

    def _let_go(self, live: LiveRun) -> None:
        """The tree has ended, is parked, suspended or released: it is in motion no longer."""
        status = live.fold.root.status
        if status.is_terminal:
            self._executor.cancel_rest(live)
        self._executor.cancel_all(live)
        self._alarms.forget(live)
        self._mail_saved(live)  # What came while it was on its way out has made it due.
        self._holdings.remove(live)
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

    def _give_up(self, live: LiveRun, why: str = "") -> None:
        """Throw a tree away that cannot go on as it is; see whether it is ours all the same (a transaction was lost)
        when the journal has all that was said before."""
        self.discard(live, why)
        if not live.in_flight:
            self._holdings.answered(live)
            self._heal()

    def discard(self, live: LiveRun, why: str = "") -> None:
        """Throw away everything of a tree, at once: it is not ours, or never was. `why` is for the log."""
        if live.is_lost:
            return
        live.is_lost = True
        if why:
            tell_let_go(live.fold.root, why)
        self._executor.cancel_all(live)
        self._alarms.forget(live)
        self._holdings.remove(live)
        live.execution.drop()


def _fields(live: LiveRun, command: RunStep) -> dict[str, object]:
    run = live.fold.runs[command.run]
    return run_fields(run.id, run.workflow, step=command.step.name, attempt=command.attempt)
