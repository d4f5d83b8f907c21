"""The worker: takes trees of runs in, has them moved, and lets go of them.

    claimer --claims--> revive --replay--> [ LiveRun ] --> Mover (outcomes, timers, commits, effects)
    client  --starts--> begin ----------------^

Every tree is held by at most one worker of a process, and begins here in one of two ways: created and owned in one
commit, or claimed and rebuilt from its journal (or from memory, if it is still there just as the journal has it).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import msgspec

from outlive._journal.codec import Row
from outlive._journal.event import RunCreated
from outlive._journal.packing import Packer
from outlive._model import Limits, Run, child_id
from outlive._model.payload import Blob
from outlive._model.recovery import Recovery
from outlive._replay.command import WorkflowSpec
from outlive._runtime.clock import Clock
from outlive._runtime.committer import Answer, Committer
from outlive._runtime.draft import Draft
from outlive._runtime.found import Found, blob_ids
from outlive._runtime.gate import Gate
from outlive._runtime.herald import Herald
from outlive._runtime.holdings import Holdings
from outlive._runtime.live import LiveRun
from outlive._runtime.mover import Mover
from outlive._runtime.reclaim import is_stray
from outlive._runtime.reporter import Reporter, tell_taken_over
from outlive._runtime.trust import Trust
from outlive._runtime.verdict import Bench
from outlive._store.contract import Claim, Inbound, MessageKind, Outcome
from outlive.client.birth import birth
from outlive.errors import WorkflowNotFoundError
from outlive.telemetry import Counters, log, run_fields

REPORTED_MAX = 100_000
"""Runs that are remembered so that the log has their differences once; beyond that it may have some of them twice."""
DECLINED_MAX = 100_000
"""Runs that are remembered so that they are not claimed again before newer code has moved them once more."""


class Worker:
    """Moves the runs that this process owns."""

    def __init__(
        self,
        *,
        name: str,
        clock: Clock,
        committer: Committer,
        packer: Packer,
        resolve: Callable[[str, int], WorkflowSpec],
        limits: Limits,
        recovery: Recovery,
        counters: Counters,
        ended: Callable[[Run], None],
        trust: Trust,
        herald: Herald,
        gate: Gate,
        reporter: Reporter,
        look_up: Callable[[LiveRun, list[str]], None],
        ring: Callable[[], None],
        has_room: Callable[[], None],
        heal: Callable[[], None],
    ) -> None:
        self.id = clock.new_id()
        self._name = name
        self._clock = clock
        self._committer = committer
        self._packer = packer
        self._resolve = resolve
        self._herald = herald
        self._limits = limits
        self._counters = counters
        self._look_up = look_up
        self._bench = Bench(
            recovery=recovery, attempts_max=limits.attempts_max, clock=clock, resolve=resolve, counters=counters
        )
        self._declined: dict[int, int] = {}
        self._reported: set[int] = set()
        """Journals of runs whose differences in arguments the log has."""
        self._holdings = Holdings(cached_max=limits.runs_cached_max, counters=counters)
        self._mover = Mover(
            clock=clock,
            committer=committer,
            holdings=self._holdings,
            limits=limits,
            counters=counters,
            trust=trust,
            gate=gate,
            reporter=reporter,
            ended=ended,
            look_up=look_up,
            ring=ring,
            has_room=has_room,
            heal=heal,
        )

    # -- What others ask -------------------------------------------------------------------------------------

    @property
    def room(self) -> int:
        """How many more trees it can take."""
        if self._mover.is_stopping:
            return 0
        return max(0, self._limits.runs_active_max - len(self._holdings))

    def moves(self, run_id: str) -> bool:
        """Whether a root run is in motion here."""
        return self._holdings.moves(run_id)

    def is_behind(self, run: Run) -> bool:
        """Whether what is in motion here under the id of a root run is not the claim that the store has."""
        return self._holdings.is_behind(run)

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
            live.listen(self._resolve(event.workflow, event.version))
            live.happen(msgspec.structs.replace(event, worker=self.id))
            self._mover.rest(live)
        except Exception:
            # The run must exist all the same; whoever claims it will say what is wrong with it.
            log.exception("run %s could not be begun", run_id, extra=run_fields(run_id, event.workflow))
            live.execution.drop()
            self._committer.submit(birth(run_id, event, blobs), answer)
            return
        draft = live.take_draft()
        assert draft is not None
        self._holdings.expect(live)
        self._committer.submit(draft.close(), partial(self._on_begun, live, draft, answer))

    def _on_begun(self, live: LiveRun, draft: Draft, answer: Answer, outcome: Outcome, journal: int) -> None:
        if outcome is Outcome.CONFLICT:
            # The id is taken: nobody has lost a tree by that.
            live.in_flight -= 1
            self._mover.discard(live)
            answer(outcome, journal)
            return
        if draft.told:
            live.tell(draft)  # Before who starts it can see that it has ended.
        if not live.is_lost:
            self._counters.runs_started += 1
            self._holdings.add(journal, live)
        answer(outcome, journal)
        self._mover.on_committed(live, draft, outcome, journal)
        if not live.is_over and not live.is_lost:
            # Its timers count from its creation on, but nothing of it may move before that is durable.
            self._mover.settle(live)

    # -- Claims ----------------------------------------------------------------------------------------------

    def revive(self, claim: Claim, live: LiveRun | None, found: Found) -> None:
        """Go on with a claimed tree: from memory, or from its journal."""
        assert asyncio.current_task() is None, "executions are fed from plain callbacks only"
        self._counters.runs_claimed += 1
        self._counters.orphans_claimed += claim.interrupted
        if claim.interrupted:
            tell_taken_over(claim.run)
        mail = found.mail.get(claim.run.journal, [])
        if live is not None:
            live.reclaimed(claim.run)
        else:
            live = self._new_live(claim.run.id, nonce=claim.run.nonce, journal=claim.run.journal)
            live.seq = claim.seq
            self._listen(live, claim.run)
        self._holdings.add(claim.run.journal, live)
        rows = found.journals.get(claim.run.journal, [])
        if found.blobs:
            live.add_blobs({id: found.blobs[id] for id in blob_ids([rows], [mail]) if id in found.blobs})
        if live.fold.events == 0:
            self._counters.runs_replayed += 1
            self._rebuild(live, claim, rows, mail)
            mail = [message for message in mail if message.kind is not MessageKind.SKIP]
            if not mail:
                # What the world said meanwhile may be that none of this is wanted any more.
                self._release_durable(live)
            if live.execution.end_waiters:
                live.lookups += len(live.execution.end_waiters)
                self._look_up(live, list(live.execution.end_waiters))
        with self._mover.guarding(live):
            self._mover.take_mail(live, mail)
            live.fire_due()
            self._mover.start_due_retries(live)
        self._mover.settle(live)

    def _rebuild(self, live: LiveRun, claim: Claim, rows: list[Row], mail: list[Inbound]) -> None:
        """Replay a tree, and grant or refuse what people want of it."""
        wishes = [message for message in mail if message.kind is MessageKind.SKIP]
        verdict = partial(self._bench.verdict, claim, rows, mail)
        self._counters.steps_skipped += live.rebuild(claim.run, rows, verdict=verdict, wishes=wishes, worker=self._name)
        live.spend_resumes(mail)
        if live.is_declined:
            self._note_declined(live)
        self._report_differences(live, claim.run)

    def _note_declined(self, live: LiveRun) -> None:
        """Newer code has moved this tree: leave it alone until it has moved again."""
        self._counters.runs_declined += 1
        assert live.fold.root.wake_at is not None
        self._declined.pop(live.journal, None)
        self._declined[live.journal] = live.fold.root.wake_at
        if len(self._declined) > DECLINED_MAX:
            del self._declined[next(iter(self._declined))]

    @property
    def declined(self) -> frozenset[tuple[int, int]]:
        """The trees that this worker has released because newer code has moved them: journal and wake-up."""
        return frozenset(self._declined.items())

    def _report_differences(self, live: LiveRun, run: Run) -> None:
        """Count the calls that a replay made with other arguments; the log names the first one, once per run."""
        differences, live.execution.differences = live.execution.differences, {}
        if not differences:
            return
        self._counters.calls_changed += len(differences)
        if run.journal in self._reported:
            return
        if len(self._reported) >= REPORTED_MAX:
            self._reported.clear()
        self._reported.add(run.journal)
        first = next(iter(differences.values()))
        log.warning(
            "run %s: the code of %s calls %s with other arguments than event %d of the journal has (%d such calls); "
            "what the journal has counts",
            child_id(run.id, first.run),
            first.definition,
            first.call,
            first.seq,
            len(differences),
            extra=run_fields(run.id, run.workflow, step=first.call),
        )

    def _listen(self, live: LiveRun, run: Run) -> None:
        """Let the observers of a claimed tree hear what becomes of it, also if it cannot be replayed."""
        try:
            spec = self._resolve(run.workflow, run.version)
        except WorkflowNotFoundError:
            return  # It will be parked for that.
        live.listen(spec)
        if live.hearing is not None:
            live.hearing.claimed(run, spec)

    def _release_durable(self, live: LiveRun) -> None:
        """After a replay everything asked for follows from durable events: steps need not wait for another commit."""
        draft = live.draft
        if draft is not None and not draft.change.rows and not live.is_over and not live.is_late:
            live.draft = None
            live.tell(draft)
            self._mover.release(live, draft)

    def deliver(self, journal: int, mail: list[Inbound], blobs: dict[str, bytes]) -> None:
        """Give messages to a tree in motion; one that is not here any more is woken by the store."""
        live = self._holdings.find(journal)
        if live is None or live.is_lost or not self._holdings.takes_mail(journal):
            return
        live.add_blobs(blobs)
        with self._mover.guarding(live):
            self._mover.take_mail(live, mail)
        self._mover.settle(live)

    def looked_up(self, live: LiveRun, asked: int) -> None:
        """Questions about detached runs of a tree are answered."""
        self._mover.looked_up(live, asked)

    def list_held(self) -> list[LiveRun]:
        """The trees in motion that the store knows."""
        return self._holdings.stored()

    def disown_strays(self, held: list[LiveRun], runs: dict[str, Run]) -> None:
        """Let go of those that the store says are not ours any more; `runs` was read after `held`."""
        for live in held:
            if live.is_over or live.is_lost or not is_stray(live, runs.get(live.id), worker_id=self.id):
                continue
            self._counters.runs_disowned += 1
            self._mover.discard(live, "the store says that another worker has taken it over, or that it has ended")

    def reclaimed(self, runs: int) -> None:
        """So many trees were ours in the store and nowhere here."""
        self._counters.runs_reclaimed += runs

    def disown(self, journal: int) -> None:
        """A tree was ended from outside: what runs of it here stops."""
        if (live := self._holdings.find(journal)) is not None:
            self._mover.discard(live)

    # -- Stopping --------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Take nothing more in, and begin no more steps."""
        self._mover.is_stopping = True

    @property
    def steps_running(self) -> int:
        """Attempts that run now."""
        return self._mover.steps_running

    @property
    def has_outcomes(self) -> bool:
        """Whether attempts have ended and their runs have not heard of that."""
        return self._mover.has_outcomes

    @property
    def is_resting(self) -> bool:
        """Whether nothing here moves by itself, apart from steps that run."""
        return self._mover.is_resting

    def release_all(self) -> None:
        """Let go of every tree in motion so that others go on at once."""
        self._mover.release_all()

    def discard_all(self, why: str = "") -> None:
        """Others may own the trees by now: stop everything, commit nothing more."""
        self._mover.discard_all(why)

    def close(self) -> None:
        """Leave nothing behind in memory."""
        self._mover.close()

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
            herald=self._herald,
        )
