"""A run of one step: `engine.start(step, ...)`.

The run has the name of the step in the place of a workflow's, and a version that no workflow has. Everything else is as
in every run: an id, a queue, tags, a history of one call, which is tried again as the step itself says. A worker that
has the step can run it, whichever program started it.
"""

from __future__ import annotations

import functools
from typing import Any

from outlive._kernel.replay.ask import run_step, this_execution
from outlive._kernel.replay.command import StepSpec, WorkflowSpec

STEP_VERSION = 0
"""The version of the runs of a step. Versions of workflows begin with 1."""


def run_of(step: StepSpec) -> WorkflowSpec:
    """The workflow that calls a step and returns its result."""

    @functools.wraps(step.fn)
    async def call_step(*args: Any, **kwargs: Any) -> Any:
        return await run_step(this_execution("start"), step, step.options, args, kwargs)

    return WorkflowSpec(
        name=step.name, version=STEP_VERSION, fn=call_step, signature=step.signature, registered=step.registered
    )
