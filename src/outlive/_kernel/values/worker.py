"""Workers as people and programs see them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

import msgspec


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """A session of a worker, and its lease."""

    id: str
    """Its session: a worker that starts again has another one."""
    name: str
    """Its name for people."""
    status: Literal["live", "gone"]
    """`gone`: it has ended, or its lease has run out; others take over what it owns."""
    started_at: datetime
    """When its session began."""
    expires_at: datetime | None
    """When its lease runs out if it is not renewed; None if it has no end."""
    expires_in: timedelta | None
    """The time until `expires_at`, counted from when this was read, by the clock of the store."""
    lease: str
    """The keeper of its lease: `store`, `none`, or the place of an etcd."""
    process: str
    """The process it lives in, as its machine knows it; empty if there is no telling."""
    runs: int
    """Trees of runs that it owns."""
    definitions: tuple[str, ...]
    """The definitions that it can run, as `workflow@version`."""
    built_in: tuple[str, ...]
    """The definitions of Outlive itself that it can run, such as the workflow of verbs for many runs."""
    steps: tuple[str, ...] = ()
    """The steps that it runs, by the names that documents have for them: `shop.reserve`, or `gpu/resize` for a remote
    worker."""
    queues: tuple[str, ...] | None
    """The queues from which it takes runs, `default` for the runs without one; None if it takes from all."""
    fault: str
    """The fault of its row, if the row is damaged."""

    def __repr__(self) -> str:
        return f"<Worker {self.name}: {self.status}, {self.runs} runs>"
