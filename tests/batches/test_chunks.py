"""The chunks of a batch as a reader of its results goes through them."""

from __future__ import annotations

from dataclasses import dataclass

from outlive._features.batches.batch import OpenChunks
from outlive._features.batches.workflows import Chunk, Plan, chunk_id


@dataclass
class Item:
    """A result with its place."""

    index: int


def chunks_of(*counts: int, concurrency: int = 2, after: int = -1) -> OpenChunks:
    """The chunks of a batch with so many rows in each."""
    plan = Plan(item="m", version=1, chunks=[Chunk("[]", count) for count in counts], concurrency=concurrency)
    return OpenChunks("b", plan, after=after)


def test_a_chunk_that_was_seen_makes_room_for_the_next_one() -> None:
    """A reader looks at as many as are under way, in their order, until none is left."""
    chunks = chunks_of(2, 2, 2)

    assert (chunks.ids(), chunks.seen_to) == ([chunk_id("b", 1), chunk_id("b", 2)], -1)
    chunks.close(chunk_id("b", 2))
    assert (chunks.ids(), chunks.seen_to) == ([chunk_id("b", 1), chunk_id("b", 3)], -1)
    chunks.close(chunk_id("b", 1))
    assert (chunks.ids(), chunks.seen_to) == ([chunk_id("b", 3)], 3)
    chunks.close(chunk_id("b", 3))
    assert not chunks


def test_a_reader_that_goes_on_passes_over_chunks_that_it_has_seen() -> None:
    """It begins in the chunk that has the next place, behind the last one that it has seen there."""
    assert [(it.ids()[0], it.seen_to) for it in (chunks_of(2, 2, after=1), chunks_of(2, 2, after=2))] == [
        (chunk_id("b", 2), 1),
        (chunk_id("b", 2), 2),
    ]
    assert chunks_of(2, 2, after=0).ids() == [chunk_id("b", 1), chunk_id("b", 2)]
    assert not chunks_of(2, 2, after=3)


async def test_a_result_that_came_out_of_order_is_given_once() -> None:
    """The place up to which all was seen moves when those before it have come."""
    chunks = chunks_of(4)
    there = [2]
    asked: list[int] = []

    async def read(plan: Plan, run_id: str, *, after: int) -> list[Item]:
        asked.append(after)
        return [Item(index) for index in there]

    seen = [[item.index async for item in chunks.read(read, chunk_id("b", 1))]]
    there += [0, 1]
    seen.append([item.index async for item in chunks.read(read, chunk_id("b", 1))])
    there.append(3)
    seen.append([item.index async for item in chunks.read(read, chunk_id("b", 1))])

    assert seen == [[2], [0, 1], [3]]
    assert asked == [-1, -1, 2]
    assert chunks.seen_to == 3
