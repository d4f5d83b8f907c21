"""What a running step shows of its run.

A step publishes from any thread and as often as it likes. What it said while an earlier publication is on its way to
the disk waits and is merged, so that a chatty step costs one event for each commit and no more; what it said last is
written with its outcome at the latest.
"""

from __future__ import annotations

from outlive._journal.event import RunPublished
from outlive._replay.deciding import merge_published
from outlive._runtime.attempt import Attempt
from outlive._runtime.live import LiveRun


def publish_pending(live: LiveRun, attempt: Attempt, *, at: int) -> bool:
    """Make a fact of what a step has published since the last one; whether there was anything new."""
    fields, attempt.unpublished = attempt.unpublished, {}
    command = attempt.command
    frame = live.execution.frames.get(command.run)
    if not fields or frame is None:
        return False
    merged = merge_published(frame.published, fields)
    if merged == frame.published:
        return False
    payload = live.pack(merged, f"what step {command.call} published")
    live.happen(RunPublished(at=at, run=command.run, payload=payload))
    return True
