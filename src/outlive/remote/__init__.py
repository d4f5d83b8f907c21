"""The verbs of an engine over HTTP, for programs that have neither its store nor its code.

    async with outlive.connect("https://runs.example.com", key="olv_...") as engine:
        run = await engine.start("order", {"id": 7})
        print(await run.result())

`connect(...).sync` has the same verbs without `await`. Nothing but the standard library is needed besides Outlive.
"""

from __future__ import annotations

import os

from outlive._features.batches.remote import RemoteBatch
from outlive._kernel.model import given
from outlive.remote.connection import Connection
from outlive.remote.engine import Remote
from outlive.remote.run import RemoteRun
from outlive.remote.transport import Transport

__all__ = ["Remote", "RemoteBatch", "RemoteRun", "connect"]


def connect(url: str, *, key: str | None = None, timeout: given.Span = 30.0) -> Remote:
    """The engine behind an HTTP API.

    Args:
        url: where `outlive serve` answers, or where an application has mounted `engine.asgi()`.
        key: the API key; that in the environment variable OUTLIVE_KEY unless given.
        timeout: seconds that a request may take, with all tries. Waiting for a result takes as long as it is asked for.
    """
    return Remote(Connection(Transport(url, key=key or os.environ.get("OUTLIVE_KEY") or None, timeout=timeout)))
