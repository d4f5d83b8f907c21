"""Remote steps: steps whose code is in another program, which takes them over HTTP. What both sides know of them.

A call of a remote step starts a run of its own, the task, in the queue of the step. No Python worker defines its
workflow, so no Python worker claims it. `RemoteTerms` is stored: fields may be added to it, and none may change its
meaning.
"""

from __future__ import annotations

import msgspec

OF_REMOTE = "outlive.remote."
"""The names of the workflows of tasks begin so, followed by the name of the step."""
VERSION = 1


class RemoteTerms(msgspec.Struct, frozen=True, omit_defaults=True):
    """The terms of the output of a task: everything that a program without the code must know."""

    type: str = ""
    """The type of the output, as the code wrote it; empty if any value is accepted."""
    schema: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """The JSON Schema of the output; unset if any value is fine."""


def remote_step_of(workflow: str) -> str:
    """The name of the remote step that runs of this workflow are tasks of; empty if they are none."""
    return workflow.removeprefix(OF_REMOTE) if workflow.startswith(OF_REMOTE) else ""
