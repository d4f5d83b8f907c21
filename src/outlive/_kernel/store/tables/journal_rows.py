"""The rows that a batch of changes appends to journals, each with its fence.

A batch is written as if nothing conflicted; the fence in commit_rows.sql makes the whole of it fail if something does.
All rows of a tree have one fence: the last event from before the batch, which must be there, with the checksum that
the writer knows, and must not have ended the tree.
"""

from __future__ import annotations

from collections.abc import Iterable

from outlive._kernel.store.contract import Change

_ENDED = -2
"""Instead of the last seq of a tree that ends within the batch: no `after` is equal to it."""

FencedRow = tuple[int, int, int, int | None, int, int, bool, bytes]
"""Journal, seq, the seq and the checksum of the fence, format, checksum, whether the tree ends with
it, and the event."""


class Conflict(Exception):
    """One attempt for many changes at once has failed: each must be tried again alone, carefully."""


class JournalRows:
    """Collects the rows of a batch."""

    __slots__ = ("_tails", "rows")

    def __init__(self) -> None:
        self.rows: list[FencedRow] = []
        self._tails: dict[int, tuple[int, int | None, int, int | None]] = {}
        """For each tree: the fence, and the end of the journal after the added rows, each as a seq and a checksum."""

    def add(self, change: Change, journal: int, *, is_last: bool = False) -> None:
        """Append the rows of a change; a second change of a tree must build on the first one.

        Raises:
            Conflict: it does not.
        """
        assert change.rows, "a change without a row proves nothing"
        if change.journal and (change.after < 0 or change.prior is None):
            raise Conflict("every journal that has a handle has an event, and the change must name its last one")
        known = self._tails.get(journal)
        fence, prior, tail, crc = known or (change.after, change.prior, change.after, change.prior)
        if tail != change.after or crc != change.prior:
            raise Conflict("two changes of one tree that do not follow each other")
        if not change.journal:
            tail = change.rows[0][0] - 1
        last = change.rows[-1][0]
        for seq, format_, crc, body in change.rows:  # The last one is the tail.
            tail += 1
            assert seq == tail, "a gap in the rows of a change"
            self.rows.append((journal, seq, fence, prior, format_, crc, is_last and seq == last, body))
        self._tails[journal] = fence, prior, _ENDED if is_last else tail, crc


def plain_rows(changes: Iterable[Change], *, with_guarded: bool) -> list[FencedRow] | None:
    """The rows of changes that only append to journals that are there: steps have ended, and that is all. None if one
    of them does more.

    Raises:
        Conflict: two changes of one tree do not follow each other.
    """
    rows = JournalRows()
    for change in changes:
        if (
            not change.journal
            or change.runs
            or change.renames
            or change.consumed
            or change.blobs
            or change.answers
            or change.items
            or change.streams
            or change.starts
            or change.messages
            or change.forgets
            or change.audit
            or (change.is_guarded and not with_guarded)
        ):
            return None
        rows.add(change, change.journal)
    return rows.rows
