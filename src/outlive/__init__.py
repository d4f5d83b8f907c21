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
    from outlive._define.approval import wait_for_approval
    from outlive._define.asks import asks
    from outlive._define.decide import continue_as_new, emit, patched, publish, set_tags
    from outlive._define.in_run import (
        current_run,
        now,
        random,
        sleep_until,
        start,
        uuid4,
        wait_condition,
        wait_for_signal,
    )
    from outlive._define.in_step import current_step
    from outlive._define.logger import get_logger
    from outlive._define.machine.machine import Machine
    from outlive._define.map import map
    from outlive._define.promise import promise
    from outlive._define.remote import remote_step
    from outlive._define.resources import resource, use
    from outlive._define.run_step import run_step
    from outlive._define.saga import saga
    from outlive._define.schedule import cron, every, tick
    from outlive._define.step import step
    from outlive._define.talking import ask, cancel, get, signal
    from outlive._define.workflow import workflow
    from outlive._model import Retry
    from outlive._model.queue import Queue
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
    "Machine": "outlive._define.machine.machine",
    "Queue": "outlive._model.queue",
    "Retry": "outlive._model",
    "ask": "outlive._define.talking",
    "asks": "outlive._define.asks",
    "cancel": "outlive._define.talking",
    "connect": "outlive.remote",
    "continue_as_new": "outlive._define.decide",
    "cron": "outlive._define.schedule",
    "current_engine": "outlive.engine.current",
    "current_run": "outlive._define.in_run",
    "current_step": "outlive._define.in_step",
    "emit": "outlive._define.decide",
    "every": "outlive._define.schedule",
    "get": "outlive._define.talking",
    "get_logger": "outlive._define.logger",
    "map": "outlive._define.map",
    "now": "outlive._define.in_run",
    "patched": "outlive._define.decide",
    "promise": "outlive._define.promise",
    "publish": "outlive._define.decide",
    "random": "outlive._define.in_run",
    "remote_step": "outlive._define.remote",
    "resource": "outlive._define.resources",
    "run_step": "outlive._define.run_step",
    "saga": "outlive._define.saga",
    "set_tags": "outlive._define.decide",
    "signal": "outlive._define.talking",
    "sleep_until": "outlive._define.in_run",
    "start": "outlive._define.in_run",
    "step": "outlive._define.step",
    "tick": "outlive._define.schedule",
    "use": "outlive._define.resources",
    "uuid4": "outlive._define.in_run",
    "wait_condition": "outlive._define.in_run",
    "wait_for_approval": "outlive._define.approval",
    "wait_for_signal": "outlive._define.in_run",
    "workflow": "outlive._define.workflow",
    **{name: f"outlive.{name}" for name in _NAMESPACES},
}
"""Loaded when they are first asked for: a module that only defines workflows needs no engine, and `outlive --help` none
of them."""

if not TYPE_CHECKING:  # A type checker that sees it takes every misspelt name for one that may exist.
    __getattr__ = on_demand(__name__, _HOMES)


def __dir__() -> list[str]:
    """The names for users who press Tab, and the modules that have more of them."""
    return [*__all__, *_NAMESPACES]
