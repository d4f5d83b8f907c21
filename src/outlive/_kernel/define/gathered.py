"""`outlive.start(..., debounce=...)`: a workflow starts a run that others, and other runs, may start too.

Which run the starts of a key belong to is decided by the store when a start comes. So the start is a step of Outlive's
own, which uses the engine that runs it (as in `talking`), and the journal has the id of the run that it led to. If the
worker dies between the two, the next worker starts once more, and that belongs to the same burst, unless it has begun.
"""

from __future__ import annotations

from typing import Any

from outlive._kernel.define.in_step import CURRENT_STEP
from outlive._kernel.define.talking import OWN_OPTIONS
from outlive._kernel.define.workflow import Bound
from outlive._kernel.journal.arguments import Signature
from outlive._kernel.model.burst import Debounce, Throttle
from outlive._kernel.replay.ask import run_step
from outlive._kernel.replay.command import StepSpec
from outlive._kernel.replay.execution import Execution
from outlive.errors import OutliveError

NAME = "outlive.start"


async def start_gathered(
    execution: Execution,
    wanted: Bound[Any],
    gather: Debounce | Throttle,
    *,
    tags: dict[str, str],
    timeout_seconds: float | None,
) -> str:
    """The id of the run that a start of this key belongs to."""
    signature = wanted.workflow.spec.signature
    # Encoded as in a journal: a later change of the values by the workflow does not reach the other run.
    arguments = signature.encode(wanted.args, wanted.kwargs)

    async def start(workflow: str, key: str) -> str:
        source = CURRENT_STEP.get()
        assert source.engine is not None
        args, kwargs = signature.decode(arguments)
        run = await source.engine.start(
            Bound(wanted.workflow, tuple(args), kwargs),
            tags=tags or None,
            timeout=timeout_seconds,
            headers=source.context().headers or None,
            debounce=gather if isinstance(gather, Debounce) else None,
            throttle=gather if isinstance(gather, Throttle) else None,
        )
        return str(run.id)

    spec = StepSpec(
        name=NAME,
        fn=start,
        signature=Signature(start, NAME),
        is_async=True,
        options=OWN_OPTIONS,
        registered=(OutliveError,),
    )
    run_id: str = await run_step(execution, spec, OWN_OPTIONS, (wanted.workflow.spec.name, gather.key), {})
    return run_id
