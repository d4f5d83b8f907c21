"""One run of the workflow with the crashes of one trial, and what must hold after each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NoReturn

from outlive._kernel.journal.history import blobs_of
from outlive._kernel.journal.value import Stored
from outlive._kernel.model import Payload
from outlive._kernel.store.contract import Store
from outlive.testing.crash.journal import (
    Journal,
    Settled,
    StepKey,
    all_journals,
    event_of,
    render,
    retries_in,
    settled_in,
    taken_back_in,
)
from outlive.testing.crash.life import Ended, Life, Plan
from outlive.testing.crash.limit import LoopHeld, RunLimit
from outlive.testing.crash.mortal import Death, Write
from outlive.testing.crash.place import Place
from outlive.testing.crash.report import SurvivalError
from outlive.testing.fsck import check_store
from outlive.testing.rerun import Contradiction, Rerun
from outlive.testing.skip_clock import SkipClock


class Trial:
    """One run of the workflow, by as many processes as it takes."""

    def __init__(self, number: int, plan: Plan, place: Place) -> None:
        self._number = number
        self._plan = plan
        self._place = place
        self._clock = SkipClock()
        self._crashes: list[str] = []
        self._settled = Settled()
        self._at_crash = self._now = ""
        """The journals at the last crash, and as they were last seen, for people."""
        self.writes: list[Write] = []
        """The writes of the last process."""

    async def run(self, deaths: Sequence[Death], wanted: Ended | None) -> Ended:
        """Let the processes die one after the other; how the last one, which does not die, saw everything end.

        Raises:
            SurvivalError: something is not as it must be, or not as `wanted`; or it takes too long.
        """
        limit, ended = RunLimit(self._plan.run_seconds_max), None
        try:
            async with limit:
                await self._place.prepare(self._number)
                ended = await self._run(deaths, wanted)
                await self._place.forget(self._number)
        except (TimeoutError, LoopHeld, SurvivalError):
            if not limit.is_over:
                raise
        if ended is None or limit.is_over:  # Its end may have been taken for a failure of the workflow.
            self._fail(f"  {limit.describe()}")
        return ended

    async def _run(self, deaths: Sequence[Death], wanted: Ended | None) -> Ended:
        for death in [*deaths, None]:
            ended = await self._live(death)
            if ended is not None:
                if wanted is not None:
                    self._check_end(ended, wanted)
                return ended
        raise AssertionError("the last process has no reason to die")

    async def _live(self, death: Death | None) -> Ended | None:
        inner = self._place(self._number, self._clock.now)
        await inner.open()
        life = Life(self._plan, inner, self._clock, death)
        try:
            try:
                ended = await life.live(self._crashes)
            finally:
                self.writes = life.store.writes
                for worker_id in life.store.workers:
                    await inner.end_session(worker_id)
                if death is not None and life.store.died.is_set():
                    self._crashes.append(f"{death.moment.value} {self._describe(death, life.store.writes[-1])}")
        finally:
            await inner.close()
        await self._look_after(life)
        if ended is not None and ended.trouble:
            self._fail(f"  {ended.trouble}")
        return ended

    def _describe(self, death: Death, write: Write) -> str:
        life = "" if not self._crashes else " of the recovery"
        return f"write {death.write}{life} ({write.what})"

    # -- What must hold ---------------------------------------------------------------------------------------

    async def _look_after(self, life: Life) -> None:
        """Look at what a process has left, through a connection of one's own."""
        store = self._place(self._number, self._clock.now)
        await store.open()
        try:
            await self._check_store(store, life)
        finally:
            await store.close()

    def _check_begun(self, life: Life, journals: list[Journal]) -> None:
        self._settled.take_back(taken_back_in(journals))
        retries = retries_in(journals)
        for (key, attempt), times in Counter(life.begun).items():
            what = f"  step {key[2]}"
            if key in self._settled.ended:
                self._fail(f"{what} ran again, and its outcome was in the journal")
            if attempt <= self._settled.attempts.get(key, 0):
                self._fail(f"{what}: attempt {attempt} was made again, and it was in the journal")
            if times > 1 + retries[key[0]]:
                self._fail(f"{what}: attempt {attempt} was made {times} times by one process")

    async def _check_store(self, store: Store, life: Life) -> None:
        problems = await check_store(store)
        if problems:
            self._fail("  the store is damaged:\n" + "\n".join(f"    {problem}" for problem in problems))
        journals = await all_journals(store)
        self._now = render(journals)
        self._check_begun(life, journals)
        forgotten = self._find_forgotten(journals, life)
        blobs = await store.get_blobs(sorted(blobs_of(row for journal in journals for row in journal.rows)))
        asked: set[StepKey] = set()
        self._replay(life, journals, blobs, asked)
        for key, _ in life.begun:
            if key not in asked and key not in forgotten.ended:
                self._fail(f"  step {key[2]} was begun, and no durable event asks for it")
        self._settled.add(settled_in(journals))
        self._settled.add(forgotten)
        if life.store.died.is_set():
            self._at_crash = self._now

    def _find_forgotten(self, journals: list[Journal], life: Life) -> Settled:
        """The settled steps for which snapshots stand; every other acknowledged row must exist."""
        trees = {journal.root.journal: journal for journal in journals}
        first = {key: journal.rows[0][0] for key, journal in trees.items()}
        found = {(key, row[0]): row for key, journal in trees.items() for row in journal.rows}
        acknowledged = life.store.acknowledged
        missing = [key for key, row in acknowledged.items() if found.get(key) != row]
        lost = [(journal, seq) for journal, seq in missing if seq >= first.get(journal, 0)]
        if lost:
            journal, seq = lost[0]
            self._fail(f"  {len(lost)} events were acknowledged and are lost, the first is event {seq} of {journal}")
        forgotten = Settled()
        for (journal, seq), row in (life.store.given | acknowledged).items():
            if seq < first.get(journal, 0):
                forgotten.take(trees[journal].root.nonce, event_of(row))
        return forgotten

    def _replay(self, life: Life, journals: list[Journal], blobs: dict[str, bytes], asked: set[StepKey]) -> None:
        def unpack(payload: Payload) -> Stored:
            return life.engine.unpack(payload, blobs)

        for journal in journals:
            rerun = Rerun(journal.root.id, resolve=life.engine.workflow_of, unpack=unpack)
            try:
                rerun.feed_all(journal.events)
            except Contradiction as error:
                self._fail(f"  its code cannot replay run {journal.root.id}:\n    {error.reason}")
            asked |= {(journal.root.nonce, run, call) for run, call in rerun.asked}

    def _check_end(self, ended: Ended, wanted: Ended) -> None:
        different = [
            f"  run {id}\n    without a crash: {wanted.runs.get(id, 'there was none')}\n"
            f"    now:             {ended.runs.get(id, 'there is none')}"
            for id in sorted(wanted.runs.keys() | ended.runs.keys())
            if wanted.runs.get(id) != ended.runs.get(id) and not self._may_be_forgotten(id, wanted, ended)
        ]
        if different:
            self._fail("  it ends otherwise:\n" + "\n".join(different))

    def _may_be_forgotten(self, id: str, wanted: Ended, ended: Ended) -> bool:
        """Whether it is a child that a snapshot stands for in one of the two; a crash makes them come earlier."""
        forgets = self._plan.workflow.workflow.spec.forgets
        return forgets and "~" in id and (id not in wanted.runs or id not in ended.runs)

    def _fail(self, what: str) -> NoReturn:
        name = self._plan.workflow.workflow.spec.name
        raise SurvivalError(name, what=what, crashes=self._crashes, journal=self._at_crash, journal_now=self._now)
