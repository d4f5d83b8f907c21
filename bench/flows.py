"""What a step of a flow costs beside a step of a function: both count, in one process and in turns."""

from __future__ import annotations

import time
from typing import Any

import outlive
from bench.meter import STEPS_PER_RUN, Figures, Order, keep_open
from bench.states import TURNS, counting_function
from outlive import flow

_STEPS = [
    f'  s{number}: {{ use: add, with: {{ number: "${{{{ {f"steps.s{number - 1}" if number else "input"} }}}}" }} }}\n'
    for number in range(STEPS_PER_RUN)
]
DOCUMENT = f'name: bench-counting\nsteps:\n{"".join(_STEPS)}output: "${{{{ steps.s{STEPS_PER_RUN - 1} }}}}"\n'


async def compare(order: Order) -> Figures:
    """W12: steps of a function and steps of a flow, in turns."""
    seconds = {"function": 0.0, "flow": 0.0}
    each = max(10, order.n // TURNS)
    counting = flow.parse(DOCUMENT)
    async with outlive.Engine(order.database) as engine:

        async def complete(told: str, turn: int, number: int) -> None:
            run_id = f"{told}-{turn}-{number}"
            run: Any
            if told == "flow":
                run = await engine.start(counting, 0, id=run_id)
            else:
                run = await engine.start(counting_function, id=run_id)
            assert await run.result() == STEPS_PER_RUN

        for turn in range(-1, TURNS):
            for told in seconds:
                began = time.perf_counter()
                await keep_open(each, lambda number: complete(told, turn, number))  # noqa: B023
                # The first turn counts for neither: lazy imports, first connections, and a WAL that grows.
                seconds[told] += time.perf_counter() - began if turn >= 0 else 0.0
    done = TURNS * each * STEPS_PER_RUN
    return {
        "step_rate": done / seconds["function"],
        "rate": done / seconds["flow"],
        "ratio": seconds["flow"] / seconds["function"],
    }


MEASURES = {"W12": compare}
