"""The state that the stores of one process share."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from outlive._kernel.journal.checkpoint import CheckpointRow
from outlive._kernel.journal.codec import Row
from outlive._kernel.model import Run, RunFilter
from outlive._kernel.model.run import passes
from outlive._kernel.store.audit import AuditRow
from outlive._kernel.store.contract import Answer, InboxMessage, ItemResult, Watch, WorkerInfo
from outlive._kernel.store.memory.transaction import Tables
from outlive._kernel.store.schedules import ScheduleRow
from outlive._kernel.store.streams import StreamChunk, StreamGrowth, StreamState
from outlive._kernel.store.tables.searching import ListPlace


class MemoryState:
    """Everything that there is."""

    def __init__(self) -> None:
        self.trees: dict[int, Tree] = {}
        self.handles = 0
        """How many were given out; none is given out twice."""
        self.active: dict[int, Tree] = {}
        """The trees that have not ended: only they can be claimed, so only they are searched for it."""
        self.runs: dict[str, Run] = {}
        self.blobs: dict[str, bytes] = {}
        self.blobs_kept: dict[str, int] = {}
        """When each of them was last put, said to be in use, or named by a tree that was deleted."""
        self.cells: dict[str, bytes] = {}
        self.workers: dict[str, WorkerInfo] = {}
        self.retired: set[str] = set()
        self.checkpoints: dict[str, dict[int, CheckpointRow]] = {}
        self.schedules: dict[str, ScheduleRow] = {}
        self.watches: dict[str, dict[str, Watch]] = {}
        """By the run that is watched, and by the watcher."""
        self.turns: dict[str, dict[str, float]] = {}
        """By queue, and by key there: see `tables.queueing`."""
        self.messages = 0
        self.claims = 0
        """Each claim begins with another queue."""
        self.audit: list[AuditRow] = []
        self.tables = Tables()

    def put_cell(self, name: str, data: bytes | None) -> None:
        """A cell holds this from now on; None for nothing."""
        if data is None:
            self.cells.pop(name, None)
        else:
            self.cells[name] = data

    def save(self, journals: Iterable[int]) -> Callable[[], None]:
        """A way back to how things are now, if no other trees than these and new ones change meanwhile."""
        lists = (dict(self.trees), dict(self.active), dict(self.runs), dict(self.blobs), self.messages)
        blobs_kept, audit = dict(self.blobs_kept), list(self.audit)
        watches = {run_id: dict(watchers) for run_id, watchers in self.watches.items()}
        trees = [(tree, tree.copy()) for journal in journals if (tree := self.trees.get(journal)) is not None]

        def go_back() -> None:
            self.trees, self.active, self.runs, self.blobs, self.messages = lists
            self.watches, self.blobs_kept, self.audit = watches, blobs_kept, audit
            for tree, before in trees:
                vars(tree).update(vars(before))

        return go_back


class Tree:
    """One journal and what hangs on it."""

    def __init__(self, journal: int) -> None:
        self.journal = journal
        self.rows: list[Row] = []
        self.runs: dict[int, Run] = {}
        self.inbox: dict[int, InboxMessage] = {}
        self.keys: set[str] = set()
        self.answers: dict[str, Answer] = {}
        self.items: dict[tuple[int, int], ItemResult] = {}
        self.streams: dict[tuple[int, str], Stream] = {}
        """By the number of the run and the name."""

    @property
    def root(self) -> Run:
        """The row of the root run."""
        return self.runs[0]

    def ends_of_streams(self, number: int) -> dict[str, int]:
        """The streams of a run, by name, and where each ends."""
        return {
            name: it.state.position
            for (run, name), it in sorted(self.streams.items(), key=lambda it: it[0])
            if run == number
        }

    def copy(self) -> Tree:
        """A copy of the tree that later changes do not reach."""
        tree = Tree(self.journal)
        tree.rows, tree.runs, tree.inbox = list(self.rows), dict(self.runs), dict(self.inbox)
        tree.keys, tree.answers, tree.items = set(self.keys), dict(self.answers), dict(self.items)
        tree.streams = {key: Stream(stream.state, list(stream.chunks)) for key, stream in self.streams.items()}
        return tree

    @property
    def is_over(self) -> bool:
        """Whether nothing can follow in this journal."""
        return bool(self.runs) and self.root.status.is_terminal


class Stream:
    """One stream of one run."""

    def __init__(self, state: StreamState, chunks: list[StreamChunk]) -> None:
        self.state, self.chunks = state, chunks

    def take(self, growth: StreamGrowth) -> None:
        """Append."""
        count, body = growth.extension
        if count:
            last = self.chunks[-1]
            self.chunks[-1] = StreamChunk(last.first, last.count + count, last.body + body)
        self.chunks += growth.chunks
        self.state = growth.state


def is_wanted(run: Run, wanted: RunFilter, before: ListPlace | None = None, after: ListPlace | None = None) -> bool:
    """Whether the run passes the filter, between two places of the list."""
    place = run.created_at, run.id
    return (before is None or place < before) and (after is None or place > after) and passes(run, wanted)
