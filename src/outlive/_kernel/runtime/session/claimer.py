"""Brings due runs and their messages to the worker.

One query brings everything that is due: new runs, timers, retries, signals, cancels and orphans. Between two queries
the claimer sleeps until the next known wake-up, until something in this process has made a run due or another process
rings, or for the poll interval, after which it finds what other processes have made due without being heard.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from outlive._kernel.client.closing import end_unbegun
from outlive._kernel.client.message_key import ended_in, kind_in
from outlive._kernel.define.own import is_unqueued
from outlive._kernel.journal.claiming import has_other_nonce, root_after
from outlive._kernel.journal.codec import Row, open_row, salt_of, seal
from outlive._kernel.journal.event import RunClaimed
from outlive._kernel.model import Run, RunFilter
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.pause import PAUSES_CELL, pauses_in
from outlive._kernel.model.stalls import STALLS_CELL, stalls_in
from outlive._kernel.model.under_way import cell_of, last_words, report_in
from outlive._kernel.runtime.environment import Environment
from outlive._kernel.runtime.session.dead_sessions import DeadSessionEnder
from outlive._kernel.runtime.session.pace import OrphanPace
from outlive._kernel.runtime.session.requests import ClaimerRequests
from outlive._kernel.runtime.session.worker import SessionWorker
from outlive._kernel.runtime.tree.claim_data import ClaimData, blob_ids, lost_owner
from outlive._kernel.runtime.tree.events import unsent_end, watch_of
from outlive._kernel.runtime.tree.live import LiveTree
from outlive._kernel.store.change import ended_of
from outlive._kernel.store.contract import (
    NO_LIMIT,
    PAGE_SIZE_MAX,
    Change,
    Claim,
    Claims,
    Declared,
    InboxMessage,
    MessageKind,
    Outcome,
    Store,
)
from outlive._tasks import in_callback, own_task
from outlive.errors import CommitUnknownError, OutliveError, StoreUnavailableError
from outlive.errors.store import StoreMovedError
from outlive.telemetry import log, run_fields

DOUBT_SECONDS = 60.0
"""How long a claim that was never answered may still take effect: for so long the claimer looks for its trees."""
DOUBT_LOOK_SECONDS = 2.0
LOST_SESSIONS_MAX = 20
"""Sessions whose last words one claim reads: the runs of a fleet that is lost need not all say what they were in."""
READ_AT_ONCE_MAX = 50_000
"""Events that are read at once for all trees of a claim; the journals of the others are read one by one."""

RECONCILE_SECONDS = 30.0
"""How often the trees in memory are compared with the store without a request."""


class Claimer:
    """Claims for one session."""

    def __init__(
        self,
        environment: Environment,
        *,
        store: Store,
        worker: SessionWorker,
        requests: ClaimerRequests,
        dead_sessions: DeadSessionEnder,
        definitions: list[str],
        poll_seconds: float,
        queues: Sequence[str] | None = None,
        declared: Declared | None = None,
        end_session: Callable[[str], None],
    ) -> None:
        self._store = store
        self._worker = worker
        self._requests = requests
        self._dead_sessions = dead_sessions
        self._clock = environment.clock
        self._counters = environment.counters
        self._limits = environment.limits
        self._recovery = environment.recovery
        self._tracer = environment.tracer
        self._replay_pace = environment.replay_pace
        self._pace = OrphanPace(environment.recovery, clock=self._clock, room_max=self._limits.runs_active_max)
        self.definitions = definitions
        """The definitions whose runs it claims; `WorkerSessions.redefine` changes them."""
        self._poll_seconds = poll_seconds
        self._queues = queues
        self._declared = declared
        self._takes_unqueued = queues is None or "" in queues
        self._end_session = end_session
        """Called when the store can never answer again."""
        self._task: asyncio.Task[None] | None = None
        self._is_stopping = False
        self.next_wake_at: int | None = None
        """When the next run becomes due, as far as the last claim knew."""
        self._has_more = False
        self._pauses_at = 0.0
        self._reconcile_at = self._clock.monotonic() + RECONCILE_SECONDS
        self._doubt_until = self._doubt_at = 0.0
        """A claim that was never answered may still take effect: until when to look for its trees, and when next."""
        self._may_have_orphans = False
        """Whether the last claim took all the orphans that one claim may take."""
        self._is_bounded = environment.lifetime is not None
        self.has_found_nothing = False
        """For a worker whose host ends: whether it last looked while no tree was here, and nothing was due."""

    def start(self) -> None:
        """Begin to claim."""
        self._dead_sessions.watch(self._requests.look)
        self._task = own_task(self._run(), name="outlive-claimer")

    @property
    def is_resting(self) -> bool:
        """Whether it sleeps until something is due."""
        return self._requests.wakeup.has_sleeper and not (self._requests.lookups or self._requests.refusals)

    async def stop(self) -> None:
        """Claim nothing more; a claim under way is finished first."""
        self._is_stopping = True
        self._requests.look()
        if self._task is not None:
            await asyncio.wait([self._task])
            self._task = None

    def abandon(self) -> None:
        """Stop in the middle of a claim, as a killed process does."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        trouble = False
        while not self._is_stopping:
            try:
                await self.run_once()
                trouble = False
            except StoreMovedError as error:
                self._end_session(str(error))
            except StoreUnavailableError as error:
                if not trouble:
                    log.error("%s; claiming goes on when it is back", error)
                trouble, self._has_more = True, False
            except Exception:
                log.exception("claiming failed; it is tried again")
                self._has_more = False
            await self._requests.wakeup.sleep(0 if self._has_more else self._pause_seconds())

    def _pause_seconds(self) -> float:
        # A little spread, so that the workers of a fleet do not ask in step.
        pause = self._poll_seconds * (0.75 + self._clock.random() / 2)
        if self.next_wake_at is not None and self._worker.room:
            pause = min(pause, max(0.0, (self.next_wake_at - self._clock.now()) / MICROSECONDS))
        if (wait := self._pace.wait_seconds()) is not None and self._worker.room:
            pause = min(pause, wait)
        return pause

    async def run_once(self) -> int:
        """Claim what is due; how many trees were claimed."""
        was_empty = self._is_bounded and not len(self._worker.trees)
        await self._refuse()
        await self._dead_sessions.look_when_due()
        if self._clock.monotonic() >= self._reconcile_at:
            self._reconcile_at = self._clock.monotonic() + RECONCILE_SECONDS * (0.75 + self._clock.random() / 2)
            self._requests.reconcile()
        if self._requests.may_lack_pauses or self._clock.monotonic() >= self._pauses_at:
            await self.look_for_pauses()
        claims: list[Claim] = []
        self.next_wake_at, self._may_have_orphans = None, False
        if self._requests.may_hold_strays:
            await self._discard_strays()
        await self._bring_ends()
        # Before the claim: a tree that is suspended meanwhile was ours when this looked for its messages, or is due
        # when the claim looks. The other way round both could miss it.
        await self._bring_messages()
        await self._refuse()
        limit = min(self._worker.room, self._limits.claim_batch_max)
        if self._requests.may_lack_trees or self._is_in_doubt():
            claims = await self._find_unheld()
            self._counters.runs_reclaimed += len(claims)
        if limit and not claims:
            answer = await self._claim(limit)
            claims, self.next_wake_at = answer.claims, answer.next_wake_at
            self._requests.open_queues |= answer.open_queues
        self._requests.was_claim_full = not limit or len(claims) >= limit
        self._has_more = bool(limit) and (self._requests.was_claim_full or self._may_have_orphans)
        self.has_found_nothing = was_empty and bool(limit) and not claims and not self._has_more
        if claims:
            await self._revive(await self._end_overdue(claims))
        return len(claims)

    async def _end_overdue(self, claims: list[Claim]) -> list[Claim]:
        """Fail the runs that were claimed too late to be begun, and return the other claims."""
        overdue = [claim.run for claim in claims if claim.run.begin_by is not None]
        if not overdue:
            return claims
        # A tree that this cannot end is ours in the store and not in memory: the next query must find it, and the
        # others.
        self._requests.may_lack_trees = True
        self._counters.runs_ended += len(await end_unbegun(self._store, overdue, self._tracer))
        return [claim for claim in claims if claim.run.begin_by is None]

    async def look_for_pauses(self) -> None:
        """Read which workflows are paused, and let the worker know if that has changed. What is known may be as old as
        the poll interval, if the ring of another process was lost: so it costs nothing on every claim."""
        # Cleared first: this answers no ring that comes while it is under way.
        self._requests.may_lack_pauses = False
        pauses = pauses_in(await self._store.read_cell(PAUSES_CELL))
        self._pauses_at = self._clock.monotonic() + self._poll_seconds
        if pauses != self._worker.inboxes.pauses:
            await in_callback(partial(self._worker.inboxes.set_pauses, pauses))

    def _claimable(self) -> list[str]:
        """The definitions of this worker that are not paused."""
        if not self._worker.inboxes.pauses:
            return self.definitions
        return [name for name in self.definitions if not self._worker.inboxes.is_paused(name.rpartition("@")[0])]

    async def _claim(self, limit: int) -> Claims:
        orphans_max = self._pace.allowance(limit=limit, room=self._worker.room)
        asked_at = self._clock.monotonic()
        try:
            answer = await self._ask(limit, orphans_max)
        except CommitUnknownError:
            self._requests.may_lack_trees = True
            self._doubt_until = self._clock.monotonic() + DOUBT_SECONDS
            raise
        self._counters.measures.claim_seconds.add((self._clock.monotonic() - asked_at) * MICROSECONDS)
        orphans = sum(claim.interrupted for claim in answer.claims)
        self._pace.took(orphans, asked=orphans_max)
        self._may_have_orphans = 0 < orphans == orphans_max and not self._pace.is_spent
        return answer

    async def _ask(self, limit: int, orphans_max: int) -> Claims:
        definitions = self._claimable()
        if self._takes_unqueued:
            return await self._ask_for(definitions, self._queues, limit=limit, orphans_max=orphans_max)
        # Runs that look after batches with a queue are in none, and without them nothing of these batches comes into
        # the queues that this worker takes from. Verbs for many runs are in none either. They are few and short.
        own = [name for name in definitions if is_unqueued(name)]
        batches = await self._ask_for(own, [""], limit=limit, orphans_max=orphans_max)
        limit -= len(batches.claims)
        if not limit:
            return batches
        orphans_max = max(0, orphans_max - sum(claim.interrupted for claim in batches.claims))
        try:
            others = await self._ask_for(definitions, self._queues, limit=limit, orphans_max=orphans_max)
        except BaseException:
            self._requests.may_lack_trees = True  # The batches are ours in the store and not in memory.
            raise
        wake_ups = [at for at in (batches.next_wake_at, others.next_wake_at) if at is not None]
        return Claims(batches.claims + others.claims, min(wake_ups, default=None))

    async def _ask_for(
        self, definitions: list[str], queues: Sequence[str] | None, *, limit: int, orphans_max: int
    ) -> Claims:
        return await self._store.claim_runs(
            self._worker.id,
            definitions,
            limit=limit,
            orphans_max=orphans_max,
            stale_seconds=self._recovery.stale_after,
            declined=self._worker.notes.declined,
            queues=queues,
            declared=self._declared,
        )

    async def _discard_strays(self) -> None:
        """Discard trees that another worker owns by what the store says, so that their steps stop before a commit is
        refused."""
        # First what is held, then what the store says: a tree that is taken in meanwhile is not judged by an old row.
        held = self._worker.trees.stored()
        runs = await self._store.find_runs([live.id for live in held])
        await in_callback(partial(self._worker.discard_strays, held, runs))
        # Only now: if the store did not answer, the claimer asks again.
        self._requests.may_hold_strays = False

    def _is_in_doubt(self) -> bool:
        now = self._clock.monotonic()
        if not self._doubt_at <= now < self._doubt_until:
            return False
        self._doubt_at = now + DOUBT_LOOK_SECONDS
        return True

    async def _find_unheld(self) -> list[Claim]:
        """Claim the trees that are ours in the store and not in memory: a claim was never answered, or the worker
        discarded them."""
        # Cleared first: this query does not answer a request that comes while it is under way.
        self._requests.may_lack_trees = False
        try:
            return await self._read_unheld()
        except BaseException:
            self._requests.may_lack_trees = True
            raise

    async def _read_unheld(self) -> list[Claim]:
        ours: list[Run] = []
        wanted, before = RunFilter(owner=self._worker.id, roots_only=True), None
        while page := await self._store.list_runs(wanted, limit=PAGE_SIZE_MAX, before=before):
            ours += page
            before = page[-1].created_at, page[-1].id
        # A tree that was claimed while another one moved under its id is claimed by the next query, when that has gone.
        self._requests.may_lack_trees |= any(self._worker.trees.is_behind(run) for run in ours)
        unheld = {run.id: run for run in ours if not self._worker.trees.moves(run.id)}
        journals = await self._store.read_journals([run.journal for run in unheld.values()])
        # Asked twice: a tree that this worker released while the first answer was under way has no owner in the second.
        # And if it is ours by the same claim before and after its journal was read, no other worker has written to it.
        again = await self._store.find_runs(list(unheld))
        wanted_again = [
            reclaiming(run, journals[run.journal], worker_id=self._worker.id, at=self._store.now())
            for run in again.values()
            if run.owner == self._worker.id
            and (run.journal, run.epoch) == (unheld[run.id].journal, unheld[run.id].epoch)
            and not self._worker.trees.moves(run.id)
            and not has_other_nonce(run, journals[run.journal][0])
        ]
        outcomes = await self._store.commit([change for change, _ in wanted_again]) if wanted_again else []
        return [
            claim
            for (_, claim), (outcome, _) in zip(wanted_again, outcomes, strict=True)
            if outcome is Outcome.COMMITTED
        ]

    async def _revive(self, claims: list[Claim]) -> None:
        # Taken out of the cache now, so that they cannot be evicted while the journals of the others are read.
        hot = {claim.run.journal: self._worker.trees.take(claim) for claim in claims}
        try:
            found = await self._read(claims, hot)
            if any(claim.interrupted for claim in claims):
                found.stalls = stalls_in(await self._store.read_cell(STALLS_CELL))
            found.last_words = await self._read_last_words(claims, found.journals)
        except BaseException:
            # They are ours in the store and not in memory: the next query must find them.
            self._requests.may_lack_trees = True
            for live in hot.values():
                if live is not None:
                    live.discard()
            raise
        waiting = deque(claims)
        while waiting:
            await in_callback(partial(self._hand_over, waiting, hot, found))

    async def _read(self, claims: list[Claim], hot: dict[int, LiveTree | None]) -> ClaimData:
        short = self._short(claim for claim in claims if hot[claim.run.journal] is None)
        if short:
            # Together: on a server, each would be a round trip of its own.
            journals, inbox = await asyncio.gather(self._store.read_journals(short), self._read_inboxes(list(hot)))
        else:
            journals, inbox = {}, await self._read_inboxes(list(hot))
        # A replay asks for its blobs where it has many.
        few = [rows for rows in journals.values() if len(blob_ids([rows], ())) <= self._replay_pace.blobs_max]
        return ClaimData(journals, inbox, await self._read_blobs(few, inbox.values()))

    async def _read_last_words(self, claims: list[Claim], journals: Mapping[int, list[Row]]) -> dict[int, str]:
        """The last reports of the lost workers of claimed trees, in words, by journal."""
        owners = {
            claim.run.journal: lost_owner(journals[claim.run.journal], claim.run)
            for claim in claims
            if claim.interrupted and claim.run.journal in journals
        }
        sessions = sorted(set(filter(None, owners.values())))[:LOST_SESSIONS_MAX]
        reports = {it: report_in(await self._store.read_cell(cell_of(it))) for it in sessions}
        found, at = {}, self._clock.now()
        for claim in claims:
            owner = owners.get(claim.run.journal, "")
            if owner in reports and (words := last_words(reports[owner].of(claim.run.id), owner, at=at)):
                found[claim.run.journal] = words
        return found

    def _short(self, claims: Iterable[Claim]) -> list[int]:
        """The journals that are read together: those with few events, until there are many of them."""
        short, left = [], READ_AT_ONCE_MAX
        for claim in claims:
            if claim.seq < min(self._replay_pace.rows_max, left):
                short.append(claim.run.journal)
                left -= claim.seq + 1
        return short

    def _hand_over(self, waiting: deque[Claim], hot: dict[int, LiveTree | None], found: ClaimData) -> None:
        """Hand over what there is time for in one slice, so that a thousand runs do not stall the others."""
        is_over = self._worker.replays.new_slice()
        while waiting:
            claim = waiting.popleft()
            try:
                self._worker.revive(claim, hot[claim.run.journal], found, is_over)
            except Exception:  # The other claimed runs go on.
                extra = run_fields(claim.run.id, claim.run.workflow)
                log.exception("run %s could not be taken in", claim.run.id, extra=extra)
                # Nothing of it stays in memory, and the next query finds it.
                self._worker.discard_tree(claim.run.journal)
                self._requests.may_lack_trees = True
            if is_over():
                break

    async def _bring_ends(self) -> None:
        """Have the ends of other trees sent to the trees that wait for them, and send the ends that no worker will
        send: of runs that have ended, and of runs that cannot be waited for."""
        while self._requests.lookups:
            # Taken off the list only when the store has answered: if it is away, the claimer asks again.
            live, waits = self._requests.lookups[0]
            root, now_at, asker = live.fold.root, self._clock.now(), live.execution
            runs = await self._store.find_runs([wait.run_id for wait in waits])
            wanted = [watch_of(wait, runs.get(wait.run_id), root, retried=asker.retried) for wait in waits]
            watches = [watch for watch in wanted if watch is not None]
            if watches:
                # Before they are kept: a run that ends here in the same moment rings for its messages.
                self._requests.watched.update(watch.run_id for watch in watches)
                runs |= await self._store.watch_ends(watches)
            ends = [
                unsent_end(
                    wait,
                    runs.get(wait.run_id),
                    root,
                    generation=asker.generation,
                    base=asker.base,
                    retried=asker.retried,
                    at=now_at,
                )
                for wait in waits
            ]
            messages = [message for message in ends if message is not None]
            if messages:
                await self._store.deliver(messages, inbox_messages_max=NO_LIMIT)
            del self._requests.lookups[0]
            await in_callback(partial(self._worker.looked_up, live, len(waits)))

    async def _refuse(self) -> None:
        """Answer the asks that trees have refused. Always before an inbox is read, so that none of them is seen again
        and judged otherwise."""
        while self._requests.refusals:
            # Taken off the list only when the store has answered: if it is away, the claimer tries again.
            live, refusals = self._requests.refusals[0]
            await self._store.refuse_messages(self._worker.id, refusals)
            del self._requests.refusals[0]
            await in_callback(partial(self._worker.refused, live))

    async def _bring_messages(self) -> None:
        if not self._worker.trees.stored():
            return  # A message for a tree that is not here is read when it is claimed.
        found = await self._store.find_inboxes(self._worker.id)
        # Asked before the inbox is read, so that the messages that a tree has taken until now are gone from it.
        journals = [journal for journal in found if self._worker.trees.takes_messages(journal)]
        if not journals:
            return
        inboxes = await self._read_inboxes(journals)
        blobs = await self._read_blobs((), inboxes.values())
        waiting = deque(inboxes.items())
        while waiting:
            await in_callback(partial(self._deliver, waiting, blobs))

    async def _read_inboxes(self, journals: list[int]) -> dict[int, list[InboxMessage]]:
        inboxes = await self._store.read_inbox(journals)
        if any(message.fault for messages in inboxes.values() for message in messages):
            return await self._complete_damaged(inboxes)
        return inboxes

    async def _complete_damaged(self, inboxes: Mapping[int, list[InboxMessage]]) -> dict[int, list[InboxMessage]]:
        """Messages by journal, with the readable parts of damaged rows.

        The key of a message says its kind and, if it is about the end of a run, which run; the row of that run says how
        it ended. Such a message comes once: if it were lost, the tree that it is for would wait for ever.
        """
        found = {journal: [_with_kind(message) for message in messages] for journal, messages in inboxes.items()}
        ends = {ended_in(message.key) for messages in found.values() for message in messages if _is_lost_end(message)}
        runs = await self._store.find_runs(sorted(ends)) if ends else {}
        return {journal: [_with_end(message, runs) for message in messages] for journal, messages in found.items()}

    def _deliver(self, waiting: deque[tuple[int, list[InboxMessage]]], blobs: dict[str, bytes]) -> None:
        """Deliver what there is time for in one slice."""
        is_over = self._worker.replays.new_slice()
        while waiting:
            journal, messages = waiting.popleft()
            self._worker.deliver(journal, messages, blobs)
            if is_over():
                break

    async def _read_blobs(self, journals: Iterable[list[Row]], inbox: Iterable[list[InboxMessage]]) -> dict[str, bytes]:
        ids = blob_ids(journals, inbox)
        return await self._store.get_blobs(sorted(ids)) if ids else {}


def _with_kind(message: InboxMessage) -> InboxMessage:
    return replace(message, kind=kind_in(message.key) or message.kind) if message.fault else message


def _is_lost_end(message: InboxMessage) -> bool:
    return bool(message.fault) and message.kind is MessageKind.ENDED


def _with_end(message: InboxMessage, runs: Mapping[str, Run]) -> InboxMessage:
    run = runs.get(ended_in(message.key)) if _is_lost_end(message) else None
    if run is None or not run.status.is_terminal:
        return message
    return replace(message, ended=ended_of(run), fault="")


def reclaiming(run: Run, rows: list[Row], *, worker_id: str, at: int) -> tuple[Change, Claim]:
    """The change that claims a tree again that is ours in the store and not in memory, and the claim once it commits.

    The answer to the earlier claim was lost, or the worker discarded the tree because the store rolled a transaction of
    it back. What began under the earlier claim may still run on a thread. So the epoch rises: a system that is shown
    two epochs by two attempts of a step knows which attempt is the later one.
    """
    # The run itself interrupted no worker: this does not count towards its quarantine.
    event = RunClaimed(at=at, worker=worker_id, epoch=run.epoch + 1)
    root = root_after(run, event)
    seq = rows[-1][0] + 1
    row = seal(event, salt=salt_of(run.nonce), seq=seq)
    prior = rows[-1][2]
    claim = Claim(root, seq, prior=prior, crc=row[2], interrupted=_was_orphan(run, rows))
    return Change(journal=run.journal, after=seq - 1, prior=prior, rows=[row], runs=[root]), claim


def _was_orphan(run: Run, rows: list[Row]) -> bool:
    """Whether the tree was taken over from a lost worker and nothing was written since: the resume policy may not have
    decided yet whether it may go on."""
    try:
        for row in reversed(rows):
            event = open_row(row, salt=salt_of(run.nonce), run_id=run.id)
            if not isinstance(event, RunClaimed):
                return False
            if event.interrupted:
                return True
    except OutliveError:
        """Damaged: the replay will say so."""
    return False
