"""Blobs: bytes known by their content, stored once, kept whole."""

from __future__ import annotations

import pytest

from outlive._kernel.model import Payload
from outlive._kernel.store.contract import Store
from outlive_conformance.suite.builders import (
    LARGE_BYTES,
    Writer,
    begin,
    blob,
    created,
    message,
    new_tree,
    send,
    stepped,
)
from outlive_conformance.suite.facet import Facet


class BlobsConformance(Facet):
    """The `blobs` of a change, and `get_blobs`."""

    @pytest.mark.parametrize(
        "data",
        [b"text", b"", b"\x00", bytes(range(256)), b"\xff\xfe" * 3],
        ids=["text", "empty", "zero", "binary", "not-utf-8"],
    )
    async def test_blob_comes_back_as_it_went_in(self, store: Store, data: bytes) -> None:
        """Bytes are bytes: binary, not UTF-8 or none at all. [SF-B1 SF-B7]"""
        tree = await begin(store)
        await tree.step(blobs=[blob(data)])

        assert await store.get_blobs([blob(data).id]) == {blob(data).id: data}

    async def test_large_blob_is_not_truncated(self, store: Store) -> None:
        """More than 2 MB come back whole."""
        data = b"0123456789abcde\x00" * (LARGE_BYTES // 16) + b"end"
        tree = await begin(store)
        await tree.step(blobs=[blob(data)])

        assert await store.get_blobs([blob(data).id]) == {blob(data).id: data}

    async def test_same_content_may_be_stored_again(self, store: Store) -> None:
        """Equal bytes have one id, so writing them again, in any tree and change, changes nothing.
        [SF-B2 SF-B8 FE-P5]
        """
        same = blob(b"\x00same\xff")
        first, second = await begin(store, "first"), await begin(store, "second")
        await first.step(blobs=[same])
        await first.step(blobs=[same, same])
        await second.step(blobs=[same])
        await store.commit([first.change(stepped(store), blobs=[same]), second.change(stepped(store), blobs=[same])])

        assert await store.get_blobs([same.id, same.id]) == {same.id: same.data}
        assert len(await store.read_journal(first.journal)) == 4

    async def test_unknown_blob_is_left_out(self, store: Store) -> None:
        """Asking for what is not there is no error, and does not hide what is. [SF-B4]"""
        known, unknown = blob(b"known"), blob(b"unknown")
        tree = await begin(store)
        await tree.step(blobs=[known])

        assert await store.get_blobs([unknown.id, known.id]) == {known.id: b"known"}
        assert await store.get_blobs([unknown.id]) == {}
        assert await store.get_blobs([]) == {}

    async def test_blobs_are_stored_by_themselves(self, store: Store, other: Store) -> None:
        """Before any change refers to them, whether some of them are there already or not. [OL-B1]"""
        first, second = blob(b"\x00first"), blob(b"")
        await store.put_blobs([first])
        await store.put_blobs([first, second, first])
        await store.put_blobs([])

        assert await other.get_blobs([first.id, second.id]) == {first.id: first.data, second.id: second.data}

    async def test_many_blobs_are_given_at_once(self, store: Store) -> None:
        """A change may bring, and a reader may ask for, more than a handful."""
        blobs = [blob(f"{number}".encode()) for number in range(1_500)]
        tree = await begin(store)
        await tree.step(blobs=blobs)

        assert await store.get_blobs([each.id for each in blobs]) == {each.id: each.data for each in blobs}

    async def test_blobs_of_a_started_tree_are_kept(self, store: Store) -> None:
        """A tree brings its blobs with it, whether a change or a message starts it."""
        tree = await begin(store)
        by_change, by_message = new_tree(store, "second"), new_tree(store, "third")
        by_change.blobs, by_message.blobs = [blob(b"second")], [blob(b"third")]
        await tree.step(starts=[by_change])
        await send(store, message(store, "third"), start=by_message)

        found = await store.get_blobs([blob(b"second").id, blob(b"third").id])

        assert set(found.values()) == {b"second", b"third"}

    async def test_blob_of_a_refused_change_is_not_kept(self, store: Store) -> None:
        """A change that conflicts leaves no bytes behind, also when it would have created a tree."""
        await begin(store, "taken")
        refused = Writer(store, "taken")

        await refused.try_write(created(store), blobs=[blob(b"never")])

        assert await store.get_blobs([blob(b"never").id]) == {}

    async def test_blob_of_a_message_is_kept_with_it(self, store: Store) -> None:
        """A message brings the bytes that its payload refers to, whether the world or a change sends it."""
        tree, _ = await begin(store), await begin(store, "friend")
        first, second = blob(b"\x00by the world"), blob(b"\x00by a change")

        await send(store, message(store, "run-1", payload=Payload(blob=first.id), blobs=(first, first)))
        await tree.step(messages=[message(store, "friend", payload=Payload(blob=second.id), blobs=(second,))])

        assert await store.get_blobs([first.id, second.id]) == {first.id: first.data, second.id: second.data}
        (inbound,) = (await store.read_inbox([tree.journal]))[tree.journal]
        assert inbound.payload == Payload(blob=first.id)

    async def test_blob_of_a_refused_message_is_not_kept(self, store: Store) -> None:
        """Neither of an unknown or ended run, a repetition, nor one that found no room."""
        await begin(store)
        await (await begin(store, "ended")).succeed()
        await send(store, message(store, "run-1", key="k"))
        refused = [blob(data) for data in (b"unknown", b"ended", b"again", b"full")]

        await send(
            store,
            message(store, "unknown", blobs=(refused[0],)),
            message(store, "ended", blobs=(refused[1],)),
            message(store, "run-1", key="k", blobs=(refused[2],)),
            message(store, "run-1", blobs=(refused[3],)),
            inbox_messages_max=1,
        )

        assert await store.get_blobs([each.id for each in refused]) == {}
