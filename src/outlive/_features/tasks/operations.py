"""The tasks of remote steps: a worker in any language claims one, says that it lives, and says how it ended."""

from __future__ import annotations

from msgspec import UNSET
from msgspec.structs import asdict

import outlive.errors as e
from outlive._features.tasks.values import TaskNotice
from outlive._features.tasks.verbs import claim_while
from outlive._features.tasks.wire import Claimed, ClaimTask, CompleteTask, FailTask, Heartbeat
from outlive.errors.run import TaskEndedError, TaskLeaseLostError, TaskNotFoundError, TaskOutputError
from outlive.http.operation import Call, operation
from outlive.http.problem import Problem
from outlive.http.wire.page import Done, seconds_of

OUTPUT = (TaskOutputError, e.PayloadTooLargeError)
HELD = (TaskNotFoundError, TaskLeaseLostError, TaskEndedError)


@operation("tasks.claim", "POST", "/tasks/claim", scope="worker", waits=True)
async def claim_task(call: Call, body: ClaimTask) -> Claimed:
    """Take the next task of a queue, with a lease; wait for one if there is none.

    If the answer is lost, or the worker is, the task is for others when the lease has run out.
    """
    _check_queue(call, body.queue)
    wait = min(seconds_of(body.wait), call.limits.wait_seconds_max)
    lease = body.lease_seconds
    task = await claim_while(
        call.check_again,
        call.engine.tasks,
        body.queue,
        body.steps if isinstance(body.steps, list) else {name: asdict(each) for name, each in body.steps.items()},
        worker=body.worker,
        lease_seconds=lease,
        wait=wait,
    )
    return Claimed(task=task)


def _check_queue(call: Call, queue: str) -> None:
    """See that a worker may have tasks of a queue. What it claimed is its own: the lease shows that.

    Raises:
        Problem: it may not.
    """
    own = call.principal
    if not own.may_claim_from(queue):
        wanted = f"Claim from one of {', '.join(sorted(own.queues or ()))}, or use a key for this queue."
        raise Problem(403, "forbidden", f"{own.name} may not claim tasks from the queue {queue}", wanted)


@operation("tasks.heartbeat", "POST", "/tasks/{task_id}/heartbeat", scope="worker", raises=HELD)
async def heartbeat_task(call: Call, task_id: str, body: Heartbeat) -> TaskNotice:
    """Renew the lease of a task, with progress or without; the answer says whether the task was cancelled."""
    progress = None if body.progress is UNSET else body.progress
    return await call.engine.tasks.heartbeat(task_id, body.lease, progress=progress, lease_seconds=body.lease_seconds)


@operation(
    "tasks.complete",
    "POST",
    "/tasks/{task_id}/complete",
    scope="worker",
    raises=(*HELD, TaskOutputError, e.PayloadTooLargeError),
)
async def complete_task(call: Call, task_id: str, body: CompleteTask) -> Done:
    """End a task with its output; it is durable when this answers, and the same again is fine.

    The first end counts: a later one, and one without the lease, is refused with 409.
    """
    await call.engine.tasks.complete(task_id, body.lease, body.output)
    return Done(task_id)


@operation("tasks.fail", "POST", "/tasks/{task_id}/fail", scope="worker", raises=HELD)
async def fail_task(call: Call, task_id: str, body: FailTask) -> Done:
    """End a task with an error; this attempt of the step has failed. As `complete_task`.

    A task that was cancelled ends as cancelled.
    """
    await call.engine.tasks.fail(
        task_id,
        body.lease,
        body.message,
        type=body.type,
        retryable=body.retryable,
        retry_after=None if body.retry_after is None else seconds_of(body.retry_after),
        traceback=body.traceback,
    )
    return Done(task_id)
