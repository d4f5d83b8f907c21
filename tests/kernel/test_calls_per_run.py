"""How many functions of Outlive a run calls on the event loop: the layers are counted, so that they stay thin.

Calls are counted and not timed: the count hardly depends on the machine, and a new layer in the way of a step shows up
at once. `docs/internals/performance.md` has the figures. The bounds leave a little room, as commits come in more or in
fewer batches; a change that makes a path shorter lowers them. Later versions of Python call fewer frames for the same
code.
"""

import asyncio
import itertools
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import outlive
from outlive import Engine
from outlive._kernel.client.turns import CALLS_PER_TURN_MAX
from outlive._kernel.model import Run
from outlive.errors import StoreError
from outlive.types import WorkerOptions
from tests.engine.inside import store_of

PACKAGE = str(Path(outlive.__file__).parent)
RUNS = 20
STEPS = 11
SELDOM_SECONDS = 600.0
"""For what the engine does now and then, which is not counted."""
IDS = itertools.count()


@outlive.step
async def add_counted(number: int) -> int:
    """The shortest step there is."""
    return number + 1


@outlive.workflow
async def one_counted_step(number: int) -> int:
    """As in W1 of the bench."""
    return await add_counted(number)


@outlive.workflow
async def many_counted_steps(number: int) -> int:
    """As in W2."""
    for _ in range(STEPS):
        number = await add_counted(number)
    return number


async def run_all(engine: Engine, workflow: Callable[[int], Any]) -> None:
    """Start many runs at once, each with an id as most programs give it, and wait for all of them."""
    handles = await asyncio.gather(*[engine.start(workflow, number, id=f"{next(IDS)}") for number in range(RUNS)])
    await asyncio.gather(*[handle.result() for handle in handles])


async def calls_of(work: Callable[[], Awaitable[Any]]) -> int:
    """Calls of our functions on this thread."""
    calls = 0

    def note(frame: FrameType, event: str, arg: object) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code.co_filename.startswith(PACKAGE)

    sys.setprofile(note)
    try:
        await work()
    finally:
        sys.setprofile(None)
    return calls


async def count_calls(engine: Engine, workflow: Callable[[int], Any]) -> float:
    """Calls of our functions for each run; the least of a few trials, as batches differ."""
    await run_all(engine, workflow)  # What happens once in a process does not count.
    return min([await calls_of(partial(run_all, engine, workflow)) / RUNS for _ in range(3)])


@pytest.mark.parametrize(("store", "run_max", "step_max"), [("memory:", 207, 52), ("sqlite:", 198, 48)])
async def test_a_run_and_a_step_cost_no_more_calls_than_they_did(
    store: str, run_max: float, step_max: float, tmp_path: Path
) -> None:
    """A run of one step (W1), and each further step of a longer one (W2)."""
    url = store if store == "memory:" else f"{store}{tmp_path / 'calls.db'}"
    async with Engine(url, poll_seconds=SELDOM_SECONDS, worker=WorkerOptions(lease_seconds=SELDOM_SECONDS)) as engine:
        run = await count_calls(engine, one_counted_step)
        step = (await count_calls(engine, many_counted_steps) - run) / (STEPS - 1)

    assert (run <= run_max, step <= step_max) == (True, True), f"{run:.1f} calls for a run, {step:.1f} for a step"


async def test_a_start_of_a_burst_calls_almost_nothing_before_it_waits() -> None:
    """Starts beyond those of one turn of the loop wait before anything else, options that they have included: a hundred
    thousand of them come in one turn."""
    async with Engine("memory:", poll_seconds=SELDOM_SECONDS) as engine:
        calls = []
        for more in (0, 1_000):
            starts = [
                asyncio.ensure_future(engine.start(one_counted_step, number, delay="1d"))
                for number in range(CALLS_PER_TURN_MAX + more)
            ]
            calls.append(await calls_of(partial(asyncio.sleep, 0)))
            await asyncio.gather(*starts)

    assert (calls[1] - calls[0]) / 1_000 <= 4


async def test_starts_that_come_together_ask_the_store_for_their_ids_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start with an id looks first whether a run has it; on a server, that would be a round trip for each."""
    async with Engine("memory:") as engine:
        store, asked = store_of(engine), []
        find_runs = store.find_runs

        async def note(run_ids: Sequence[str]) -> dict[str, Run]:
            asked.append(len(run_ids))
            return await find_runs(run_ids)

        monkeypatch.setattr(store, "find_runs", note)
        await asyncio.gather(*[engine.start(one_counted_step, 1, id=f"together-{number}") for number in range(50)])

    assert asked == [50]


async def test_a_look_for_ids_that_fails_fails_its_starts_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next start asks again."""
    async with Engine("memory:") as engine:
        with monkeypatch.context() as patched:
            patched.setattr(store_of(engine), "find_runs", fail_to_find)
            starts = [engine.start(one_counted_step, 1, id=f"failing-{number}") for number in range(2)]
            outcomes = await asyncio.gather(*starts, return_exceptions=True)

        assert [str(outcome) for outcome in outcomes] == ["out of order", "out of order"]
        assert await (await engine.start(one_counted_step, 1, id="failing-0")).result() == 2


async def fail_to_find(run_ids: Sequence[str]) -> dict[str, Run]:
    """A store with a defect."""
    raise StoreError("out of order")
