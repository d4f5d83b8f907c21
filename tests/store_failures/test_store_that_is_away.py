"""A store that is away: a caller waits for so long and no longer, and what it has given up does not happen later.

The limit of a caller is ten minutes here, and passes when a test says so: a busy machine makes no caller give up.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

import outlive
from outlive._kernel.client.bulk import AT_ONCE
from outlive.checkpoints import Checkpoint
from outlive.errors import CommitUnknownError, StoreUnavailableError
from tests.engine.faults import FaultyStore, faulty
from tests.engine.loop_time import LoopTime
from tests.engine.support import Place, in_time, turns_of_the_loop, until

pytestmark = pytest.mark.any_store
T = TypeVar("T")
Act = Callable[[outlive.Engine], Coroutine[Any, Any, Any]]
SECONDS = 600


class Worker(enum.Enum):
    """Whether the engine that starts runs also runs them."""

    OWN = "own"
    NONE = "none"


@outlive.workflow
async def echoed(word: str) -> str:
    return word


@pytest.fixture(params=["own", "none"])
def has_worker(request: pytest.FixtureRequest) -> Worker:
    """Whether the engine that starts runs them too."""
    return Worker(request.param)


async def come_back(store: FaultyStore, engine: outlive.Engine) -> None:
    """Let the store answer again, and wait until nothing waits for it."""
    store.is_down = False
    await in_time((await engine.start(echoed, "last", id="last")).status())


async def asked(store: FaultyStore, verb: str, *, times: int) -> None:
    """Return when the store has been asked for a verb so often."""

    async def was_asked() -> bool:
        return store.calls[verb] >= times

    await until(was_asked)


async def after_all_patience(call: Coroutine[Any, Any, T], *, at: asyncio.Event, time: LoopTime) -> T:
    """The outcome of a call whose caller waits in vain from this moment on."""
    waiting = asyncio.create_task(call)
    await in_time(at.wait())
    assert not waiting.done()
    time.skip(seconds=SECONDS)
    return await in_time(waiting)


async def ids_in(engine: outlive.Engine) -> set[str]:
    """The runs that there are."""
    return {run.id for run in await engine.list()}


async def test_start_raises_in_time_and_never_happens(place: Place, has_worker: Worker, loop_time: LoopTime) -> None:
    """Two starts at once: the store refuses them together, again and again."""
    stores: list[FaultyStore] = []
    async with place.engine(worker=has_worker is Worker.OWN, store_seconds=SECONDS, wrap=faulty(stores)) as engine:
        stores[0].is_down = True
        tries = stores[0].calls["commit"] + 1
        starts = [asyncio.create_task(engine.start(echoed, word)) for word in "ab"]
        await asked(stores[0], "commit", times=tries)
        assert not any(start.done() for start in starts)
        loop_time.skip(seconds=SECONDS)
        await in_time(asyncio.wait(starts))
        for start in starts:
            with pytest.raises(StoreUnavailableError, match=r"has not answered for 600 s; run \w+ was not started"):
                start.result()
        await come_back(stores[0], engine)

        assert await ids_in(engine) == {"last"}


async def test_start_that_gives_up_says_nothing_of_the_store(
    place: Place, has_worker: Worker, loop_time: LoopTime, caplog: pytest.LogCaptureFixture
) -> None:
    """That no caller waits any more does not mean that the store is back."""
    stores: list[FaultyStore] = []
    async with place.engine(worker=has_worker is Worker.OWN, store_seconds=SECONDS, wrap=faulty(stores)) as engine:
        stores[0].is_down = True
        tries = stores[0].calls["commit"] + 1
        start = asyncio.create_task(engine.start(echoed, "a"))
        await asked(stores[0], "commit", times=tries)
        loop_time.skip(seconds=SECONDS)
        with pytest.raises(StoreUnavailableError, match="was not started"):
            await in_time(start)

        async def nothing_waits() -> bool:
            return "nothing waits for the store any more" in caplog.text

        await until(nothing_waits)
        assert "the store is back" not in caplog.text
        await come_back(stores[0], engine)

        assert await ids_in(engine) == {"last"}


async def test_start_that_was_cancelled_before_the_store_had_it_never_happens(place: Place, has_worker: Worker) -> None:
    """A web handler that gives up starts nothing later: neither in a batch that is tried again, nor behind it."""
    stores: list[FaultyStore] = []
    async with place.engine(worker=has_worker is Worker.OWN, store_seconds=SECONDS, wrap=faulty(stores)) as engine:
        stores[0].is_down = True
        tries = stores[0].calls["commit"] + 1
        first = asyncio.create_task(engine.start(echoed, "a"))
        await asked(stores[0], "commit", times=tries)
        behind = asyncio.create_task(engine.start(echoed, "b"))
        at_once = asyncio.create_task(engine.start(echoed, "c"))
        await asyncio.sleep(0)
        at_once.cancel()
        await turns_of_the_loop(10)
        first.cancel()
        behind.cancel()
        await asyncio.wait([first, behind, at_once])
        await come_back(stores[0], engine)

        assert first.cancelled()
        assert await ids_in(engine) == {"last"}


async def test_start_that_the_store_may_have_says_so_and_names_the_run(
    place: Place, has_worker: Worker, loop_time: LoopTime
) -> None:
    """The store has the change and does not answer. The same start again finds the run."""
    stores: list[FaultyStore] = []
    async with place.engine(worker=has_worker is Worker.OWN, store_seconds=SECONDS, wrap=faulty(stores)) as engine:
        stores[0].gates["commit"] = asyncio.Event()
        start = engine.start(echoed, "a", id="r-1")
        with pytest.raises(CommitUnknownError, match="not known whether run r-1 was started; start it again") as raised:
            await after_all_patience(start, at=stores[0].waiting["commit"], time=loop_time)
        assert raised.value.run_id == "r-1"
        cancelled = asyncio.create_task(engine.start(echoed, "b", id="r-2"))
        await turns_of_the_loop(10)
        cancelled.cancel()
        await asyncio.wait([cancelled])
        stores[0].gates.pop("commit").set()
        await in_time((await engine.start(echoed, "a", id="r-1")).status())

        assert await ids_in(engine) == {"r-1"}


async def test_store_that_is_busy_is_not_away(place: Place, loop_time: LoopTime) -> None:
    """A start that stands behind many others waits longer than for a store that is silent."""
    stores: list[FaultyStore] = []
    limits = outlive.limits.Limits(commit_batch_max=1)
    async with place.engine(worker=False, store_seconds=SECONDS, limits=limits, wrap=faulty(stores)) as engine:
        inner = stores[0].follow_plan

        async def slowly(name: str, verb: object) -> object:
            if name == "commit":
                loop_time.skip(seconds=SECONDS / 3)
                await turns_of_the_loop(3)
            return await inner(name, verb)  # type: ignore[arg-type]

        stores[0].follow_plan = slowly  # type: ignore[method-assign]
        runs = await asyncio.gather(*(engine.start(echoed, word) for word in "abcdefgh"))

        assert len(runs) == 8


async def test_other_verbs_raise_in_time_too(place: Place, loop_time: LoopTime) -> None:
    """One that reads, and one that writes: whether that was written is not known."""
    stores: list[FaultyStore] = []
    async with place.engine(worker=False, store_seconds=SECONDS, wrap=faulty(stores)) as engine:
        run = await engine.start(echoed, "a", id="r-1")
        for verb in ("find_run", "find_runs", "deliver"):
            stores[0].gates[verb] = asyncio.Event()
        with pytest.raises(StoreUnavailableError, match=r"has not answered for 600 s$"):
            await after_all_patience(run.info(), at=stores[0].waiting["find_run"], time=loop_time)
        # A signal asks for the run first where some workflow of the process declares signals.
        del stores[0].gates["find_run"], stores[0].gates["find_runs"]
        doubt = "for r-1 was written; repeat the call with the same id or key"
        with pytest.raises(CommitUnknownError, match=doubt) as raised:
            await after_all_patience(run.signal("go", 1), at=stores[0].waiting["deliver"], time=loop_time)
        assert raised.value.run_id == "r-1"


UNKNOWN: dict[str, tuple[str, Act, str, str]] = {
    "a cell": ("change_cell", lambda it: it.pause(workflow="echoed"), "the cell outlive.pauses", ""),
    "a schedule": (
        "change_schedules",
        lambda it: it.schedules.set("digest", outlive.every(hours=1, args={"word": "a"}), echoed),
        "the schedule digest",
        "",
    ),
    "a checkpoint": (
        "append_checkpoint",
        lambda it: it.checkpoints.append("import-1", Checkpoint(4, "DONE")),
        "checkpoint 4 of import-1",
        "import-1",
    ),
    "all checkpoints": (
        "clear_checkpoints",
        lambda it: it.checkpoints.clear("import-1"),
        "the checkpoints of import-1",
        "import-1",
    ),
    "several runs": (
        "commit",
        lambda it: it.start_many([{"start": (echoed, word), "id": f"r-{word}"} for word in "abcdefg"]),
        "r-a, r-b, r-c, r-d, r-e and 2 more",
        "",
    ),
}
"""The verb of the store, who asks for it, what the error names, and its run if it is one."""


@pytest.mark.parametrize("what", UNKNOWN)
async def test_error_of_a_write_names_what_was_written(place: Place, loop_time: LoopTime, what: str) -> None:
    """A caller can look for it, or ask again, whichever verb it was; `run_id` is there for programs."""
    verb, act, named, run_id = UNKNOWN[what]
    stores: list[FaultyStore] = []
    async with place.engine(worker=False, store_seconds=SECONDS, wrap=faulty(stores)) as engine:
        gate = stores[0].gates[verb] = asyncio.Event()
        with pytest.raises(CommitUnknownError, match=f"what was asked of it for {named} was written") as raised:
            await after_all_patience(act(engine), at=stores[0].waiting[verb], time=loop_time)
        gate.set()

        assert raised.value.run_id == run_id


async def test_message_with_a_key_is_not_sent_again_to_a_store_that_is_silent(
    place: Place, loop_time: LoopTime
) -> None:
    """A signal with a key is delivered once to a store that does not answer; then the caller gets
    CommitUnknownError."""
    stores: list[FaultyStore] = []
    async with place.engine(worker=False, store_seconds=SECONDS, wrap=faulty(stores)) as engine:
        run = await engine.start(echoed, "a", id="r-1")
        stores[0].gates["deliver"] = asyncio.Event()
        signal = run.signal("go", 1, key="evt-1")
        with pytest.raises(CommitUnknownError, match="for r-1 was written"):
            await after_all_patience(signal, at=stores[0].waiting["deliver"], time=loop_time)

        assert stores[0].calls["deliver"] == 1


async def test_caller_that_stands_in_line_behind_others_does_not_wait_twice(place: Place, loop_time: LoopTime) -> None:
    """Callers that ask for runs while a question is under way share its end when the store is silent."""
    stores: list[FaultyStore] = []
    async with place.engine(worker=False, store_seconds=SECONDS, wrap=faulty(stores)) as engine:
        runs = [await engine.start(echoed, "a") for _ in range(4)]
        for verb in ("find_run", "find_runs"):
            stores[0].gates[verb] = asyncio.Event()
        questions = stores[0].calls["find_runs"]
        looks = [asyncio.create_task(run.info()) for run in runs[:2]]
        await in_time(stores[0].waiting["find_runs"].wait())
        looks += [asyncio.create_task(run.info()) for run in runs[2:]]
        await turns_of_the_loop(10)
        loop_time.skip(seconds=SECONDS)
        await in_time(asyncio.wait(looks))

        assert [type(look.exception()) for look in looks] == [StoreUnavailableError] * 4
        assert stores[0].calls["find_runs"] == questions + 1


async def test_start_with_an_id_that_is_looked_for_in_vain_has_waited(place: Place, loop_time: LoopTime) -> None:
    """An engine with a worker looks for the id first; it does not then wait as long again for the run's creation."""
    stores: list[FaultyStore] = []
    async with place.engine(store_seconds=SECONDS, wrap=faulty(stores)) as engine:
        for verb in ("find_run", "find_runs", "commit"):
            stores[0].gates[verb] = asyncio.Event()
        commits = stores[0].calls["commit"]
        start = engine.start(echoed, "a", id="r-1")
        with pytest.raises(StoreUnavailableError, match="has not answered for 600 s; run r-1 was not started"):
            await after_all_patience(start, at=stores[0].waiting["find_runs"], time=loop_time)

        assert stores[0].calls["commit"] == commits
        for gate in stores[0].gates.values():
            gate.set()


async def test_verb_for_many_runs_waits_for_the_store_once(place: Place, loop_time: LoopTime) -> None:
    """Runs that were not begun with when the store fell silent are refused at once, with the same reason."""
    stores: list[FaultyStore] = []
    async with place.engine(worker=False, store_seconds=SECONDS, wrap=faulty(stores)) as engine:
        for number in range(AT_ONCE + 6):
            await engine.start(echoed, "a", id=f"r-{number:02}")
        stores[0].gates["commit"] = asyncio.Event()
        commits = stores[0].calls["commit"]
        cancelling = asyncio.create_task(engine.cancel(workflow="echoed"))
        await asked(stores[0], "commit", times=commits + AT_ONCE)
        loop_time.skip(seconds=SECONDS)
        outcomes = await in_time(cancelling)

        assert stores[0].calls["commit"] == commits + AT_ONCE
        assert [it.error for it in outcomes[-6:]] == ["StoreUnavailableError"] * 6
        assert not any(it.done for it in outcomes)
