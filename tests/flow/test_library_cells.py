"""The library of flows as its cells hold it: what is published, what was, drafts, and stale writes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import msgspec
import pytest

from outlive._features.flows.library.library import Library
from outlive._features.flows.library.records import (
    DOCUMENT_CELLS,
    INDEX_CELL,
    FlowEntry,
    StoredDocument,
    StoredDraft,
    StoredRevision,
    hash_of,
)
from outlive._kernel.runtime.clock import SystemClock
from outlive._kernel.store.contract import Store
from outlive._kernel.store.memory import MemoryStore
from outlive.errors.flow import FlowDamagedError, FlowHashError, FlowNotFoundError, StaleFlowError
from tests.engine.support import Place

FIRST, SECOND, THIRD = hash_of(1), hash_of(2), hash_of(3)


@pytest.fixture
async def store(place: Place) -> AsyncIterator[Store]:
    """An open store."""
    store = place.store()
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def library(store: Store) -> Library:
    """Its library."""
    return Library(lambda: store)


async def publish(library: Library, digits: str, expected: int | None = None, by: str = "") -> int:
    """Publish a document as flow `orders`; the number of the revision."""
    await library.put_document("orders", digits, StoredDocument(digits.encode(), f"# {digits}"))
    return (await library.publish("orders", digits, by=by, reason="", expected=expected)).revision


async def history(library: Library) -> list[tuple[int, str]]:
    """The revisions of flow `orders`: number and document."""
    found = await library.revisions("orders", await library.entry("orders"))
    return [(each.number, each.hash) for each in found]


@pytest.mark.every_store
async def test_revisions_are_counted_and_listed(library: Library, store: Store) -> None:
    """Revisions are counted and their documents kept; publishing the newest content again makes no revision.
    [FB-S11, SF-B5]"""
    assert [1, 1, 2, 3] == [await publish(library, digits) for digits in (FIRST, FIRST, SECOND, THIRD)]

    assert [(1, FIRST), (2, SECOND), (3, THIRD)] == await history(library)
    assert (await library.revision("orders", 2)).hash == SECOND
    assert (await library.document("orders", FIRST)).text == f"# {FIRST}"
    assert (await library.revision("orders")).version == 3
    with pytest.raises(FlowNotFoundError, match="flow orders has no revision 4; its newest is 3"):
        await library.revision("orders", 4)
    with pytest.raises(FlowNotFoundError, match=r"there is no flow order in this store; did you mean orders\?"):
        await library.entry("order")


@pytest.mark.every_store
async def test_stale_write_is_refused_with_both_revisions(library: Library) -> None:
    """A person who has read revision 1 does not overwrite revision 2; and a draft in the same way. [FB-S9]"""
    await publish(library, FIRST, expected=0, by="ann")
    await publish(library, SECOND, expected=1, by="bob")

    with pytest.raises(StaleFlowError, match="is at revision 2 by bob, and revision 1 was expected") as stale:
        await publish(library, THIRD, expected=1)
    assert (1, 2) == (stale.value.expected, stale.value.found)
    assert [(1, FIRST), (2, SECOND)] == await history(library)

    saved = await library.save_draft("orders", FIRST, by="ann", reason="", expected=0)
    assert saved.draft is not None
    assert (1, 2) == (saved.draft.number, saved.draft.base)
    await library.save_draft("orders", THIRD, by="bob", reason="", expected=1)
    with pytest.raises(StaleFlowError, match="is at draft 2 by bob, and draft 1 was expected"):
        await library.save_draft("orders", SECOND, by="ann", reason="", expected=1)
    with pytest.raises(StaleFlowError, match="draft 2, and draft 1 was expected"):
        await library.publish("orders", FIRST, by="", reason="", draft=1)


@pytest.mark.any_store
async def test_many_writers_lose_no_revision(library: Library) -> None:
    """Each gets a number of its own, and all of them are in the history."""
    documents = [hash_of(number) for number in range(1, 21)]

    numbers = await asyncio.gather(*(publish(library, digits) for digits in documents))

    assert list(range(1, 21)) == sorted(numbers)
    assert dict(zip(numbers, documents, strict=True)) == dict(await history(library))


async def test_writer_that_is_overtaken_writes_behind_the_other_and_loses_no_flow(
    library: Library, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that has read the list of flows before another one published reads it again; the list stays whole."""
    await library.put_document("parcels", hash_of(9), StoredDocument(b"parcels", "# parcels"))
    await library.publish("parcels", hash_of(9), by="", reason="", expected=None)
    await publish(library, FIRST)
    late, read = Library(lambda: store), library.index
    overtaken: list[int] = []

    async def read_too_early() -> dict[str, FlowEntry]:
        found = await read()
        if not overtaken:
            overtaken.append(await publish(late, SECOND))
        return found

    monkeypatch.setattr(library, "index", read_too_early)

    assert (await publish(library, THIRD), overtaken) == (3, [2])
    assert await history(late) == [(1, FIRST), (2, SECOND), (3, THIRD)]
    assert set(await late.index()) == {"orders", "parcels"}


async def test_change_that_changes_nothing_leaves_the_list_as_it_is(library: Library) -> None:
    """A flow that is enabled can be enabled again, and no other flow notices."""
    await publish(library, FIRST)
    before = await library.index()
    await library.set_enabled("orders", enabled=True)

    assert await library.index() == before


async def test_flow_that_does_not_exist_has_no_draft_to_discard(library: Library) -> None:
    """The name of an unknown flow is refused, and no flow of that name is made."""
    with pytest.raises(FlowNotFoundError, match="there is no flow order"):
        await library.discard_draft("order")

    assert await library.index() == {}


@pytest.mark.any_store
async def test_one_of_many_writers_that_expect_one_revision_writes(library: Library) -> None:
    """One of ten writers that have read the same revision writes, and the others get StaleFlowError."""
    await publish(library, FIRST)
    changes = [publish(library, hash_of(number), expected=1) for number in range(2, 12)]

    outcomes = await asyncio.gather(*changes, return_exceptions=True)

    assert 9 == sum(isinstance(each, StaleFlowError) for each in outcomes)
    assert 2 == len(await history(library))


async def test_killed_writer_has_changed_nothing() -> None:
    """At whichever cell it stops, the published revision and the history are those from before."""
    for alive in range(3):
        store = _Mortal(clock=SystemClock().now)
        library = Library(partial(_same, store))
        await publish(library, FIRST)
        store.left = alive

        with pytest.raises(ConnectionError):
            await publish(library, SECOND)

        store.left = 1_000
        assert [(1, FIRST)] == await history(library)
        assert 2 == await publish(library, THIRD)
        assert [(1, FIRST), (2, THIRD)] == await history(library)


def _same(store: Store) -> Store:
    return store


class _Mortal(MemoryStore):
    """Changes so many cells more."""

    left = 1_000

    async def change_cell(self, name, change, *, audit=None):  # type: ignore[no-untyped-def]
        self.left -= 1
        if self.left < 0:
            raise ConnectionError("killed")
        return await super().change_cell(name, change)


@pytest.mark.any_store
async def test_deleted_flow_keeps_its_numbers(library: Library) -> None:
    """A write that expects a revision from before the deletion is stale, and numbers do not begin again. [FB-S10]"""
    await publish(library, FIRST)
    await publish(library, SECOND)

    await library.delete("orders", by="ann", reason="not sold any more", expected=2, has_open_runs=False)

    with pytest.raises(FlowNotFoundError):
        await library.entry("orders")
    with pytest.raises(StaleFlowError):
        await publish(library, THIRD, expected=2)
    with pytest.raises(FlowNotFoundError):
        await library.set_enabled("orders", enabled=True)
    assert 3 == await publish(library, THIRD, expected=0)
    assert [(1, FIRST), (2, SECOND), (3, THIRD)] == await history(library)


@pytest.mark.any_store
async def test_comments_are_kept_and_a_false_hash_is_refused(library: Library) -> None:
    """The text is that of the last author; another content under the same hash is never taken for it."""
    await publish(library, FIRST)

    await library.put_document("orders", FIRST, StoredDocument(FIRST.encode(), "# other words"))
    assert "# other words" == (await library.document("orders", FIRST)).text
    with pytest.raises(FlowHashError, match=FIRST):
        await library.put_document("orders", FIRST, StoredDocument(b"{}", ""))


@pytest.mark.any_store
async def test_damaged_cells_are_said_and_not_overwritten(library: Library, store: Store) -> None:
    """An index that cannot be read is not taken for an empty one."""
    await publish(library, FIRST)
    await store.change_cell(DOCUMENT_CELLS + FIRST, lambda held, _: (b"\0", None))
    await store.change_cell(INDEX_CELL, lambda held, _: (b'{"orders": 7}', None))

    with pytest.raises(FlowDamagedError, match="the index of flows cannot be read"):
        await publish(library, SECOND)
    with pytest.raises(FlowDamagedError, match=f"the document {FIRST} of a flow cannot be read"):
        await library.document("orders", FIRST)
    with pytest.raises(FlowDamagedError, match="it is not in the store"):
        await library.document("orders", THIRD)
    assert b'{"orders": 7}' == await store.read_cell(INDEX_CELL)


def test_a_reason_that_was_stored_as_a_note_is_read() -> None:
    """Rows of a store have the earlier name of the field, for ever."""
    revision = msgspec.json.decode(b'{"number":1,"hash":"a","published_at":1,"note":"old"}', type=StoredRevision)
    draft = msgspec.json.decode(b'{"number":1,"base":0,"hash":"a","saved_at":1,"note":"old"}', type=StoredDraft)

    assert revision.reason == draft.reason == "old"
