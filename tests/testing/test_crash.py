"""`crash_everywhere` lets good workflows pass and catches bad ones."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import outlive
from outlive import Retry
from outlive._kernel.journal.codec import open_row, salt_of, seal
from outlive._kernel.runtime.session.replays import Replays
from outlive._kernel.runtime.session.worker import SessionWorker
from outlive._kernel.store.contract import Change, Outcome, Store
from outlive._kernel.store.memory import MemoryState, MemoryStore
from outlive.errors import ConfigurationError
from outlive.testing import SurvivalError, Survivor, TestEngine, crash_everywhere
from outlive.testing.crash.mortal import Death
from outlive.testing.crash.trial import Trial
from tests.testing.process_step import double_in_process

world: list[str] = []


@pytest.fixture(autouse=True)
def _new_world() -> None:
    world.clear()


@outlive.step(name="crash.reserve")
async def reserve(order: str) -> str:
    """Touch the world, once for each key."""
    if (key := outlive.current_step().idempotency_key) not in world:
        world.append(key)
    return f"hold of {order}"


@outlive.step(name="crash.charge", retry=Retry(attempts=3, first=60))
async def charge(hold: str) -> str:
    """Fail at first."""
    if outlive.current_step().attempt == 1:
        raise ConnectionError("busy")
    return f"receipt for {hold}"


@outlive.step(name="crash.label")
def label(order: str) -> str:
    """A sync step."""
    return order.upper()


@outlive.workflow(name="crash.pack")
async def pack(order: str) -> str:
    """A child."""
    return await label(order)


@outlive.workflow(name="crash.checkout")
async def checkout(order: str) -> list[str]:
    """Steps in a row and side by side, a retry, a timer, a child, chance and time."""
    hold = await reserve(order)
    receipt, box = await asyncio.gather(charge(hold), pack(order))
    await asyncio.sleep(3600)
    return [receipt, box, str(outlive.uuid4()), outlive.now().isoformat()]


@outlive.workflow(name="crash.refund")
async def refund(order: str) -> str:
    """Wait for a signal that comes, then for one that does not."""
    cents = await outlive.wait_for_signal("paid", int)
    try:
        async with asyncio.timeout(2 * 24 * 3600):
            return await outlive.wait_for_signal("approved", str)
    except TimeoutError:
        return f"{order}: {cents} expired"


@outlive.workflow(name="crash.audit")
async def audit(order: str) -> str:
    """A tree of its own."""
    await asyncio.sleep(10)
    return await reserve(f"{order} {outlive.random()}")


@outlive.workflow(name="crash.nothing")
async def nothing() -> str:
    """A tree of its own that ends as soon as it is moved."""
    return f"{outlive.random()}"


@outlive.workflow(name="crash.hurried")
async def hurried() -> str:
    return await (await outlive.start(nothing, detached=True)).result()


@outlive.workflow(name="crash.starter")
async def starter(order: str) -> str:
    """Start a tree of its own and wait for it."""
    run = await outlive.start(audit, order, detached=True)
    return await run.result()


@outlive.workflow(name="crash.failing")
async def failing() -> None:
    """Fail after a step."""
    raise ValueError(await reserve("x"))


async def test_a_good_workflow_survives_everything() -> None:
    """Before and after every commit, and twice. [FE-O12]"""
    report = await crash_everywhere(checkout, "o-1")

    assert report.result[:2] == ["receipt for hold of o-1", "O-1"]
    assert report.points >= 2 * 5
    assert report.runs == 1 + report.points * 4
    assert report.writes[0].startswith("commit of RunCreated crash.checkout")


async def test_signals_are_sent_once_whatever_happens() -> None:
    """A signal that was not acknowledged is sent again with its key, so that it is delivered once."""
    report = await crash_everywhere(refund, "o-1", signals=[("paid", 7)])

    assert report.result == "o-1: 7 expired"
    assert any(what.startswith("delivery of signal paid") for what in report.writes)


async def test_the_world_can_be_driven() -> None:
    """A `drive` function runs again in each process and does what the one before did not do."""

    async def approve(engine: TestEngine, run_id: str) -> None:
        run = engine.get(run_id)
        if not (await run.info()).has_ended:
            await run.signal("approved", "ann", key="a")

    report = await crash_everywhere(refund, "o-1", signals=[("paid", 7)], drive=approve)

    assert report.result == "ann"


async def test_detached_runs_end_as_without_a_crash() -> None:
    """Their chance too is the same."""
    report = await crash_everywhere(starter, "o-1")

    assert report.result.startswith("hold of o-1 0.")


async def test_a_failure_is_an_end_as_well() -> None:
    """A run that fails in the same way after every crash passes."""
    report = await crash_everywhere(failing)

    assert report.result is None
    assert "ValueError: hold of x" in report.error


async def test_the_test_may_check_its_world() -> None:
    """Each run ends in `check`, on a world that `reset` made new."""
    seen: list[tuple[str, ...]] = []

    def check(survivor: Survivor) -> None:
        assert len(world) == 1
        seen.append(survivor.crashes)

    report = await crash_everywhere(failing, reset=world.clear, check=check)

    assert len(seen) == report.runs
    assert seen[0] == ()
    assert seen[1][0].startswith("right before write 1 (commit of RunCreated crash.failing")


async def test_a_failed_check_is_the_tests_failure() -> None:
    """It comes out as it is."""

    def check(survivor: Survivor) -> None:
        assert not survivor.crashes, "no crash wanted"

    with pytest.raises(AssertionError, match="no crash wanted") as caught:
        await crash_everywhere(failing, check=check)

    assert caught.value.__notes__ == ["the process died right before write 1 (commit of RunCreated crash.failing)"]


@pytest.fixture
def died(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the writes at which processes died for the first time, in order."""
    seen: list[int] = []
    honest = Trial.run

    async def run(self: Trial, deaths: Sequence[Death], wanted: Any) -> Any:
        seen.extend(death.write for death in deaths[:1])
        return await honest(self, deaths, wanted)

    monkeypatch.setattr(Trial, "run", run)
    return seen


async def test_points_can_be_limited(died: list[int]) -> None:
    """To a few, evenly spread, from the first to the last; the report says how many there are."""
    report = await crash_everywhere(checkout, "o-1", max_points=3)

    assert (report.points, report.points_found) == (3, 2 * len(report.writes) - count_claims(report.writes))
    first, last, middle = died[:3]
    assert (first, last) == (1, len(report.writes))
    assert middle not in (first, last)


def count_claims(writes: Sequence[str]) -> int:
    """A claim has no point right before it."""
    return sum(write.startswith("claim of") for write in writes)


async def test_time_can_be_limited(died: list[int], caplog: pytest.LogCaptureFixture) -> None:
    """The first and the last point are tried all the same, and what was left out is not left out silently."""
    report = await crash_everywhere(checkout, "o-1", max_seconds=0)

    assert (report.points, report.runs, died) == (2, 3, [1, len(report.writes)])
    assert f"died at 2 of {report.points_found} points" in caplog.text


async def test_points_of_a_whole_test_are_all_tried(died: list[int]) -> None:
    """Each write, from whichever side they are begun."""
    report = await crash_everywhere(failing)

    assert report.points == report.points_found
    assert set(died) == set(range(1, len(report.writes) + 1))


async def test_runs_can_go_on_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """On threads and event loops of their own; each has its own store, its own deaths and the same end."""
    threads: set[str] = set()
    honest = Trial.run

    async def run(self: Trial, deaths: Sequence[Death], wanted: Any) -> Any:
        threads.add(threading.current_thread().name)
        return await honest(self, deaths, wanted)

    monkeypatch.setattr(Trial, "run", run)
    alone = await crash_everywhere(refund, "o-1", signals=[("paid", 7)], max_points=6)
    together = await crash_everywhere(refund, "o-1", signals=[("paid", 7)], max_points=6, parallel=3)

    assert together == alone
    assert len(threads) > 1


async def test_failure_of_a_run_beside_others_is_the_failure_of_the_test() -> None:
    """A run that ends otherwise than without crashes fails the test, even if several go on side by side."""
    with pytest.raises(SurvivalError, match="ends otherwise"):
        await crash_everywhere(counter, parallel=3)


async def test_a_world_that_is_reset_bears_one_run_at_a_time() -> None:
    """A reset would empty it under the feet of the others."""
    with pytest.raises(ConfigurationError, match="parallel"):
        await crash_everywhere(counter, reset=world.clear, parallel=2)


async def test_crash_everywhere_runs_on_files(tmp_path: Path) -> None:
    """`crash_everywhere` runs on files, one for each run, and leaves none."""
    report = await crash_everywhere(failing, url=f"sqlite:{tmp_path / 'runs.db'}", max_points=4)

    assert report.points == 4
    assert list(tmp_path.iterdir()) == []


@outlive.workflow(name="crash.doubled")
async def doubled(number: int) -> int:
    """Has a step in a process."""
    return await double_in_process(number)


async def test_steps_in_processes_survive() -> None:
    """The process of a step ends with the process that began it, and another process runs the step again."""
    report = await crash_everywhere(doubled, 1, max_points=3)

    assert (report.result, report.points) == (2, 3)
    assert any("StepSucceeded crash.double" in write for write in report.writes)


@outlive.workflow(name="crash.long")
async def long(steps: int) -> int:
    """So many steps in a row."""
    return sum([len(await label(str(number))) for number in range(steps)])


async def test_workflow_of_hundreds_of_steps_dies_at_a_sample_of_its_points(died: list[int]) -> None:
    """The points that are tried are spread over all of its commits."""
    report = await crash_everywhere(long, 200, max_points=4)

    assert (report.result, report.points) == (490, 4)
    assert report.points_found >= 400
    assert len({write * 4 // len(report.writes) for write in died}) >= 3


# -- What never ends ---------------------------------------------------------------------------------------------------


@outlive.workflow(name="crash.spinning")
async def spinning() -> str:
    """Never ends once a step has been recovered, and holds the event loop meanwhile."""
    await label("x")
    while len(world) > 1 and outlive.current_run().is_replaying:
        pass
    return "done"


async def test_a_replay_that_never_ends_fails_the_test_in_time() -> None:
    """It holds the event loop, so no timeout of asyncio could end it; the error says where it is."""
    world[:] = ["one", "two"]
    with pytest.raises(SurvivalError, match=r"(?s)has not ended after 0\.3 s.*in spinning"):
        await crash_everywhere(spinning, max_run_seconds=0.3)


async def test_an_engine_that_never_rests_fails_the_test_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its loop turns, and its worker claims the run again and again."""

    def always_moving(self: TestEngine) -> bool:
        return False

    monkeypatch.setattr(TestEngine, "is_resting", property(always_moving))
    with pytest.raises(SurvivalError, match=r"has not ended after 0\.3 s"):
        await crash_everywhere(two_steps, max_run_seconds=0.3)


# -- Bugs of users -----------------------------------------------------------------------------------------------------


@outlive.workflow(name="crash.gambler")
async def gambler() -> str:
    """Real chance in a workflow."""
    name = f"order {random.random()}"
    await asyncio.sleep(3600)
    return await reserve(name)


@outlive.workflow(name="crash.restless", strict_arguments=True)
async def restless() -> list[str]:
    """Another order each time, and always the same result."""
    world.append("asked")
    orders = ["a", "b"] if len(world) % 2 else ["b", "a"]
    return sorted([await label(order) for order in orders])


@outlive.workflow(name="crash.two_steps")
async def two_steps() -> str:
    """One step after the other."""
    return await label(await reserve("x"))


@outlive.step(name="crash.count")
async def count() -> int:
    """Another result each time it is called."""
    world.append("counted")
    return len(world)


@outlive.workflow(name="crash.counter")
async def counter() -> int:
    """Return what a step that is not idempotent says."""
    return await count()


async def test_chance_in_a_workflow_is_found() -> None:
    """Its name of the step's argument differs."""
    with pytest.raises(SurvivalError, match=r"ends otherwise|cannot replay|other arguments"):
        await crash_everywhere(gambler)


async def test_another_way_in_a_replay_is_found_with_the_diff() -> None:
    """A replay of the undisturbed run shows it already: what the journal had, and what the code asked."""
    with pytest.raises(SurvivalError, match=r"- journal: crash.label with the arguments of that time") as caught:
        await crash_everywhere(restless, reset=world.clear)

    assert caught.value.crashes == []
    assert "1 StepSucceeded crash.label" in caught.value.journal_now


async def test_a_step_with_another_result_each_time_is_found() -> None:
    """It was called, the process died before that was durable, and the second call returned something else."""
    with pytest.raises(SurvivalError, match=r"ends otherwise") as caught:
        await crash_everywhere(counter, reset=world.clear)

    assert caught.value.crashes == ["right before write 2 (commit of StepSucceeded crash.count + RunSucceeded)"]
    assert "without a crash: crash.counter succeeded: 1" in str(caught.value)
    assert "now:             crash.counter succeeded: 2" in str(caught.value)


async def test_another_end_may_be_allowed() -> None:
    """Then the test says what is right."""
    ends = set()

    report = await crash_everywhere(
        counter, reset=world.clear, same_end=False, check=lambda survivor: ends.add(survivor.result)
    )

    assert report.result == 1
    assert {1, 2} <= ends


async def test_a_run_that_never_ends_is_reported_at_once() -> None:
    """Without any crash."""
    with pytest.raises(SurvivalError, match=r"without any crash[\s\S]*waits for signal 'paid'"):
        await crash_everywhere(refund, "o-1")


# -- Bugs of ours ------------------------------------------------------------------------------------------------------


class ForgetfulStore(MemoryStore):
    """Acknowledges a commit and stores it with the next one."""

    pending: list[Change]

    async def commit(self, changes: Sequence[Change]) -> list[tuple[Outcome, int]]:
        """Store what came before; keep later changes of journals that are there for the next time."""
        await super().commit(self.pending)
        self.pending = [change for change in changes if change.journal]
        done = await super().commit([change for change in changes if not change.journal])
        return [(Outcome.COMMITTED, change.journal) if change.journal else done.pop(0) for change in changes]

    async def close(self) -> None:
        """A clean end writes everything."""


def forgetful() -> Callable[[int, Callable[[], int]], Store]:
    """A place of such stores."""
    states: dict[int, MemoryState] = {}

    def make(trial: int, clock: Callable[[], int]) -> Any:
        made = ForgetfulStore(clock=clock, state=states.setdefault(trial, MemoryState()))
        made.pending = []
        return made

    return make


async def test_a_store_that_acknowledges_too_early_is_found() -> None:
    """A store that acknowledges before it writes is found, because what it acknowledged is lost with the process."""
    with pytest.raises(SurvivalError, match="acknowledged and are lost"):
        await crash_everywhere(checkout, "o-1", store=forgetful())


async def test_an_engine_that_acts_before_durability_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step begins before the outcome that it follows from is in the journal."""
    honest = SessionWorker.settle

    def hasty(self: SessionWorker, live: Any) -> None:
        draft = live.draft
        if draft is not None and live.journal:
            self._run_effects(live, draft.effects)
            draft.effects.clear()
        honest(self, live)

    monkeypatch.setattr(SessionWorker, "settle", hasty)

    with pytest.raises(SurvivalError, match="no durable event asks for it"):
        await crash_everywhere(checkout, "o-1")


async def test_an_engine_that_forgets_outcomes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a recovery it calls again what is in the journal."""
    honest = Replays.begin

    def forgets(self: Replays, live: Any, claim: Any, found: Any, is_over: Any) -> None:
        run, rows = claim.run, found.journals[claim.run.journal]
        kept = [row for row in rows if b'"t":"StepSucceeded"' not in row[3]]
        if len(kept) != len(rows):
            salt = salt_of(run.nonce)
            found.journals[run.journal] = [
                seal(open_row(row, salt=salt, run_id=run.id), salt=salt, seq=seq) for seq, row in enumerate(kept)
            ]
        honest(self, live, claim, found, is_over)

    monkeypatch.setattr(Replays, "begin", forgets)

    with pytest.raises(SurvivalError, match=r"step crash\.reserve has ended before"):
        await crash_everywhere(two_steps)


async def test_a_death_between_claim_and_first_change_is_accepted() -> None:
    """A process that dies between the claim of a tree and its first change is accepted."""
    report = await crash_everywhere(hurried)

    assert report.error == ""
    assert any(write.startswith("claim of crash.nothing") for write in report.writes)


@outlive.workflow(name="crash.parks")
async def parks() -> None:
    await asyncio.to_thread(print)


async def test_a_run_that_is_parked_is_trouble_with_its_reason() -> None:
    """It does not end, and no crash is needed for that."""
    with pytest.raises(SurvivalError, match=r"(?s)without any crash.*is not durable"):
        await crash_everywhere(parks)
