"""The values of one tree: how they are packed for its journal and read back, and the blobs that this needs.

A blob stays in memory from when it is read or made until its run has looked at it. What a payload codec binds to a tree
can be read only as that tree's, or as a message to it.
"""

from __future__ import annotations

from collections.abc import Iterable

from outlive._kernel.journal.packing import Packer, inbox_mark, tree_mark
from outlive._kernel.journal.value import Stored
from outlive._kernel.model import Payload


class TreePayloads:
    """Packs and unpacks for one tree."""

    __slots__ = ("_owners", "blobs", "owner", "packer")

    def __init__(self, root_id: str, *, nonce: int, packer: Packer) -> None:
        self.packer = packer
        self.owner = tree_mark(nonce)
        """The mark of the values that this tree makes."""
        self._owners = (self.owner, inbox_mark(root_id))
        self.blobs: dict[str, bytes] = {}

    def unpack(self, payload: Payload) -> Stored:
        """A value of this tree, or of a message to it."""
        return self.packer.unpack(payload, self.blobs, owners=self._owners)

    def unpack_foreign(self, payload: Payload) -> Stored:
        """A value that another tree made."""
        return self.packer.unpack(payload, self.blobs)

    def add(self, blobs: dict[str, bytes]) -> None:
        """Keep blobs that payloads of this tree refer to."""
        self.blobs.update(blobs)

    def keep_only(self, unread: Iterable[Payload]) -> None:
        """Discard the blobs of all values but these: the run has read the others."""
        kept = {payload.blob for payload in unread}
        self.blobs = {id: data for id, data in self.blobs.items() if id in kept}
