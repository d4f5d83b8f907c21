"""Remote steps: steps whose code is in another program, which takes them over HTTP. What both sides know of them.

A call of a remote step starts a run of its own, the task, in the queue of the step. No Python worker defines its
workflow, so no Python worker claims it. `RemoteTerms` is stored: fields may be added to it, and none may change its
meaning.
"""

from __future__ import annotations

import msgspec

from outlive._kernel.model.queue import DEFAULT

OF_REMOTE = "outlive.remote."
"""The names of the workflows of tasks begin so, followed by the name of the step."""
VERSION = 1
BEHIND_QUEUE = "/"
"""The mark between a queue and a step of it in `use: gpu/resize`; no step and no workflow of Python has it in its
name."""


class RemoteTerms(msgspec.Struct, frozen=True, omit_defaults=True):
    """The terms of the output of a task: everything that a program without the code must know."""

    type: str = ""
    """The type of the output, as the code wrote it; empty if any value is accepted."""
    schema: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """The JSON Schema of the output; unset if any value is fine."""


def remote_step_of(workflow: str) -> str:
    """The name of the remote step that runs of this workflow are tasks of; empty if they are none."""
    return workflow.removeprefix(OF_REMOTE) if workflow.startswith(OF_REMOTE) else ""


def use_of(queue: str, step: str) -> str:
    """The name by which a document calls a remote step: `gpu/resize`."""
    return f"{queue or DEFAULT}{BEHIND_QUEUE}{step}"


def is_remote(use: str) -> bool:
    """Whether a document means a remote step by this name."""
    return BEHIND_QUEUE in use


def queue_and_step(use: str) -> tuple[str, str]:
    """The queue and the step that such a name means; the queue as people name it."""
    queue, _, step = use.rpartition(BEHIND_QUEUE)
    return queue, step
