"""The sessions of a worker, one after the other: lease, claimer and worker are started and stopped in order.

A session has an id of its own and one lease. When the lease is lost the session is over: all trees are discarded (other
workers may own them), and a new session begins as soon as the store answers. A worker id is never used twice, so that
nothing of an old session can be mistaken for the new one.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from functools import partial

from outlive._kernel.client.access import CommitAnswer
from outlive._kernel.client.placing import declared_queues
from outlive._kernel.client.waiters import Waiters
from outlive._kernel.define.intervention import OF_RUN
from outlive._kernel.journal.event import RunCreated
from outlive._kernel.lease.contract import Leases
from outlive._kernel.lease.process import this_process
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.lacking import lacks_mark
from outlive._kernel.model.pause import PAUSES_CELL, Pauses, pauses_in
from outlive._kernel.model.payload import Blob
from outlive._kernel.model.under_way import Report, cell_of
from outlive._kernel.model.worker import WorkerOptions, queues_of, session_id, takes_marks
from outlive._kernel.model.worker_steps import steps_mark
from outlive._kernel.runtime.commit.committer import Committer
from outlive._kernel.runtime.environment import Environment
from outlive._kernel.runtime.gate.gate import Gate
from outlive._kernel.runtime.lease_deadline import LeaseDeadline
from outlive._kernel.runtime.session.claimer import Claimer
from outlive._kernel.runtime.session.dead_sessions import DeadSessionEnder
from outlive._kernel.runtime.session.keeper import LeaseKeeper
from outlive._kernel.runtime.session.requests import ClaimerRequests
from outlive._kernel.runtime.session.stalls import StallNotes, stall_on
from outlive._kernel.runtime.session.watchdog import STALL_SECONDS, Watchdog
from outlive._kernel.runtime.session.worker import SessionWorker
from outlive._kernel.runtime.tree.observer_calls import CANCEL_SECONDS, ObserverCalls
from outlive._kernel.runtime.tree.run_log import RunLog
from outlive._kernel.runtime.wakeup import Wakeup
from outlive._kernel.store.contract import Action, Declared, Store, WorkerInfo
from outlive._tasks import own_task
from outlive.errors import CommitUnknownError, StoreUnavailableError
from outlive.telemetry import log

SESSION_RETRY_SECONDS = 0.5
GRACE_LOOK_SECONDS = 0.02
STORE_SECONDS = 4.0
"""How long after the grace a stop waits for the store: to release everything and to end the session."""
SILENCE = "the store does not answer"
STALLED_EXIT_CODE = 70
"""The exit code of a worker process whose event loop was blocked: EX_SOFTWARE, so that its supervisor restarts it."""


class WorkerSessions:
    """One worker of one process, through as many sessions as it needs."""

    def __init__(
        self,
        environment: Environment,
        options: WorkerOptions,
        *,
        name: str,
        poll_seconds: float,
        store: Store,
        leases: Leases,
        committer: Committer,
        waiters: Waiters,
        run_log: RunLog,
        new_store: Callable[[], Store] | None = None,
    ) -> None:
        self._stall_notes = StallNotes(new_store)
        self._loop_thread = threading.get_ident()
        self._environment = environment
        self._options, self._name, self._poll_seconds = options, name, poll_seconds
        self._clock = environment.clock
        self._counters = environment.counters
        self._store = store
        self._leases = leases
        self._committer = committer
        self._waiters = waiters
        waiters.moves = self.moves
        self._run_log = run_log
        self._gate = Gate(store, clock=self._clock, counters=self._counters)
        self._observer_calls = ObserverCalls(clock=self._clock, counters=self._counters)
        self._requests = ClaimerRequests()
        self._worker: SessionWorker | None = None
        self._claimer: Claimer | None = None
        self._keeper: LeaseKeeper | None = None
        self._watchdog: Watchdog | None = None
        self._renewal: asyncio.Task[None] | None = None
        self._sessions: set[str] = set()
        """Ids of sessions that were begun, or may have been, and are not ended."""
        self._pauses: Pauses | None = None
        """The pauses that a client of this process has made since a session was last begun: the new session must know
        them too."""
        self._is_stopping = False
        self._definitions: frozenset[str] = frozenset()
        self._takes_unqueued = options.queues is None or "" in options.queues
        limits = declared_queues(environment.registry.workflows())
        self._declared = Declared(store.now(), limits) if limits else None

    async def start(self) -> None:
        """Begin a session and claim what is due."""
        definitions = self._environment.registry.definitions()
        self._definitions = frozenset(definitions)
        self._requests = ClaimerRequests()
        lease, lease_seconds = LeaseDeadline(self._clock.monotonic), self._options.lease_seconds
        now_at = self._store.now()
        info = WorkerInfo(
            id=session_id(self._name, self._clock.new_id()),
            name=self._name,
            definitions=self._listed(definitions),
            started_at=now_at,
            expires_at=now_at + round(lease_seconds * MICROSECONDS),
            process=this_process(),
        )
        worker = SessionWorker(
            self._environment,
            info=info,
            store=self._store,
            committer=self._committer,
            gate=self._gate,
            lease=lease,
            requests=self._requests,
            waiters=self._waiters,
            observer_calls=self._observer_calls,
            run_log=self._run_log,
        )
        # The store counts the lease from some instant after this one; when its answer comes, it may be half over.
        asked_at = self._clock.monotonic()
        self._sessions.add(worker.id)
        self._pauses = None
        try:
            pauses = pauses_in(await self._store.read_cell(PAUSES_CELL))
            await self._leases.register(info, lease_seconds=lease_seconds)
        except StoreUnavailableError as error:
            if not isinstance(error, CommitUnknownError):
                self._sessions.discard(worker.id)
            raise
        worker.inboxes.pauses = self._newest(pauses)
        self._worker = worker
        self._keeper = LeaseKeeper(
            self._leases.open_beat(worker.id),
            clock=self._clock,
            counters=self._counters,
            lease=lease,
            lease_seconds=lease_seconds,
            asked_at=asked_at,
            fence=partial(self._fence_session, worker),
        )
        self._keeper.start()
        self._watchdog = Watchdog(
            clock=self._clock,
            counters=self._counters,
            stall_seconds_max=max(lease_seconds, STALL_SECONDS),
            end_session=partial(self._on_stall, worker.id, self._keeper),
        )
        self._watchdog.start()
        # Only in the first session: a later one follows a session that this process has ended itself. A worker that has
        # the name then is another process, and the two would end each other's sessions for ever.
        is_named = self._options.name is not None and self._renewal is None
        self._claimer = Claimer(
            self._environment,
            store=self._store,
            worker=worker,
            requests=self._requests,
            dead_sessions=DeadSessionEnder(
                self._leases, info, clock=self._clock, counters=self._counters, is_named=is_named
            ),
            definitions=definitions,
            poll_seconds=self._poll_seconds,
            queues=queues_of(self._options),
            declared=self._declared,
            end_session=self._keeper.end_session,
        )
        self._claimer.start()

    def _newest(self, read: Pauses) -> Pauses:
        """The current pauses: as they were read when this session began, or as a client of this process has changed
        them since."""
        return read if self._pauses is None else self._pauses

    def _listed(self, definitions: list[str]) -> tuple[str, ...]:
        """The definitions that people and other programs see: definitions that this worker can run, and definitions for
        which it lacks something; its steps; and the queues from which it takes, if it does not take from all."""
        lacking, steps = self._environment.registry.lacking(), self._environment.registry.own_step_names()
        # A request of an operator has no queue.
        own = (name for name in definitions if self._takes_unqueued or not name.startswith(OF_RUN))
        marks = [lacks_mark(definition, names) for definition, names in lacking.items()]
        return (*own, *marks, *([steps_mark(steps)] if steps else ()), *takes_marks(queues_of(self._options)))

    async def redefine(self) -> None:
        """Claim by what the registry has now, and let others know. What runs is not touched."""
        worker, claimer = self._worker, self._claimer
        if worker is None or claimer is None:
            return  # The next session begins with it.
        definitions = self._environment.registry.definitions()
        await self._store.redefine_worker(worker.id, self._listed(definitions))
        self._definitions = frozenset(definitions)
        claimer.definitions = definitions
        self._requests.look()

    def begin(
        self, run_id: str, event: RunCreated, blobs: list[Blob], answer: CommitAnswer, audit: Action | None = None
    ) -> bool:
        """Create and own a tree, if this worker can run it and has room."""
        worker = self._worker
        if worker is None or not worker.room or f"{event.workflow}@{event.version}" not in self._definitions:
            return False
        # A worker that takes from queues in an order would pass over runs that are in line in another one.
        can_take = event.queue in self._requests.open_queues if event.queue else self._takes_unqueued
        if event.start_at or not can_take or (event.queue and self._options.queues is not None):
            return False  # Only a claim says when it is its turn.
        if worker.inboxes.pauses and worker.inboxes.is_paused(event.workflow):
            return False
        worker.begin(run_id, event, blobs, answer, audit)
        return True

    def moves(self, run_id: str) -> bool:
        """Whether a root run is in motion here and its end will be announced."""
        return self._worker is not None and self._worker.trees.moves(run_id)

    def under_way(self, run_id: str) -> Report | None:
        """The work under way in the tree of a root run that moves here; None if it does not move here."""
        worker = self._worker
        return worker.reporter.of(run_id) if worker is not None and worker.trees.moves(run_id) else None

    def discard_tree(self, journal: int) -> None:
        """A client has ended a tree: stop what runs of it here."""
        if self._worker is not None:
            self._worker.discard_tree(journal)

    @property
    def pauses(self) -> Pauses:
        """The workflows that are paused, as far as this worker knows."""
        return {} if self._worker is None else self._worker.inboxes.pauses

    def set_pauses(self, pauses: Pauses) -> None:
        """A client has paused workflows, or let them go on."""
        self._pauses = pauses
        if self._worker is not None:
            self._worker.inboxes.set_pauses(pauses)

    def ring(self, cell: str = "") -> None:
        """Something may be due; or another process has changed this cell."""
        if cell == PAUSES_CELL:
            self._requests.may_lack_pauses = True
        self._requests.look()

    def end_session(self, reason: str) -> None:
        """Discard what is in memory, and begin a new session: what the store says is the truth."""
        if self._keeper is not None:
            self._keeper.end_session(reason)

    def reconcile(self) -> None:
        """Compare the trees in memory with the store soon. See `ClaimerRequests.reconcile`."""
        self._requests.reconcile()

    async def stop(self, *, grace_seconds: float) -> None:
        """Claim nothing more, let steps finish for a while, release everything, end the session.

        A store that does not answer is waited for until `STORE_SECONDS` after the grace and no longer, because a
        supervisor that has sent SIGTERM sends SIGKILL before long. If this is cancelled there is no grace: everything
        stops where it is, and the session is ended in the store.
        """
        self._is_stopping = True
        grace_ends_at = self._clock.monotonic() + grace_seconds
        try:
            async with asyncio.timeout(grace_seconds + STORE_SECONDS):
                await self._stop_gently(grace_ends_at)
                await self._try_to_end_sessions()
        except TimeoutError:
            self.abandon()
            self._log_not_ended(self._committer.trouble or SILENCE)
        except (Exception, asyncio.CancelledError):  # Not GeneratorExit: a coroutine that is closed cannot wait.
            self.abandon()
            await self._end_sessions_at_once()
            raise
        # Last, because other workers wait for the runs, and for observers and breakers they do not.
        left_seconds = grace_ends_at + STORE_SECONDS - self._clock.monotonic()
        await self._observer_calls.close(timeout_seconds=min(grace_seconds, left_seconds - CANCEL_SECONDS))
        await self._gate.close(timeout_seconds=min(grace_seconds, left_seconds))

    async def _end_sessions_at_once(self) -> None:
        try:
            async with asyncio.timeout(STORE_SECONDS):
                await self._try_to_end_sessions()
        except TimeoutError:
            self._log_not_ended(SILENCE)

    async def _try_to_end_sessions(self) -> None:
        try:
            # More than one if the worker stops while a new session is replacing a lost one.
            await self._end_sessions()
        except StoreUnavailableError as error:
            self._log_not_ended(str(error))

    def _log_not_ended(self, reason: str) -> None:
        log.warning("the session could not be ended (%s); its lease will run out", reason)

    async def _stop_gently(self, grace_ends_at: float) -> None:
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.wait([self._renewal])
        if self._claimer is not None and self._worker is not None:
            await self._stop_worker(self._claimer, self._worker, grace_ends_at)

    async def _stop_worker(self, claimer: Claimer, worker: SessionWorker, grace_ends_at: float) -> None:
        worker.stop()
        claiming = own_task(claimer.stop(), name="outlive-claimer-stop")
        await self._wait_for_steps(worker, grace_ends_at)
        # The steps first: a claim may wait for the transaction of a step, because SQLite has one writer.
        worker.cancel_steps()
        await asyncio.wait([claiming])
        while worker.has_outcomes:
            # The worker that takes the run over must not call a step again that has returned.
            await Wakeup().sleep(GRACE_LOOK_SECONDS)
        if not self._committer.trouble:
            self._committer.gather()
            worker.release_trees()
            await self._committer.drain(outage_seconds_max=STORE_SECONDS)
        self._stop_beating()
        worker.close()

    async def _end_sessions(self) -> None:
        for session in sorted(self._sessions):
            await self._leases.end_session(session)
            self._sessions.discard(session)
            # Last: other workers wait for the runs, and for this they do not.
            if await self._store.read_cell(cell_of(session)) is not None:
                await self._store.change_cell(cell_of(session), lambda *_: (None, None))

    @property
    def is_resting(self) -> bool:
        """Whether nothing moves here before an alarm goes off, a step ends, something becomes due, or a message
        comes."""
        return (
            self._renewal is None
            and (self._worker is None or self._worker.is_resting)
            and (self._claimer is None or self._claimer.is_resting)
        )

    @property
    def is_idle(self) -> bool:
        """For a worker whose host ends: whether nothing moves here, and nothing that it may claim is due."""
        return (
            self._claimer is not None and self._claimer.has_found_nothing and not self.runs_active and self.is_resting
        )

    @property
    def next_wake_at(self) -> int | None:
        """When the next run becomes due, as far as the last claim knew."""
        return None if self._claimer is None else self._claimer.next_wake_at

    @property
    def health(self) -> str:
        """Whether it holds its lease and claims runs, in words."""
        is_well = self._worker is not None and self._renewal is None
        return "healthy" if is_well else "unhealthy: it has lost its lease, and begins a new session"

    @property
    def steps_running(self) -> int:
        """Attempts that run now, also attempts whose outcome no run waits for."""
        return 0 if self._worker is None else self._worker.steps_running

    @property
    def runs_active(self) -> int:
        """Trees that move here now."""
        return 0 if self._worker is None else len(self._worker.trees)

    @property
    def lease_seconds_left(self) -> float:
        """How long the lease is certain from now on; negative if it is not."""
        return -1.0 if self._keeper is None else self._keeper.seconds_left

    def abandon(self) -> None:
        """Stop as a killed process does: nothing is released, nothing is written, and the lease runs out."""
        self._is_stopping = True
        self._gate.abandon()
        if self._renewal is not None:
            self._renewal.cancel()
        self._observer_calls.abandon()
        if self._claimer is not None:
            self._claimer.abandon()
        self._stop_beating()
        if self._worker is not None:
            self._worker.stop()
            self._worker.close()
            self._worker = None

    async def _wait_for_steps(self, worker: SessionWorker, grace_ends_at: float) -> None:
        while worker.steps_running and self._clock.monotonic() < grace_ends_at:
            await Wakeup().sleep(GRACE_LOOK_SECONDS)
        await self._committer.drain(outage_seconds_max=grace_ends_at - self._clock.monotonic())

    def _stop_beating(self) -> None:
        for beating in (self._keeper, self._watchdog):
            if beating is not None:
                beating.stop()

    # -- When the lease is lost ------------------------------------------------------------------------------

    def _on_stall(self, worker_id: str, keeper: LeaseKeeper, seconds: float) -> None:
        """Called on the watchdog's thread while the event loop is blocked: other workers must not wait for it, and must
        know the run that blocks it."""
        reason = f"the event loop has not turned for {seconds:.1f} s"
        if (stall := stall_on(sys._current_frames().get(self._loop_thread), seconds=seconds)) is not None:
            reason += f": run {stall.run_id} blocks it in {stall.where}"
            self._stall_notes.note(stall, worker_id=worker_id)
        if self._options.exit_when_stalled:
            log.critical("%s; this process ends, and other workers go on with its runs", reason)
            os._exit(STALLED_EXIT_CODE)
        keeper.end_session(reason)

    def _fence_session(self, worker: SessionWorker, reason: str) -> None:
        """A keeper has lost the lease of this worker; if the next session has begun already, that is not affected."""
        if self._worker is worker:
            self._fence(reason)

    def _fence(self, reason: str) -> None:
        if self._worker is None or self._renewal is not None:
            return
        self._worker.stop()
        self._worker.discard_all(f"this worker has lost its lease ({reason})")
        if self._is_stopping:
            return
        self._renewal = own_task(self._begin_again(), name="outlive-new-session")

    async def _begin_again(self) -> None:
        assert self._claimer is not None
        assert self._worker is not None
        self._stop_beating()
        await self._claimer.stop()
        old = self._worker
        self._worker = None
        old.close()
        while True:
            try:
                await self._end_sessions()
                await self.start()
            except StoreUnavailableError:
                await Wakeup().sleep(SESSION_RETRY_SECONDS)
            except Exception:
                log.exception("a new session could not begin; it is tried again")
                await Wakeup().sleep(SESSION_RETRY_SECONDS)
            else:
                break
        self._renewal = None
        log.warning("a new session has begun; this worker claims again")
