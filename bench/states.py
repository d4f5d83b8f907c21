"""What a transition of a machine costs beside a step of a function, and how fast a long machine is replayed.

Both are told the same thing, to count: as a function that gives a number to a step and takes it back, and as a machine
that carries the number from state to state. They are measured in one process and in turns, a few hundred runs of the
one and then of the other, so that whatever else happens on the machine falls on both.

The replay is what a process does that comes after the one which made the transitions: an engine is opened, finds a
signal for the run, reads its journal, goes through all of its transitions without calling a handler, and ends it. The
clock runs from the opening to the result. A function of as many steps is replayed in the same way beside it.
"""

from __future__ import annotations

import asyncio
import enum
import time
from typing import Any

import outlive
from bench.meter import STEPS_PER_RUN, Figures, Order, keep_open

TURNS = 8
"""How often the two take turns."""
NAP_SECONDS = 0.01


class S(enum.Enum):
    COUNT = "count"
    ASK = "ask"
    DONE = "done"


@outlive.step
async def add(number: int) -> int:
    return number + 1


@outlive.workflow
async def counting_function() -> int:
    number = 0
    for _ in range(STEPS_PER_RUN):
        number = await add(number)
    return number


@outlive.workflow
async def long_function(n: int) -> int:
    number = 0
    for _ in range(n):
        number = await add(number)
    await outlive.wait_for_signal("go")
    return number


counting = outlive.Machine("bench.counting", S, data=int, start=S.COUNT, exits=[S.DONE])


@counting.state(S.COUNT)
async def count(data: int) -> tuple[S, int]:
    return (S.COUNT if data + 1 < STEPS_PER_RUN else S.DONE), data + 1


@counting.state(S.ASK)
async def not_asked(data: int) -> S:
    return S.DONE


long_machine = outlive.Machine(
    "bench.long", S, data=tuple[int, int], start=S.COUNT, exits=[S.DONE], snapshot_after=None
)


@long_machine.state(S.COUNT)
async def count_long(data: tuple[int, int]) -> tuple[S, tuple[int, int]]:
    number, wanted = data
    return (S.COUNT if number + 1 < wanted else S.ASK), (number + 1, wanted)


@long_machine.workflow(S.ASK)
async def ask(data: tuple[int, int]) -> S:
    await outlive.wait_for_signal("go")
    return S.DONE


async def compare(order: Order) -> Figures:
    """W9: steps of a function and transitions of a machine, in turns."""
    seconds = {"step": 0.0, "transition": 0.0}
    each = max(10, order.n // TURNS)
    async with outlive.Engine(order.database) as engine:

        async def complete(told: str, turn: int, number: int) -> None:
            run_id = f"{told}-{turn}-{number}"
            run: Any
            if told == "step":
                run = await engine.start(counting_function, id=run_id)
            else:
                run = await engine.start(counting, 0, id=run_id)
            await run.result()

        for turn in range(-1, TURNS):
            for told in seconds:
                began = time.perf_counter()
                await keep_open(each, lambda number: complete(told, turn, number))  # noqa: B023
                # The first turn is nobody's figure: lazy imports, first connections, and a WAL that grows.
                seconds[told] += time.perf_counter() - began if turn >= 0 else 0.0
    done = TURNS * each * STEPS_PER_RUN
    return {
        "step_rate": done / seconds["step"],
        "rate": done / seconds["transition"],
        "ratio": seconds["transition"] / seconds["step"],
    }


async def replay(order: Order) -> Figures:
    """W10: a run that has made all of its transitions goes on in another engine."""
    figures: Figures = {}
    starts: tuple[tuple[str, Any, Any], ...] = (
        ("function", long_function, order.n),
        ("replay", long_machine, (0, order.n)),
    )
    for told, workflow, given in starts:
        async with outlive.Engine(order.database) as engine:
            run: Any = await engine.start(workflow, given, id=told)
            while await run.status() != "waiting":  # noqa: ASYNC110
                # It says nothing when it waits, and nobody is in a hurry here.
                await asyncio.sleep(NAP_SECONDS)
        async with outlive.Engine(order.database, worker=False) as engine:
            await engine.signal(told, "go")
        began = time.perf_counter()
        async with outlive.Engine(order.database) as engine:
            await engine.get(told).result()
            figures[f"{told}_seconds"] = time.perf_counter() - began
    return figures


MEASURES = {"W9": compare, "W10": replay}
