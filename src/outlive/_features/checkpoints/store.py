"""Checkpoints for programs that keep their own state: append, load, clear, and nothing else.

For programs that bring a state machine, an agent or a loop of their own, and want only a place that does not lose what
they wrote. The rules are those of Cano's checkpoint stores: a sequence number is taken once, rows come back in
ascending order however they went in, and clearing one run leaves the others.

An answer that is lost
----------------------
`append` may raise `CommitUnknownError`, or be cancelled while it is under way: then it is not known whether the row is
there. The row that was sent is kept, with the random token that makes it this append's own. Appending an equal
checkpoint again sends that very row, which a store takes once: if it had been written, that is the answer to the first
question and no duplicate; if another writer was there first, it is one. Any other append of an equal checkpoint has a
token of its own, so that two writers that write the same hear of each other. A process that was killed has no such
memory, and needs none: it loads its run before it goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from outlive._kernel.client.client import Client
from outlive._kernel.journal.checkpoint import CheckpointBody, CheckpointRow, open_checkpoint, seal_checkpoint
from outlive._kernel.journal.packing import Packer
from outlive._kernel.model import check_run_id
from outlive._kernel.model.checkpoint import Checkpoint, CheckpointKind
from outlive._kernel.replay.ask import current_execution
from outlive._kernel.store.contract import Store
from outlive.errors import CommitUnknownError
from outlive.errors.program import NotDurableError
from outlive.errors.store import CorruptCheckpointError, DuplicateCheckpointError, InvalidCheckpointError

DOUBTFUL_MAX = 1_000
"""Rows that are remembered because it is not known whether they are there; the oldest are forgotten first."""

_KINDS = {kind.value: kind for kind in CheckpointKind}


class CheckpointStore:
    """The checkpoints in one store; `outlive.checkpoints.open_store(url)` or `engine.checkpoints` gives one.

    Any number of tasks may share it, and any number of processes the store. A verb that returns has been done, and what
    it did survives a kill.
    """

    def __init__(self, store: Callable[[], Store], *, packer: Packer, nonce: Callable[[], int]) -> None:
        self._usable, self._packer, self._nonce = store, packer, nonce
        self._doubtful: dict[tuple[str, int], tuple[Checkpoint, CheckpointRow]] = {}

    async def append(self, run_id: str, row: Checkpoint) -> None:
        """Write a checkpoint of a run. Numbers may come in any order and with gaps, but each comes once.

        After a `CommitUnknownError`, append an equal checkpoint again: it is there once then, whatever had happened.

        Raises:
            DuplicateCheckpointError: the run has another checkpoint with this number; nothing was written.
            InvalidRunIdError: the id cannot be one.
            PayloadTooLargeError: the output is over `payload_bytes_max`.
            StoreUnavailableError: nothing was written.
            CommitUnknownError: it is not known whether it was written.
        """
        check_run_id(run_id)
        if not isinstance(row, Checkpoint):
            raise InvalidCheckpointError("row", row, "append takes an outlive.checkpoints.Checkpoint")
        store = self._store()
        key = run_id, row.sequence
        doubt = self._doubtful.get(key)
        if doubt is not None and doubt[0] == row:
            # Taken, not only looked at: of two tasks that append it now, one is a duplicate.
            del self._doubtful[key]
            sealed = doubt[1]
        else:
            sealed = self._seal(run_id, row)
        try:
            is_there = await store.append_checkpoint(run_id, sealed)
        except (CommitUnknownError, asyncio.CancelledError):
            self._doubt(key, row, sealed)
            raise
        except BaseException:
            if doubt is not None and doubt[1] is sealed:
                self._doubt(key, row, sealed)  # This time nothing happened; of the time before it is not known.
            raise
        if not is_there:
            raise DuplicateCheckpointError(run_id, row.sequence)

    async def load_run(self, run_id: str) -> list[Checkpoint]:
        """All checkpoints of a run at one moment, by sequence ascending; empty for a run that has none.

        Raises:
            CorruptCheckpointError: one of them is damaged.
            FormatTooNewError: one of them was written by a later release, in a format that this one cannot read.
            UnreadableError: the codecs that an output was written with are not configured here.
            InvalidRunIdError: the id cannot be one.
            StoreUnavailableError: the store cannot be read for now.
        """
        check_run_id(run_id)
        return [self._open(run_id, row) for row in await self._store().read_checkpoints(run_id)]

    async def clear(self, run_id: str) -> None:
        """Remove all checkpoints of this run and of no other; a run that has none is fine.

        Raises:
            InvalidRunIdError: the id cannot be one.
            StoreUnavailableError: nothing was removed.
            CommitUnknownError: all or nothing was removed; clear it again.
        """
        check_run_id(run_id)
        await self._store().clear_checkpoints(run_id)
        for key in [key for key in self._doubtful if key[0] == run_id]:
            del self._doubtful[key]

    def _store(self) -> Store:
        if current_execution() is not None:
            raise NotDurableError("a checkpoint")
        return self._usable()

    def _doubt(self, key: tuple[str, int], row: Checkpoint, sealed: CheckpointRow) -> None:
        self._doubtful[key] = row, sealed
        if len(self._doubtful) > DOUBTFUL_MAX:
            del self._doubtful[next(iter(self._doubtful))]

    def _seal(self, run_id: str, row: Checkpoint) -> CheckpointRow:
        output: bytes | None = None
        via: tuple[str, ...] = ()
        if row.output is not None:
            output, via = self._packer.pack_bytes(
                row.output, _title(run_id, row.sequence), of=_mark(run_id, row.sequence)
            )
        body = CheckpointBody(
            state=row.state,
            task=row.task,
            kind=row.unknown_kind or row.kind.value,
            version=row.version,
            token=self._nonce(),
            via=via,
        )
        return seal_checkpoint(run_id, row.sequence, body, output)

    def _open(self, run_id: str, row: CheckpointRow) -> Checkpoint:
        body = open_checkpoint(run_id, row)
        sequence, *_, output = row
        if output is not None:
            output = self._packer.unpack_bytes(output, body.via, _title(run_id, sequence), of=_mark(run_id, sequence))
        kind = _KINDS.get(body.kind)
        try:
            return Checkpoint(
                sequence=sequence,
                state=body.state,
                task=body.task,
                # A reader that does not know what a row says begins its state again: more work, and nothing is skipped.
                kind=kind or CheckpointKind.STATE,
                output=output,
                version=body.version,
                unknown_kind="" if kind else body.kind,
            )
        except InvalidCheckpointError as error:
            raise CorruptCheckpointError(run_id, sequence, str(error)) from error


def _title(run_id: str, sequence: int) -> str:
    return f"the output of checkpoint {sequence} of run {run_id!r}"


def _mark(run_id: str, sequence: int) -> str:
    """The mark with which a codec binds an output to its place: moved to another place, it cannot be read."""
    return f"checkpoint:{run_id}/{sequence}"


def checkpoints_of(client: Client) -> CheckpointStore:
    """The checkpoints in the store of a client."""
    return CheckpointStore(lambda: client.access.store, packer=client.access.packer, nonce=client.nonce)
