"""The verbs of an engine over HTTP, for programs that have neither its store nor its code.

    async with outlive.connect("https://runs.example.com", key="olv_...") as engine:
        run = await engine.start("order", {"id": 7})
        print(await run.result())

`connect(...).sync` has the same verbs without `await`. Nothing but the standard library is needed besides Outlive.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from outlive._kernel.model import given
from outlive._on_demand import on_demand

if TYPE_CHECKING:
    from outlive._features.batches.remote import RemoteBatch
    from outlive.remote.engine import Remote
    from outlive.remote.run import RemoteRun

__all__ = ["Remote", "RemoteBatch", "RemoteRun", "connect"]
_HOMES = {
    "Remote": "outlive.remote.engine",
    "RemoteBatch": "outlive._features.batches.remote",
    "RemoteRun": "outlive.remote.run",
}
"""Each feature has its part of `Remote`, and imports its connection from this package."""

if not TYPE_CHECKING:  # A type checker that sees it takes every misspelt name for one that may exist.
    __getattr__ = on_demand(__name__, _HOMES)


def connect(url: str, *, key: str | None = None, timeout: given.Span = 30.0) -> Remote:
    """The engine behind an HTTP API.

    Args:
        url: where `outlive serve` answers, or where an application has mounted `engine.asgi()`.
        key: the API key; that in the environment variable OUTLIVE_KEY unless given.
        timeout: seconds that a request may take, with all tries. Waiting for a result takes as long as it is asked for.
    """
    from outlive.remote.connection import Connection
    from outlive.remote.engine import Remote
    from outlive.remote.transport import Transport

    return Remote(Connection(Transport(url, key=key or os.environ.get("OUTLIVE_KEY") or None, timeout=timeout)))
