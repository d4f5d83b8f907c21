"""Workflows, steps and events for tests of the core.

Definitions here are known to no registry: a changed workflow may have the name and version of the original one, as it
has after a deploy of a change. `Code` says which function a name in a journal means now.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar, cast

import msgspec

from outlive import Retry
from outlive._kernel.define.step import as_undo
from outlive._kernel.journal.arguments import Signature
from outlive._kernel.journal.tagged import to_plain
from outlive._kernel.journal.value import Stored
from outlive._kernel.model import Payload
from outlive._kernel.model.policy import NO_RETRY
from outlive._kernel.replay.command import StepOptions, StepSpec, WorkflowSpec
from outlive._kernel.replay.execution import Execution
from outlive.errors.program import WorkflowNotFoundError
from outlive.events import CancelRequested, RunCreated, SignalReceived
from outlive.types import Step, Workflow

P = ParamSpec("P")
R = TypeVar("R")

START_AT = 1_700_000_000_000_000
SECOND = 1_000_000
NONCE = 0x5EED
TURNS_MAX = 100_000


def step(
    *,
    name: str = "",
    retry: Retry = NO_RETRY,
    raises: tuple[type[BaseException], ...] = (),
    undo: Step[..., Any] | None = None,
) -> Callable[[Callable[P, Coroutine[Any, Any, R]]], Step[P, R]]:
    """`@outlive.step`, without the registry."""

    def define(fn: Callable[P, Coroutine[Any, Any, R]]) -> Step[P, R]:
        own_name = name or fn.__name__
        options = StepOptions(retry=retry, undo=as_undo(undo.spec, undo.call_options) if undo else None)
        spec = StepSpec(
            name=own_name,
            fn=fn,
            signature=Signature(fn, own_name),
            is_async=inspect.iscoroutinefunction(fn),
            options=options,
            registered=raises,
        )
        return Step(spec, options)

    return define


def workflow(
    *, name: str = "", version: int = 1, timeout: float | None = None, raises: tuple[type[BaseException], ...] = ()
) -> Callable[[Callable[P, Coroutine[Any, Any, R]]], Workflow[P, R]]:
    """`@outlive.workflow`, without the registry."""

    def define(fn: Callable[P, Coroutine[Any, Any, R]]) -> Workflow[P, R]:
        own_name = name or fn.__name__
        spec = WorkflowSpec(
            name=own_name,
            version=version,
            fn=fn,
            signature=Signature(fn, own_name),
            timeout_seconds=timeout,
            registered=raises,
        )
        return Workflow(spec, {})

    return define


class Code:
    """The code that is deployed: which function a name in a journal means."""

    def __init__(self, *workflows: Workflow[..., Any]) -> None:
        self._specs = {(each.name, each.version): each.spec for each in workflows}

    def resolve(self, name: str, version: int) -> WorkflowSpec:
        """The workflow that a journal names."""
        spec = self._specs.get((name, version))
        if spec is None:
            raise WorkflowNotFoundError(name, version, [f"{known}@{number}" for known, number in self._specs])
        return spec

    def execution(self, *, turns_max: int = TURNS_MAX, compares_arguments: bool = True) -> Execution:
        """An execution of a run `r` that has seen nothing yet."""
        execution = Execution("r", resolve=self.resolve, unpack=unpack, turns_max=turns_max)
        execution.compares_arguments = compares_arguments
        return execution


def pack(json: bytes) -> Payload:
    """JSON as the payload of an event."""
    return Payload(v=msgspec.Raw(json))


def plain(value: Any) -> Payload:
    """An untyped value as the payload of an event."""
    return pack(msgspec.json.encode(to_plain(value, "a value")))


def unpack(payload: Payload) -> Stored:
    """The JSON of a payload again."""
    assert payload.v is not msgspec.UNSET
    return payload.v


def created(of: Workflow[..., Any], *args: Any, timeout_at: int | None = None, **kwargs: Any) -> RunCreated:
    """How the journal of a run of this workflow begins."""
    return RunCreated(
        at=START_AT,
        workflow=of.name,
        version=of.version,
        input=pack(of.spec.signature.encode(args, kwargs)),
        nonce=NONCE,
        timeout_at=timeout_at,
        spends_names=True,
    )


def signal(name: str, value: Any = None, *, run: int = 0) -> SignalReceived:
    """A signal, to be delivered by the driver."""
    return SignalReceived(at=START_AT, run=run, name=name, payload=plain(value))


def cancel(reason: str = "enough", *, run: int = 0) -> CancelRequested:
    """A cancel request, to be delivered by the driver."""
    return CancelRequested(at=START_AT, run=run, reason=reason)


def finish(coroutine: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return cast("R", stop.value)
    coroutine.close()
    raise AssertionError(f"{coroutine} waits for something")
