"""How many functions of Outlive a step of a flow calls, beside a step of a function.

See `tests.kernel.test_calls_per_run`.
"""

from __future__ import annotations

from outlive import Engine, flow
from outlive.types import WorkerOptions
from tests.kernel.test_calls_per_run import SELDOM_SECONDS, STEPS, count_calls, many_counted_steps, one_counted_step

FACTOR_MAX = 1.5


def counting(steps: int) -> flow.FlowWorkflow:
    """A chain of steps, each with the result of the one before."""
    sources = ["input", *(f"steps.s{number}" for number in range(steps))]
    line = '  s{}: {{ use: add_counted, with: {{ number: "${{{{ {} }}}}" }} }}'
    body = "\n".join(line.format(number, sources[number]) for number in range(steps))
    return flow.parse(f'name: counting-{steps}\nsteps:\n{body}\noutput: "${{{{ steps.s{steps - 1} }}}}"\n')


async def test_a_step_of_a_flow_calls_little_more_than_a_step_of_a_function() -> None:
    """It is awaited in the task of the run: no task, no wait, no copy of the scope."""
    one, many = counting(1), counting(STEPS)
    async with Engine(
        "memory:", poll_seconds=SELDOM_SECONDS, worker=WorkerOptions(lease_seconds=SELDOM_SECONDS)
    ) as engine:
        plain = await count_calls(engine, many_counted_steps) - await count_calls(engine, one_counted_step)
        flowing = await count_calls(engine, many) - await count_calls(engine, one)

    step, flow_step = plain / (STEPS - 1), flowing / (STEPS - 1)
    assert flow_step <= FACTOR_MAX * step, (
        f"{flow_step:.1f} calls for a step of a flow, {step:.1f} for one of a function"
    )
