"""The part of the contract for what is needed no longer: trees that ended long ago, and blobs that no row names.

Trees are deleted as a whole. Blobs are known by their content, and any number of trees may refer to one, so they are
collected apart: a collector reads all references of the store, page by page (`find_references`), says of each blob that
it is in use (`keep_blobs`), and then deletes the blobs that were not marked (`delete_blobs`).

Why no blob is lost that a row names
------------------------------------
A store remembers of each blob when it was last put, last said to be in use, or last named by a tree that was deleted.
A collector begins at an instant P and deletes what has not been remembered since P - `BLOB_GRACE`. A reference is
written with its blob, or is a copy of one that stands in the store: the end of a run that its starter hears of, the
history that is forked. The first puts the blob, and that is remembered. The second is either there when the collector
begins, or a copy of one that is; and a reference that goes away by being deleted leaves the blob remembered. Where a
reference moves from one table to another (from a request to a message, from a message to an event), the table that it
leaves is read first.

What a user's transaction, or a start under way, is about to refer to was put before; it has `BLOB_GRACE` to do so.

Every sentence of a docstring is checked by `outlive_conformance.suite.deleting` on every backend.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from outlive._kernel.model.instant import HOUR
from outlive._kernel.store.audit import Action

BLOB_GRACE = 24 * HOUR
"""How long a blob stays that no row names, by the clock of the store."""
BLOB_REFRESH = 12 * HOUR
"""A blob that is put again is remembered again when so much time has passed; until then nothing is written."""


class References(NamedTuple):
    """Blobs that some rows of a store refer to."""

    ids: set[str]
    next: str | None
    """Where to go on; None if all rows were read."""


class Deletion(Protocol):
    """How a store gets smaller."""

    async def delete_trees(
        self, journals: Sequence[int], *, ended_before: int, audit: Mapping[int, Action] | None = None
    ) -> list[int]:
        """Delete trees with everything that hangs on them, in one transaction; returns the handles of the deleted
        trees.

        A tree goes if its root ended before the instant `ended_before` and no open run needs it: not the run that
        started it detached, nor one that it started so, nor one that waits for a run of it. A later generation of the
        run that started it is another run, and does not need it. With the tree go its events, the rows of all its runs,
        tags, messages, keys of messages with their answers, items, streams, and the watches that its root has. Its ids
        are free then, and its handle never comes back: a writer that was asleep meanwhile conflicts.

        What is not there, and what has to stay, is left as it is and is not in the answer; so is a tree that another
        caller has in hand. The blobs of the tree stay, and are remembered: other trees may refer to them.

        `audit` says for journals what the audit log is to say of them; it is written for each that was deleted.
        """

    async def give_back(self) -> bool:
        """Give a little of the room that deleted rows had back to the system; whether there is more to give. A store
        whose database does that by itself does nothing."""

    async def find_references(self, *, after: str = "", limit: int) -> References:
        """The blobs that the next `limit` rows refer to, and perhaps others that look so; `after` is `next` of the call
        before. Rows that come meanwhile may be among them or not."""

    async def keep_blobs(self, ids: Collection[str]) -> None:
        """Remember that these blobs are in use now; blobs that do not exist are left out."""

    async def delete_blobs(self, *, kept_before: int, limit: int) -> int:
        """Delete blobs that were put, said to be in use, and named by a deleted tree before this instant only; how many
        that were. At most `limit`: fewer mean that all are gone."""
