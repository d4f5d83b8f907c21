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

from typing import TYPE_CHECKING

from outlive._on_demand import on_demand

if TYPE_CHECKING:
    from outlive import (
        checkpoints as checkpoints,
    )
    from outlive import (
        codecs as codecs,
    )
    from outlive import (
        errors as errors,
    )
    from outlive import (
        events as events,
    )
    from outlive import (
        flow as flow,
    )
    from outlive import (
        http as http,
    )
    from outlive import (
        integrations as integrations,
    )
    from outlive import (
        limits as limits,
    )
    from outlive import (
        machine as machine,
    )
    from outlive import (
        metrics as metrics,
    )
    from outlive import (
        middleware as middleware,
    )
    from outlive import (
        retention as retention,
    )
    from outlive import (
        testing as testing,
    )
    from outlive import (
        types as types,
    )
    from outlive._features.approvals.in_workflow import wait_for_approval
    from outlive._features.machines.machine import Machine
    from outlive._features.promises.in_workflow import promise
    from outlive._features.schedules.in_code import cron, every, tick
    from outlive._features.tasks.remote_step import remote_step
    from outlive._kernel.define.asks import asks
    from outlive._kernel.define.decide import continue_as_new, emit, patched, publish, set_tags
    from outlive._kernel.define.in_run import (
        current_run,
        now,
        random,
        sleep_until,
        start,
        uuid4,
        wait_condition,
        wait_for_signal,
    )
    from outlive._kernel.define.in_step import current_step
    from outlive._kernel.define.logger import get_logger
    from outlive._kernel.define.map import map
    from outlive._kernel.define.resources import resource, use
    from outlive._kernel.define.run_step import run_step
    from outlive._kernel.define.saga import saga
    from outlive._kernel.define.step import step
    from outlive._kernel.define.talking import ask, cancel, get, signal
    from outlive._kernel.define.workflow import workflow
    from outlive._kernel.model import Retry
    from outlive._kernel.model.queue import Queue
    from outlive.engine import Engine
    from outlive.engine.current import current_engine
    from outlive.remote import connect

__version__ = "0.1.0"

__all__ = [
    "Engine",
    "Machine",
    "Queue",
    "Retry",
    "__version__",
    "ask",
    "asks",
    "cancel",
    "connect",
    "continue_as_new",
    "cron",
    "current_engine",
    "current_run",
    "current_step",
    "emit",
    "every",
    "get",
    "get_logger",
    "map",
    "now",
    "patched",
    "promise",
    "publish",
    "random",
    "remote_step",
    "resource",
    "run_step",
    "saga",
    "set_tags",
    "signal",
    "sleep_until",
    "start",
    "step",
    "tick",
    "use",
    "uuid4",
    "wait_condition",
    "wait_for_approval",
    "wait_for_signal",
    "workflow",
]

_NAMESPACES = (
    "checkpoints",
    "codecs",
    "errors",
    "events",
    "flow",
    "http",
    "integrations",
    "limits",
    "machine",
    "metrics",
    "middleware",
    "retention",
    "testing",
    "types",
)
"""Modules with the other public names, each under its subject; attributes without an import of their own."""

_HOMES = {
    "Engine": "outlive.engine",
    "Machine": "outlive._features.machines.machine",
    "Queue": "outlive._kernel.model.queue",
    "Retry": "outlive._kernel.model",
    "ask": "outlive._kernel.define.talking",
    "asks": "outlive._kernel.define.asks",
    "cancel": "outlive._kernel.define.talking",
    "connect": "outlive.remote",
    "continue_as_new": "outlive._kernel.define.decide",
    "cron": "outlive._features.schedules.in_code",
    "current_engine": "outlive.engine.current",
    "current_run": "outlive._kernel.define.in_run",
    "current_step": "outlive._kernel.define.in_step",
    "emit": "outlive._kernel.define.decide",
    "every": "outlive._features.schedules.in_code",
    "get": "outlive._kernel.define.talking",
    "get_logger": "outlive._kernel.define.logger",
    "map": "outlive._kernel.define.map",
    "now": "outlive._kernel.define.in_run",
    "patched": "outlive._kernel.define.decide",
    "promise": "outlive._features.promises.in_workflow",
    "publish": "outlive._kernel.define.decide",
    "random": "outlive._kernel.define.in_run",
    "remote_step": "outlive._features.tasks.remote_step",
    "resource": "outlive._kernel.define.resources",
    "run_step": "outlive._kernel.define.run_step",
    "saga": "outlive._kernel.define.saga",
    "set_tags": "outlive._kernel.define.decide",
    "signal": "outlive._kernel.define.talking",
    "sleep_until": "outlive._kernel.define.in_run",
    "start": "outlive._kernel.define.in_run",
    "step": "outlive._kernel.define.step",
    "tick": "outlive._features.schedules.in_code",
    "use": "outlive._kernel.define.resources",
    "uuid4": "outlive._kernel.define.in_run",
    "wait_condition": "outlive._kernel.define.in_run",
    "wait_for_approval": "outlive._features.approvals.in_workflow",
    "wait_for_signal": "outlive._kernel.define.in_run",
    "workflow": "outlive._kernel.define.workflow",
    **{name: f"outlive.{name}" for name in _NAMESPACES},
}
"""Loaded when they are first asked for: a module that only defines workflows needs no engine, and `outlive --help` none
of them."""

if not TYPE_CHECKING:  # A type checker that sees it takes every misspelt name for one that may exist.
    __getattr__ = on_demand(__name__, _HOMES)


def __dir__() -> list[str]:
    """The names for users who press Tab, and the modules that have more of them."""
    return [*__all__, *_NAMESPACES]
