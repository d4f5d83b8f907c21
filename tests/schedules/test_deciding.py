"""What becomes of ticks: overlap, catching up, trips; without a store and without time passing."""

from collections.abc import Iterable, Mapping

import pytest
from msgspec.structs import replace

import outlive
from outlive._features.schedules.deciding import LATE, Decision, decide
from outlive._features.schedules.schedule import Overlap, ScheduleState, StoredSchedule, Target, run_id_of
from outlive._kernel.model import Run, RunStatus
from outlive._kernel.model.instant import MICROSECONDS

HOUR = 3_600 * MICROSECONDS
NOW = 500_000 * HOUR


def schedule_of(schedule: outlive.types.ScheduleSpec, *, since: int = NOW) -> StoredSchedule:
    """A schedule whose ticks up to an instant are done."""
    return StoredSchedule(schedule=schedule, target=Target("digest", 1), state=ScheduleState(cursor=since))


class Life:
    """A schedule that is looked at now and then, with the runs that it starts."""

    def __init__(self, stored: StoredSchedule) -> None:
        self.stored = stored
        self.runs: dict[str, Run] = {}

    def look(self, now: int) -> Decision:
        """A worker looks at it."""
        decision = decide("digest", self.stored, now, self.runs)
        self.stored = replace(self.stored, state=decision.state)
        for tick in decision.starts:
            self.end(tick, RunStatus.RUNNING)
        return decision

    def end(self, tick: int, status: RunStatus = RunStatus.SUCCEEDED) -> None:
        """The run of a tick has this status from now on."""
        run_id = run_id_of("digest", tick)
        self.runs[run_id] = Run(
            id=run_id,
            root_id=run_id,
            workflow="digest",
            version=1,
            nonce=1,
            created_at=tick,
            updated_at=tick,
            status=status,
        )


def hours(*numbers: int) -> list[int]:
    """Whole hours from now."""
    return [NOW + number * HOUR for number in numbers]


def test_a_tick_starts_once() -> None:
    """A tick starts one run, and the schedule is due again at the next tick. [TS-S11]"""
    life = Life(schedule_of(outlive.every(hours=1, overlap="allow")))

    assert ([], NOW + HOUR) == (life.look(NOW).starts, life.look(NOW).next_at)
    first = life.look(NOW + HOUR)
    assert (hours(1), NOW + 2 * HOUR) == (first.starts, first.next_at)
    assert [] == life.look(NOW + HOUR + 1).starts


@pytest.mark.parametrize(
    ("overlap", "started", "waiting"),
    [
        ("skip", hours(1), 0),
        ("allow", hours(1, 2, 3), 0),
        ("buffer_one", hours(1), 1),
        ("buffer_all", hours(1), 2),
        ("cancel_previous", hours(1), 1),
        ("terminate_previous", hours(1), 1),
    ],
)
def test_ticks_while_a_run_is_open(overlap: Overlap, started: list[int], waiting: int) -> None:
    """Each policy does what it says. [FB-R7]"""
    life = Life(schedule_of(outlive.every(hours=1, overlap=overlap)))

    found = [tick for number in (1, 2, 3) for tick in life.look(NOW + number * HOUR).starts]

    assert (started, waiting) == (found, len(life.stored.state.buffer))


@pytest.mark.parametrize(
    ("overlap", "started"),
    [
        ("skip", []),
        ("buffer_one", hours(2)),
        ("buffer_all", hours(2)),
        ("cancel_previous", hours(3)),
        ("terminate_previous", hours(3)),
    ],
)
def test_a_tick_that_waited_starts_when_the_run_has_ended(overlap: Overlap, started: list[int]) -> None:
    """The first tick that waited starts when the run has ended, or the last one if it takes the place of the run."""
    life = Life(schedule_of(outlive.every(hours=1, overlap=overlap)))
    for number in (1, 2, 3):
        life.look(NOW + number * HOUR)
    life.end(NOW + HOUR)

    assert started == life.look(NOW + 3 * HOUR + MICROSECONDS).starts


@pytest.mark.parametrize("overlap", ["cancel_previous", "terminate_previous"])
def test_the_previous_run_is_stopped_until_it_has_ended(overlap: Overlap) -> None:
    """Each look says so again: the worker that was to do it may have been killed."""
    life = Life(schedule_of(outlive.every(hours=1, overlap=overlap)))
    life.look(NOW + HOUR)
    wanted = [run_id_of("digest", NOW + HOUR)]

    first = life.look(NOW + 2 * HOUR)
    assert (wanted, True) == (first.stops, first.next_at is not None and first.next_at <= NOW + 2 * HOUR + MICROSECONDS)
    assert wanted == life.look(NOW + 2 * HOUR + MICROSECONDS).stops
    life.end(NOW + HOUR, RunStatus.CANCELLED)
    last = life.look(NOW + 2 * HOUR + 2 * MICROSECONDS)
    assert ([], hours(2)) == (last.stops, last.starts)


@pytest.mark.parametrize(
    ("catch_up", "started", "missed"),
    [("none", [], 2), ("latest", hours(10), 1), (3, hours(8, 9, 10), 1), ("all", hours(*range(1, 11)), 0)],
)
def test_ticks_that_were_missed(catch_up: str, started: list[int], missed: int) -> None:
    """Ten hours without a worker. What is missed is counted as far as it was looked at."""
    life = Life(schedule_of(outlive.every(hours=1, overlap="allow", catch_up=catch_up)))  # type: ignore[arg-type]

    decision = life.look(NOW + 10 * HOUR + LATE + MICROSECONDS)

    assert (started, missed) == (decision.starts, decision.state.missed)
    assert NOW + 11 * HOUR == decision.next_at
    again = life.look(NOW + 10 * HOUR + LATE + 2 * MICROSECONDS)
    assert ([], missed) == (again.starts, again.state.missed), "a tick is missed or started once"
    assert hours(11) == life.look(NOW + 11 * HOUR).starts


def test_a_late_tick_is_not_a_missed_one() -> None:
    """A worker is never exactly on time."""
    life = Life(schedule_of(outlive.every(hours=1, catch_up="none")))

    assert hours(1) == life.look(NOW + HOUR + LATE).starts


def test_a_clock_that_goes_back_starts_nothing_again() -> None:
    """Nor does one that goes forward and back: what was started is started."""
    life = Life(schedule_of(outlive.every(hours=1, overlap="allow")))

    assert hours(3) == life.look(NOW + 3 * HOUR).starts
    assert ([], NOW + 4 * HOUR) == (life.look(NOW).starts, life.look(NOW).next_at)
    assert [] == life.look(NOW + 2 * HOUR).starts
    assert hours(4) == life.look(NOW + 4 * HOUR).starts


def statuses(life: Life, found: Iterable[RunStatus]) -> list[bool]:
    """Whether it has tripped, after each of these ends in turn."""
    tripped = []
    for number, status in enumerate(found, 1):
        life.look(NOW + number * HOUR)
        life.end(NOW + number * HOUR, status)
        tripped.append(bool(life.stored.state.tripped_at))
    return tripped


def test_a_schedule_that_fails_so_often_trips() -> None:
    """It starts nothing more, says so, and is due no more. A success in between sets the count back. [CA-S8]"""
    bad, good = RunStatus.FAILED, RunStatus.SUCCEEDED
    life = Life(schedule_of(outlive.every(hours=1, trip_after=3)))
    statuses(life, [bad, bad, good, bad, RunStatus.TIMED_OUT, bad])

    decision = life.look(NOW + 7 * HOUR)

    assert (True, [], None, 3) == (
        decision.has_tripped,
        decision.starts,
        decision.next_at,
        decision.state.failures,
    )
    assert not life.look(NOW + 8 * HOUR).has_tripped


def test_a_cancelled_run_neither_fails_nor_succeeds() -> None:
    """A person stopped it. [CA-S13]"""
    life = Life(schedule_of(outlive.every(hours=1, trip_after=2)))

    statuses(life, [RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.FAILED])

    assert life.look(NOW + 4 * HOUR).has_tripped


def test_a_run_that_was_deleted_does_not_block_its_schedule() -> None:
    """Retention may be faster than the next tick. [CA-S14]"""
    life = Life(schedule_of(outlive.every(hours=1)))
    life.look(NOW + HOUR)
    life.runs.clear()

    decision = life.look(NOW + 2 * HOUR)

    assert (hours(2), "gone") == (decision.starts, decision.state.last[-1].status)


def test_looks_at_a_tick_that_waits_become_rare() -> None:
    """An hour costs about a hundred, and none is more than half a minute late."""
    life = Life(schedule_of(outlive.every(days=10, overlap="buffer_one")))
    life.look(NOW + 240 * HOUR)
    now, looks = NOW + 480 * HOUR, 0
    while now < NOW + 481 * HOUR:
        next_at = life.look(now).next_at
        assert next_at is not None
        now, looks = next_at, looks + 1

    assert 100 < looks < 150


def test_jitter_moves_the_start_and_not_the_tick() -> None:
    """Ids and arguments have the time of the tick."""
    stored = schedule_of(outlive.every(hours=1, jitter=600))
    first = decide("digest", stored, NOW, no_runs())
    assert first.next_at is not None
    at = first.next_at

    assert [] == decide("digest", stored, at - 1, no_runs()).starts
    assert hours(1) == decide("digest", stored, at, no_runs()).starts
    assert NOW + HOUR < at <= NOW + HOUR + 600 * MICROSECONDS


def no_runs() -> Mapping[str, Run]:
    """None are there."""
    return {}
