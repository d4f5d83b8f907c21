"""Reading a journal: what was written comes back byte for byte, damaged or not, and the codec judges it."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from outlive._kernel.journal.codec import FORMAT, Row, checksum, open_row, salt_of, seal
from outlive._kernel.journal.event import AnyEvent, RunCreated
from outlive._kernel.store.contract import Change, Store
from outlive.errors.store import CorruptJournalError, FormatTooNewError
from outlive_conformance.suite.builders import (
    LARGE_BYTES,
    NONCE,
    Writer,
    begin,
    created,
    read_events,
    stepped,
    value,
)
from outlive_conformance.suite.facet import Facet
from outlive_conformance.suite.samples import barest, fullest

KINDS: tuple[type[Any], ...] = get_args(AnyEvent)
SALT = salt_of(NONCE)


class RowsConformance(Facet):
    """`read_journal`, `read_journals`, and the bytes they give."""

    # -- Which rows ----------------------------------------------------------------------------------------

    async def test_unknown_journal_is_empty(self, store: Store) -> None:
        """There is nothing to read, and that is not an error. [SF-J2]"""
        assert await store.read_journal(1_000) == []
        assert await store.read_journals([1_000]) == {}

    async def test_reading_begins_after_the_seq_that_is_named(self, store: Store) -> None:
        """`after` leaves out that event and all before it. [SF-J4]"""
        tree = await begin(store)
        await tree.step("a", "b", "c")

        assert await read_seqs(store, tree, after=1) == [2, 3]
        assert await read_seqs(store, tree, after=3) == []
        assert await read_seqs(store, tree, after=1_000) == []

    async def test_reading_ends_at_the_limit(self, store: Store) -> None:
        """A reader may take a journal in bites, and without a limit gets all of it. [SF-J11]"""
        tree = await begin(store)
        await tree.step("a", "b", "c")

        assert await read_seqs(store, tree, limit=2) == [0, 1]
        assert await read_seqs(store, tree, after=1, limit=2) == [2, 3]
        assert await read_seqs(store, tree, limit=1_000) == [0, 1, 2, 3]
        assert await read_seqs(store, tree) == [0, 1, 2, 3]

    async def test_reader_that_goes_on_from_its_last_seq_misses_nothing(self, store: Store, other: Store) -> None:
        """Following a journal is reading it again from where one was. [SF-J12]"""
        tree = await begin(store)
        seen = await read_seqs(other, tree)
        await tree.step("a", "b")
        seen += await read_seqs(other, tree, after=seen[-1])
        await tree.step("c")
        seen += await read_seqs(other, tree, after=seen[-1])

        assert seen == [0, 1, 2, 3]

    async def test_whole_journals_are_read_at_once(self, store: Store) -> None:
        """Each known journal comes whole and in order, an unknown one is left out."""
        first, second = await begin(store, "first"), await begin(store, "second")
        await first.step("a", "b", "c")
        await second.step("d")

        journals = await store.read_journals([second.journal, 1_000, first.journal])

        assert {first.journal, second.journal} == journals.keys()
        assert await store.read_journal(first.journal) == journals[first.journal]
        assert await store.read_journal(second.journal) == journals[second.journal]
        assert await store.read_journals([]) == {}

    async def test_parent_and_child_share_one_journal(self, store: Store) -> None:
        """All runs of a tree have one sequence of events and one handle. [SF-J9]"""
        tree = await begin(store)
        child_id = await tree.spawn(1)
        await tree.step()

        child = await store.find_run(child_id)
        runs = [event.run for event in await read_events(tree)]

        assert child is not None
        assert tree.journal == child.journal
        assert runs == [0, 1, 0]

    async def test_what_was_read_does_not_change_with_the_store(self, store: Store) -> None:
        """A list of rows is the reader's own."""
        tree = await begin(store)
        rows = await store.read_journal(tree.journal)
        await tree.step()
        rows.clear()

        assert await read_seqs(store, tree) == [0, 1]

    # -- Which bytes ---------------------------------------------------------------------------------------

    @pytest.mark.parametrize("kind", KINDS, ids=[kind.__name__ for kind in KINDS])
    async def test_every_kind_of_event_survives_the_journal(self, store: Store, kind: type[Any]) -> None:
        """An event is read back as it was written, with all of its fields and with none. [SF-J10]"""
        events = [created(store, nonce=NONCE), fullest(kind), barest(kind)]
        tree = await begin_with_rows(store, [seal(event, salt=SALT, seq=seq) for seq, event in enumerate(events)])

        assert await read_events(tree) == events

    async def test_rows_come_back_byte_for_byte(self, store: Store) -> None:
        """Seq, format, checksum and body are what was written; a store does not look into them."""
        bodies = [bytes(range(256)), b"\x00", b"", b'{"t": "spaces   kept"}', "ключ".encode("utf-16")]
        rows = [first_row(store), *((seq, 7, 2**32 - seq, body) for seq, body in enumerate(bodies, 1))]
        tree = await begin_with_rows(store, rows)

        assert await store.read_journal(tree.journal) == rows
        assert await store.read_journals([tree.journal]) == {tree.journal: rows}

    async def test_large_result_is_not_truncated(self, store: Store) -> None:
        """A step result of more than 2 MB comes back whole. [SF-M17]"""
        tree = await begin(store)
        result = "ž" * LARGE_BYTES
        await tree.write(stepped(store, result=result))

        assert stepped(store, result=result) == (await read_events(tree))[1]

    async def test_damaged_row_is_given_as_it_lies_and_refused_by_the_codec(self, store: Store) -> None:
        """The store is not a judge of bytes; the error names the run and the seq."""
        seq, format_, crc, body = seal(stepped(store), salt=SALT, seq=1)
        damaged = (seq, format_, crc, body[:-3] + b"?" + body[-2:])
        tree = await begin_with_rows(store, [first_row(store), damaged])

        row = (await store.read_journal(tree.journal))[1]
        with pytest.raises(CorruptJournalError) as caught:
            open_row(row, salt=SALT, run_id=tree.run_id)

        assert row == damaged
        assert (caught.value.run_id, caught.value.seq) == (tree.run_id, 1)

    async def test_event_of_a_later_release_is_given_as_it_lies(self, store: Store) -> None:
        """A kind that this release does not know is kept and refused by name, not taken for another kind."""
        later = sealed(b'{"t":"RunTeleported","at":1}', seq=1)
        tree = await begin_with_rows(store, [first_row(store), later])

        row = (await store.read_journal(tree.journal))[1]
        with pytest.raises(FormatTooNewError, match="RunTeleported"):
            open_row(row, salt=SALT, run_id=tree.run_id)

        assert row == later

    async def test_formats_of_other_releases_come_back_as_they_were_written(self, store: Store) -> None:
        """The format is kept with each row, so an old row can be distinguished from a new one."""
        rows = [first_row(store), *(sealed(b"{}", seq=seq, format_=seq - 1) for seq in range(1, 4))]
        tree = await begin_with_rows(store, rows)

        assert [row[1] for row in await store.read_journal(tree.journal)] == [FORMAT, 0, 1, 2]


async def read_seqs(store: Store, tree: Writer, *, after: int = -1, limit: int | None = None) -> list[int]:
    """The seqs of the rows that a reader is given."""
    return [row[0] for row in await store.read_journal(tree.journal, after=after, limit=limit)]


def first_row(store: Store) -> Row:
    """The row that every journal begins with."""
    event = RunCreated(at=store.now(), workflow="greet", version=1, input=value(None), nonce=NONCE)
    return seal(event, salt=SALT, seq=0)


def sealed(body: bytes, *, seq: int, format_: int = FORMAT) -> Row:
    """A row whose checksum is right, whatever its body says."""
    return seq, format_, checksum(seq, format_, body, SALT), body


async def begin_with_rows(store: Store, rows: list[Row]) -> Writer:
    """Create a tree with a journal that no honest writer could have written."""
    writer = Writer(store, "run-1")
    birth = writer.change(created(store, nonce=NONCE))
    ((_, writer.journal),) = await store.commit([Change(journal=0, after=-1, rows=rows, runs=birth.runs)])
    return writer
