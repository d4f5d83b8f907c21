"""How the library of flows lies in cells.

One cell, the index, says of every flow which revision is published, whether it is enabled, and which draft is open. It
is the only truth: every change of the library is one change of that cell, so a process that is killed in the middle has
changed nothing. Two kinds of cells hang on it, and both are written before the index names what is in them:

* a cell for each flow with its earlier revisions. A revision is copied there before the next one takes its place in
  the index, so the history of a flow is what is in that cell and the revision in the index;
* a cell for each document, by the hash of its content: the canonical JSON, from which workers make the flow, and the
  text as its author wrote it, with the comments. A document that the index never named does no harm.
"""

from __future__ import annotations

import zlib

import msgspec

from outlive._kernel.model.pause import Pause
from outlive.errors.flow import FlowDamagedError

INDEX_CELL = "outlive.flows"
LOADER = "flow loader"
"""The service of a worker that loads flows."""
HISTORY_CELLS = "outlive.flows/"
DOCUMENT_CELLS = "outlive.flow/"
VERSION_HEX_DIGITS = 12
"""How much of the hash of its content is the version of a flow: 48 bits."""


class StoredRevision(msgspec.Struct, frozen=True, omit_defaults=True):
    """One published revision of a flow: which document, who published it, when, and why."""

    number: int
    """1 for the first one."""
    hash: str
    """The first 12 hex digits of the hash of its content. Runs are pinned to it."""
    published_at: int
    """In microseconds since 1970."""
    by: str = ""
    reason: str = msgspec.field(default="", name="note")
    """Its name in the store is `note`."""
    rolled_back_to: int = 0
    """The earlier revision whose document this one has; 0 if it was not made by a rollback."""

    @property
    def version(self) -> int:
        """The version that its runs have."""
        return version_of(self.hash)


class StoredDraft(msgspec.Struct, frozen=True, omit_defaults=True):
    """A document that is stored and not published."""

    number: int
    """Grows by one with every `save_draft`; the next one may say which it expects."""
    base: int
    """The revision that was published when the draft was begun; 0 if there was none."""
    hash: str
    saved_at: int
    """In microseconds since 1970."""
    by: str = ""
    reason: str = msgspec.field(default="", name="note")


class FlowEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """The entry of one flow in the index."""

    current: StoredRevision | None = None
    """The published revision; None for a flow that has only a draft."""
    disabled: Pause | None = None
    draft: StoredDraft | None = None
    deleted: Pause | None = None
    """The deletion of the flow: by whom, when and why. A deleted flow starts nothing and is not listed; the entry
    stays, so that revisions are counted on if it comes back, and a stale write is noticed."""
    last: int = 0
    """The number of the last revision of a deleted flow."""
    has_open_runs: bool = False
    """Whether it was deleted while runs of it were open: workers load it on, so that they can end."""
    brought: tuple[str, ...] = ()
    """The hashes of documents that came with runs of another store: workers load them, and nothing starts them."""

    @property
    def revision(self) -> int:
        """The number of the published revision; 0 if there is none."""
        return 0 if self.current is None else self.current.number


class StoredDocument(msgspec.Struct, frozen=True):
    """The content of the cell of a document."""

    canonical: bytes
    text: str


Index = dict[str, FlowEntry]
_index = msgspec.json.Decoder(Index).decode
_revisions = msgspec.json.Decoder(list[StoredRevision]).decode
_document = msgspec.msgpack.Decoder(StoredDocument).decode


def index_in(data: bytes | None) -> Index:
    """The index in its cell.

    Raises:
        FlowDamagedError: it cannot be read. It is not taken for an empty one: the next change would lose every flow.
    """
    try:
        return _index(data) if data else {}
    except msgspec.MsgspecError as error:
        raise FlowDamagedError("the index of flows", str(error)) from None


def index_data(index: Index) -> bytes:
    """The content of the cell for this index."""
    return msgspec.json.encode(index)


def revisions_in(name: str, data: bytes | None) -> list[StoredRevision]:
    """The earlier revisions of a flow, the oldest first."""
    try:
        return _revisions(data) if data else []
    except msgspec.MsgspecError as error:
        raise FlowDamagedError(f"the history of flow {name}", str(error)) from None


def revisions_data(revisions: list[StoredRevision]) -> bytes:
    """The content of the cell with the history of a flow."""
    return msgspec.json.encode(revisions)


def document_in(digits: str, data: bytes | None) -> StoredDocument | None:
    """A document by its hash; None if it is not there."""
    if not data:
        return None
    try:
        return _document(zlib.decompress(data))
    except (msgspec.MsgspecError, zlib.error) as error:
        raise FlowDamagedError(f"the document {digits} of a flow", str(error)) from None


def document_data(document: StoredDocument) -> bytes:
    """The content of the cell of a document."""
    return zlib.compress(msgspec.msgpack.encode(document), level=6)


def version_of(digits: str) -> int:
    """The version that the runs of a document have."""
    return int(digits, 16)


def hash_of(version: int) -> str:
    """The other way round."""
    return f"{version:0{VERSION_HEX_DIGITS}x}"
