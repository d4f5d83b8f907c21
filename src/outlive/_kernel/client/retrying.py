"""Bringing a run back that has failed, timed out or was cancelled: the same run goes on at what failed.

The code of the workflow is needed: only a replay can say which failure the workflow gave up for, and what it did only
because of it (`_kernel.replay.taking_back`). If this process does not have it, a worker does all this. What was found
is written behind the end of the tree as `RunRetried`, by compare-and-swap like every other change, and the run is due
at once. Nothing is deleted: the history has the failure, the end and the retry.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextvars import Context
from functools import partial
from typing import TypeVar

from outlive._kernel.client.access import Access
from outlive._kernel.client.acting import doing
from outlive._kernel.client.interventions import Interventions
from outlive._kernel.client.message_key import key_of_cancel, key_of_decision
from outlive._kernel.client.starting import read_tree
from outlive._kernel.define.intervention import Intervention
from outlive._kernel.define.middleware import around_workflow
from outlive._kernel.define.own import family_of
from outlive._kernel.journal.codec import creation_in, open_journal, salt_of, seal
from outlive._kernel.journal.event import AnyEvent, Ending, RunCreated, RunRetried, SnapshotTaken
from outlive._kernel.journal.fold import Fold
from outlive._kernel.journal.history import blobs_of
from outlive._kernel.journal.packing import inbox_mark, tree_mark
from outlive._kernel.model import Run, RunStatus
from outlive._kernel.model.giver import gives_freely
from outlive._kernel.replay.execution import Execution
from outlive._kernel.replay.taking_back import CannotRetry, Search, TakenBack
from outlive._kernel.store.contract import Change, MessageKind, Outcome
from outlive.errors import OutliveError
from outlive.errors.run import RunNotRetriableError

RETRIES_MAX = 100
EVENTS_AT_ONCE = 100
"""How many events of a journal are replayed before the loop turns: a journal may be long and be replayed several
times."""
_REQUESTS = (MessageKind.CANCEL, MessageKind.RESUME, MessageKind.SKIP, MessageKind.PAUSE, MessageKind.CHANGE)
"""Messages that were about the life that has ended."""
RETRIABLE = (RunStatus.FAILED, RunStatus.TIMED_OUT, RunStatus.CANCELLED)
T = TypeVar("T")


class Retrier:
    """Brings runs back."""

    def __init__(self, access: Access, *, interventions: Interventions) -> None:
        self._access = access
        self._interventions = interventions

    async def retry(self, run_id: str, *, reason: str = "") -> None:
        """Let a run go on after its end. See `Engine.retry`."""
        with doing("retry", run_id, reason):
            await self._retry(run_id, reason)

    async def _retry(self, run_id: str, reason: str) -> None:
        store = self._access.store
        for _ in range(RETRIES_MAX):
            root = await self._access.root_of(await self._access.info(run_id))
            _refuse(root)
            await self._check_own(root)
            if not self._access.registry.has_workflow(root.workflow, root.version):
                wanted = Intervention(verb="retry", run_id=root.id, at=store.now(), reason=reason)
                refused = partial(RunNotRetriableError, root.id)
                await self._interventions.ask(root, root.version, wanted, refused)
                return
            change = await self._change(root, reason)
            if (await store.commit([change]))[0][0] is Outcome.COMMITTED:
                self._access.ring()
                return
        raise OutliveError(f"run {run_id} could not be retried: it moved on {RETRIES_MAX} times; try again")

    async def _check_own(self, root: Run) -> None:
        """Refuse to begin again with a run of our own that did what the principal may not do."""
        family = family_of(root.workflow)
        if family is None or not family.is_bounded or gives_freely():
            return
        rows = await self._access.store.read_journal(root.journal, limit=1)
        created = creation_in(rows[0], nonce=root.nonce, run_id=root.id)
        spec = self._access.registry.workflow(root.workflow, root.version)
        arguments, _ = spec.signature.decode(await self._access.unpack(created.input))
        if reason := family.no_retry_of(tuple(arguments)):
            raise RunNotRetriableError(root.id, reason)

    async def _change(self, root: Run, reason: str) -> Change:
        store = self._access.store
        rows, tree = await read_tree(store, root)
        events = open_journal(rows, nonce=root.nonce, run_id=root.id)
        ids = blobs_of(rows)
        blobs = await store.get_blobs(sorted(ids)) if ids else {}
        if not events or 0 not in tree or not isinstance(events[-1], Ending):
            raise RunNotRetriableError(root.id, "another client has retried it")
        spec = self._access.registry.workflow(root.workflow, root.version)
        taken = await in_turns(self._search(root, events, blobs))
        at = store.now()
        retries = _retries(events, taken, at=at, reason=reason)
        fold, salt, after = Fold(root.id), salt_of(root.nonce), rows[-1][0]
        fold.runs = dict(tree)
        runs = [fold.apply(event) for event in retries]
        inbox = (await store.read_inbox([root.journal])).get(root.journal, [])
        return Change(
            journal=root.journal,
            after=after,
            prior=rows[-1][2],
            rows=[seal(event, salt=salt, seq=seq) for seq, event in enumerate(retries, after + 1)],
            runs=[run for run in runs if run is not None],
            consumed=[message.id for message in inbox if message.kind in _REQUESTS],
            reopens=True,
            freed_keys=[
                *(key_of_cancel(number, root.nonce) for number in (0, *taken.children)),
                *(key_of_decision(root.nonce, number, call) for number, call in taken.approvals),
            ],
            is_guarded=spec.forgets,
        )

    def _search(self, root: Run, events: list[AnyEvent], blobs: dict[str, bytes]) -> Generator[None, None, TakenBack]:
        packer, owners = self._access.packer, (tree_mark(root.nonce), inbox_mark(root.id))

        def make() -> Execution:
            execution = Execution(
                root.id,
                resolve=self._access.registry.workflow,
                unpack=lambda payload: packer.unpack(payload, blobs, owners=owners),
                unpack_foreign=lambda payload: packer.unpack(payload, blobs),
                around=around_workflow(self._access.hooks),
            )
            execution.refuses_plain = packer.refuses_plain
            return execution

        try:
            return (yield from Search(events, make).run())
        except CannotRetry as error:
            raise RunNotRetriableError(root.id, str(error)) from None


def _refuse(root: Run) -> None:
    """Refuse a run that has no end which could be taken back."""
    family = family_of(root.workflow)
    if family is not None and (reason := family.no_retry(root)):
        raise RunNotRetriableError(root.id, reason)
    if root.status not in RETRIABLE:
        raise RunNotRetriableError(
            root.id, f"it is {root.status.value}; only a run that has failed, timed out or was cancelled can be retried"
        )
    if "~" in root.id:
        raise RunNotRetriableError(root.id, f"a later run has its id, {root.id.partition('~')[0]!r}; start a new run")


def _retries(events: list[AnyEvent], taken: TakenBack, *, at: int, reason: str) -> list[RunRetried]:
    """The events that bring a tree back: one for the root, and one for each child that goes on."""
    spans = _spans(events)
    retries = [
        RunRetried(
            at=at,
            undone=taken.undone,
            since=taken.since,
            rested=max(0, at - events[-1].at),
            next_number=taken.next_number,
            timeout_at=_later(at, spans.get(0)),
            timeout=spans.get(0),
            rests=True,
            approvals=taken.requests.get(0, ()),
            reason=reason,
        )
    ]
    retries += [
        RunRetried(
            at=at,
            run=number,
            timeout_at=_later(at, spans.get(number)),
            timeout=spans.get(number),
            approvals=taken.requests.get(number, ()),
        )
        for number in taken.children
    ]
    return retries


def _spans(events: list[AnyEvent]) -> dict[int, int]:
    """How long runs of a tree may take, by number."""
    spans: dict[int, int] = {}
    for event in events:
        begun = event.created if isinstance(event, SnapshotTaken) else event
        if isinstance(begun, RunCreated | RunRetried) and begun.timeout_at is not None:
            spans[begun.run] = begun.timeout_at - begun.at if begun.timeout is None else begun.timeout
    return spans


def _later(at: int, span: int | None) -> int | None:
    """A run that may take an hour gets another hour."""
    return None if span is None else at + span


async def in_callback(work: Callable[[], T]) -> T:
    """Do something in a plain callback of the loop, with an empty context: executions are never fed inside a task."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def call() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    loop.call_soon(call, context=Context())
    return await done


async def in_turns(work: Generator[None, None, T]) -> T:
    """The return value of a generator that yields at each event. It goes on in plain callbacks of the loop, as
    executions are never fed inside a task, and other callbacks have their turn between them."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    context = Context()

    def go_on() -> None:
        if done.cancelled():
            work.close()
            return
        try:
            for _ in range(EVENTS_AT_ONCE):
                next(work)
        except StopIteration as end:
            done.set_result(end.value)
        except BaseException as error:
            done.set_exception(error)
        else:
            loop.call_soon(go_on, context=context)

    loop.call_soon(go_on, context=context)
    return await done
