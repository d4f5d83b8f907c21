"""A tree of runs as one value: out of a store, and into another one.

A copy holds the journal byte for byte, so every checksum still holds, and everything that hangs on it: run rows,
messages that wait, keys of messages with their answers, outcomes of items, streams and blobs. One change writes it, so
it is in the other store as a whole or not at all.

A copy is read from a tree that others may write to meanwhile: it is looked at before and after, and read again if it
has moved. Before a copy is written it is written into an empty store in memory and checked there, as `outlive fsck`
checks a store: what a file holds need not be true.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from outlive._features.flows.library.carrying import CarriedDocument
from outlive._features.fsck.checker import check_store
from outlive._kernel.client.closing import renamed
from outlive._kernel.journal.codec import Row
from outlive._kernel.journal.history import references_in
from outlive._kernel.model import Run
from outlive._kernel.model.payload import Blob
from outlive._kernel.store.contract import (
    PAGE_SIZE_MAX,
    Answer,
    Change,
    ItemResult,
    Message,
    Outcome,
    Store,
    WorkerInfo,
)
from outlive._kernel.store.examine import TreeRows
from outlive._kernel.store.streams import StreamLine, StreamLines
from outlive.errors import OutliveError, RunExistsError

READS_MAX = 5


class TreeCopy(msgspec.Struct, kw_only=True):
    """A tree, without the handle that its store gave it."""

    runs: list[Run] = []
    """The root first."""
    rows: list[Row] = []
    messages: list[Message] = []
    """Messages that wait, oldest first."""
    keys: list[str] = []
    """The keys of all messages that it has seen."""
    answers: list[Answer] = []
    items: list[ItemResult] = []
    streams: list[StreamLines] = []
    blobs: list[Blob] = []
    documents: list[CarriedDocument] = []
    """The documents of flows to which its runs are pinned. They lie in cells of the store, and only a file has them
    with the tree."""

    @property
    def root(self) -> Run:
        """The row of the root run."""
        return self.runs[0]

    def says_the_same_as(self, other: TreeCopy) -> bool:
        """Whether nothing was lost or added on the way."""
        return self._plain() == other._plain()

    def _plain(self) -> TreeCopy:
        """Without what may differ: a message makes its tree due, each store cuts streams into its own chunks, and
        documents are not part of a tree in a store."""
        return replace(
            self,
            runs=[replace(run, wake_at=None) for run in self.runs],
            streams=[replace(stream, lines=_joined(stream.lines)) for stream in self.streams],
            documents=[],
        )


def _joined(lines: Sequence[StreamLine]) -> tuple[StreamLine, ...]:
    if not lines:
        return ()
    body = b"".join(line.body for line in lines)
    return (StreamLine(body, sum(line.count for line in lines), b"", len(body), max(line.number for line in lines)),)


async def read_copy(store: Store, journal: int) -> TreeCopy | None:
    """A copy of a tree, all of it from one moment; None if it moves too fast for that.

    Raises:
        OutliveError: a row of it is damaged.
    """
    (tree,) = await store.examiner.examine([journal])
    for _ in range(READS_MAX):
        before = tree
        copy = await _read(store, before)
        (tree,) = await store.examiner.examine([journal])
        if tree == before:
            return copy
    return None


async def _read(store: Store, tree: TreeRows) -> TreeCopy:
    runs = [replace(row.run, journal=0) for row in tree.runs if row.run is not None]
    if len(runs) < len(tree.runs) or not runs or runs[0].number:
        raise OutliveError(f"the tree {tree.journal} is damaged; outlive fsck --repair says more")
    ids = {run.number: run.id for run in runs}
    if not ids.keys() >= {items.run for items in tree.items} | {stream.run for stream in tree.streams}:
        raise OutliveError(f"the tree {tree.journal} has items or lines of a run that is not in it")
    copy = TreeCopy(runs=runs, rows=await store.read_journal(tree.journal), keys=list(tree.keys))
    if not copy.root.status.is_terminal:
        inbox = (await store.read_inbox([tree.journal])).get(tree.journal, [])
        copy.messages = [
            Message(
                run_id=ids[it.run], kind=it.kind, at=it.at, name=it.name, key=it.key, payload=it.payload, ended=it.ended
            )
            for it in inbox
        ]
    answers = await store.find_answers([(copy.root.id, key) for key in tree.answered])
    copy.answers = sorted((it for it in answers.values() if it is not None), key=lambda answer: answer.key)
    for items in tree.items:
        copy.items += await _read_items(store, ids[items.run])
    for stream in tree.streams:
        copy.streams.append(await _read_stream(store, ids[stream.run], stream.run, stream.name, stream.number))
    copy.blobs = await _read_blobs(store, copy)
    return copy


async def _read_items(store: Store, run_id: str) -> list[ItemResult]:
    items: list[ItemResult] = []
    while page := await store.read_items(run_id, after=items[-1].index if items else -1, limit=PAGE_SIZE_MAX):
        items += page
    return items


async def _read_stream(store: Store, run_id: str, run: int, name: str, number: int) -> StreamLines:
    lines: list[StreamLine] = []
    position = 0
    while page := await store.read_stream(run_id, name, after=position):
        # Without a head: it stands in the chunk already.
        lines += [StreamLine(it.body, it.count, b"", len(it.body)) for it in page if it.first > position]
        last = page[-1].first + page[-1].count - 1
        if last <= position:
            raise OutliveError(f"stream {name!r} of run {run_id} lacks its items from position {position + 1} on")
        position = last
    lines[-1:] = [replace(line, number=number) for line in lines[-1:]]
    return StreamLines(run=run, name=name, lines=tuple(lines))


async def _read_blobs(store: Store, copy: TreeCopy) -> list[Blob]:
    """The blobs that anything in a copy refers to; a user's text that looks like a reference costs a look."""
    texts: Iterable[bytes] = (
        msgspec.json.encode([copy.runs, copy.messages, copy.answers, copy.items]),
        *(row[3] for row in copy.rows),
        *(line.body for stream in copy.streams for line in stream.lines),
    )
    wanted = sorted(set().union(*map(references_in, texts)))
    found: dict[str, bytes] = {}
    for first in range(0, len(wanted), PAGE_SIZE_MAX):
        found |= await store.get_blobs(wanted[first : first + PAGE_SIZE_MAX])
    return [Blob(id, found[id]) for id in sorted(found)]


async def check_copy(copy: TreeCopy, scratch: Store) -> None:
    """See that a copy is whole, in an empty store.

    Raises:
        OutliveError: it is not.
    """
    await scratch.open()
    try:
        await write_copy(scratch, copy)
        problems = [str(problem) for problem in await check_store(scratch)]
        root = await scratch.find_run(copy.root.id)
        written = None if root is None else await read_copy(scratch, root.journal)
        if written is None or not written.says_the_same_as(copy):
            problems.append("something in it belongs to no run of the tree")
    finally:
        await scratch.close()
    if problems:
        raise OutliveError(f"the copy of run {copy.root.id} is not whole: {'; '.join(problems[:3])}")


async def write_copy(store: Store, copy: TreeCopy, *, root_id: str | None = None) -> None:
    """Write a tree, under another id if one is given.

    Raises:
        RunExistsError: the id is taken.
        OutliveError: a worker of this store has the run in hand.
    """
    runs, messages = copy.runs, copy.messages
    if root_id is not None and root_id != copy.root.id:
        runs = renamed({run.number: run for run in copy.runs}, name=root_id)
        ids = {old.id: new.id for old, new in zip(copy.runs, runs, strict=True)}
        messages = [replace(message, run_id=ids[message.run_id]) for message in messages]
    if copy.root.owner:
        await _bury(store, copy.root)
    waiting = {message.key for message in messages}
    change = Change(
        journal=0,
        after=-1,
        rows=copy.rows,
        runs=list(runs),
        keys=[key for key in copy.keys if key not in waiting],
        answers=copy.answers,
        items=copy.items,
        streams=copy.streams,
        blobs=copy.blobs,
        messages=messages,
    )
    ((outcome, _),) = await store.commit([change])
    if outcome is Outcome.CONFLICT:
        taken = await store.find_run(runs[0].id)
        raise RunExistsError(runs[0].id, "taken" if taken is None else taken.status.value)


async def _bury(store: Store, root: Run) -> None:
    """Let the other store know the worker that had a run in hand as one that is gone: others take the run over as that
    of a worker that died."""
    if any(worker.id == root.owner and worker.is_live for worker in await store.list_workers(with_runs=False)):
        raise OutliveError(
            f"the copy of run {root.id} is in the hands of worker {root.owner}, which is alive in this store; take the "
            f"copy when the run waits or has ended"
        )
    now = store.now()
    dead = WorkerInfo(id=root.owner, name="in another store", definitions=(), started_at=now, expires_at=now)
    await store.register_worker(dead, lease_seconds=0)
    await store.end_session(root.owner)
