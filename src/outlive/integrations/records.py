"""Rows that frameworks keep under a key of theirs (a thread, a conversation), on the checkpoints of a store.

Rows are appended and never changed, so two processes that write at once lose nothing: each number is taken once, and
the second writer takes the next. A row that is written in a step has the idempotency key of that step. An attempt that
runs again because a crash hid the answer of the first finds the row and writes none.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress

import outlive
from outlive._features.checkpoints.store import CheckpointStore
from outlive._kernel.model.checkpoint import Checkpoint
from outlive._kernel.model.id import check_run_id
from outlive.errors.program import NotInRunError
from outlive.errors.run import InvalidRunIdError
from outlive.errors.store import DuplicateCheckpointError

ATTEMPTS_MAX = 1_000
"""How often a row may lose its number to another writer before there is something else wrong."""


class Records:
    """The rows under all keys of one kind.

    Args:
        kind: keeps keys of one framework apart from those of others.
        store: of checkpoints; in steps that of the engine unless given.
    """

    def __init__(self, kind: str, store: CheckpointStore | None = None) -> None:
        self._kind, self._given = kind, store

    async def read(self, key: str) -> list[Checkpoint]:
        """All rows of a key, the oldest first."""
        return await self._store().load_run(self._id(key))

    async def append(self, key: str, state: str, output: bytes) -> bytes:
        """Write a row, where `state` says what it is.

        Returns what the row has: these bytes, or those of an earlier attempt of the step, if that wrote it.
        """
        store, run_id, token = self._store(), self._id(key), _token()
        for _ in range(ATTEMPTS_MAX):
            rows = await store.load_run(run_id)
            if token and (own := [row for row in rows if (row.task, row.state) == (token, state)]):
                return own[0].output or b""
            row = Checkpoint(rows[-1].sequence + 1 if rows else 0, state, task=token, output=output)
            with suppress(DuplicateCheckpointError):
                await store.append(run_id, row)
                return output
        raise DuplicateCheckpointError(run_id, ATTEMPTS_MAX)

    async def clear(self, key: str) -> None:
        """Remove all rows of a key."""
        await self._store().clear(self._id(key))

    def _store(self) -> CheckpointStore:
        return self._given or outlive.current_engine().checkpoints

    def _id(self, key: str) -> str:
        """The id that checkpoints have for a key: readable where it can be one, and else made of its hash."""
        with suppress(InvalidRunIdError):
            return check_run_id(f"{self._kind}:{key}")
        return f"{self._kind}:sha256:{hashlib.sha256(key.encode()).hexdigest()}"


def _token() -> str:
    """The key that makes a row this step's own; empty outside of steps."""
    with suppress(NotInRunError):
        return outlive.current_step().idempotency_key
    return ""
