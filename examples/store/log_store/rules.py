"""The state of the store, and how each writing verb changes it.

The rules are those of the store in memory, on dictionaries. A record of the log is a verb with its arguments and the
instant at which it was called. The rules are given these and nothing else, so that every process that applies the same
records has the same state. What else a verb would look at is made an argument: a claim depends on which workers live,
and its record has the list.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, TypeVar

import msgspec

from outlive.stores import (
    Action,
    Answer,
    AuditRow,
    Blob,
    Change,
    CheckpointRow,
    Claims,
    Declared,
    InboxMessage,
    ItemResult,
    MemoryState,
    MemoryStore,
    Message,
    MessageRefusal,
    Outcome,
    Repair,
    Row,
    Run,
    ScheduleChange,
    ScheduleRow,
    Stream,
    StreamAppend,
    StreamChunk,
    StreamLimits,
    StreamState,
    Tree,
    Watch,
    WorkerInfo,
)

T = TypeVar("T")

encode = msgspec.json.encode


class Session(NamedTuple):
    """As much of the session of a worker as a claim looks at."""

    id: str
    expires_at: int
    is_retired: bool


class Rules(MemoryStore):
    """The verbs, at an instant that the caller says, on a state of its own."""

    def __init__(self) -> None:
        self.at = 0
        self.state = MemoryState()
        super().__init__(clock=lambda: self.at, state=self.state)

    def call(self, verb: Callable[..., Coroutine[Any, Any, T]], *args: Any, at: int, **options: Any) -> T:
        """The answer of a verb at this instant. No verb of the store in memory waits for anything."""
        self.at = at
        try:
            verb(*args, **options).send(None)
        except StopIteration as answered:
            answer: T = answered.value
            return answer
        raise AssertionError("a verb in memory has waited")

    def apply(self, verb: str, args: bytes, at: int) -> Any:
        """Change the state as a record says; the answer of the verb."""
        spec = VERBS[verb]
        return self.call(spec.call, self, *spec.decode(args), at=at)

    def know(self, sessions: list[Session]) -> None:
        """These are the sessions of workers; nothing else is known of workers here."""
        self.state.workers = {
            it.id: WorkerInfo(id=it.id, name="", definitions=(), started_at=0, expires_at=it.expires_at)
            for it in sessions
        }
        self.state.retired = {it.id for it in sessions if it.is_retired}

    def nothing_due(self, definitions: list[str], at: int) -> Claims | None:
        """What a claim of these definitions finds if no run of them is due; None if one is."""
        roots = [tree.root for tree in self.state.active.values() if tree.root.definition in definitions]
        instants = [root.wake_at for root in roots if root.wake_at is not None]
        if any(wake_at <= at for wake_at in instants):
            return None
        return Claims([], min(instants, default=None))

    def fingerprint(self) -> tuple[Any, ...]:
        """What a claim may change."""
        state = self.state
        turns = {name: dict(keys) for name, keys in state.turns.items()}
        return dict(state.cells), turns, [tree.root for tree in state.active.values()]

    # -- Verbs as the log has them ---------------------------------------------------------------------------

    async def log_claim(self, sessions: list[Session], number: int, worker_id: str, *rest: Any) -> Claims:
        """Claim; the record says who lives and which queue is the first."""
        definitions, limit, orphans_max, stale_seconds, declined, queues, declared = rest
        self.know(sessions)
        self.state.claims = number
        return await self.claim_runs(
            worker_id,
            definitions,
            limit=limit,
            orphans_max=orphans_max,
            stale_seconds=stale_seconds,
            declined=set(declined),
            queues=queues,
            declared=declared,
        )

    async def log_cell(self, name: str, data: bytes | None, audit: Action | None) -> None:
        """A cell has another content: the function that made it is code, so that its outcome is in the log."""
        await self.change_cell(name, lambda before, at: (data, None), audit=audit)

    async def log_audit(self, removed: int, added: list[AuditRow]) -> None:
        """Rows of the audit log went, and others came: the proof in them needs a key, which is not in the log."""
        self.state.audit = [*self.state.audit[removed:], *added]


class Verb(NamedTuple):
    """A writing verb in the log."""

    call: Callable[..., Coroutine[Any, Any, Any]]
    decode: Callable[[bytes], tuple[Any, ...]]


def _verb(call: Callable[..., Coroutine[Any, Any, Any]], *types: Any) -> Verb:
    args: Any = tuple.__class_getitem__(types)
    return Verb(call, msgspec.json.Decoder(args).decode)


VERBS = {
    "commit": _verb(Rules.commit, list[Change]),
    "deliver": _verb(
        lambda it, messages, starts, most: it.deliver(messages, starts=starts, inbox_messages_max=most),
        *(list[Message], list[Change], int),
    ),
    "claim": _verb(
        Rules.log_claim,
        *(list[Session], int, str, list[str], int, int | None, float, list[tuple[int, int]]),
        *(list[str] | None, Declared | None),
    ),
    "cell": _verb(Rules.log_cell, str, bytes | None, Action | None),
    "watch_ends": _verb(Rules.watch_ends, list[Watch]),
    "refuse_messages": _verb(Rules.refuse_messages, str, list[MessageRefusal]),
    "append_streams": _verb(
        lambda it, appends, limits: it.append_streams(appends, limits=limits), list[StreamAppend], StreamLimits
    ),
    "change_schedules": _verb(Rules.change_schedules, list[ScheduleChange]),
    "append_checkpoint": _verb(Rules.append_checkpoint, str, CheckpointRow),
    "clear_checkpoints": _verb(Rules.clear_checkpoints, str),
    "append_audit": _verb(Rules.append_audit, list[Action]),
    "audit": _verb(Rules.log_audit, int, list[AuditRow]),
    "put_blobs": _verb(Rules.put_blobs, list[Blob]),
    "keep_blobs": _verb(Rules.keep_blobs, list[str]),
    "delete_blobs": _verb(lambda it, at, limit: it.delete_blobs(kept_before=at, limit=limit), int, int),
    "delete_trees": _verb(
        lambda it, journals, at, audit: it.delete_trees(journals, ended_before=at, audit=audit),
        *(list[int], int, dict[int, Action] | None),
    ),
    "repair": _verb(lambda it, repair: it.examiner.repair(repair), Repair),
}
"""What the log may say. The types are those of the arguments, so that a record is read as it was written."""


def changes_nothing(verb: str, answer: Any) -> bool:
    """Whether an answer says that the state is as before, so that the log need not have it."""
    return verb == "commit" and all(outcome is not Outcome.COMMITTED for outcome, _ in answer)


def digest_of(answer: Any) -> int:
    """A digest of an answer: a process that applies the record again must find the same."""
    return zlib.crc32(encode(answer, enc_hook=sorted))


# -- Snapshots ---------------------------------------------------------------------------------------------------------


class TreeShot(msgspec.Struct):
    """A tree in a snapshot."""

    journal: int
    rows: list[Row]
    runs: list[Run]
    inbox: list[InboxMessage]
    keys: list[str]
    answers: dict[str, Answer]
    items: list[ItemResult]
    streams: list[tuple[int, str, StreamState, list[StreamChunk]]]


class Snapshot(msgspec.Struct):
    """The state after a record of the log."""

    trees: list[TreeShot]
    handles: int
    messages: int
    claims: int
    blobs: dict[str, bytes]
    blobs_kept: dict[str, int]
    cells: dict[str, bytes]
    checkpoints: dict[str, dict[int, CheckpointRow]]
    schedules: dict[str, ScheduleRow]
    watches: dict[str, dict[str, Watch]]
    turns: dict[str, dict[str, float]]
    audit: list[AuditRow]


_PLAIN = [name for name in Snapshot.__struct_fields__ if name != "trees"]
_decode_snapshot = msgspec.json.Decoder(Snapshot).decode


def take_snapshot(state: MemoryState) -> bytes:
    """The whole state as bytes."""
    trees = [
        TreeShot(
            journal=tree.journal,
            rows=tree.rows,
            runs=list(tree.runs.values()),
            inbox=list(tree.inbox.values()),
            keys=sorted(tree.keys),
            answers=tree.answers,
            items=list(tree.items.values()),
            streams=[(*key, stream.state, stream.chunks) for key, stream in tree.streams.items()],
        )
        for tree in state.trees.values()
    ]
    return encode(Snapshot(trees=trees, **{name: getattr(state, name) for name in _PLAIN}))


def restore(state: MemoryState, data: bytes) -> None:
    """Fill an empty state from a snapshot."""
    shot = _decode_snapshot(data)
    for name in _PLAIN:
        setattr(state, name, getattr(shot, name))
    for it in shot.trees:
        tree = state.trees[it.journal] = Tree(it.journal)
        tree.rows, tree.keys, tree.answers = it.rows, set(it.keys), it.answers
        tree.runs = {run.number: run for run in it.runs}
        tree.inbox = {message.id: message for message in it.inbox}
        tree.items = {(item.run, item.index): item for item in it.items}
        tree.streams = {(run, name): Stream(own, chunks) for run, name, own, chunks in it.streams}
        state.runs.update((run.id, run) for run in tree.runs.values())
        if not tree.is_over:
            state.active[it.journal] = tree
