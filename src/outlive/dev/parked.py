"""Runs that were parked because of the code are tried again when the code has changed.

In production a person resumes them after a deploy, because that person knows which deploy was meant to help. Here the
person who saves a file is that person. A run that still does not fit the code is parked again, with the new reason.
Runs that are parked for another reason (paused, quarantined, an undo that failed) stay as they are.
"""

from __future__ import annotations

import re
from contextlib import suppress

from outlive._kernel.model import definition_key
from outlive.engine import Engine
from outlive.errors import RunNotFoundError
from outlive.errors.run import RunNotParkedError

RUNS_MAX = 100
"""How many are tried again after one change, the newest first."""
NAMES_MAX = 3

_BECAUSE_OF_CODE = re.compile(
    r"the code of \S+ no longer matches the journal|\S+@\d+ stopped at event \d+: |it could not be replayed: "
)


def is_because_of_code(reason: str) -> bool:
    """Whether a run was parked for something that other code may do otherwise."""
    return _BECAUSE_OF_CODE.match(reason) is not None


async def try_again(engine: Engine) -> list[str]:
    """Resume the runs of this program that were parked because of the code; what to say about it, line by line."""
    own, tried = set(engine._registry.definitions()), []
    for run in await engine.list(status="parked", limit=RUNS_MAX):
        if definition_key(run.workflow, run.version) in own and is_because_of_code(run.reason):
            with suppress(RunNotFoundError, RunNotParkedError):  # Another worker or a person was faster.
                await engine.resume(run.id)
                tried.append(run.id)
    if not tried:
        return []
    what = "a parked run" if len(tried) == 1 else f"{len(tried)} parked runs"
    more = f" and {len(tried) - NAMES_MAX} more" if len(tried) > NAMES_MAX else ""
    return [f"{what} will be tried again with this code: {', '.join(tried[:NAMES_MAX])}{more}"]
