"""Outlive: Python workflows that outlive their process.

import outlive

@outlive.step
async def greet(name: str) -> str: ...

@outlive.workflow
async def hello(name: str) -> str:
    return await greet(name)

async with outlive.Engine("sqlite:hello.db") as engine:
    run = await engine.start(hello, "world", id="hello-1")
    print(await run.result())
"""

from typing import TYPE_CHECKING, Any

from outlive._define.inside import current_step, now, random, sleep_until, start, uuid4, wait_for_signal
from outlive._define.step import Step, step
from outlive._define.workflow import Workflow, workflow
from outlive._model import Limits, Retry, Run, RunStatus
from outlive.errors import (
    OutliveError,
    RunCancelled,
    RunFailed,
    RunTimedOut,
    StepFailed,
    StepInterrupted,
    StepTimeoutError,
)

if TYPE_CHECKING:
    from outlive.client.handle import RunHandle
    from outlive.engine import Engine

__version__ = "0.1.0"

__all__ = [
    "Engine",
    "Limits",
    "OutliveError",
    "Retry",
    "Run",
    "RunCancelled",
    "RunFailed",
    "RunHandle",
    "RunStatus",
    "RunTimedOut",
    "Step",
    "StepFailed",
    "StepInterrupted",
    "StepTimeoutError",
    "Workflow",
    "__version__",
    "current_step",
    "now",
    "random",
    "sleep_until",
    "start",
    "step",
    "uuid4",
    "wait_for_signal",
    "workflow",
]


def __getattr__(name: str) -> Any:
    """Load the engine when it is first asked for: a module that only defines workflows should import in no time."""
    if name == "Engine":
        from outlive.engine import Engine

        return Engine
    if name == "RunHandle":
        from outlive.client.handle import RunHandle

        return RunHandle
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
