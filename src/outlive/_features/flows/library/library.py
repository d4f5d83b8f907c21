"""The library of flows, as its cells hold it: what is published, what was, and the documents themselves.

Documents come here checked. What they mean, no line of this file knows: it needs a name, a hash and the bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from difflib import get_close_matches

from msgspec.structs import replace

from outlive._features.flows.library.records import (
    DOCUMENT_CELLS,
    HISTORY_CELLS,
    INDEX_CELL,
    LOADER,
    FlowEntry,
    Index,
    StoredDocument,
    StoredDraft,
    StoredRevision,
    document_data,
    document_in,
    index_data,
    index_in,
    revisions_data,
    revisions_in,
)
from outlive._kernel.client.acting import doing
from outlive._kernel.client.client import Client
from outlive._kernel.model.pause import Pause
from outlive._kernel.store.contract import Store
from outlive.errors import OutliveError, StoreUnavailableError
from outlive.errors.flow import FlowDamagedError, FlowHashError, FlowNotFoundError, StaleFlowError

REVISIONS_MAX = 1_000
"""Revisions of a flow that its history keeps; the oldest go first."""
TRIES_MAX = 100
BROUGHT = "only runs of it were brought here"
NEW = FlowEntry()

EntryChange = Callable[[FlowEntry, int], FlowEntry]
"""Given the entry of a flow and the store's clock: what it is to be. Pure: it may be called more than once."""


class Library:
    """The flows of one store."""

    def __init__(self, store: Callable[[], Store], *, changed: Callable[[], None] = lambda: None) -> None:
        self._open_store = store
        self._changed = changed
        """Called when the index was changed here."""

    @property
    def _store(self) -> Store:
        return self._open_store()

    # -- Reading ---------------------------------------------------------------------------------------------

    async def index(self) -> Index:
        """Every flow by name, deleted ones too."""
        return index_in(await self._store.read_cell(INDEX_CELL))

    async def entry(self, name: str) -> FlowEntry:
        """The entry of a flow in the index.

        Raises:
            FlowNotFoundError: there is none of this name.
        """
        index = await self.index()
        found = index.get(name)
        if found is None or found.deleted is not None:
            names = [other for other, entry in index.items() if entry.deleted is None]
            raise FlowNotFoundError(name, near=get_close_matches(name, names, 3))
        return found

    async def revisions(self, name: str, entry: FlowEntry) -> list[StoredRevision]:
        """Every revision of a flow, the oldest first."""
        earlier = revisions_in(name, await self._store.read_cell(HISTORY_CELLS + name))
        if entry.current is None:
            return earlier
        # The one in the index may have been copied to the history already, by a change that did not come to its end.
        return [*(each for each in earlier if each.number < entry.current.number), entry.current]

    async def revision(self, name: str, number: int | None = None) -> StoredRevision:
        """One revision of a flow, the published one unless given.

        Raises:
            FlowNotFoundError: there is none of this name, or not this revision.
        """
        entry = await self.entry(name)
        if number is None or number == entry.revision:
            if entry.current is None:
                raise FlowNotFoundError(name, lacks="published revision; publish its draft first")
            return entry.current
        found = [each for each in await self.revisions(name, entry) if each.number == number]
        if not found:
            raise FlowNotFoundError(name, number, newest=entry.revision)
        return found[0]

    async def document(self, name: str, digits: str) -> StoredDocument:
        """A document by its hash.

        Raises:
            FlowDamagedError: it is not there, or cannot be read.
        """
        found = document_in(digits, await self._store.read_cell(DOCUMENT_CELLS + digits))
        if found is None:
            raise FlowDamagedError(f"the document {digits} of flow {name}", "it is not in the store")
        return found

    # -- Writing ---------------------------------------------------------------------------------------------

    async def put_document(self, name: str, digits: str, document: StoredDocument) -> None:
        """Keep a document. The same content with other comments replaces the text.

        Raises:
            FlowHashError: another content has the same hash.
        """

        def put(held: bytes | None, _: int) -> tuple[bytes, None]:
            try:
                there = document_in(digits, held)
            except FlowDamagedError:
                there = None  # This repairs it.
            if there is not None and there.canonical != document.canonical:
                raise FlowHashError(name, digits)
            return (data if there != document or held is None else held), None

        data = document_data(document)
        await self._store.change_cell(DOCUMENT_CELLS + digits, put)

    async def publish(
        self,
        name: str,
        digits: str,
        *,
        by: str,
        reason: str,
        expected: int | None = None,
        rolled_back_to: int = 0,
        draft: int = 0,
    ) -> FlowEntry:
        """Make a document that is kept the published revision of a flow. What is published already stays as it is.

        Args:
            expected: the revision that must be the published one until then; 0 for none.
            draft: the number of the draft that this is; it goes.

        Raises:
            StaleFlowError: another revision, or another draft, came first.
        """

        def revise(before: FlowEntry, now: int) -> FlowEntry:
            if not draft and before.current is not None and before.current.hash == digits:
                return before  # The writer may have done it, and not seen the answer.
            check_expected(name, expected, before)
            if draft and (before.draft is None or before.draft.number != draft):
                raise StaleFlowError(name, draft, before.draft.number if before.draft else 0, what="draft")
            left = None if draft else before.draft
            if before.current is not None and before.current.hash == digits:
                return replace(before, draft=left)
            number = max(before.revision, before.last) + 1
            new = StoredRevision(number, digits, now, by=by, reason=reason, rolled_back_to=rolled_back_to)
            return FlowEntry(current=new, disabled=before.disabled, draft=left, brought=before.brought)

        with doing("flow.rollback" if rolled_back_to else "flow.publish", name, reason):
            return await self._change(name, revise)

    async def save_draft(
        self, name: str, digits: str, *, by: str, reason: str, expected: int | None = None
    ) -> FlowEntry:
        """Keep a document as the draft of a flow.

        Raises:
            StaleFlowError: `expected` is not the number of the draft that is there; 0 for none.
        """

        def save(before: FlowEntry, now: int) -> FlowEntry:
            number, base = (before.draft.number, before.draft.base) if before.draft else (0, before.revision)
            if before.draft is not None and before.draft.hash == digits:
                return before  # The writer may have done it, and not seen the answer.
            if expected is not None and expected != number:
                who = before.draft.by if before.draft else ""
                raise StaleFlowError(name, expected, number, what="draft", by=who)
            return replace(before, draft=StoredDraft(number + 1, base, digits, now, by=by, reason=reason), deleted=None)

        with doing("flow.draft", name, reason):
            return await self._change(name, save)

    async def discard_draft(self, name: str) -> FlowEntry:
        """Forget the draft of a flow, if it has one."""
        with doing("flow.discard", name):
            return await self._change(name, lambda before, _: replace(before, draft=None), creates=False)

    async def set_enabled(self, name: str, *, enabled: bool, by: str = "", reason: str = "") -> FlowEntry:
        """Let a flow start runs, or not."""

        def change(before: FlowEntry, now: int) -> FlowEntry:
            if enabled:
                return replace(before, disabled=None)
            return before if before.disabled is not None else replace(before, disabled=Pause(now, by, reason))

        with doing("flow.enable" if enabled else "flow.disable", name, reason):
            return await self._change(name, change, creates=False)

    async def delete(self, name: str, *, by: str, reason: str, expected: int | None, has_open_runs: bool) -> None:
        """Take a flow out of the library."""

        def remove(before: FlowEntry, now: int) -> FlowEntry:
            check_expected(name, expected, before)
            last = max(before.revision, before.last)
            return FlowEntry(
                deleted=Pause(now, by, reason), last=last, has_open_runs=has_open_runs, brought=before.brought
            )

        with doing("flow.delete", name, reason):
            await self._change(name, remove, creates=False)

    async def bring(self, name: str, digits: str) -> FlowEntry:
        """Let workers load a document that is kept, for runs that came with it. A flow that is not here stays unlisted,
        and starts nothing."""

        def bring(before: FlowEntry, now: int) -> FlowEntry:
            if digits in before.brought:
                return before
            is_new = before.current is None and before.draft is None and before.deleted is None
            deleted = Pause(now, "", BROUGHT) if is_new else before.deleted
            return replace(before, deleted=deleted, brought=(*before.brought, digits))

        return await self._change(name, bring)

    async def _change(self, name: str, change: EntryChange, *, creates: bool = True) -> FlowEntry:
        """Change the entry of a flow, and put the revision that is replaced into its history before.

        Raises:
            FlowNotFoundError: there is no such flow, and it is not to be created.
        """
        for _ in range(TRIES_MAX):
            seen = (await self.index()).get(name)
            if (seen is None or seen.deleted is not None) and not creates:
                await self.entry(name)
            if seen is not None and seen.current is not None:
                await self._remember(name, seen.current)
            after = await self._change_index(name, seen, change)
            if after is not None:
                with suppress(StoreUnavailableError):  # It is changed: the others will see it by themselves.
                    await self._store.ring(INDEX_CELL)
                self._changed()
                return after
        raise OutliveError(f"flow {name} was changed {TRIES_MAX} times meanwhile; try again")

    async def _change_index(self, name: str, seen: FlowEntry | None, change: EntryChange) -> FlowEntry | None:
        """Change the entry, if what is published is what was seen; None if it is not."""

        def swap(data: bytes | None, now: int) -> tuple[bytes, FlowEntry | None]:
            index = index_in(data)
            before = index.get(name)
            if (before.current if before else None) != (seen.current if seen else None):
                return data or b"", None
            after = change(before or NEW, now)
            if after == before:
                return data or b"", after
            index[name] = after
            return index_data(index), after

        return await self._store.change_cell(INDEX_CELL, swap)

    async def _remember(self, name: str, current: StoredRevision) -> None:
        """Copy the published revision into the history. Doing it twice, or for nothing, does no harm."""

        def add(data: bytes | None, _: int) -> tuple[bytes, None]:
            there = revisions_in(name, data)
            if there and there[-1].number >= current.number:
                return data or b"[]", None
            return revisions_data([*there, current][-REVISIONS_MAX:]), None

        await self._store.change_cell(HISTORY_CELLS + name, add)


def check_expected(name: str, expected: int | None, entry: FlowEntry) -> None:
    """See that a flow is at the revision that its writer has read.

    Raises:
        StaleFlowError: it is not.
    """
    if expected is not None and expected != entry.revision:
        by = entry.current.by if entry.current else entry.deleted.by if entry.deleted else ""
        raise StaleFlowError(name, expected, entry.revision, by=by)


def library_of(client: Client) -> Library:
    """The flows of the store of a client; the worker of its process hears of changes at once."""
    return Library(lambda: client.access.store, changed=lambda: client.ring_service(LOADER))
