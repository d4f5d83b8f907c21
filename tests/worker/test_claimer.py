"""The claimer by itself: how long it sleeps, when it doubts, and how it shares its room between orphans and others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from outlive._kernel.define.live_resources import LiveResources
from outlive._kernel.define.registry import Registry
from outlive._kernel.journal.codec import Row
from outlive._kernel.journal.packing import Packer
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.runtime.clock import SystemClock
from outlive._kernel.runtime.environment import Environment
from outlive._kernel.runtime.session import requests as claim_requests
from outlive._kernel.runtime.session.claimer import DOUBT_LOOK_SECONDS, DOUBT_SECONDS, RECONCILE_SECONDS, Claimer
from outlive._kernel.runtime.session.requests import ClaimerRequests
from outlive._kernel.store.contract import Change, Claims, Outcome
from outlive._kernel.store.memory import MemoryStore
from outlive.errors import CommitUnknownError, StoreUnavailableError
from outlive.errors.store import StoreMovedError
from outlive.events import RunClaimed
from outlive.limits import Limits
from outlive.telemetry import Counters
from outlive.testing.clock import ManualClock
from outlive.types import Recovery
from outlive_conformance.suite.builders import begin
from tests.engine.support import in_time, turns_of_the_loop, until

POLL = 10.0


class SetClock(SystemClock):
    """Time and chance as the test wants them."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 1000.0
        self.chance = 0.5

    def now(self) -> int:
        """Microseconds."""
        return round(self.seconds * MICROSECONDS)

    def monotonic(self) -> float:
        """The same, in seconds."""
        return self.seconds

    def random(self) -> float:
        """As it is set."""
        return self.chance


class Work:
    """A worker that notes what it is given."""

    id = "me"

    def __init__(self) -> None:
        self.room = 100
        self.trees = self
        self.notes = SimpleNamespace(declined=frozenset())
        self.inboxes = SimpleNamespace(pauses={})
        self.replays = SimpleNamespace(new_slice=lambda: lambda: False)
        self.revived: list[int] = []
        self.judged = 0

    def stored(self) -> list[Any]:
        """Nothing."""
        return []

    def discard_strays(self, held: list[Any], runs: dict[str, Any]) -> None:
        """Count it."""
        self.judged += 1

    def take(self, claim: Any) -> None:
        """Nothing is in memory."""

    def revive(self, claim: Any, live: Any, found: Any, is_over: Any) -> None:
        """Note which one."""
        self.revived.append(claim.run.journal)

    def is_behind(self, run: Any) -> bool:
        """No tree moves here."""
        return False

    def moves(self, run_id: str) -> bool:
        """None."""
        return False

    def takes_messages(self, journal: int) -> bool:
        """Not here."""
        return False


class Due:
    """A store with runs that are due."""

    def __init__(self) -> None:
        self.due: list[tuple[int, bool]] = []
        """Journals, and whether their workers were lost."""
        self.asked: list[tuple[int, int]] = []
        """The limits of each claim: of all, and of orphans."""
        self.next_wake_at: int | None = None
        self.faults: list[Exception] = []
        self.looks = 0

    async def claim_runs(self, worker_id: str, definitions: list[str], **options: Any) -> Claims:
        """Orphans first."""
        limit, orphans_max = options["limit"], options["orphans_max"]
        self.asked.append((limit, orphans_max))
        if self.faults:
            raise self.faults.pop(0)
        taken = [each for each in self.due if each[1]][:orphans_max]
        taken += [each for each in self.due if not each[1]][: limit - len(taken)]
        self.due = [each for each in self.due if each not in taken]
        claims: list[Any] = [
            SimpleNamespace(
                run=SimpleNamespace(journal=journal, id=f"{journal}", workflow="w", begin_by=None),
                seq=1,
                interrupted=is_orphan,
            )
            for journal, is_orphan in taken
        ]
        return Claims(claims, self.next_wake_at)

    async def list_runs(self, *args: Any, **options: Any) -> list[Any]:
        """None that are ours and not held."""
        self.looks += 1
        return []

    async def find_runs(self, ids: list[str]) -> dict[str, Any]:
        """None."""
        return {}

    async def read_cell(self, name: str) -> bytes | None:
        """No workflow is paused."""
        return None

    async def read_journals(self, journals: list[int]) -> dict[int, Any]:
        """All empty."""
        return {journal: [] for journal in journals}

    async def read_inbox(self, journals: list[int]) -> dict[int, Any]:
        """All empty."""
        return {}

    async def find_inboxes(self, worker_id: str) -> list[int]:
        """None."""
        return []


class Quiet:
    """An ender that finds no dead worker."""

    looks = 0

    def watch(self, ring: Any) -> None:
        """It never rings."""

    async def look_when_due(self) -> None:
        """Count it."""
        self.looks += 1


class Sleeps:
    """A bell that notes how long a sleeper wants to sleep, and lets it sleep until the test rings."""

    asked: list[float]

    def __init__(self) -> None:
        self._ring = asyncio.Event()

    def ring(self) -> None:
        """Wake the sleeper."""
        self._ring.set()

    async def sleep(self, seconds: float) -> None:
        """Note it; one that does not want to sleep does not."""
        Sleeps.asked.append(seconds)
        await (self._ring.wait() if seconds > 0 else asyncio.sleep(0))
        self._ring.clear()


class Hall:
    """A claimer with all that it knows."""

    def __init__(self, store: Any = None, **limits: Any) -> None:
        self.clock, self.work, self.dead_sessions = SetClock(), Work(), Quiet()
        self.store = store or Due()
        self.session_ends: list[str] = []
        self.recovery = Recovery(orphans_at_start_max=10, orphans_per_check_max=4, check_seconds=8)
        self.counters, self.requests = Counters(), ClaimerRequests()
        environment = Environment(
            clock=self.clock,
            counters=self.counters,
            limits=Limits(**({"claim_batch_max": 10, "runs_active_max": 100} | limits)),
            recovery=self.recovery,
            packer=Packer(Limits()),
            registry=Registry(),
            resources=LiveResources(),
        )
        self.claimer = Claimer(
            environment,
            store=self.store,  # type: ignore[arg-type]
            worker=self.work,  # type: ignore[arg-type]
            dead_sessions=self.dead_sessions,  # type: ignore[arg-type]
            requests=self.requests,
            definitions=["w@1"],
            poll_seconds=POLL,
            end_session=self.session_ends.append,
        )

    async def look(self, *, after: float = 0) -> int:
        """Look once, so much later."""
        self.clock.seconds += after
        return await in_time(self.claimer.run_once())


@pytest.fixture
async def hall(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Hall]:
    """Of one test."""
    Sleeps.asked = []
    monkeypatch.setattr(claim_requests, "Wakeup", Sleeps)
    hall = Hall()
    yield hall
    hall.claimer.abandon()


async def slept(hall: Hall) -> float:
    """How long it wants to sleep when it has looked once more."""
    before = len(Sleeps.asked)
    hall.requests.look()

    async def is_asleep() -> bool:
        return len(Sleeps.asked) > before

    await until(is_asleep)
    await turns_of_the_loop(3)
    return Sleeps.asked[-1]


async def test_claimer_sleeps_for_the_poll_interval_give_or_take_a_quarter(hall: Hall) -> None:
    """A claimer sleeps for the poll interval, a quarter more or less, so that the workers of a fleet do not ask in
    step."""
    hall.claimer.start()
    for chance, share in ((0.0, 0.75), (0.5, 1.0), (0.9, 1.2)):
        hall.clock.chance = chance
        assert POLL * share == pytest.approx(await slept(hall))
    await in_time(hall.claimer.stop())
    assert 0 < hall.dead_sessions.looks


async def test_claimer_wakes_up_for_the_next_timer_if_it_has_room(hall: Hall) -> None:
    """A claimer with room wakes up for the next timer; without room, or for a far timer, it sleeps until the next
    poll."""
    hall.claimer.start()
    for seconds, wanted in ((3, 3), (-5, 0), (300, POLL)):
        hall.store.next_wake_at = hall.clock.now() + seconds * MICROSECONDS
        assert wanted == pytest.approx(await slept(hall))
        hall.store.next_wake_at = None
        await slept(hall)
    hall.store.next_wake_at = hall.clock.now() + 3 * MICROSECONDS
    await slept(hall)
    hall.work.room = 0
    assert POLL == pytest.approx(await slept(hall))
    await in_time(hall.claimer.stop())


async def test_claimer_without_room_asks_for_no_runs_until_there_is_some(hall: Hall) -> None:
    """A claimer without room asks for no runs, and looks as soon as there is room that it missed."""
    hall.claimer.start()
    await slept(hall)
    asked = len(Sleeps.asked)
    hall.requests.has_room()
    await turns_of_the_loop(5)
    assert asked == len(Sleeps.asked)

    hall.work.room = 0
    hall.store.due = [(1, False)]
    claims = len(hall.store.asked)
    assert POLL == pytest.approx(await slept(hall))
    assert claims == len(hall.store.asked)
    hall.work.room = 5
    hall.requests.has_room()

    async def is_taken() -> bool:
        return [1] == hall.work.revived

    await until(is_taken)
    assert 5 == hall.store.asked[-1][0]
    await in_time(hall.claimer.stop())


async def test_claimer_goes_on_without_a_pause_while_claims_are_full(hall: Hall) -> None:
    """A claimer goes on without a pause while its claims are full, and sleeps after one that is not."""
    hall.store.due = [(number, False) for number in range(1, 24)]
    hall.claimer.start()

    async def are_taken() -> bool:
        return 23 == len(hall.work.revived)

    await until(are_taken)
    await turns_of_the_loop(5)
    assert [0, 0, POLL] == Sleeps.asked
    assert 3 == len(hall.store.asked)
    await in_time(hall.claimer.stop())


async def test_orphans_are_taken_at_their_pace(hall: Hall) -> None:
    """Nine tenths of a claim at most; without a pause while some are allowed; then it wakes up for the next ones."""
    hall.store.due = [(number, True) for number in range(1, 16)]
    hall.claimer.start()

    async def are_taken() -> bool:
        return 10 == len(hall.work.revived)

    await until(are_taken)
    await turns_of_the_loop(5)
    assert [(10, 9), (10, 1)] == hall.store.asked[:2]
    assert 0 == Sleeps.asked[0]
    assert 8.0 == pytest.approx(Sleeps.asked[-1])
    hall.clock.seconds += 8
    await slept(hall)
    assert 14 == len(hall.work.revived)
    await in_time(hall.claimer.stop())


async def test_now_and_then_it_compares_what_is_held_with_what_the_store_says(hall: Hall) -> None:
    """Not before its time, and once for each time."""
    await hall.look(after=RECONCILE_SECONDS - 0.5)
    assert (0, 0) == (hall.work.judged, hall.store.looks)
    await hall.look(after=0.5)
    assert (1, 1) == (hall.work.judged, hall.store.looks)
    hall.clock.chance = 0.0
    await hall.look(after=RECONCILE_SECONDS - 0.5)
    assert (1, 1) == (hall.work.judged, hall.store.looks)
    await hall.look(after=0.5)
    assert (2, 2) == (hall.work.judged, hall.store.looks)
    await hall.look(after=RECONCILE_SECONDS * 0.75 - 0.5)
    assert 2 == hall.work.judged
    await hall.look(after=0.5)
    assert 3 == hall.work.judged


async def test_claim_without_an_answer_is_looked_for_again_and_again_for_a_while(hall: Hall) -> None:
    """It may have been done, or may be done yet: at once, then every other second, for a minute."""
    hall.store.faults = [CommitUnknownError("the store", "the line went dead")]
    with pytest.raises(CommitUnknownError):
        await hall.look()
    assert 0 == hall.store.looks
    hall.clock.chance = 0.999  # The next comparison is far.
    await hall.look()
    assert 1 == hall.store.looks
    await hall.look()
    assert 2 == hall.store.looks
    for number in range(3, 15):
        await hall.look(after=DOUBT_LOOK_SECONDS / 2)
        assert number == hall.store.looks + 1
        await hall.look(after=DOUBT_LOOK_SECONDS / 2)
        assert number == hall.store.looks
    while hall.clock.seconds < 1000 + DOUBT_SECONDS:
        await hall.look(after=DOUBT_LOOK_SECONDS)
    before = hall.store.looks
    await hall.look(after=DOUBT_LOOK_SECONDS)
    assert before == hall.store.looks


async def test_claimer_does_not_read_the_list_of_its_runs_without_a_reason(hall: Hall) -> None:
    """A claimer without a reason for doubt does not read the list of its runs."""
    for _ in range(5):
        await hall.look(after=1)
    assert (0, 0, 0) == (hall.store.looks, hall.work.judged, hall.counters.runs_reclaimed)


class OvertakenStore(MemoryStore):
    """A store in which something else writes right before a verb, if the test wants that."""

    before_commit: Callable[[], Awaitable[Any]] | None = None
    before_journals: Callable[[], Awaitable[Any]] | None = None

    async def commit(self, changes: Sequence[Change]) -> list[tuple[Outcome, int]]:
        """See `Store`."""
        if (overtake := self.before_commit) is not None:
            self.before_commit = None
            await overtake()
        return await super().commit(changes)

    async def read_journals(self, journals: Sequence[int]) -> dict[int, list[Row]]:
        """See `Store`."""
        if (overtake := self.before_journals) is not None:
            self.before_journals = None
            await overtake()
        return await super().read_journals(journals)

    async def claim_runs(self, *args: Any, **options: Any) -> Claims:
        """Nothing is due."""
        return Claims([], None)


@pytest.mark.parametrize("meanwhile", ["nothing", "another worker takes it", "it is released"])
async def test_run_that_is_no_longer_ours_is_not_taken_in(meanwhile: str) -> None:
    """It is ours in the store and not in memory, when that is asked first; whether its claim holds is what its commit
    says, and a run that was released in the meantime is for any worker."""
    store = OvertakenStore(clock=ManualClock())
    tree = await begin(store, "tree")
    await tree.write(RunClaimed(at=store.now(), worker="me", epoch=1))
    if meanwhile == "another worker takes it":
        store.before_commit = partial(tree.twin().write, RunClaimed(at=store.now(), worker="other", epoch=2))
    elif meanwhile == "it is released":
        store.before_journals = tree.twin().release
    hall = Hall(store)
    hall.requests.may_lack_trees = True

    taken = await hall.look()

    assert (taken, hall.counters.runs_reclaimed, hall.work.revived) == (
        (1, 1, [tree.journal]) if meanwhile == "nothing" else (0, 0, [])
    )
    hall.claimer.abandon()


async def test_store_that_is_away_is_said_once_and_one_that_moved_ends_the_session(
    hall: Hall, caplog: pytest.LogCaptureFixture
) -> None:
    """The claimer logs each outage of the store once, and ends the session when the store has moved."""
    away = StoreUnavailableError("the store", "it is down")
    hall.store.faults = [away, away]
    hall.claimer.start()
    for _ in range(3):
        await slept(hall)
    assert 1 == caplog.text.count("claiming goes on when it is back")
    hall.store.faults = [away]
    await slept(hall)
    await slept(hall)
    assert 2 == caplog.text.count("claiming goes on when it is back")
    assert [] == hall.session_ends
    hall.store.faults = [StoreMovedError("the file")]
    await slept(hall)
    assert 1 == len(hall.session_ends)
    await in_time(hall.claimer.stop())
