"""Starting a run in a transaction that is open on the user's own connection.

The run is there if and only if the user commits, together with whatever else the user wrote; nothing of it runs before.
So an order and the workflow that handles it cannot part, and no outbox is needed.
"""

from __future__ import annotations

from typing import Any

from outlive._journal.event import RunCreated
from outlive._model.payload import Blob
from outlive._store.contract import Outcome, Store
from outlive.client.birth import birth
from outlive.errors import ConfigurationError, RunExistsError

ANOTHER_ID = "use another id for this one"


async def start_within(
    store: Store, connection: Any, run_id: str, event: RunCreated, blobs: list[Blob], *, on_conflict: str
) -> None:
    """Create a tree in the user's transaction.

    Raises:
        ConfigurationError: the store or the connection cannot do that, or `on_conflict` is `replace`.
        RunExistsError: the id is taken, and the run that has it will not do.
    """
    if on_conflict == "replace":
        raise ConfigurationError(
            "on_conflict='replace' ends a run, which cannot be part of your transaction; use 'attach' or 'reject'"
        )
    if await store.request_start(connection, birth(run_id, event, blobs)) is Outcome.COMMITTED:
        return
    # None: it was started in this very transaction, and nobody else can see it yet.
    taken = await store.find_run(run_id)
    if on_conflict == "reject":
        raise RunExistsError(run_id, "started in this transaction" if taken is None else taken.status.value)
    if taken is not None and taken.workflow != event.workflow:
        raise RunExistsError(run_id, f"{taken.status.value}, a run of workflow {taken.workflow}", ANOTHER_ID)
