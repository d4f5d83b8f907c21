"""Planted defects in the verbs of streams: each must be found, by the test that is meant to find it."""

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

import pytest
from msgspec.structs import replace

from outlive._kernel.store.contract import Change, Outcome
from outlive._kernel.store.memory import MemoryStore
from outlive._kernel.store.streams import MARK_BITS, Appended, StreamAppend, StreamChunk, StreamLimits, StreamLine
from outlive_conformance.suite import MemoryFactory, find_failures


class Defective(MemoryStore):
    """The oracle with one defect; says which test must find it."""

    found_by: ClassVar[str]


class Appending(Defective):
    """Changes what is appended."""

    def alter(self, append: StreamAppend) -> StreamAppend:
        """The append that is written in its place."""
        raise NotImplementedError

    async def append_streams(self, appends: Sequence[StreamAppend], *, limits: StreamLimits) -> list[Appended]:
        return await super().append_streams([self.alter(append) for append in appends], limits=limits)


def with_lines(append: StreamAppend, *lines: StreamLine) -> StreamAppend:
    """The same append with other lines."""
    return replace(append, said=replace(append.said, lines=lines))


class TrustsEveryWriter(Appending):
    """Takes what a former owner appends."""

    found_by = "test_former_owner_appends_nothing"

    def alter(self, append: StreamAppend) -> StreamAppend:
        tree = self._state.trees.get(append.journal)
        return append if tree is None else replace(append, epoch=tree.root.epoch)


class ForgetsMarks(Appending):
    """Writes a repeated append again."""

    found_by = "test_repeated_append_is_written_once"

    def alter(self, append: StreamAppend) -> StreamAppend:
        self._state.messages += 1
        return replace(append, mark=append.mark + self._state.messages * 1_000)


class KnowsTheLastMarkOnly(Appending):
    """Writes an append again that comes when its writer has gone on."""

    found_by = "test_append_that_comes_late_is_written_once"

    def alter(self, append: StreamAppend) -> StreamAppend:
        return replace(append, mark=append.mark << MARK_BITS)


class TakesWritersForOne(Appending):
    """Takes an append for one that is there because another writer's mark was higher."""

    found_by = "test_marks_of_another_writer_are_new"

    def alter(self, append: StreamAppend) -> StreamAppend:
        return replace(append, mark=append.mark >> MARK_BITS or append.mark)


class IgnoresNumbers(Appending):
    """Writes a line of a workflow again."""

    found_by = "test_line_of_a_workflow_is_written_once"

    def alter(self, append: StreamAppend) -> StreamAppend:
        return with_lines(append, *(replace(line, number=0) for line in append.said.lines))


class KeepsTheFirstHead(Appending):
    """Says of all items that they come from the same source."""

    found_by = "test_head_is_written_where_it_is_another_one"

    def alter(self, append: StreamAppend) -> StreamAppend:
        head = append.said.lines[0].head
        return with_lines(append, *(replace(line, head=head) for line in append.said.lines))


class HasOneStream(Appending):
    """Takes all streams of a run for one."""

    found_by = "test_streams_are_apart"

    def alter(self, append: StreamAppend) -> StreamAppend:
        return replace(append, said=replace(append.said, name="tokens"))


class KnowsNoLimit(Defective):
    """Takes any number of items."""

    found_by = "test_run_has_so_many_items_bytes_and_streams"

    async def append_streams(self, appends: Sequence[StreamAppend], *, limits: StreamLimits) -> list[Appended]:
        return await super().append_streams(appends, limits=StreamLimits(2**60, 2**60, 2**60))


class WritesNothingOfABadCall(Defective):
    """One append that is refused takes the others along."""

    found_by = "test_nothing_is_appended_to_an_ended_tree"

    async def append_streams(self, appends: Sequence[StreamAppend], *, limits: StreamLimits) -> list[Appended]:
        (first,) = await super().append_streams(appends[:1], limits=limits)
        if first is not Appended.APPENDED:
            return [first] * len(appends)
        return [first, *await super().append_streams(appends[1:], limits=limits)]


class DropsLinesOfChanges(Defective):
    """Commits a change without what its workflow emitted."""

    found_by = "test_change_brings_lines"

    async def commit(self, changes: Sequence[Change]) -> list[tuple[Outcome, int]]:
        return await super().commit([replace(change, streams=[]) for change in changes])


class CountsFromThePosition(Defective):
    """Gives the chunk that ends where a reader is, again."""

    found_by = "test_stream_is_read_from_a_position_on"

    async def read_stream(self, run_id: str, name: str, *, after: int = 0, limit: int = 256) -> list[StreamChunk]:
        return await super().read_stream(run_id, name, after=max(0, after - 1), limit=limit)


DEFECTS = [each for base in (Defective, Appending) for each in base.__subclasses__() if each is not Appending]


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.__name__)
def test_defect_is_found(defect: type[Defective]) -> None:
    """By the test that is meant to."""
    assert find_failures(partial(MemoryFactory, defect), only=defect.found_by)
