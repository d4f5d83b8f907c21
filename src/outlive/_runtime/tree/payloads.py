"""The values of one tree: how they are packed for its journal and read back, and the blobs that this needs.

A blob stays in memory from when it is read or made until its run has looked at it. What a payload codec binds to a tree
can be read only as that tree's, or as mail to it.
"""

from __future__ import annotations

from collections.abc import Iterable

from outlive._journal.packing import Packer, mail_mark, tree_mark
from outlive._journal.value import Stored
from outlive._model import Payload
from outlive._model.payload import Blob


class TreePayloads:
    """Packs and unpacks for one tree."""

    __slots__ = ("_blobs", "_owners", "packer")

    def __init__(self, root_id: str, *, nonce: int, packer: Packer) -> None:
        self.packer = packer
        self._owners = (tree_mark(nonce), mail_mark(root_id))
        self._blobs: dict[str, bytes] = {}

    def pack(self, data: bytes, what: str) -> tuple[Payload, Blob | None]:
        """The payload of a value, and the blob that has to be stored with it, if it is large."""
        payload, blob = self.packer.pack(data, what, of=self._owners[0])
        if blob is not None:
            self._blobs[blob.id] = blob.data
        return payload, blob

    def unpack(self, payload: Payload) -> Stored:
        """A value of this tree, or of a message to it."""
        return self.packer.unpack(payload, self._blobs, owners=self._owners)

    def unpack_foreign(self, payload: Payload) -> Stored:
        """A value that another tree made."""
        return self.packer.unpack(payload, self._blobs)

    def add(self, blobs: dict[str, bytes]) -> None:
        """Blobs that payloads of this tree refer to."""
        self._blobs.update(blobs)

    def keep_only(self, unread: Iterable[Payload]) -> None:
        """Forget the blobs of all values but these: those are in the variables of the run, or gone."""
        if self._blobs:
            kept = {payload.blob for payload in unread}
            self._blobs = {id: data for id, data in self._blobs.items() if id in kept}
