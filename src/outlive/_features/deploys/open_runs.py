"""Open runs as `outlive check-deploy` needs them: journals as they lie in the store, and the flows that they may be of.

Nothing is decoded and nothing is hidden: the code that is to be deployed reads the journals, with codecs of its own.
An answer is bounded: what does not fit into one is asked for again.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from outlive._features.flows.library.library import Library
from outlive._features.flows.library.pinned import pinned_hashes
from outlive._kernel.client.client import Client
from outlive._kernel.journal.codec import Row
from outlive._kernel.journal.history import blobs_of
from outlive._kernel.model import Run
from outlive.errors.flow import FlowDamagedError

BYTES_MAX = 16 * 1024 * 1024
"""An answer holds no more than this, unless one journal or one document does."""
AT_ONCE = 10
"""Journals that are read together: so many go into memory before their size is looked at."""


class RowView(msgspec.Struct, frozen=True, array_like=True):
    """A row of a journal, as the journal format has it."""

    seq: int
    format: int
    crc: int
    body: bytes


class JournalView(msgspec.Struct, frozen=True, kw_only=True):
    """An open run, and the journal of its tree."""

    id: str
    workflow: str
    version: int
    is_parked: bool
    reason: str
    """Why it is parked."""
    nonce: int
    """The start value of its checksums."""
    rows: list[RowView]


class Journals(msgspec.Struct, frozen=True):
    """Journals of open runs."""

    items: list[JournalView]
    blobs: dict[str, bytes]
    """Values that the journals keep elsewhere, by their ids."""
    left: list[str]
    """Runs that did not fit into this answer: ask for them again."""


class PinnedDocument(msgspec.Struct, frozen=True):
    """A document of a flow that runs may be pinned to."""

    name: str
    hash: str
    canonical: bytes


class PinnedDocuments(msgspec.Struct, frozen=True):
    """Documents of flows, by name and hash."""

    items: list[PinnedDocument]
    published: dict[str, int]
    """The version of every flow that is published, by its name."""
    next: str | None
    """The name and the hash of the last one here, `orders@3f9a1c02b7de...`, if there are more."""


class OpenRuns:
    """Reads them from the store of an engine."""

    def __init__(self, client: Client) -> None:
        self._access = client.access

    async def journals(self, run_ids: Sequence[str]) -> Journals:
        """The journals of the open roots among `run_ids`. Children, ended and unknown runs are passed over."""
        runs = await self._access.store.find_runs(list(run_ids))
        wanted = [run for run_id in dict.fromkeys(run_ids) if (run := runs.get(run_id)) is not None and _is_open(run)]
        items: list[JournalView] = []
        blobs: dict[str, bytes] = {}
        size = 0
        for begin in range(0, len(wanted), AT_ONCE):
            if size > BYTES_MAX:
                return Journals(items, blobs, [run.id for run in wanted[begin:]])
            some = wanted[begin : begin + AT_ONCE]
            found = await self._access.store.read_journals([run.journal for run in some])
            items += [_shown(run, found[run.journal]) for run in some if run.journal in found]
            ids = {blob for rows in found.values() for blob in blobs_of(rows)} - blobs.keys()
            blobs |= await self._access.store.get_blobs(sorted(ids)) if ids else {}
            size = sum(len(row.body) for each in items for row in each.rows) + sum(map(len, blobs.values()))
        return Journals(items, blobs, [])

    async def documents(self, *, after: tuple[str, str] | None = None) -> PinnedDocuments:
        """The documents of flows that runs may be pinned to, behind that one; damaged ones are left out.

        Raises:
            FlowDamagedError: the index of flows cannot be read.
        """
        store = self._access.store
        library = Library(lambda: store)
        index = await library.index()
        published = {name: entry.current.version for name, entry in index.items() if entry.current is not None}
        items: list[PinnedDocument] = []
        size = 0
        for name in sorted(index):
            if after is not None and name < after[0]:
                continue
            for digits in sorted(await pinned_hashes(store, library, name, index[name])):
                if after is not None and (name, digits) <= after:
                    continue
                if size > BYTES_MAX:
                    return PinnedDocuments(items, published, f"{items[-1].name}@{items[-1].hash}")
                try:
                    canonical = (await library.document(name, digits)).canonical
                except FlowDamagedError:
                    continue
                items.append(PinnedDocument(name, digits, canonical))
                size += len(canonical)
        return PinnedDocuments(items, published, None)


def _is_open(run: Run) -> bool:
    return run.number == 0 and not run.status.is_terminal


def _shown(run: Run, rows: Sequence[Row]) -> JournalView:
    return JournalView(
        id=run.id,
        workflow=run.workflow,
        version=run.version,
        is_parked=run.status.value == "parked",
        reason=run.reason,
        nonce=run.nonce,
        rows=[RowView(*row) for row in rows],
    )
