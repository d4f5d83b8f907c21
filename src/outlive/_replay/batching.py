"""The items of a batch, asked for by the chunk that has them.

An item is a step or a child run like any other, except that its identity is its place in the batch, its arguments are
the bytes that the chunk was given, and its outcome is kept beside the journal too, where readers find it by its place.
"""

from __future__ import annotations

import asyncio
from typing import Any
from zlib import crc32

from outlive._journal.event import DetachedCancelled
from outlive._model import Payload
from outlive._replay.ask import child_result
from outlive._replay.call import ChildCall, DetachedCall, StepCall
from outlive._replay.command import CancelStep, RunStep, StartChild, StartDetached, StepSpec, WorkflowSpec
from outlive._replay.execution import Execution
from outlive._replay.frame import SCOPE


async def run_item(execution: Execution, spec: StepSpec | WorkflowSpec, arguments: bytes, index: int) -> Any:
    """Ask for one item and wait for its outcome."""
    execution.refuse_if_dropped()
    execution.has_items = True
    if isinstance(spec, StepSpec):
        return await _run_step(execution, spec, arguments, index)
    return await child_result(execution, _start_child(execution, spec, arguments, index))


async def _run_step(execution: Execution, spec: StepSpec, arguments: bytes, index: int) -> Any:
    run, call = SCOPE.get().frame.number, f"{spec.name}[{index}]"
    command = RunStep(run, call, spec, arguments, crc32(arguments), spec.options, item=index)
    future: asyncio.Future[Any] = execution.loop.create_future()
    execution.calls[run, call] = StepCall(command, future)
    execution.commands.append(command)
    try:
        return await future
    except asyncio.CancelledError:
        if execution.calls.pop((run, call), None) is not None:
            execution.commands.append(CancelStep(run, call))
        raise


def _start_child(execution: Execution, spec: WorkflowSpec, arguments: bytes, index: int) -> ChildCall:
    frame, seconds = SCOPE.get().frame, spec.timeout_seconds
    command = StartChild(
        run=execution.next_number,
        parent=frame.number,
        call=f"{spec.name}[{index}]",
        workflow=spec,
        arguments=arguments,
        digest=crc32(arguments),
        timeout_at=None if seconds is None else execution.loop.now_at + round(seconds * 1_000_000),
        item=index,
    )
    execution.next_number += 1
    frame.children += 1
    call = ChildCall(command, execution.loop.create_future())
    execution.calls[command.parent, command.call] = call
    execution.children[command.run] = call
    execution.commands.append(command)
    return call


async def start_ready(
    execution: Execution, spec: WorkflowSpec, payload: Payload, *, run_id: str, tags: dict[str, str]
) -> None:
    """Start a tree of its own whose input lies in the store already; returns once it exists."""
    execution.refuse_if_dropped()
    scope = SCOPE.get()
    run, name = scope.frame.number, scope.call(spec.name)
    command = StartDetached(
        run=run,
        call=name,
        run_id=run_id,
        workflow=spec,
        arguments=b"",
        digest=crc32(payload.blob.encode()),
        tags=tags,
        timeout_seconds=None,
        payload=payload,
    )
    call = DetachedCall(command, execution.loop.create_future())
    execution.calls[run, name] = call
    execution.commands.append(command)
    await asyncio.shield(call.future)


def cancel_detached(execution: Execution, run_id: str) -> None:
    """Ask a run that was started detached to stop."""
    execution.refuse_if_dropped()
    scope = SCOPE.get()
    execution.record(DetachedCancelled(at=0, run=scope.frame.number, call=scope.call("@cancel"), run_id=run_id))
