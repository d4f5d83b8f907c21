"""The verbs of a client. Each returns when what it did is durable.

A client writes only what no owner can contradict: new trees, messages in the inbox, and the end of a run that nobody
owns because it is parked. Everything else is the business of the run's worker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextvars import Context
from typing import Any, Literal, TypeVar, TypeVarTuple, get_args

import msgspec

from outlive._define.registry import Registry
from outlive._define.workflow import Bound, Startable, bound
from outlive._journal.codec import Row, creation_in
from outlive._journal.event import RunCreated
from outlive._journal.packing import Packer, mail_mark, tree_mark
from outlive._journal.redaction import Redaction
from outlive._model import Limits, Run, RunFilter, RunStatus, check_run_id, given, known_run_id
from outlive._model.payload import Blob
from outlive._replay.command import WorkflowSpec
from outlive._store.contract import PAGE_SIZE_MAX, Change, Message, MessageKind, Outcome, Store
from outlive.client.approval import ApprovalDesk
from outlive.client.batch import Reader
from outlive.client.batches import Batches
from outlive.client.birth import birth, created
from outlive.client.checkpoints import CheckpointStore
from outlive.client.closing import closing_change, is_at_rest, renamed
from outlive.client.handle import RunHandle
from outlive.client.joining import ANOTHER_ID, start_within
from outlive.client.look import LookingClient
from outlive.client.message_key import key_of_cancel, key_of_signal
from outlive.client.post import Post
from outlive.client.skipping import skip_step
from outlive.client.waiters import Waiters
from outlive.errors import (
    EngineClosedError,
    OutliveError,
    RunExistsError,
    RunNotParkedError,
    StoreUnavailableError,
    WrongArgumentsError,
)

R = TypeVar("R")
Ts = TypeVarTuple("Ts")
OnConflict = Literal["attach", "reject", "replace"]
Commit = Callable[[list[Change]], Any]
Begin = Callable[[str, RunCreated, list[Blob], Callable[[Outcome, int], None]], bool]
REPLACES_MAX = 100


class Client(LookingClient):
    """Talks to runs through the store."""

    def __init__(
        self,
        *,
        store: Store,
        packer: Packer,
        limits: Limits,
        registry: Registry,
        redaction: Redaction,
        waiters: Waiters,
        nonce: Callable[[], int],
        new_id: Callable[[], str],
        begin: Begin,
        may_run_here: bool,
        ring: Callable[[], None],
        moves_here: Callable[[str], bool],
        disown: Callable[[int], None],
    ) -> None:
        super().__init__(
            store=store,
            packer=packer,
            registry=registry,
            redaction=redaction,
            waiters=waiters,
            moves_here=moves_here,
        )

        def usable() -> Store:
            return self._store  # Raises if the engine has stopped, or belongs to the parent of this process.

        self._post = Post(usable, inbox_messages_max=limits.inbox_messages_max, ring=ring)
        self.desk = ApprovalDesk(usable, packer=packer, post=self._post, new_id=new_id)
        self.checkpoints = CheckpointStore(usable, packer=packer, nonce=nonce)
        self._nonce = nonce
        self._new_id = new_id
        self._begin = begin
        self._may_run_here = may_run_here
        self._ring = ring
        self._disown = disown
        self._creating: set[asyncio.Future[Outcome]] = set()
        reader = Reader(store=usable, packer=packer, registry=registry, new_pause=self._new_pause)
        self.batches = Batches(
            packer=packer, reader=reader, start=self.start, get=lambda run_id: RunHandle(self, run_id), new_id=new_id
        )

    def close(self) -> None:
        """The engine has stopped: whoever still waits for a start, or uses a handle from now on, is told."""
        self._open_store = None
        for waiting in self._creating:
            if not waiting.done():
                waiting.set_exception(EngineClosedError("starting a run"))

    # -- Starting --------------------------------------------------------------------------------------------

    async def start(
        self,
        workflow: Startable[*Ts, R],
        *args: *Ts,
        id: str | None = None,
        on_conflict: OnConflict = "attach",
        timeout: given.Span | None = None,
        tags: Mapping[str, str] | None = None,
        connection: Any = None,
    ) -> RunHandle[R]:
        """Start a run. See `Engine.start`."""
        given.one_of("engine.start", "on_conflict", on_conflict, get_args(OnConflict))
        seconds = given.some_seconds("engine.start", "timeout", timeout)
        labels = given.tags("engine.start", tags)
        wanted = bound(workflow, args)
        run_id = self._new_id() if id is None else check_run_id(id)
        event, blobs = self._created(wanted, seconds, labels)
        if connection is not None:
            await start_within(self._store, connection, run_id, event, blobs, on_conflict=on_conflict)
        elif (self._may_run_here and id is not None and await self._is_taken(run_id)) or (
            await self._create(run_id, event, blobs) is Outcome.CONFLICT
        ):
            await self._on_taken(run_id, event, blobs, on_conflict)
        return RunHandle(self, run_id)

    def _created(
        self, wanted: Bound[Any], timeout: float | None, tags: dict[str, str] | None
    ) -> tuple[RunCreated, list[Blob]]:
        spec = wanted.workflow.spec
        nonce = self._nonce()
        try:
            arguments = spec.signature.encode(wanted.args, wanted.kwargs)
        except WrongArgumentsError as error:
            raise error.at_start() from None
        payload, blob = self._packer.pack(arguments, f"the arguments of {spec.name}", of=tree_mark(nonce))
        event = created(
            workflow=spec,
            arguments=payload,
            at=self._store.now(),
            nonce=nonce,
            tags=tags,
            timeout_seconds=timeout,
        )
        return event, [blob] if blob else []

    async def _is_taken(self, run_id: str) -> bool:
        """Whether a run has this id. Asked before a run is begun here: its code would run as far as it can before the
        store refuses it, and nobody expects that of a run that ended long ago."""
        try:
            return await self._store.find_run(run_id) is not None
        except StoreUnavailableError:
            return False  # The start waits for the store, which will say so itself.

    async def _create(self, run_id: str, event: RunCreated, blobs: list[Blob]) -> Outcome:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Outcome] = loop.create_future()

        def answer(outcome: Outcome, journal: int) -> None:
            if not done.done():
                done.set_result(outcome)

        def begin() -> None:
            try:
                if not self._begin(run_id, event, blobs, answer):
                    done.set_exception(EngineClosedError("starting a run"))
            except Exception as error:  # Nobody but the caller can be told.
                done.set_exception(error)

        # From a plain callback: beginning a run feeds its execution, and that never happens inside a task. In an empty
        # context: what the worker does from here on is not the caller's.
        loop.call_soon(begin, context=Context())
        self._creating.add(done)
        try:
            return await done
        finally:
            self._creating.discard(done)

    async def _on_taken(self, run_id: str, event: RunCreated, blobs: list[Blob], on_conflict: OnConflict) -> None:
        if on_conflict == "attach":
            # A start that the store refused for good is no start, and a run of something else is not the one that was
            # asked for: whoever asked must hear of it.
            taken = await self.info(run_id)
            if taken.workflow != event.workflow:
                raise RunExistsError(run_id, f"{taken.status.value}, a run of workflow {taken.workflow}", ANOTHER_ID)
            return
        for _ in range(REPLACES_MAX):
            run = await self._store.find_run(run_id)
            if run is not None and on_conflict == "reject":
                raise RunExistsError(run_id, run.status.value)
            changes = [birth(run_id, event, blobs)] if run is None else await self._replacing(run, event, blobs)
            if (await self._store.commit(changes))[-1][0] is Outcome.COMMITTED:
                if run is not None:
                    # Whoever runs the old one elsewhere finds its next seq taken; here it stops at once.
                    self._disown(run.journal)
                self._ring()
                return
        raise OutliveError(f"run {run_id} could not be replaced: it moved on {REPLACES_MAX} times; try again")

    async def _free_name(self, run_id: str) -> str:
        """The name that the next replaced run of this id gets: `~old1` for the first."""
        first = 1
        while True:
            names = [f"{run_id}~old{number}" for number in range(first, first + REPLACES_MAX)]
            taken = await self._store.find_runs(names)
            for name in names:
                if name not in taken:
                    return name
            first += REPLACES_MAX

    async def _replacing(self, run: Run, event: RunCreated, blobs: list[Blob]) -> list[Change]:
        """What ends the run that has the id, if it is open, and begins the new one; its tree takes another name."""
        rows, tree = await self._read_tree(run)
        # Generations of one id are counted on, so that no two of them get the same name.
        first = creation_in(rows[0], nonce=run.nonce, run_id=run.id)
        new = birth(run.id, msgspec.structs.replace(event, generation=first.generation), blobs)
        closing = None
        if 0 in tree and not tree[0].status.is_terminal:
            reason = "replaced by a new run of the same id"
            closing = closing_change(tree, rows, reason=reason, at=self._store.now())
            tree |= {ended.number: ended for ended in closing.runs}
        new.renames = renamed(tree, name=await self._free_name(run.id))
        return [new] if closing is None else [closing, new]

    async def _read_tree(self, root: Run) -> tuple[list[Row], dict[int, Run]]:
        """The journal of a tree, and then its rows by number: if it moves on meanwhile, a change conflicts."""
        rows = await self._store.read_journal(root.journal)
        tree: dict[int, Run] = {}
        cursor: tuple[int, str] | None = None
        while True:
            page = await self._store.list_runs(RunFilter(root_id=root.id), limit=PAGE_SIZE_MAX, before=cursor)
            # Another tree may have taken the name meanwhile.
            tree |= {run.number: run for run in page if run.journal == root.journal}
            if len(page) < PAGE_SIZE_MAX:
                return rows, tree
            cursor = (page[-1].created_at, page[-1].id)

    # -- Messages --------------------------------------------------------------------------------------------

    async def signal(
        self,
        run_id: str,
        name: str,
        payload: Any = None,
        *,
        key: str | None = None,
        start: tuple[Any, ...] | None = None,
    ) -> None:
        """Send a signal to a run. See `Engine.signal`."""
        self._check_usable()
        run_id = known_run_id("engine.signal", run_id)
        name = given.text("engine.signal", "name", name, like="paid")
        if key is not None:
            key = given.text("engine.signal", "key", key, like="evt_123", most=given.KEY_CHARACTERS_MAX)
        change = None
        spec: WorkflowSpec | None = None
        if start is not None:
            workflow, *args = given.call("engine.signal", "start", start)
            wanted: Bound[Any] = bound(workflow, tuple(args))
            spec = wanted.workflow.spec
            event, blobs = self._created(wanted, None, None)
            change = birth(check_run_id(run_id), event, blobs)
        data = await self._post.encode_signal(run_id, name, payload, spec)
        stored, blob = self._packer.pack(data, f"signal {name!r}", of=mail_mark(run_id))
        message = Message(
            run_id=run_id,
            kind=MessageKind.SIGNAL,
            at=self._store.now(),
            name=name,
            key=key_of_signal(run_id, name, key),
            payload=stored,
            blobs=(blob,) if blob else (),
        )
        await self._post.deliver(message, start=change)

    async def cancel(self, run_id: str, *, reason: str = "") -> None:
        """Ask a run to stop. See `Engine.cancel`."""
        reason = given.text(
            "engine.cancel", "reason", reason, like="out of stock", least=0, most=given.TEXT_CHARACTERS_MAX
        )
        run = await self.info(run_id)
        if run.status is RunStatus.CANCELLED:
            return
        root = run if run.number == 0 else await self.info(run.root_id)
        if root is run and is_at_rest(root) and await self._end_here(root, reason):
            return
        key = key_of_cancel(run.number, run.nonce)
        message = Message(run_id=run_id, kind=MessageKind.CANCEL, at=self._store.now(), name=reason, key=key)
        await self._post.deliver(message)

    async def _end_here(self, root: Run, reason: str) -> bool:
        """End a run whose code has nothing to clean up, or cannot; False if it moves all the same."""
        rows, tree = await self._read_tree(root)
        if 0 not in tree or not is_at_rest(tree[0]):
            return False
        change = closing_change(tree, rows, reason=reason, at=self._store.now())
        outcome, _ = (await self._store.commit([change]))[0]
        if outcome is Outcome.COMMITTED:
            self._ring()
            for run in change.runs:
                self._waiters.announce(run)
        return outcome is Outcome.COMMITTED

    async def resume(self, run_id: str) -> None:
        """Let a parked run go on. See `Engine.resume`."""
        run = await self.info(run_id)
        root = run if run.number == 0 else await self.info(run.root_id)
        if root.status is not RunStatus.PARKED:
            raise RunNotParkedError(root.id, root.status.value)
        await self._post.deliver(Message(run_id=root.id, kind=MessageKind.RESUME, at=self._store.now()))

    async def skip_step(self, run_id: str, call: str | None = None, *, result: Any = msgspec.UNSET) -> None:
        """Let a parked run go on without a step. See `Engine.skip_step`."""
        if call is not None:
            call = given.text("engine.skip_step", "call", call, like="charge", most=given.KEY_CHARACTERS_MAX)
        run = await self.info(run_id)
        root = run if run.number == 0 else await self.info(run.root_id)
        at = self._store.now()
        await skip_step(run, root, call=call, result=result, at=at, packer=self._packer, post=self._post)
