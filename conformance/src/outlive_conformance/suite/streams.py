"""Streams: items in order, each once, for as long as the writer owns the tree."""

from __future__ import annotations

from msgspec.structs import replace

from outlive._kernel.journal.event import RunContinued
from outlive._kernel.store.contract import Forgotten, Outcome, Store
from outlive._kernel.store.streams import (
    CHUNK_BYTES_MAX,
    Appended,
    StreamAppend,
    StreamChunk,
    StreamLimits,
    StreamLine,
    StreamLines,
)
from outlive_conformance.suite.builders import (
    LARGE_BYTES,
    WORKFLOW,
    Writer,
    begin,
    claim,
    get_run,
    hire,
    new_tree,
    stepped,
)
from outlive_conformance.suite.facet import Facet
from outlive_conformance.suite.forgetting import snapshot

NO_LIMITS = StreamLimits(1_000, 1_000_000, 1_000_000_000)


class StreamsConformance(Facet):
    """`append_streams`, `read_stream`, `list_streams`, `follow` and the `streams` of a change."""

    async def test_appended_items_come_back(self, store: Store) -> None:
        """In order, at positions that begin with 1."""
        tree = await begin(store)

        assert await append(store, tree, line("a"), line("b", count=3)) is Appended.APPENDED
        assert await append(store, tree, line("c")) is Appended.APPENDED

        assert await read(store, "run-1") == (b"abc", 5)

    async def test_small_lines_share_a_chunk(self, store: Store) -> None:
        """A stream of single words is a few rows, and no line is cut in two."""
        tree = await begin(store)
        bodies = [f"{number:04}".encode() * 25 for number in range(40)]
        for number, body in enumerate(bodies, 1):
            await append(store, tree, StreamLine(body, 1, b"", len(body)), mark=number)

        chunks = await store.read_stream("run-1", "tokens")

        assert b"".join(chunk.body for chunk in chunks) == b"".join(bodies)
        assert [chunk.count for chunk in chunks] == [9, 9, 9, 9, 4]
        assert [chunk.first for chunk in chunks] == [1, 10, 19, 28, 37]
        assert max(len(chunk.body) for chunk in chunks) <= CHUNK_BYTES_MAX

    async def test_head_is_written_where_it_is_another_one(self, store: Store) -> None:
        """Before the first line of a chunk, and before one whose predecessor has another; a change counts as well."""
        tree = await begin(store)
        await append(store, tree, line("a", head="A"), line("b", head="A"), line("c", head="B"), mark=1)
        await tree.step(streams=[said(line("d", head="B", number=1), line("e", head="A", number=2))])
        await append(store, tree, line("f" * 955, head="A"), line("g" * 20, head="A"), mark=2)
        await append(store, tree, line("h", head="A"), mark=3)

        chunks = await store.read_stream("run-1", "tokens")

        assert [chunk.body for chunk in chunks] == [
            b"AabBcdAe",
            b"A" + b"f" * 955,
            b"A" + b"g" * 20 + b"h",
        ]
        assert [chunk.first for chunk in chunks] == [1, 6, 7]

    async def test_large_line_is_whole(self, store: Store) -> None:
        """A line that is longer than a chunk is a chunk of its own."""
        tree = await begin(store)
        await append(store, tree, line("a"), line("x" * LARGE_BYTES), line("b"))

        chunks = await store.read_stream("run-1", "tokens")

        assert [(chunk.first, chunk.count, len(chunk.body)) for chunk in chunks] == [
            (1, 1, 1),
            (2, 1, LARGE_BYTES),
            (3, 1, 1),
        ]

    async def test_stream_is_read_from_a_position_on(self, store: Store) -> None:
        """The chunk that has the next item comes first, and nothing comes when there is none."""
        tree = await begin(store)
        for number in range(1, 4):
            await append(store, tree, line("x" * 900, count=2), mark=number)

        assert [chunk.first for chunk in await store.read_stream("run-1", "tokens", after=0)] == [1, 3, 5]
        assert [chunk.first for chunk in await store.read_stream("run-1", "tokens", after=1)] == [1, 3, 5]
        assert [chunk.first for chunk in await store.read_stream("run-1", "tokens", after=2)] == [3, 5]
        assert [chunk.first for chunk in await store.read_stream("run-1", "tokens", after=5)] == [5]
        assert await store.read_stream("run-1", "tokens", after=6) == []
        assert await store.read_stream("run-1", "tokens", after=99) == []
        assert [chunk.first for chunk in await store.read_stream("run-1", "tokens", after=1, limit=2)] == [1, 3]

    async def test_streams_of_a_run_are_listed(self, store: Store) -> None:
        """By name, with the position of the last item; those of other runs are not among them."""
        tree, other = await begin(store), await begin(store, "run-2")
        await append(store, tree, line("a"), line("b", count=3))
        await append(store, tree, line("c"), name="log")
        await append(store, other, line("d"))

        assert list((await store.list_streams("run-1")).items()) == [("log", 1), ("tokens", 4)]
        assert await store.list_streams("run-2") == {"tokens": 1}
        assert await store.list_streams("run-3") == {}

    async def test_unknown_stream_is_empty(self, store: Store) -> None:
        """So is one of an unknown run."""
        await begin(store)

        assert await store.read_stream("run-1", "tokens") == []
        assert await store.read_stream("run-2", "tokens") == []

    async def test_streams_are_apart(self, store: Store) -> None:
        """By tree, by run in the tree and by name, whatever is in a name; one call may write to all of them."""
        tree, other = await begin(store), await begin(store, "run-2")
        child_id = await tree.spawn(1)
        appends = [
            saying(tree, line("a")),
            saying(tree, line("b"), name="žluť \0\1 'x'"),
            saying(tree, line("c"), run=1),
            saying(other, line("d")),
        ]

        assert await store.append_streams(appends, limits=NO_LIMITS) == [Appended.APPENDED] * 4

        assert await read(store, "run-1") == (b"a", 1)
        assert await read(store, "run-1", "žluť \0\1 'x'") == (b"b", 1)
        assert await read(store, child_id) == (b"c", 1)
        assert await read(store, "run-2") == (b"d", 1)

    async def test_repeated_append_is_written_once(self, store: Store) -> None:
        """A writer that never got the answer asks again with the same mark, and gets the answer."""
        tree = await begin(store)
        await append(store, tree, line("a"), mark=7)

        assert await append(store, tree, line("a"), mark=7) is Appended.APPENDED
        assert await append(store, tree, line("b"), mark=8) is Appended.APPENDED

        assert await read(store, "run-1") == (b"ab", 2)

    async def test_append_that_comes_late_is_written_once(self, store: Store) -> None:
        """A server may do what its client has given up, repeated, and gone on from."""
        tree = await begin(store)
        await append(store, tree, line("a"), mark=7)
        await append(store, tree, line("b"), mark=9)

        assert await append(store, tree, line("a"), mark=7) is Appended.APPENDED
        assert await append(store, tree, line("c"), mark=8) is Appended.APPENDED

        assert await read(store, "run-1") == (b"ab", 2)

    async def test_marks_of_another_writer_are_new(self, store: Store) -> None:
        """The marks of another writer are new, also if they are lower: its name is the upper half of its marks."""
        tree = await begin(store)
        await append(store, tree, line("a"), mark=5 << 32 | 7)

        assert await append(store, tree, line("b"), mark=4 << 32 | 9) is Appended.APPENDED
        assert await append(store, tree, line("c"), mark=6 << 32 | 1) is Appended.APPENDED

        assert await read(store, "run-1") == (b"abc", 3)

    async def test_repeated_append_that_filled_the_run_is_there(self, store: Store) -> None:
        """It counts once."""
        tree = await begin(store)
        limits = NO_LIMITS._replace(items_max=2)
        await append(store, tree, line("a", count=2), mark=7, limits=limits)

        assert await append(store, tree, line("a", count=2), mark=7, limits=limits) is Appended.APPENDED

    async def test_former_owner_appends_nothing(self, store: Store, other: Store) -> None:
        """When the tree was claimed again, however long ago the append was made."""
        await hire(store, "worker-1")
        tree = await begin(store)
        await tree.release()
        late = saying(tree, line("late"))
        assert await claim(store, "worker-1") == ["run-1"]
        epoch = (await get_run(store, "run-1")).epoch

        assert await other.append_streams([late], limits=NO_LIMITS) == [Appended.LOST]
        assert await append(store, tree, line("new"), epoch=epoch) is Appended.APPENDED
        assert await other.append_streams([late], limits=NO_LIMITS) == [Appended.LOST]

        assert await read(store, "run-1") == (b"new", 1)

    async def test_nothing_is_appended_to_an_ended_tree(self, store: Store) -> None:
        """Nor to one that is not there; others of the same call are not affected."""
        tree, other = await begin(store), await begin(store, "run-2")
        await append(store, tree, line("a"))
        await tree.succeed()
        unknown = replace(saying(other, line("c")), journal=other.journal + 1_000)
        appends = [saying(tree, line("b")), unknown, saying(other, line("d"))]

        answers = await store.append_streams(appends, limits=NO_LIMITS)

        assert answers == [Appended.LOST, Appended.LOST, Appended.APPENDED]
        assert await read(store, "run-1") == (b"a", 1)
        assert await read(store, "run-2") == (b"d", 1)

    async def test_run_has_so_many_items_bytes_and_streams(self, store: Store) -> None:
        """In all its streams together; what does not fit is refused whole, and what fits later is taken."""
        tree = await begin(store)
        limits = StreamLimits(streams_max=2, items_max=5, bytes_max=100)
        await append(store, tree, line("a", count=2), mark=1, limits=limits)
        await append(store, tree, line("b", count=2), name="log", mark=2, limits=limits)

        assert await append(store, tree, line("c", count=2), mark=3, limits=limits) is Appended.FULL
        assert await append(store, tree, line("c", size=99), mark=4, limits=limits) is Appended.FULL
        assert await append(store, tree, line("c"), name="third", mark=5, limits=limits) is Appended.FULL
        assert await append(store, tree, line("d"), mark=6, limits=limits) is Appended.APPENDED

        assert await read(store, "run-1") == (b"ad", 3)
        assert await read(store, "run-1", "third") == (b"", 0)

    async def test_change_brings_lines(self, store: Store) -> None:
        """Lines are written with the rows of their change or not at all, also by the change that creates the tree."""
        change = new_tree(store, "run-1")
        await store.commit([replace(change, streams=[said(line("a", number=1))])])
        tree = Writer(store, "run-1")
        tree.journal = (await get_run(store, "run-1")).journal
        await tree.catch_up()
        late = tree.twin()

        await tree.step(streams=[said(line("b", number=2)), said(line("c", number=3), name="log")])
        outcome = await late.try_write(stepped(store), streams=[said(line("x", number=9))])

        assert outcome is Outcome.CONFLICT
        assert await read(store, "run-1") == (b"ab", 2)
        assert await read(store, "run-1", "log") == (b"c", 1)

    async def test_tree_whose_id_is_taken_brings_no_lines(self, store: Store) -> None:
        """Nothing of it is there."""
        await begin(store)
        fresh = replace(new_tree(store, "run-2"), streams=[said(line("new", number=1))])
        taken = replace(new_tree(store, "run-1"), streams=[said(line("x", number=1))])

        outcomes = await store.commit([taken, fresh])

        assert [outcome for outcome, _ in outcomes] == [Outcome.CONFLICT, Outcome.COMMITTED]
        assert await read(store, "run-1") == (b"", 0)
        assert await read(store, "run-2") == (b"new", 1)

    async def test_line_of_a_workflow_is_written_once(self, store: Store) -> None:
        """By its number, however it comes: a replay may say it again."""
        tree = await begin(store)
        await tree.step(streams=[said(line("a", number=1), line("b", number=2))])

        await tree.step(streams=[said(line("b", number=2), line("c", number=3))])
        await append(store, tree, line("c", number=3), line("d", number=4), mark=5)
        await tree.step(streams=[said(line("d", number=4))])
        await append(store, tree, line("e"), mark=6)

        assert await read(store, "run-1") == (b"abcde", 5)

    async def test_next_generation_goes_on_with_the_streams(self, store: Store) -> None:
        """At their positions, and with nothing counted; what the old one said last is before it."""
        limits = NO_LIMITS._replace(items_max=3)
        tree = await begin(store)
        child_id = await tree.spawn(1)
        await append(store, tree, line("a", count=2, number=50), mark=7)
        await append(store, tree, line("c"), run=1)
        await tree.succeed(run=1)
        old = replace(tree.fold.root, id="run-1~gen1", root_id="run-1~gen1", journal=tree.journal)
        successor = replace(new_tree(store, "run-1"), renames=[old], successor_of=tree.journal)
        ended = RunContinued(at=store.now(), workflow=WORKFLOW, version=1)

        await tree.write(ended, streams=[said(line("b", number=51))], starts=[successor])

        following = Writer(store, "run-1")
        following.journal = (await get_run(store, "run-1")).journal
        await following.catch_up()
        assert await append(store, following, line("d", count=3, number=1), mark=7, limits=limits) is Appended.APPENDED
        assert await read(store, "run-1") == (b"abd", 6)
        assert await read(store, "run-1~gen1") == (b"", 0)
        assert await read(store, child_id) == (b"c", 1)

    async def test_streams_of_forgotten_children_are_gone(self, store: Store) -> None:
        """The streams of forgotten children go; the streams of the root and of later children stay."""
        tree = await begin(store)
        for number in (1, 2):
            await tree.spawn(number)
            await append(store, tree, line("x"), run=number)
        await append(store, tree, line("root"))
        await tree.succeed(run=1)

        await tree.write(snapshot(tree), forgets=Forgotten(tree.seq + 1, 2))

        (seen,) = await store.examiner.examine([tree.journal])
        assert [(stream.run, stream.items) for stream in seen.streams] == [(0, 1), (2, 1)]
        assert await store.examiner.check_database() == []

    async def test_streams_are_seen_by_a_checker(self, store: Store) -> None:
        """By run and name, with where they end."""
        tree = await begin(store)
        await append(store, tree, line("a" * 900, count=3), mark=1)
        await append(store, tree, line("b" * 900, count=4), mark=2)
        await append(store, tree, line("log"), name="log", mark=3)

        (seen,) = await store.examiner.examine([tree.journal])

        assert [(it.run, it.name, it.position, it.items, it.gaps) for it in seen.streams] == [
            (0, "log", 1, 1, 0),
            (0, "tokens", 7, 7, 0),
        ]

    async def test_store_says_whether_it_rings(self, store: Store) -> None:
        """A reader has to know whether to look by itself."""
        assert store.follow(lambda run_id: None) in (True, False)


def line(body: str, *, count: int = 1, number: int = 0, size: int = 0, head: str = "") -> StreamLine:
    """A line that is only a text: no store looks into it."""
    return StreamLine(body.encode(), count, head.encode(), size or len(body), number)


def said(*lines: StreamLine, run: int = 0, name: str = "tokens") -> StreamLines:
    """The lines that a run adds to a stream."""
    return StreamLines(run=run, name=name, lines=lines)


def saying(tree: Writer, *lines: StreamLine, run: int = 0, name: str = "tokens", mark: int = 1) -> StreamAppend:
    """An append of the last writer of the tree."""
    return StreamAppend(
        journal=tree.journal, epoch=tree.fold.root.epoch, mark=mark, said=said(*lines, run=run, name=name)
    )


async def append(
    store: Store,
    tree: Writer,
    *lines: StreamLine,
    run: int = 0,
    name: str = "tokens",
    mark: int = 0,
    epoch: int | None = None,
    limits: StreamLimits = NO_LIMITS,
) -> Appended:
    """Append to one stream; without a mark, as a writer of its own."""
    mark = mark or (hash(lines) & 0x7FFF_FFFF | 1) << 32
    wanted = saying(tree, *lines, run=run, name=name, mark=mark)
    (answer,) = await store.append_streams([wanted if epoch is None else replace(wanted, epoch=epoch)], limits=limits)
    return answer


async def read(store: Store, run_id: str, name: str = "tokens") -> tuple[bytes, int]:
    """All lines of a stream, and the position of its last item."""
    chunks = await store.read_stream(run_id, name)
    assert [chunk.first for chunk in chunks] == _firsts(chunks)
    return b"".join(chunk.body for chunk in chunks), sum(chunk.count for chunk in chunks)


def _firsts(chunks: list[StreamChunk]) -> list[int]:
    """Where they must begin if nothing is missing."""
    firsts = [1]
    for chunk in chunks:
        firsts.append(firsts[-1] + chunk.count)
    return firsts[:-1]
