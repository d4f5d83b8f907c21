"""Starting runs: new trees, and what becomes of a run that has the id already.

A run may also be started in a transaction that is open on the user's own connection: it is there if and only if the
user commits, together with whatever else the user wrote, and nothing of it runs before. So an order and the workflow
that handles it cannot part, and no outbox is needed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import Context
from functools import partial
from typing import Any, Protocol, get_args

import msgspec

from outlive._kernel.client.access import Access, CommitAnswer
from outlive._kernel.client.acting import ACTING, Deed, check_acts_on, check_starts, own_tags
from outlive._kernel.client.birth import birth, created, rebirth, timeout_from
from outlive._kernel.client.closing import closing_change, is_unbegun, renamed
from outlive._kernel.client.placing import Placer, QueueChoice, beginning_at, put
from outlive._kernel.client.start_options import OnConflict
from outlive._kernel.client.timed_store import PLACE, unknown
from outlive._kernel.define.workflow import Bound, Startable, bound
from outlive._kernel.journal.codec import Row, creation_in, open_journal
from outlive._kernel.journal.described import Described
from outlive._kernel.journal.event import RunCreated, SignalReceived, SnapshotTaken
from outlive._kernel.journal.packing import tree_mark
from outlive._kernel.model import Run, RunFilter, check_run_id, given
from outlive._kernel.model.burst import (
    Burst,
    Debounce,
    Throttle,
    begins_at,
    burst_after,
    bursts_cell,
    bursts_data,
    bursts_in,
)
from outlive._kernel.model.id import earlier_id
from outlive._kernel.model.payload import Blob
from outlive._kernel.model.queue import Queue, QueuePlace
from outlive._kernel.store.contract import PAGE_SIZE_MAX, Action, Change, Outcome, Store
from outlive.errors import (
    ConfigurationError,
    EngineClosedError,
    InvalidArgumentError,
    OutliveError,
    RunExistsError,
    RunNotFoundError,
    StoreUnavailableError,
    WrongArgumentsError,
)

REPLACES_MAX = 100
NAMES_MAX = 100
"""Names of replaced runs that are looked for at once."""
_FAR = (1, 2, 5, 10, 100, 1_000, 10_000, 100_000)
UNSAID = QueueChoice()
ANOTHER_ID = "use another id for this one"


class Ids(Protocol):
    """Where new runs get their ids and nonces from."""

    def nonce(self) -> int:
        """63 random bits."""

    def new_id(self) -> str:
        """A run id that is made once."""


class Commits(Protocol):
    """Where changes are committed."""

    def submit(self, change: Change, answer: CommitAnswer) -> None:
        """Commit a change soon; `answer` is called once its outcome is durable."""

    def withdraw(self, nonce: int) -> bool:
        """Never create the tree with this nonce; False if the store has it, or may have it."""

    @property
    def answered_at(self) -> float:
        """When the store last answered, by the clock of the loop."""


class Starter:
    """Creates trees in the store of one engine."""

    def __init__(self, access: Access, *, ids: Ids, commits: Commits, stop: Callable[[str], Awaitable[None]]) -> None:
        self._access = access
        self._ids = ids
        self._commits: Commits | None = commits
        self._creating: dict[asyncio.Future[Outcome], tuple[float, str, int]] = {}
        """Starts under way, the oldest first: since when, and the id and nonce of the run."""
        self._look: asyncio.TimerHandle | None = None
        self._placer = Placer(access.timed_store, registry=access.registry, began_at=access.store.now())
        self._stop = stop
        """Cancels a run and returns when it has ended."""

    def close(self) -> None:
        """The engine has stopped: a start that is still under way raises."""
        self._commits = None
        if self._look is not None:
            self._look.cancel()
        for waiting in self._creating:
            if not waiting.done():
                waiting.set_exception(EngineClosedError("starting a run"))

    async def place(self, where: str, choice: QueueChoice | None, own: Queue | str | None) -> QueuePlace:
        """The place of a run of a workflow with the queue `own`. See `Placer.place`."""
        return await self._placer.place(where, choice or UNSAID, own, now_at=self._access.store.now())

    async def start(
        self,
        workflow: Startable[*tuple[Any, ...], Any],
        args: tuple[Any, ...],
        *,
        id: str | None = None,
        on_conflict: OnConflict = "attach",
        timeout: given.Span | None = None,
        tags: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        connection: Any = None,
        choice: QueueChoice | None = None,
        gather: Debounce | Throttle | None = None,
        nonce: int | None = None,
    ) -> str:
        """Start a run; its id. See `Engine.start`."""
        given.one_of("engine.start", "on_conflict", on_conflict, get_args(OnConflict))
        seconds = given.some_seconds("engine.start", "timeout", timeout)
        said = {} if headers is None else given.headers("engine.start", headers)
        wanted = bound(workflow, args)
        labels: dict[str, str] = {}
        if tags is not None or ACTING.get() is not None:
            labels = own_tags("engine.start", wanted.workflow.spec.name, tags)
        run_id = self._ids.new_id() if id is None else check_run_id(id)
        if gather is not None:
            _check_gathered(id, on_conflict, connection, choice)
        place: QueuePlace | None = None
        if choice is not None or wanted.workflow.spec.queue:
            place = await self.place("engine.start", choice, wanted.workflow.spec.queue)
        event, blobs = self.created(wanted, timeout=seconds, tags=labels, headers=said, place=place, nonce=nonce)
        if gather is not None:
            return await self._start_gathered(gather, event, blobs, wanted)
        if connection is not None:
            await self._start_within(connection, run_id, event, blobs, on_conflict=on_conflict)
        elif (id is not None and await self._is_taken(run_id)) or (
            await self._create(run_id, event, blobs) is Outcome.CONFLICT
        ):
            await self.on_taken(run_id, event, blobs, on_conflict)
        return run_id

    async def _is_taken(self, run_id: str) -> bool:
        """Whether there is a run of this id, as far as that has to be known before it is created.

        Our own worker would begin with the first steps before the store says that the id is taken; without a worker the
        store alone says it, which takes one question less. A store that refuses now may take the run in a moment.

        Raises:
            StoreUnavailableError: it has been silent for as long as a start waits for it.
        """
        if self._access.worker is None:
            return False
        loop, seconds = asyncio.get_running_loop(), self._access.store_seconds
        since = loop.time()
        try:
            return await self._access.find(run_id) is not None
        except StoreUnavailableError:
            if loop.time() >= since + seconds:
                raise _late(run_id, seconds, is_known=True) from None
            return False

    async def start_described(
        self,
        workflow: str,
        version: int,
        described: Described,
        arguments: bytes,
        *,
        id: str | None = None,
        on_conflict: OnConflict = "attach",
        timeout: given.Span | None = None,
        tags: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        choice: QueueChoice | None = None,
        nonce: int | None = None,
    ) -> str:
        """Start a run of a workflow whose code is not here; its id."""
        where = "engine.start"
        given.one_of(where, "on_conflict", on_conflict, get_args(OnConflict))
        seconds = given.some_seconds(where, "timeout", timeout)
        run_id = self._ids.new_id() if id is None else check_run_id(id)
        event, blobs = await self.created_described(
            where,
            workflow,
            version,
            described,
            arguments,
            timeout=seconds,
            tags=tags,
            headers=headers,
            choice=choice,
            nonce=nonce,
        )
        if (id is not None and await self._is_taken(run_id)) or (
            await self._create(run_id, event, blobs) is Outcome.CONFLICT
        ):
            await self.on_taken(run_id, event, blobs, on_conflict)
        return run_id

    async def created_described(
        self,
        where: str,
        workflow: str,
        version: int,
        described: Described,
        arguments: bytes,
        *,
        timeout: float | None = None,
        tags: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        choice: QueueChoice | None = None,
        nonce: int | None = None,
    ) -> tuple[RunCreated, list[Blob]]:
        """The first event of a new tree of a workflow whose code is not here, and the blobs of its arguments."""
        nonce, at = self._ids.nonce() if nonce is None else nonce, self._access.store.now()
        seconds = described.timeout_seconds if timeout is None else timeout
        payload, blob = self._access.packer.pack(arguments, f"the arguments of {workflow}", of=tree_mark(nonce))
        event = RunCreated(
            at=at,
            workflow=workflow,
            version=version,
            input=payload,
            nonce=nonce,
            **timeout_from(at, seconds),
            tags=own_tags(where, workflow, tags),
            headers=given.headers(where, headers),
            spends_names=True,
        )
        if choice is not None or described.queue:
            event = put(event, await self.place(where, choice, described.queue or None))
        return event, [blob] if blob else []

    def created(
        self,
        wanted: Bound[Any],
        *,
        timeout: float | None = None,
        tags: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
        place: QueuePlace | None = None,
        nonce: int | None = None,
    ) -> tuple[RunCreated, list[Blob]]:
        """The first event of a new tree, and the blobs of its arguments."""
        spec = wanted.workflow.spec
        nonce = self._ids.nonce() if nonce is None else nonce
        try:
            arguments = spec.signature.encode(wanted.args, wanted.kwargs)
        except WrongArgumentsError as error:
            raise error.at_start() from None
        payload, blob = self._access.packer.pack(arguments, f"the arguments of {spec.name}", of=tree_mark(nonce))
        event = created(
            workflow=spec,
            arguments=payload,
            at=self._access.store.now(),
            nonce=nonce,
            tags=tags,
            headers=headers,
            timeout_seconds=timeout,
            place=place,
        )
        return event, [blob] if blob else []

    def birth_of(
        self, where: str, run_id: str, start: tuple[Any, ...] | None, *, headers: Mapping[str, str] | None = None
    ) -> tuple[RunCreated, list[Blob]] | None:
        """The first event of a tree for `(workflow, *args)`, as `where` was given it, and the blobs of its arguments.
        None if nothing is to be started."""
        said = given.headers(where, headers)
        if start is None:
            if said:
                wanted_start = "they are for the run that it starts, and it starts none: give start=(workflow, ...) too"
                raise InvalidArgumentError(where, "headers", headers, wanted_start)
            return None
        workflow, *args = given.call(where, "start", start)
        wanted: Bound[Any] = bound(workflow, tuple(args))
        labels = own_tags(where, wanted.workflow.spec.name, None)
        check_run_id(run_id)
        return self.created(wanted, tags=labels, headers=said)

    async def _create(self, run_id: str, event: RunCreated, blobs: list[Blob]) -> Outcome:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Outcome] = loop.create_future()
        acting = ACTING.get()
        deed = None if acting is None else acting.begin("start", run_id)
        if acting is not None:
            check_starts(run_id, event.workflow, event.tags)
        creation = _Creation(self, run_id, event, blobs, deed, done)
        # From a plain callback: beginning a run feeds its execution, and that never happens inside a task. In an empty
        # context: what the worker does from here on is not the caller's.
        loop.call_soon(creation.begin, context=Context())
        self._creating[done] = (loop.time(), run_id, event.nonce)
        if self._look is None:
            self._look = loop.call_later(self._access.store_seconds, self._give_up_late, context=Context())
        try:
            return await done
        except asyncio.CancelledError as error:
            is_answered = not done.cancelled()
            if creation.is_begun and self._commits and (is_answered or not self._commits.withdraw(event.nonce)):
                error.add_note(f"run {run_id} may have been started: the store had it when its caller was cancelled")
            raise
        finally:
            del self._creating[done]

    def _give_up_late(self) -> None:
        """Let the starts raise for which the store has not answered in time. A store that answers others is busy, and
        not away."""
        loop, commits, seconds = asyncio.get_running_loop(), self._commits, self._access.store_seconds
        self._look = None
        if commits is None:
            return
        for done, (since, run_id, nonce) in self._creating.items():
            due_at = max(since, commits.answered_at) + seconds
            if due_at > loop.time():  # The very sum that the timer gets: another one may differ in its last bit.
                self._look = loop.call_at(due_at, self._give_up_late, context=Context())
                return
            if not done.done():
                done.set_exception(_late(run_id, seconds, is_known=commits.withdraw(nonce)))

    def begin(
        self,
        run_id: str,
        event: RunCreated,
        blobs: list[Blob],
        answer: CommitAnswer,
        audit: Action | None,
        *,
        at_once: bool,
    ) -> None:
        """Create a tree: owned by our worker at once if it can run it and has room, else for any worker."""
        worker = self._access.worker
        if self._commits is None:
            raise EngineClosedError("starting a run")
        if worker is None or not at_once or not worker.begin(run_id, event, blobs, answer, audit):
            self._commits.submit(birth(run_id, event, blobs, audit), partial(self._born, answer))

    def _born(self, answer: CommitAnswer, outcome: Outcome, journal: int) -> None:
        answer(outcome, journal)
        # Not before: a worker that looks while the change is under way finds nothing, and then sleeps.
        self._access.ring()

    # -- Many starts that are one run ------------------------------------------------------------------------

    async def _start_gathered(
        self, gather: Debounce | Throttle, event: RunCreated, blobs: list[Blob], wanted: Bound[Any]
    ) -> str:
        """Start the run of a burst, or join it; its id.

        A cell says which run the starts of a key belong to. It is written first and the run after it, so a start that
        dies between the two leaves the id of a run that is not there yet: the next start creates it.
        """
        for _ in range(REPLACES_MAX):
            burst, now_at = await self._join(gather, event.workflow)
            run = await self._access.store.find_run(burst.run_id)
            if run is None:
                outcome = await self._create(burst.run_id, _begun_by(gather, burst, event, now_at), blobs)
            elif isinstance(gather, Throttle):
                return run.id
            elif is_unbegun(run) and run.version == event.version:
                outcome = await self._rewrite(run, event, begins_at(gather, burst, now_at), wanted)
            else:
                await self._leave(gather, event.workflow, run.id)
                continue
            if outcome is Outcome.COMMITTED:
                return burst.run_id
        raise OutliveError(f"workflow {event.workflow} could not be started: others came first {REPLACES_MAX} times")

    async def _join(self, gather: Debounce | Throttle, workflow: str) -> tuple[Burst, int]:
        """The burst that a start of this key belongs to now, and what time it is."""
        run_id = self._ids.new_id()

        def join(data: bytes | None, now_at: int) -> tuple[bytes, tuple[Burst, int]]:
            bursts = bursts_in(data, now_at)
            burst = bursts[gather.key] = burst_after(gather, bursts.get(gather.key), run_id, now_at)
            return bursts_data(bursts), (burst, now_at)

        return await self._access.store.change_cell(bursts_cell(workflow, gather.key), join)

    async def _leave(self, gather: Debounce, workflow: str, run_id: str) -> None:
        """The run of a burst has begun: the next start is the first of another one."""

        def leave(data: bytes | None, now_at: int) -> tuple[bytes, None]:
            bursts = bursts_in(data, now_at)
            if (burst := bursts.get(gather.key)) is not None and burst.run_id == run_id:
                del bursts[gather.key]
            return bursts_data(bursts), None

        await self._access.store.change_cell(bursts_cell(workflow, gather.key), leave)

    async def _rewrite(self, run: Run, event: RunCreated, begins_at: int, wanted: Bound[Any]) -> Outcome:
        """Give a run that has not begun other arguments, and another time to begin at. A worker that claims it
        meanwhile wins."""
        store = self._access.store
        rows = await store.read_journal(run.journal, limit=2)
        if len(rows) != 1:
            return Outcome.CONFLICT
        first = creation_in(rows[0], nonce=run.nonce, run_id=run.id)
        last, blobs = self.created(wanted, nonce=run.nonce)
        again = beginning_at(msgspec.structs.replace(first, input=last.input, headers=event.headers), begins_at)
        ((outcome, _),) = await store.commit([rebirth(run, again, blobs, first=rows[0])])
        return outcome

    # -- When the id is taken --------------------------------------------------------------------------------

    async def on_taken(self, run_id: str, event: RunCreated, blobs: list[Blob], on_conflict: OnConflict) -> None:
        """Settle what becomes of a start whose id is taken.

        Raises:
            RunExistsError: the run that has the id will not do.
        """
        store = self._access.store
        if on_conflict == "attach":
            try:
                taken = await self._access.info(run_id)
            except RunNotFoundError:
                # It was deleted since: the id is free. A start that the store refuses for good is not a start.
                outcome, _ = (await store.commit([birth(run_id, event, blobs)]))[0]
                if outcome is Outcome.COMMITTED:
                    self._access.ring()
                    return
                taken = await self._access.info(run_id)
            # A run of another workflow was not asked for.
            refuse_other(taken, event)
            return
        for _ in range(REPLACES_MAX):
            run = await store.find_run(run_id)
            if run is not None and run.nonce == event.nonce:
                return  # An earlier try of this very start has created it.
            if run is None:
                changes = [birth(run_id, event, blobs)]
            elif on_conflict == "reject" or (on_conflict == "reject_open" and not run.status.is_terminal):
                raise RunExistsError(run_id, run.status.value)
            elif on_conflict == "attach_open" and not run.status.is_terminal:
                refuse_other(run, event)
                return
            elif on_conflict == "cancel_open" and not run.status.is_terminal:
                check_acts_on(run)
                await self._stop(run_id)
                continue
            else:
                found = await self._replacing(run, event, blobs, lives_on=on_conflict == "attach_open")
                if found is None:
                    return
                changes = found
            if on_conflict.endswith("_open") and len(changes) > 1:
                continue  # It goes on after its end: it is open.
            if (await store.commit(changes))[-1][0] is Outcome.COMMITTED:
                if run is not None and self._access.worker is not None:
                    # A worker elsewhere that runs the old one finds its next seq taken; here it stops at once.
                    self._access.worker.discard_tree(run.journal)
                self._access.ring()
                return
        raise OutliveError(f"run {run_id} could not be replaced: it moved on {REPLACES_MAX} times; try again")

    async def next_life(self, run_id: str, event: RunCreated, blobs: list[Blob]) -> Change:
        """The change that begins the run of a message: after the end of the run that has the id, another one that knows
        the keys of its messages. If there is none, or it is open, the change creates a run if there is none."""
        run = await self._access.store.find_run(run_id)
        if run is not None and run.status.is_terminal:
            changes = await self._replacing(run, event, blobs, lives_on=True)
            if changes is not None and len(changes) == 1:
                return changes[0]
        return birth(run_id, event, blobs)

    async def _replacing(
        self, run: Run, event: RunCreated, blobs: list[Blob], *, lives_on: bool
    ) -> list[Change] | None:
        """The changes that end the open run with the id, if there is one, and begin the new run; the old tree takes
        another name. None if this very start has created a run before, which was replaced since."""
        check_acts_on(run)
        store = self._access.store
        rows, tree = await read_tree(store, run)
        name, last = await self._free_name(run.id)
        if last is not None and last.nonce == event.nonce:
            return None
        # Generations of one id are counted on, so that no two of them get the same name.
        first = creation_in(rows[0], nonce=run.nonce, run_id=run.id)
        event = msgspec.structs.replace(event, generation=first.generation)
        new = birth(run.id, event, blobs, signals=unread_in(rows, run, at=event.at) if lives_on else ())
        closing = None
        if 0 in tree and not tree[0].status.is_terminal:
            closing = closing_change(tree, rows, reason="replaced by a new run of the same id", at=store.now())
            tree |= {ended.number: ended for ended in closing.runs}
        new.renames = renamed(tree, name=name)
        if lives_on and closing is None:
            new.successor_of, new.lives_on = run.journal, True
        return [new] if closing is None else [closing, new]

    async def _free_name(self, run_id: str) -> tuple[str, Run | None]:
        """The name that the next replaced run of this id gets, `~old1` for the first, and the run that has the name
        before it. A name that retention has made free may be given again."""
        find = self._access.store.find_runs
        taken, free = 0, 0
        last: Run | None = None
        while not free:
            # Each look is ten times as far: an id may have had a hundred thousand runs.
            numbers = [taken + step for step in _FAR]
            found = await find([earlier_id(run_id, number) for number in numbers])
            free, taken, last = _between(run_id, numbers, found, taken, last)
        while free - taken > 1:
            width = -(-(free - taken) // NAMES_MAX)
            numbers = list(range(taken + width, free, width)) or [taken + 1]
            found = await find([earlier_id(run_id, number) for number in numbers])
            nearer, taken, last = _between(run_id, numbers, found, taken, last)
            free = nearer or free
        return earlier_id(run_id, free), last

    async def _start_within(
        self, connection: Any, run_id: str, event: RunCreated, blobs: list[Blob], *, on_conflict: OnConflict
    ) -> None:
        """Create a tree in the user's transaction.

        Raises:
            ConfigurationError: the store or the connection cannot do that, or `on_conflict` takes an id from a run.
            RunExistsError: the id is taken, and the run that has it will not do.
        """
        store = self._access.store
        if on_conflict not in ("attach", "reject"):
            raise ConfigurationError(
                f"on_conflict={on_conflict!r} gives another run another id, which cannot be part of your transaction; "
                f"use 'attach' or 'reject'"
            )
        if await store.request_start(connection, birth(run_id, event, blobs)) is Outcome.COMMITTED:
            return
        # None: it was started in this very transaction, and is visible nowhere else yet.
        taken = await store.find_run(run_id)
        if on_conflict == "reject":
            raise RunExistsError(run_id, "started in this transaction" if taken is None else taken.status.value)
        if taken is not None:
            refuse_other(taken, event)


def _between(
    run_id: str, numbers: list[int], found: Mapping[str, Run], taken: int, last: Run | None
) -> tuple[int, int, Run | None]:
    """The first of these numbers that no run has (0 if there is none), the one before it, and its run."""
    for number in numbers:
        run = found.get(earlier_id(run_id, number))
        if run is None:
            return number, taken, last
        taken, last = number, run
    return 0, taken, last


class _Creation(msgspec.Struct, eq=False):
    """The creation of one tree. Nothing in it refers back to it: a burst of starts would fill the memory with circles
    until Python's garbage collector walks through all of them in one go."""

    starter: Starter
    run_id: str
    event: RunCreated
    blobs: list[Blob]
    deed: Deed | None
    done: asyncio.Future[Outcome]
    is_begun: bool = False

    def begin(self, *, at_once: bool = True) -> None:
        """Create it now, if its caller has not gone."""
        if self.done.done():
            return
        self.is_begun = True
        action = None if self.deed is None else self.deed.action
        try:
            self.starter.begin(self.run_id, self.event, self.blobs, self._answer, action, at_once=at_once)
        except Exception as error:  # The caller alone can hear of it.
            if not self.done.done():
                self.done.set_exception(error)

    def _answer(self, outcome: Outcome, journal: int) -> None:
        if outcome is Outcome.MUST_WAIT:
            self.begin(at_once=False)
            return
        if self.deed is not None:
            self.deed.is_written = outcome is Outcome.COMMITTED
        if not self.done.done():
            self.done.set_result(outcome)


def _late(run_id: str, seconds: float, *, is_known: bool) -> StoreUnavailableError:
    """The error of a start for which the store has not answered."""
    if not is_known:
        return unknown(seconds, f"run {run_id} was started", "start it again", run_id=run_id)
    return StoreUnavailableError(PLACE, f"it has not answered for {seconds:g} s; run {run_id} was not started")


def _check_gathered(id: object, on_conflict: OnConflict, connection: object, choice: QueueChoice | None) -> None:
    """Refuse what contradicts that the starts of a key become one run."""
    wanted = "leave it out: with debounce= or throttle= the key says which run it is"
    others = {"id": id, "on_conflict": None if on_conflict == "attach" else on_conflict, "connection": connection}
    if choice is not None:
        others |= {"delay": choice.delay, "start_at": choice.start_at}
    for name, value in others.items():
        if value is not None:
            raise InvalidArgumentError("engine.start", name, value, wanted)


def _begun_by(gather: Debounce | Throttle, burst: Burst, event: RunCreated, now_at: int) -> RunCreated:
    """The first event of the run of a burst."""
    if isinstance(gather, Throttle):
        return event
    return beginning_at(event, begins_at(gather, burst, now_at))


def refuse_other(taken: Run, event: RunCreated) -> None:
    """See that the run that has the id is one of the workflow that was to be started.

    Raises:
        RunExistsError: it is a run of another one.
    """
    if taken.workflow != event.workflow:
        raise RunExistsError(taken.id, f"{taken.status.value}, a run of workflow {taken.workflow}", ANOTHER_ID)


def unread_in(rows: Sequence[Row], root: Run, *, at: int) -> list[SignalReceived]:
    """The signals in the journal of an ended tree that no code of its root took, as another run gets them."""
    events = dict(zip((row[0] for row in rows), open_journal(rows, nonce=root.nonce, run_id=root.id), strict=True))
    places = getattr(events[rows[-1][0]], "unread", ())
    found: list[SignalReceived] = []
    for seq, number in sorted((int(seq), int(number or 0)) for seq, _, number in (it.partition(".") for it in places)):
        event = events[seq]
        signal = event.signals[number] if isinstance(event, SnapshotTaken) else event
        assert isinstance(signal, SignalReceived)
        found.append(msgspec.structs.replace(signal, at=at))
    return found


async def read_tree(store: Store, root: Run) -> tuple[list[Row], dict[int, Run]]:
    """The journal of a tree, and then its rows by number: if it moves on meanwhile, a change conflicts."""
    rows = await store.read_journal(root.journal)
    tree: dict[int, Run] = {}
    cursor: tuple[int, str] | None = None
    while True:
        page = await store.list_runs(RunFilter(root_id=root.id), limit=PAGE_SIZE_MAX, before=cursor)
        # Another tree may have taken the name meanwhile.
        tree |= {run.number: run for run in page if run.journal == root.journal}
        if len(page) < PAGE_SIZE_MAX:
            return rows, tree
        cursor = (page[-1].created_at, page[-1].id)
