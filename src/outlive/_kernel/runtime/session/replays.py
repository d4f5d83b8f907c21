"""Replays that take longer than one slice: the event loop turns between their slices.

Most replays are over within the first slice, in the callback that takes the claim in. A longer one goes on here. Its
journal is read page by page, and its blobs as they are needed. Between two slices other runs move, inboxes are read and
the lease is renewed. If others commit meanwhile, the next slice waits until they have had seventeen times as long, and
the next page waits as long as a slice.

The tree is in motion for everyone else while it is replayed, in the phase REPLAYING. If it is discarded or released
meanwhile, its next slice is its last one and does nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial

from outlive._kernel.model.under_way import ReplayNote
from outlive._kernel.runtime.environment import Environment
from outlive._kernel.runtime.reporter import Reporter
from outlive._kernel.runtime.tree.claim_data import ClaimData
from outlive._kernel.runtime.tree.live import LiveTree
from outlive._kernel.runtime.tree.phase import TreePhase
from outlive._kernel.runtime.tree.rebuilding import Replay, consume_requests
from outlive._kernel.runtime.tree.replay_notes import ReplayNotes
from outlive._kernel.runtime.tree.resume_policy import ResumePolicy
from outlive._kernel.runtime.wakeup import Wakeup
from outlive._kernel.store.contract import Claim, Store
from outlive._tasks import in_callback, own_task
from outlive.errors import StoreUnavailableError
from outlive.telemetry import log, run_fields

OPEN_MAX = 4
"""Long journals that are in memory at once; they take turns, slice by slice."""


class Replays:
    """The replays of one session."""

    def __init__(
        self,
        environment: Environment,
        *,
        store: Store,
        notes: ReplayNotes,
        reporter: Reporter,
        worker: str,
        finish: Callable[[Replay], None],
        fail: Callable[[LiveTree], None],
    ) -> None:
        self._pace = environment.replay_pace
        self._is_bounded = environment.lifetime is not None
        self._clock = environment.clock
        self._counters = environment.counters
        self._resume_policy = ResumePolicy(environment)
        self._store = store
        self._notes = notes
        self._reporter = reporter
        reporter.sources.append(self.notes)
        self._worker = worker
        self._finish = finish
        self._fail = fail
        self._commits = 0
        self._places = asyncio.Semaphore(OPEN_MAX)
        self._turn = asyncio.Lock()
        self._open: dict[asyncio.Task[None], Replay] = {}

    @property
    def is_resting(self) -> bool:
        """Whether no replay is under way."""
        return not self._open

    def new_slice(self) -> Callable[[], bool]:
        """A slice of the event loop's time that begins now: whether it is over."""
        ends_at, monotonic = self._clock.monotonic() + self._pace.slice_seconds, self._clock.monotonic
        return lambda: monotonic() >= ends_at

    def begin(self, live: LiveTree, claim: Claim, found: ClaimData, is_over: Callable[[], bool]) -> None:
        """Replay a claimed tree: at once if what is left of this slice is enough, else slice by slice. A journal that
        was not found is read first."""
        journal = claim.run.journal
        last_word = found.last_words.get(journal, "")
        replay = Replay(
            live,
            claim,
            found.journals.get(journal, []),
            found.inbox.get(journal, []),
            blobs_max=self._pace.blobs_max,
            reason_to_park=partial(self._resume_policy.reason_to_park, stalls=found.stalls, last_word=last_word),
            worker=self._worker,
            is_bounded=self._is_bounded,
        )
        is_read = bool(replay.rows)
        if is_read and replay.advance(is_over):
            self._end(replay)
            return
        self._reporter.begin()
        task = own_task(self._go_on(replay, is_read=is_read), name="outlive-replay")
        self._open[task] = replay
        task.add_done_callback(self._open.pop)

    def notes(self, *, until_at: int, is_stored: bool, root_id: str = "") -> Iterator[ReplayNote]:
        """See `Source`: the replays that are under way."""
        for replay in list(self._open.values()):
            if replay.since_at <= until_at and root_id in ("", replay.live.id):
                yield ReplayNote(
                    root=replay.live.id, since_at=replay.since_at, done=replay.done, events=replay.claim.seq + 1
                )

    def close(self) -> None:
        """Go on with none of them."""
        for task in self._open:
            task.cancel()

    def _end(self, replay: Replay) -> None:
        """A replay is complete; the requests of people to resume the run or to skip a step were granted or refused."""
        live, claim = replay.live, replay.claim
        self._counters.steps_skipped += replay.skipped
        consume_requests(live, replay.inbox)
        if live.is_declined:
            self._notes.decline(live)
        self._notes.report_differences(live, claim.run)
        if claim.interrupted and live.execution.created is not None and live.tracer is not None:
            live.tracer.taken_over(claim.run, live.execution.headers, worker=self._worker)
        self._finish(replay)

    async def _go_on(self, replay: Replay, *, is_read: bool) -> None:
        live = replay.live
        try:
            async with self._places:
                if not is_read:
                    await self._read(replay)
                    if not replay.rows:
                        self._fail(live)  # The run was deleted since it was claimed.
                        return
                is_complete = False
                while not is_complete:
                    if replay.lacking:
                        live.payloads.add(await self._store.get_blobs(sorted(replay.lacking)))
                    is_complete = await self._advance(replay)
        except StoreUnavailableError:
            self._fail(live)  # The claimer finds it again, and says that the store is away.
        except Exception:  # The other runs go on.
            extra = run_fields(live.id, replay.claim.run.workflow)
            log.exception("run %s could not be taken in", live.id, extra=extra)
            self._fail(live)

    async def _read(self, replay: Replay) -> None:
        """Read the journal up to the claim, page by page."""
        live, last, after = replay.live, replay.claim.seq, -1
        while after < last and live.phase is TreePhase.REPLAYING:
            limit = min(self._pace.rows_max, last - after)
            page = await self._store.read_journal(live.journal, after=after, limit=limit)
            replay.rows += page
            after = page[-1][0] if len(page) == limit else last
            async with self._turn:
                await self._give_way()

    async def _advance(self, replay: Replay) -> bool:
        """Do the next slice, when it is its turn, and give way to others; whether it was the last one."""
        is_over, seconds = False, 0.0

        def advance() -> None:
            nonlocal is_over, seconds
            began_at = self._clock.monotonic()
            if replay.live.phase is not TreePhase.REPLAYING:
                is_over = True  # It was discarded or released.
            elif replay.advance(self.new_slice()):
                is_over = True
                self._end(replay)
            seconds = self._clock.monotonic() - began_at

        async with self._turn:
            await in_callback(advance)
            # Longer after a slice with one long event in it.
            await self._give_way(seconds / self._pace.slice_seconds if self._pace.slice_seconds else 1.0)
        return is_over

    async def _give_way(self, slices: float = 1.0) -> None:
        """Let others have the loop after so many slices, if they commit."""
        commits, self._commits = self._commits, self._counters.commits
        if commits != self._commits:
            await Wakeup().sleep(self._pace.pause_seconds * max(1.0, slices))
