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

import typing
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from outlive._define.approval import wait_for_approval
    from outlive._define.asks import Ask, asks, asks_answered
    from outlive._define.decide import continue_as_new, emit, patched, publish, set_tags
    from outlive._define.in_run import RunContext, current_run, now, random, sleep_until, start, uuid4, wait_for_signal
    from outlive._define.in_step import StepContext, current_step
    from outlive._define.json_log import JsonFormatter
    from outlive._define.logger import get_logger
    from outlive._define.machine.answer import More, Pending
    from outlive._define.machine.joins import All, Any, PartialResults, PartialTimeout, Percentage, Quorum
    from outlive._define.machine.machine import Machine
    from outlive._define.machine.observer import Observer
    from outlive._define.machine.wire import MachineResult
    from outlive._define.map import Tolerance, map
    from outlive._define.middleware import Middleware, StartCall
    from outlive._define.promise import promise
    from outlive._define.remote import RemoteStep, remote_step
    from outlive._define.resources import Resource, resource, use
    from outlive._define.run_step import run_step
    from outlive._define.saga import SagaBlock, saga
    from outlive._define.schedule import cron, every, tick
    from outlive._define.step import Step, step
    from outlive._define.talking import cancel, get, send_event, signal
    from outlive._define.tracing import Tracing
    from outlive._define.workflow import Workflow, workflow
    from outlive._model import Limits, Recovery, Retry
    from outlive._model.approval import Approval, ApprovalNotice
    from outlive._model.breaker import Breaker
    from outlive._model.burst import Debounce, Throttle
    from outlive._model.checkpoint import Checkpoint, CheckpointKind
    from outlive._model.limit import FixedWindow, RateLimit, TokenBucket
    from outlive._model.published import REMOVED
    from outlive._model.queue import Queue
    from outlive._model.retention import Keep, KeepAudit
    from outlive._model.schedule import Schedule
    from outlive._store.handle import SyncTx, Tx
    from outlive._values.run import Run
    from outlive.client.acting import acting
    from outlive.client.archive import read_archive
    from outlive.client.batch import Batch, BatchItem
    from outlive.client.checkpoints import CheckpointStore
    from outlive.client.handle import RunHandle
    from outlive.client.purging import Purge
    from outlive.client.streams import StreamItem
    from outlive.engine import Engine
    from outlive.engine.checkpoints import checkpoints
    from outlive.engine.current import current_engine
    from outlive.engine.health import Health
    from outlive.errors import (
        ApprovalExpired,
        AskFailed,
        AskRefusedError,
        AskTimeoutError,
        CircuitOpenError,
        OutliveError,
        PromiseFailed,
        RateLimitedError,
        ResourceError,
        RunCancelled,
        RunFailed,
        RunParkedError,
        RunTimedOut,
        StepFailed,
        StepInterrupted,
        StepSkipped,
        StepTimeoutError,
        ToleranceExceededError,
    )
    from outlive.remote import connect

__version__ = "0.1.0"

__all__ = [
    "REMOVED",
    "All",
    "Any",
    "Approval",
    "ApprovalExpired",
    "ApprovalNotice",
    "Ask",
    "AskFailed",
    "AskRefusedError",
    "AskTimeoutError",
    "Batch",
    "BatchItem",
    "Breaker",
    "Checkpoint",
    "CheckpointKind",
    "CheckpointStore",
    "CircuitOpenError",
    "Debounce",
    "Engine",
    "FixedWindow",
    "Health",
    "JsonFormatter",
    "Keep",
    "KeepAudit",
    "Limits",
    "Machine",
    "MachineResult",
    "Middleware",
    "More",
    "Observer",
    "OutliveError",
    "PartialResults",
    "PartialTimeout",
    "Pending",
    "Percentage",
    "PromiseFailed",
    "Purge",
    "Queue",
    "Quorum",
    "RateLimit",
    "RateLimitedError",
    "Recovery",
    "RemoteStep",
    "Resource",
    "ResourceError",
    "Retry",
    "Run",
    "RunCancelled",
    "RunContext",
    "RunFailed",
    "RunHandle",
    "RunParkedError",
    "RunTimedOut",
    "SagaBlock",
    "Schedule",
    "StartCall",
    "Step",
    "StepContext",
    "StepFailed",
    "StepInterrupted",
    "StepSkipped",
    "StepTimeoutError",
    "StreamItem",
    "SyncTx",
    "Throttle",
    "TokenBucket",
    "Tolerance",
    "ToleranceExceededError",
    "Tracing",
    "Tx",
    "Workflow",
    "__version__",
    "acting",
    "asks",
    "asks_answered",
    "cancel",
    "checkpoints",
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
    "read_archive",
    "remote_step",
    "resource",
    "run_step",
    "saga",
    "send_event",
    "set_tags",
    "signal",
    "sleep_until",
    "start",
    "step",
    "tick",
    "use",
    "uuid4",
    "wait_for_approval",
    "wait_for_signal",
    "workflow",
]


_ON_DEMAND = {
    "All": "outlive._define.machine.joins",
    "Any": "outlive._define.machine.joins",
    "Approval": "outlive._model.approval",
    "ApprovalExpired": "outlive.errors",
    "ApprovalNotice": "outlive._model.approval",
    "Ask": "outlive._define.asks",
    "AskFailed": "outlive.errors",
    "AskRefusedError": "outlive.errors",
    "AskTimeoutError": "outlive.errors",
    "Batch": "outlive.client.batch",
    "BatchItem": "outlive.client.batch",
    "Breaker": "outlive._model.breaker",
    "Checkpoint": "outlive._model.checkpoint",
    "CheckpointKind": "outlive._model.checkpoint",
    "CheckpointStore": "outlive.client.checkpoints",
    "CircuitOpenError": "outlive.errors",
    "Debounce": "outlive._model.burst",
    "Engine": "outlive.engine",
    "FixedWindow": "outlive._model.limit",
    "Health": "outlive.engine.health",
    "JsonFormatter": "outlive._define.json_log",
    "Keep": "outlive._model.retention",
    "KeepAudit": "outlive._model.retention",
    "Limits": "outlive._model",
    "Machine": "outlive._define.machine.machine",
    "MachineResult": "outlive._define.machine.wire",
    "Middleware": "outlive._define.middleware",
    "More": "outlive._define.machine.answer",
    "Observer": "outlive._define.machine.observer",
    "OutliveError": "outlive.errors",
    "PartialResults": "outlive._define.machine.joins",
    "PartialTimeout": "outlive._define.machine.joins",
    "Pending": "outlive._define.machine.answer",
    "Percentage": "outlive._define.machine.joins",
    "PromiseFailed": "outlive.errors",
    "Purge": "outlive.client.purging",
    "Queue": "outlive._model.queue",
    "Quorum": "outlive._define.machine.joins",
    "REMOVED": "outlive._model.published",
    "RateLimit": "outlive._model.limit",
    "RateLimitedError": "outlive.errors",
    "Recovery": "outlive._model",
    "RemoteStep": "outlive._define.remote",
    "Resource": "outlive._define.resources",
    "ResourceError": "outlive.errors",
    "Retry": "outlive._model",
    "Run": "outlive._values.run",
    "RunCancelled": "outlive.errors",
    "RunContext": "outlive._define.in_run",
    "RunFailed": "outlive.errors",
    "RunHandle": "outlive.client.handle",
    "RunParkedError": "outlive.errors",
    "RunTimedOut": "outlive.errors",
    "SagaBlock": "outlive._define.saga",
    "Schedule": "outlive._model.schedule",
    "StartCall": "outlive._define.middleware",
    "Step": "outlive._define.step",
    "StepContext": "outlive._define.in_step",
    "StepFailed": "outlive.errors",
    "StepInterrupted": "outlive.errors",
    "StepSkipped": "outlive.errors",
    "StepTimeoutError": "outlive.errors",
    "StreamItem": "outlive.client.streams",
    "SyncTx": "outlive._store.handle",
    "Throttle": "outlive._model.burst",
    "TokenBucket": "outlive._model.limit",
    "Tolerance": "outlive._define.map",
    "ToleranceExceededError": "outlive.errors",
    "Tracing": "outlive._define.tracing",
    "Tx": "outlive._store.handle",
    "Workflow": "outlive._define.workflow",
    "acting": "outlive.client.acting",
    "asks": "outlive._define.asks",
    "asks_answered": "outlive._define.asks",
    "cancel": "outlive._define.talking",
    "checkpoints": "outlive.engine.checkpoints",
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
    "read_archive": "outlive.client.archive",
    "remote_step": "outlive._define.remote",
    "resource": "outlive._define.resources",
    "run_step": "outlive._define.run_step",
    "saga": "outlive._define.saga",
    "send_event": "outlive._define.talking",
    "set_tags": "outlive._define.decide",
    "signal": "outlive._define.talking",
    "sleep_until": "outlive._define.in_run",
    "start": "outlive._define.in_run",
    "step": "outlive._define.step",
    "tick": "outlive._define.schedule",
    "use": "outlive._define.resources",
    "uuid4": "outlive._define.in_run",
    "wait_for_approval": "outlive._define.approval",
    "wait_for_signal": "outlive._define.in_run",
    "workflow": "outlive._define.workflow",
}
"""Loaded when they are first asked for: a module that only defines workflows needs no engine, and `outlive --help` none
of them."""


_MODULES = ("codecs", "errors", "facts", "metrics", "testing")
"""They have more names, and are there after `import outlive` too."""


if not TYPE_CHECKING:  # A type checker that sees it takes every misspelt name for one that may exist.

    def __getattr__(name: str) -> typing.Any:
        """What is loaded on demand."""
        if name in _ON_DEMAND:
            found = globals()[name] = getattr(import_module(_ON_DEMAND[name]), name)
            return found
        if name in _MODULES:
            return import_module(f"outlive.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """What is for users, for those who press Tab: the names, and the modules that have more of them."""
    return [*__all__, *_MODULES]
