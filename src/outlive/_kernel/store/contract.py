"""The contract of a store. It may change with every release before 1.0; authors of stores import it from
`outlive.stores`.

A store keeps journals, the run rows folded from them, an inbox, items, streams, blobs and workers. It knows nothing of
workflows: it never runs one, never replays one and never reads a payload. Few verbs, each ONE transaction, each
sentence of a docstring checked by `outlive_conformance.suite` on every backend.

Why writing is safe
-------------------
A journal row has the key (journal, seq). A change states the seq after which it appends (`after`), and commits only
if the journal ends exactly there, with the row whose checksum it states (`prior`), and its tree has not ended (or has,
for a change that `reopens` it). A store that went back to an earlier state, and has given the seq or the handle to
other events since, therefore takes nothing from a writer that remembers what it has forgotten. Taking a run over
appends `RunClaimed`, so a former owner, however long it was paused, finds its next seq taken and commits nothing: the
compare-and-swap is the fence, and no clock takes part in it. Leases only decide who tries.

What a write answers
--------------------
A change is `COMMITTED`, meets a `CONFLICT`, or `MUST_WAIT` (only a new run that wants to begin at once in a queue that
is not open). Otherwise there is an exception. `StoreUnavailableError` means that nothing of the call happened.
`CommitUnknownError` means that only reading can tell: the caller reads and compares before it goes on. Every writing
verb may raise both.

All instants are microseconds since 1970 UTC. Whether a lease has run out is judged by the store's own clock.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from outlive._kernel.journal.codec import Row
from outlive._kernel.model import Run, RunFilter
from outlive._kernel.model.payload import Blob
from outlive._kernel.model.queue import QueueLimits
from outlive._kernel.model.run import GroupField
from outlive._kernel.store.audit import Action, AuditTable
from outlive._kernel.store.change import (
    Answer,
    Change,
    Delivery,
    Ended,
    Forgotten,
    InboxMessage,
    ItemResult,
    Message,
    MessageKind,
    MessageRefusal,
    Outcome,
    Watch,
)
from outlive._kernel.store.checkpoints import CheckpointTable
from outlive._kernel.store.deleting import Deletion
from outlive._kernel.store.examine import Examiner
from outlive._kernel.store.handle import Tx
from outlive._kernel.store.schedules import ScheduleTable
from outlive._kernel.store.streams import StreamTable
from outlive.errors.store import StoreWentBackError

__all__ = [
    "CLOSE_SECONDS",
    "NO_LIMIT",
    "PAGE_SIZE_MAX",
    "TRANSACTION_SECONDS_MAX",
    "Action",
    "Answer",
    "Beat",
    "CellChange",
    "CellStore",
    "Change",
    "Claim",
    "Claims",
    "Declared",
    "Delivery",
    "Ended",
    "Forgotten",
    "InboxMessage",
    "ItemResult",
    "Message",
    "MessageKind",
    "MessageRefusal",
    "Outcome",
    "QueueMeasure",
    "Store",
    "Transaction",
    "Watch",
    "WorkerInfo",
]

PAGE_SIZE_MAX = 1_000
NO_LIMIT = 2**62
"""A limit that nothing reaches, where a statement must have one."""
CLOSE_SECONDS = 1.0
"""How long it may take to close a store that is away."""
TRANSACTION_SECONDS_MAX = 30.0


class Declared(NamedTuple):
    """The queues that the code of a worker declares."""

    at: int
    """When the worker was started."""
    limits: Mapping[str, QueueLimits]
    """By the name of the queue."""


WAITING_KEYS_MAX = 20
"""Keys of a queue that are listed at most."""
KEY_RUNS_MAX = 1_001
"""Runs of one key that are counted at most."""


class WaitingKey(NamedTuple):
    """A key of a queue of which runs are in line."""

    oldest_at: int
    """When the oldest run at the head of its lines became due."""
    key: str
    """Empty for the runs without one."""
    in_line: int
    """Its runs in line, counted up to `KEY_RUNS_MAX`."""


class QueueMeasure(msgspec.Struct, frozen=True, kw_only=True):
    """How full a queue is; no number is larger than the limit of the question."""

    in_line: int
    held: int
    """Runs that hold slots."""
    slots: int
    """The slots that they hold, of as many runs as were counted."""
    later: int
    """Runs without a slot that will get in line at an instant of their own."""
    oldest_at: int | None
    """When the oldest run at the head of its line became due."""
    holders: tuple[Run, ...] = ()
    """Runs that hold slots."""
    keys: tuple[WaitingKey, ...] = ()
    """The keys that wait longest, the longest wait first; not more than `WAITING_KEYS_MAX`."""
    ahead: int = 0
    """Runs with the same key that are before the run that was asked about."""


class Claim(msgspec.Struct, frozen=True):
    """A tree that this worker owns now."""

    run: Run
    """The root row after the claim."""
    seq: int
    """The seq of the `RunClaimed` event; the journal ends there."""
    prior: int
    """The checksum of the event before it."""
    crc: int
    """Its own checksum."""
    interrupted: bool = False
    """Whether an earlier owner was lost without releasing it: it was an orphan."""


class Claims(msgspec.Struct, frozen=True):
    """The result of one claim."""

    claims: list[Claim]
    next_wake_at: int | None
    """The earliest later wake-up among the claimable runs, so that the worker knows how long it may sleep; orphans
    count only if fewer than `orphans_max` of them were taken."""
    open_queues: frozenset[str] = frozenset()
    """Queues that were found to limit nothing, and in which no run is in line now: new runs may begin there at once."""


class WorkerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A worker session and its lease."""

    id: str
    name: str
    """For people: host and process id."""
    definitions: tuple[str, ...]
    started_at: int
    expires_at: int
    is_live: bool = True
    """Whether the store's own clock and eyes take it for alive."""
    process: str = ""
    """The process it lives in, as its machine knows it (`_kernel.lease.process`); empty if there is no telling."""
    lease: str = ""
    """The keeper of its lease, if that is not the store alone: "none", or the place of an etcd."""
    runs: int = 0
    """Trees that it owns."""
    fault: str = ""
    """The fault of its row, if the row is damaged."""


class Beat(Protocol):
    """Renews one lease. Blocking, and used by one thread: no event loop and no lock stands between it and the store."""

    def renew(self, *, lease_seconds: float) -> bool:
        """Extend the lease from now by the store's clock; False if the session was ended, then nothing was extended.

        Raises:
            StoreUnavailableError: the lease was not renewed.
            StoreWentBackError: the store has forgotten the session, or the renewal before this one, or another server
            answers in its place; nothing was extended.
        """

    def close(self) -> None:
        """Close the connection; closing twice is fine."""


class Transaction(Protocol):
    """A transaction of the store's database that a user's code writes in, and a change of a journal with it."""

    @property
    def handle(self) -> Tx:
        """The handle that the user's code works with."""

    async def commit(self, changes: Sequence[Change], *, behind: Row | None = None) -> list[tuple[Outcome, int]]:
        """Append these changes, all of one tree, and commit what the user wrote with them; all or nothing.

        The changes come after every change given to `Store.commit` before this call. `behind` is the row before the
        first change, from a caller that does not know yet whether that row was committed. If another row stands in its
        place, for example the claim of another worker, the changes conflict. If one change conflicts, all of them do,
        and nothing that the user wrote stays. If the database refuses what the user wrote (a deferred constraint), or
        the transaction gives way (see `gave_way`), its driver's error is raised and nothing was written. The
        transaction is over in any case.

        Raises:
            TransactionOverError: it was over before; nothing was written.
            StoreUnavailableError: nothing was written.
            CommitUnknownError: everything or nothing was written, and only reading can tell.
        """

    async def rollback(self) -> None:
        """Nothing that the user wrote stays; the transaction is over. Twice, or after `commit`, is fine."""

    def gave_way(self, error: BaseException) -> bool:
        """Whether the user's code, or `commit`, raised this because the database ended the transaction to let another
        one go on (a deadlock, a serialization failure), so that the same code may well succeed in a new transaction."""


T = TypeVar("T")
CellChange = Callable[[bytes | None, int], tuple[bytes | None, T]]
"""A change of a cell: from its content and the instant it makes the new content, and an answer."""


class CellStore(Protocol):
    """Cells: small things that all workers of a store share. A cell has a name and holds some bytes, and the store does
    not know what they mean: the caller brings the function that changes them."""

    async def read_cell(self, name: str) -> bytes | None:
        """The content of a named cell; None for a cell that was never written. Nothing is locked or written."""

    async def change_cell(self, name: str, change: CellChange[T], *, audit: Action | None = None) -> T:
        """Change what a named cell holds, in one transaction; what `change` answers.

        `change` is given what the cell holds (None for one that was never written) and the store's clock, and says
        what it is to hold: None for nothing, and then it is as if it was never written. Changes of one cell happen one
        after the other, in all processes, and each sees what the one before has written. `change` must be quick and
        pure: it is called in the transaction, on whatever thread that is, and again if the transaction has to be. If it
        raises, the cell stays as it is and the error is raised.
        If the cell holds something else than before, `audit` is written to the audit log with it.

        Raises:
            StoreUnavailableError: the cell is as it was.
            CommitUnknownError: it was changed or not, and only reading can tell.
        """


class Store(CellStore, CheckpointTable, ScheduleTable, StreamTable, Deletion, AuditTable, Protocol):
    """The contract. Verbs may be called from one event loop; every write is durable when its coroutine returns."""

    async def open(self, *, migrate: bool = True) -> None:
        """Connect and bring the schema up to date; without `migrate` only connect, and write nothing.

        Safe when many processes do it at once and when killed half way; opening twice in turn changes nothing.

        Raises:
            SchemaTooNewError: the schema is newer than this code; nothing was written.
            SchemaTooOldError: without `migrate`, it is older, or there is none; nothing was written.
            NotADatabaseError: the place holds something else; nothing was written.
            StoreUnavailableError: the place cannot be reached or written.
        """

    async def close(self) -> None:
        """Close everything; closing twice is fine. Verbs under way end first; those of a store that is away
        are given up after `CLOSE_SECONDS`."""

    def now(self) -> int:
        """The store's clock."""

    async def commit(self, changes: Sequence[Change]) -> list[tuple[Outcome, int]]:
        """Append to journals and change what hangs on them, in one transaction.

        Each change commits whole or not at all, and a conflict of one does not touch the others. A change conflicts if
        its journal does not end at `after`, if its tree has ended (one that `reopens` it: if it has not), or if the id
        of a run that it creates is taken. All
        rows of a change are appended in order without a gap. The answer has, for each change in order, its outcome and
        the handle of its journal (the new one for a created journal).

        No wake-up is lost: a root row that is written without an owner and not ended, while messages wait for its tree,
        is due at once whatever its `wake_at` says (a parked one only if a RESUME is among them; one that is to begin
        later, and that no worker has had, not before its `wake_at`).

        Lines of streams are appended in order. A line of a workflow whose number is not above that of the last one in
        its stream is there already, and is left out. A new journal that is a successor goes on with the streams of the
        root run that it follows, at their positions, with nothing counted.

        Raises:
            StoreUnavailableError: nothing was written.
            CommitUnknownError: everything or nothing was written, and only reading can tell.
        """

    async def begin(self, *, seconds_max: float = TRANSACTION_SECONDS_MAX) -> Transaction:
        """Begin a transaction for a step that writes into the store's own database.

        It is rolled back when it has not ended after `seconds_max`, or earlier where others would have to wait too
        long for it; nothing that the user wrote stays then.

        Raises:
            StoreUnavailableError: there is none to be had.
        """

    async def request_start(self, connection: Any, change: Change) -> Outcome:
        """Ask for the tree of `change` in the transaction that is open on a user's own connection to this database.

        If and only if the user commits, the tree exists for every verb, and is due. Its blobs are there in any case.
        `CONFLICT` if its id is taken, also by another request. Only another request of the same id waits for the user's
        transaction. Another start may take the id before the user commits: then that run stays, and the request is
        dropped.

        Raises:
            ConfigurationError: this store has no transactions to share, or the connection is of no kind it knows.
        """

    async def request_message(self, connection: Any, message: Message, *, start: Change | None = None) -> Delivery:
        """Ask for a message in the transaction that is open on a user's own connection to this database.

        If and only if the user commits, it is delivered, as soon as a worker looks for what is due; behind the tree of
        `start`, if there is none yet. Messages of one transaction keep their order. Its blobs are there in any case.
        `UNKNOWN_RUN` if there is no such run, not even a requested one, and no `start`; `FINISHED` if it has ended. A
        run that ends before the delivery does not get it, and that is logged.

        Raises:
            ConfigurationError: as `request_start`.
        """

    async def put_blobs(self, blobs: Sequence[Blob]) -> None:
        """Store blobs that later changes will refer to; equal content is stored once."""

    def watch(self, ring: Callable[[str], None]) -> None:
        """Call `ring`, on the event loop, when another process may have made something due (with ""), or rings for a
        cell (with its name). A hint that may be lost, late or false: the caller must look now and then all the same. A
        store without such a thing never calls."""

    def watch_incarnation(self, changed: Callable[[StoreWentBackError], None]) -> None:
        """Call `changed`, on the event loop, when a new connection leads to another incarnation of the store: another
        server, or a server that has taken over from the one before. Once for each change, and not for one that a beat
        has raised. A store without such a thing never calls."""

    async def ring(self, cell: str) -> None:
        """Let processes that `watch` know that this cell has changed; a hint too."""

    async def claim_runs(
        self,
        worker_id: str,
        definitions: Sequence[str],
        *,
        limit: int,
        orphans_max: int | None = None,
        stale_seconds: float = 0,
        declined: Collection[tuple[int, int]] = (),
        queues: Sequence[str] | None = None,
        declared: Declared | None = None,
    ) -> Claims:
        """Take over trees that are due, oldest wake-up first, and write `RunClaimed` into each journal.

        Due is a root run with `wake_at <= now()` whose definition is among `definitions` and that has no owner, or
        whose owner is not a live worker (such a claim is `interrupted`). The claim raises the epoch by one, and
        `attempts` with it when interrupted. A run is claimed by exactly one of any number of concurrent callers. At
        most `limit` are taken, and at most `orphans_max` of these from owners that are not live; what that leaves of
        `limit` goes to the others. Such an orphan is left alone until `stale_seconds` after its owner's lease has
        ended: has run out, or was retired. A worker that is not live itself claims nothing. A tree in `declined`, given
        by its journal and its wake-up, is left alone as long as it has that wake-up.

        Of a queue, a run that holds a slot is taken as every other run. One that holds none gets in line when it is
        due, and is taken out of the line by a claim that gives it a slot. The cell of the queue (`_model.queue`) says
        how many slots there are: in all, for one worker, for one key; how often one may be given; and whether any is
        given. That holds for all callers together. Keys have their turns one after the other, in proportion to their
        weights; of one key the run with the lowest `wake_at - lead` is first. Runs without a key are limited by no
        `per_key`. One that is damaged does not hold the others up.

        A run takes `slots` of the slots in all and of those of its worker, and its key has so many turns less. If it is
        the next run and so many are not free, no other run is taken out of the line by a worker that could run it,
        until they are. A run that takes more slots than there ever are is passed over.

        `queues` names the queues to take from, in this order, "" standing for the runs without one. Without it
        everything is taken from, and another queue is the first each time. `declared` are the limits of queues as the
        code of this worker has them: a claim of such a queue writes them into its cell, unless code that was started
        later has.
        """

    async def list_queues(self) -> list[str]:
        """The names of the queues that runs have or that have a cell, ascending."""

    async def measure_queue(self, name: str, *, limit: int, run_id: str = "") -> QueueMeasure:
        """How many runs of a queue are in line, hold a slot or come later; with `run_id`, how many are before that run,
        which is in line. Nothing is counted beyond `limit`, and not more lines are looked at."""

    async def deliver(
        self, messages: Sequence[Message], *, starts: Sequence[Change] = (), inbox_messages_max: int
    ) -> list[Delivery]:
        """Put messages into the inbox and wake the runs they are for, in one transaction.

        An accepted message is durable, and the root of its run is due at once unless the run is parked (only a RESUME
        wakes a parked run) or is to begin later. The trees of `starts` are created first, each unless its id is
        taken.
        A message to an ended run, to an unknown run, with a key seen before, or beyond `inbox_messages_max` waiting
        messages is not stored, and the answer says so; messages are judged one by one, in order.
        """

    async def watch_ends(self, watches: Sequence[Watch]) -> dict[str, Run]:
        """Keep watches of root runs that have not ended; all runs that they name, as they are after that.

        The change that ends such a run puts an ENDED message with the key of the watch into the inbox of the watcher,
        however full that is, and wakes it as every message does; then the watch is gone. A run that ends as CONTINUED
        goes on under its id, and so does the watch. A second watch of a run by the same watcher takes the place of the
        first. A watch of a run that has ended, of a child or of an unknown run is not kept: the caller sees in the
        answer which it is, with unknown runs left out.
        """

    async def read_inbox(self, journals: Sequence[int]) -> dict[int, list[InboxMessage]]:
        """The waiting messages of these trees, oldest first; trees without any are left out."""

    async def refuse_messages(self, worker_id: str, refusals: Sequence[MessageRefusal]) -> None:
        """Answer messages that become no events: each is deleted and its answer is kept with its key, in one
        transaction and without a row in a journal.

        A message that is not there any more, or whose tree this worker does not own, is left as it is, and so is its
        answer. So a message is refused or consumed, never both, and doing this twice is doing it once.
        """

    async def find_answers(self, asks: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Answer | None]:
        """The answers to messages, each given by the id of the run that it was sent to and by its key.

        None for a message that was accepted and has no answer so far. A key that the tree of the run has not seen, and
        a run that is not there, are left out.
        """

    async def find_inboxes(self, worker_id: str) -> list[int]:
        """The journals of trees that this worker owns and that have messages waiting."""

    async def read_journal(self, journal: int, *, after: int = -1, limit: int | None = None) -> list[Row]:
        """The rows of a journal with seq > `after`, ascending; empty for an unknown journal.

        Rows come as they lie in the store: the caller verifies them (`outlive._kernel.journal.codec`).
        """

    async def read_journals(self, journals: Sequence[int]) -> dict[int, list[Row]]:
        """Whole journals at once; unknown ones are left out."""

    async def get_blobs(self, ids: Sequence[str]) -> dict[str, bytes]:
        """The content of these blobs; unknown ids are left out."""

    async def find_run(self, run_id: str) -> Run | None:
        """The run with this id, root or child."""

    async def find_runs(self, run_ids: Sequence[str]) -> dict[str, Run]:
        """The runs with these ids; unknown ids are left out."""

    async def list_runs(
        self,
        filter: RunFilter,  # noqa: A002 (the filter is what it is)
        *,
        limit: int = 100,
        before: tuple[int, str] | None = None,
        after: tuple[int, str] | None = None,
        oldest_first: bool = False,
    ) -> list[Run]:
        """Runs that pass the filter, newest first by `(created_at, id)` descending, or the other way round
        (`oldest_first`); at most `limit` (up to `PAGE_SIZE_MAX`).

        `before`, the `(created_at, id)` of a run, keeps only older runs, and `after` only newer ones: give the last run
        of a page, get the next page; give the first one and turn the order round, get the page before it.
        """

    async def count_runs(self, filter: RunFilter, *, limit: int) -> int:  # noqa: A002 (the filter is what it is)
        """How many runs pass the filter; `limit` if that many or more do. No run beyond these is looked at."""

    async def count_groups(
        self,
        filter: RunFilter,  # noqa: A002 (the filter is what it is)
        by: GroupField,
        *,
        limit: int,
        groups_max: int,
    ) -> dict[str, int]:
        """How many runs of each status, workflow or queue pass the filter, all at one moment; `limit` of a group if
        that many or more do. A run without a queue is in the group with the empty name.

        A group of which no run passes is not in the answer. If there are more than `groups_max` groups, the first ones
        by name are.
        """

    async def read_items(self, run_id: str, *, after: int = -1, limit: int = PAGE_SIZE_MAX) -> list[ItemResult]:
        """Item results of a batch run with index > `after`, by index ascending."""

    async def register_worker(self, worker: WorkerInfo, *, lease_seconds: float) -> None:
        """Begin a worker session; it is live until `lease_seconds` after now by the store's clock."""

    async def redefine_worker(self, worker_id: str, definitions: Sequence[str]) -> None:
        """Write what a session can run by now. Its lease stays as it is, and so does a session that has ended or is
        unknown."""

    def open_beat(self, worker_id: str) -> Beat:
        """A way to renew this session's lease from another thread, on a connection of its own."""

    async def end_session(self, worker_id: str) -> None:
        """End a session; the runs it still owns are due for others at once. Unknown sessions are fine."""

    async def list_workers(self, *, with_runs: bool = True) -> list[WorkerInfo]:
        """All sessions that are live or still own runs, with the number of trees they own.

        Without runs only live sessions, and nothing is counted: that costs the same however much they own.
        """

    @property
    def examiner(self) -> Examiner:
        """The questions of a checker, which does not trust this store."""
