"""The words in which the tests of the suite are written.

A `Writer` is the owner of one tree: it keeps the fold and the last seq it knows, and turns events into changes with
the real codec, as a worker does. It knows nothing of other writers; `catch_up` makes it read what they wrote.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, TypedDict, Unpack

import msgspec

from outlive._kernel.journal.codec import open_journal, salt_of, seal
from outlive._kernel.journal.event import (
    AnyEvent,
    RunChanged,
    RunCreated,
    RunParked,
    RunReleased,
    RunSucceeded,
    RunSuspended,
    RunTagged,
    StepSucceeded,
)
from outlive._kernel.journal.fold import Fold
from outlive._kernel.model import Payload, Run, Wait, definition_key
from outlive._kernel.model.payload import Blob
from outlive._kernel.replay.lookahead import first_number
from outlive._kernel.store.contract import (
    Action,
    Answer,
    Change,
    Delivery,
    Forgotten,
    ItemResult,
    Message,
    MessageKind,
    Outcome,
    Store,
    WorkerInfo,
)
from outlive._kernel.store.streams import StreamLines

WORKFLOW = "greet"
DEFINITION = definition_key(WORKFLOW, 1)
NONCE = 0x0123_4567_89AB_CDEF
LEASE_SECONDS = 30.0
INBOX_MESSAGES_MAX = 10_000
LARGE_BYTES = 2 * 1024 * 1024 + 1
"""More than any default limit on a value that we know of in a database."""


class Parts(TypedDict, total=False):
    """The parts that a change may carry besides its events."""

    renames: list[Run]
    consumed: list[int]
    blobs: list[Blob]
    answers: list[Answer]
    items: list[ItemResult]
    streams: list[StreamLines]
    starts: list[Change]
    messages: list[Message]
    forgets: Forgotten
    rings: str
    audit: list[Action]


class Writer:
    """Writes one tree."""

    def __init__(self, store: Store, run_id: str, *, nonce: int = NONCE) -> None:
        self.store, self.run_id, self.nonce = store, run_id, nonce
        self.fold = Fold(run_id)
        self.journal = 0
        self.seq = -1
        self._crcs: dict[int, int] = {}
        """The checksums of the rows that it has sealed or read, by their seqs."""

    def twin(self, store: Store | None = None) -> Writer:
        """A second writer that knows what this one knows now."""
        twin = Writer(store or self.store, self.run_id, nonce=self.nonce)
        twin.journal, twin.seq, twin._crcs = self.journal, self.seq, dict(self._crcs)
        twin.fold.runs, twin.fold.events = dict(self.fold.runs), self.fold.events
        twin.fold.frees_slot = self.fold.frees_slot
        return twin

    def change(self, *events: AnyEvent, **parts: Unpack[Parts]) -> Change:
        """The change that appends these events after the last one that this writer knows."""
        fold = self.twin().fold
        runs: dict[int, Run] = {}
        for event in events:
            if (run := fold.apply(event)) is not None:
                runs[run.number] = run
        salt = salt_of(self.nonce)
        rows = [seal(event, salt=salt, seq=seq) for seq, event in enumerate(events, self.seq + 1)]
        # A test may skip a row that this writer has not seen (`seq += 1`): its change then names a missing row.
        prior = self._crcs.get(self.seq, 0) if self.journal else None
        self._crcs |= {row[0]: row[2] for row in rows}
        return Change(
            journal=self.journal,
            after=self.seq,
            prior=prior,
            rows=rows,
            runs=list(runs.values()),
            retagged=[event.run for event in events if isinstance(event, RunTagged | RunChanged)],
            **parts,
        )

    async def try_write(self, *events: AnyEvent, **parts: Unpack[Parts]) -> Outcome:
        """Append, and say what became of it."""
        ((outcome, journal),) = await self.store.commit([self.change(*events, **parts)])
        if outcome is Outcome.COMMITTED:
            self._learn(journal, events)
        return outcome

    async def write(self, *events: AnyEvent, **parts: Unpack[Parts]) -> None:
        """Append; no other writer may be in the way."""
        outcome = await self.try_write(*events, **parts)
        assert outcome is Outcome.COMMITTED

    async def catch_up(self) -> None:
        """Read the whole journal, and verify every row of it."""
        rows = await self.store.read_journal(self.journal)
        events = open_journal(rows, nonce=self.nonce, run_id=self.run_id)
        self.fold, self.seq = Fold(self.run_id), first_number(events) - 1
        self._crcs = {row[0]: row[2] for row in rows}
        self._learn(self.journal, events)

    def _learn(self, journal: int, events: Sequence[AnyEvent]) -> None:
        self.journal, self.seq = journal, self.seq + len(events)
        for event in events:
            self.fold.apply(event)

    async def step(self, *calls: str, **parts: Unpack[Parts]) -> None:
        """Make a step succeed for each of these calls."""
        await self.write(*(stepped(self.store, call) for call in calls or ("step",)), **parts)

    async def suspend(
        self, *, wake_at: int | None = None, waits: tuple[Wait, ...] = (), **parts: Unpack[Parts]
    ) -> None:
        """Let go of the tree until `wake_at`, or until a message comes."""
        await self.write(RunSuspended(at=self.store.now(), waits=waits, wake_at=wake_at), **parts)

    async def release(self) -> None:
        """Let go of the tree in the middle of its work."""
        await self.write(RunReleased(at=self.store.now()))

    async def park(self, reason: str = "the code changed") -> None:
        """Stop with a reason."""
        await self.write(RunParked(at=self.store.now(), reason=reason))

    async def succeed(self, result: object = "done", *, run: int = 0, **parts: Unpack[Parts]) -> None:
        """End a run of the tree; ending run 0 ends the tree."""
        await self.write(RunSucceeded(at=self.store.now(), run=run, result=value(result)), **parts)

    async def spawn(self, number: int, *, parent: int = 0) -> str:
        """Create a child run and give its id."""
        await self.write(created(self.store, run=number, parent=parent, call=f"child-{number}"))
        return self.fold.runs[number].id


# -- Runs and events -------------------------------------------------------------------------------------


async def begin(store: Store, run_id: str = "run-1", *, nonce: int = NONCE, **fields: Any) -> Writer:
    """Create a tree; `fields` are those of its `RunCreated`."""
    writer = Writer(store, run_id, nonce=nonce)
    await writer.write(created(store, nonce=nonce, **fields))
    return writer


async def follow(store: Store, run_id: str, *, nonce: int = NONCE) -> Writer:
    """A writer of a tree that exists, with all that its journal says."""
    writer = Writer(store, run_id, nonce=nonce)
    writer.journal = (await get_run(store, run_id)).journal
    await writer.catch_up()
    return writer


def new_tree(store: Store, run_id: str, **fields: Any) -> Change:
    """The change that creates a tree, not committed."""
    return Writer(store, run_id).change(created(store, nonce=NONCE, **fields))


def created(store: Store, **fields: Any) -> RunCreated:
    """A run is born now, unless `fields` say otherwise."""
    defaults: dict[str, Any] = {"at": store.now(), "workflow": WORKFLOW, "version": 1, "input": value("hello")}
    return RunCreated(**(defaults | fields))


def stepped(store: Store, call: str = "step", result: object = "ok") -> StepSucceeded:
    """A step succeeds now."""
    return StepSucceeded(at=store.now(), call=call, result=value(result))


def value(content: object) -> Payload:
    """A payload that holds this in place, as JSON."""
    return Payload(v=msgspec.Raw(msgspec.json.encode(content)))


def blob(data: bytes) -> Blob:
    """A blob with the id that its content gives it."""
    return Blob(id=hashlib.sha256(data).hexdigest(), data=data)


async def read_events(writer: Writer) -> list[AnyEvent]:
    """The events in the journal, verified."""
    rows = await writer.store.read_journal(writer.journal)
    return open_journal(rows, nonce=writer.nonce, run_id=writer.run_id)


async def get_run(store: Store, run_id: str) -> Run:
    """The row of a run that must be there."""
    run = await store.find_run(run_id)
    assert run is not None, f"no run has id {run_id}"
    return run


async def see_everything(store: Store, writer: Writer) -> tuple[object, ...]:
    """All that a store shows of one tree: equal before and after means that nothing was changed."""
    runs = await store.find_runs([run.id for run in writer.fold.runs.values()])
    items = {run_id: await store.read_items(run_id) for run_id in runs}
    rows = await store.read_journal(writer.journal)
    return runs, items, rows, await store.read_inbox([writer.journal])


# -- Workers ---------------------------------------------------------------------------------------------


async def hire(store: Store, worker_id: str, *, lease_seconds: float = LEASE_SECONDS) -> None:
    """Begin a worker session."""
    worker = WorkerInfo(
        id=worker_id,
        name=f"{worker_id}.example:1",
        definitions=(DEFINITION,),
        started_at=store.now(),
        expires_at=0,
    )
    await store.register_worker(worker, lease_seconds=lease_seconds)


async def claim(
    store: Store,
    worker_id: str,
    *,
    definitions: Sequence[str] = (DEFINITION,),
    limit: int = 100,
    orphans_max: int | None = None,
    stale_seconds: float = 0,
    queues: Sequence[str] | None = None,
) -> list[str]:
    """Claim what is due, and give the run ids in the order in which they came."""
    claims = await store.claim_runs(
        worker_id, definitions, limit=limit, orphans_max=orphans_max, stale_seconds=stale_seconds, queues=queues
    )
    return [claim.run.id for claim in claims.claims]


# -- Messages --------------------------------------------------------------------------------------------


def message(store: Store, run_id: str, name: str = "go", *, key: str = "", **fields: Any) -> Message:
    """A signal sent now, unless `fields` say otherwise."""
    defaults: dict[str, Any] = {"kind": MessageKind.SIGNAL, "at": store.now()}
    return Message(run_id=run_id, name=name, key=key, **(defaults | fields))


async def send(
    store: Store,
    *messages: Message,
    start: Change | None = None,
    starts: Sequence[Change] = (),
    inbox_messages_max: int = INBOX_MESSAGES_MAX,
) -> list[Delivery]:
    """Deliver messages, after the trees of `starts`, or one tree."""
    starts = [*starts] if start is None else [start]
    return await store.deliver(messages, starts=starts, inbox_messages_max=inbox_messages_max)


async def read_names(store: Store, writer: Writer) -> list[str]:
    """The names of the messages that wait for this tree, in the order of the inbox."""
    inbox = await store.read_inbox([writer.journal])
    return [inbound.name for inbound in inbox.get(writer.journal, [])]


async def read_message_ids(store: Store, writer: Writer) -> list[int]:
    """The ids of the messages that wait for this tree, to be consumed."""
    inbox = await store.read_inbox([writer.journal])
    return [inbound.id for inbound in inbox.get(writer.journal, [])]
