"""What a client can find out about runs: everything here only reads."""

from __future__ import annotations

import asyncio
import builtins
import os
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import msgspec

from outlive._define.registry import Registry
from outlive._journal.codec import open_journal
from outlive._journal.event import AnyEvent
from outlive._journal.failure import OWN_ERRORS, exception_of
from outlive._journal.history import blobs_of, write_history
from outlive._journal.packing import Packer, tree_mark
from outlive._journal.redaction import Redaction
from outlive._journal.value import TAGGED, ValueCodec
from outlive._model import Payload, Run, RunFilter, RunStatus, WaitKind, given, known_run_id
from outlive._store.contract import PAGE_SIZE_MAX, Store
from outlive.client.own_loop import check_loop
from outlive.client.recovery import Incomplete, find_incomplete
from outlive.client.set_aside import SetAside, payloads_set_aside, set_aside_in
from outlive.client.shown import Shown
from outlive.client.waiters import Waiters
from outlive.client.why import is_stopped, why
from outlive.errors import (
    EngineClosedError,
    EngineForkedError,
    ResultTimeoutError,
    RunCancelled,
    RunContinuedError,
    RunDamagedError,
    RunFailed,
    RunNotFoundError,
    RunParkedError,
    RunTimedOut,
    StepFailed,
    StoreError,
    WorkflowNotFoundError,
)


class LookingClient:
    """The verbs that change nothing."""

    def __init__(
        self,
        *,
        store: Store,
        packer: Packer,
        registry: Registry,
        redaction: Redaction,
        waiters: Waiters,
        moves_here: Callable[[str], bool],
    ) -> None:
        self._open_store: Store | None = store
        self._process = os.getpid()
        self._loop = asyncio.get_running_loop()
        self._packer = packer
        self._registry = registry
        self._shown = Shown(store, packer=packer, registry=registry, redaction=redaction)
        self._waiters = waiters
        self._moves_here = moves_here

    @property
    def _store(self) -> Store:
        return self._check_usable()

    def _check_usable(self) -> Store:
        if self._open_store is None:
            raise EngineClosedError("this")
        if self._process != os.getpid():
            raise EngineForkedError(self._process, os.getpid())
        check_loop(self._loop)
        return self._open_store

    async def info(self, run_id: str) -> Run:
        """The run as its row says it.

        Raises:
            RunNotFoundError: no run has this id.
        """
        store, run_id = self._store, known_run_id("engine", run_id)
        run = await store.find_run(run_id)
        if run is None:
            raise RunNotFoundError(run_id)
        return run

    async def history(self, run_id: str, *, redacted: bool = False) -> list[AnyEvent]:
        """The journal of the tree that a run belongs to, verified. See `Engine.history`."""
        run = await self.info(run_id)
        rows = await self._store.read_journal(run.journal)
        events = open_journal(rows, nonce=run.nonce, run_id=run.root_id)
        return await self._shown.events(events) if redacted else events

    async def set_aside(self, run_id: str) -> builtins.list[SetAside]:
        """Messages that a run could not read. See `Engine.set_aside`."""
        run = await self.info(run_id)
        events = await self.history(run_id)
        ids = sorted({payload.blob for payload in payloads_set_aside(events) if payload.blob})
        blobs = await self._store.get_blobs(ids) if ids else {}
        return set_aside_in(events, run, lambda payload: self._packer.unpack(payload, blobs))

    async def export(self, run_id: str) -> str:
        """The journal of the tree that a run belongs to, as text. See `Engine.export`."""
        run = await self.info(run_id)
        rows = await self._store.read_journal(run.journal)
        open_journal(rows, nonce=run.nonce, run_id=run.root_id)
        ids = blobs_of(rows)
        blobs = await self._store.get_blobs(sorted(ids)) if ids else {}
        return write_history(run, rows, blobs)

    async def recovery(self, *, limit: int = 100, before: Run | None = None) -> list[Incomplete]:
        """Runs that do not move, and why. See `Engine.recovery`."""
        given.whole("engine.recovery", "limit", limit, most=PAGE_SIZE_MAX)
        _cursor("engine.recovery", before)
        return await find_incomplete(self._store, limit=limit, before=before, shown=self._shown.run)

    async def list(
        self,
        *,
        status: RunStatus | str | None = None,
        workflow: str | None = None,
        tags: Mapping[str, str] | None = None,
        roots_only: bool = False,
        limit: int = 100,
        before: Run | None = None,
    ) -> list[Run]:
        """Runs that fit, newest first."""
        where = "engine.list"
        wanted = RunFilter(
            statuses=() if status is None else (_status(status),),
            workflow=None if workflow is None else given.text(where, "workflow", workflow, like="order"),
            tags=given.tags(where, tags),
            roots_only=given.flag(where, "roots_only", roots_only),
        )
        count = given.whole(where, "limit", limit, most=PAGE_SIZE_MAX)
        cursor = _cursor(where, before)
        if wanted.statuses == (RunStatus.DAMAGED,):
            return await self._damaged(msgspec.structs.replace(wanted, statuses=()), limit=count, cursor=cursor)
        return await self._store.list_runs(wanted, limit=count, before=cursor)

    async def _damaged(self, wanted: RunFilter, *, limit: int, cursor: tuple[int, str] | None) -> builtins.list[Run]:
        """Runs whose rows cannot be read. No row says so of itself, so all that fit are looked at."""
        found: builtins.list[Run] = []
        while len(found) < limit and (page := await self._store.list_runs(wanted, limit=PAGE_SIZE_MAX, before=cursor)):
            found += [run for run in page if run.status is RunStatus.DAMAGED]
            cursor = page[-1].created_at, page[-1].id
        return found[:limit]

    async def published(self, run_id: str) -> dict[str, Any]:
        """What a run shows of itself. See `RunHandle.published`."""
        run = await self.info(run_id)
        if run.published is None:
            return {}
        fields: dict[str, Any] = TAGGED.decode(await self._unpack(run.published), f"what run {run_id} published")
        return fields

    async def why(self, run_id: str) -> str:
        """One sentence: what a run waits for, or how it ended."""
        run = await self.info(run_id)
        root = await self._root_of(run)
        run, root = self._shown.run(run), self._shown.run(root)
        awaited = [wait.name for wait in root.waits if wait.kind is WaitKind.CHILD]
        others = await self._store.find_runs(awaited) if awaited else {}
        return why(run, root, await self._store.list_workers(), others, now_at=self._store.now())

    async def result(self, run_id: str, timeout: given.Span | None = None) -> Any:
        """Wait for the end of a run. See `RunHandle.result`."""
        seconds = None if timeout is None else given.seconds("run.result", "timeout", timeout, or_zero=True)
        run = await self._ended(run_id, seconds)
        if run.status is RunStatus.SUCCEEDED:
            assert run.result is not None
            return self._result_codec(run).decode(await self._unpack(run.result, run), f"result of run {run_id}")
        if run.status is RunStatus.CANCELLED:
            raise RunCancelled(run_id, f"was cancelled: {run.reason or 'no reason given'}")
        if run.status is RunStatus.TIMED_OUT:
            raise RunTimedOut(run_id, "did not end within its timeout")
        if run.status is RunStatus.CONTINUED:
            raise RunContinuedError(run_id)
        assert run.failure is not None
        cause = exception_of(run.failure, registered=(*self._registered(run), *OWN_ERRORS, StepFailed))
        raise RunFailed(run_id, f"failed: {run.failure.type}: {run.failure.message}", run.failure) from cause

    async def _ended(self, run_id: str, timeout: float | None) -> Run:
        """A run that has ended.

        Raises:
            RunParkedError: its root is parked. RunDamagedError: its row, or that of its root, cannot be read.
        """
        while True:
            run = await self._stopped(run_id, timeout)
            if run.status.is_terminal:
                return run
            if run.status is RunStatus.DAMAGED:
                raise RunDamagedError(run_id, run.reason)
            # Looked at once more: a person may have let it go on since the news came.
            root = await self._root_of(await self.info(run_id))
            if root.status is RunStatus.DAMAGED:
                raise RunDamagedError(run_id, root.reason)
            if is_stopped(root):
                raise RunParkedError(run_id, root.reason)

    async def _root_of(self, run: Run) -> Run:
        return run if run.number == 0 else await self.info(run.root_id)

    async def _stopped(self, run_id: str, timeout: float | None) -> Run:
        """A run that has ended or, as far as anybody here knows, is parked."""
        self._check_usable()
        with self._waiters.waiting(run_id) as end:
            # Registered first, looked at second: an end between the two cannot be missed. A run that moves in this
            # process needs no look: its worker will announce its end.
            if not self._moves_here(run_id):
                try:
                    run = await self.info(run_id)
                except StoreError:
                    if end.done():
                        return end.result()  # The engine has stopped meanwhile, and that is what it says.
                    raise
                if run.status.is_terminal or is_stopped(await self._root_of(run)):
                    return run
                self._waiters.saw(run_id)
            await self._wait(end, timeout)
            if end.done():
                return end.result()
            assert timeout is not None
            raise ResultTimeoutError(run_id, timeout, await self.why(run_id))

    async def _wait(self, end: asyncio.Future[Run], timeout: float | None) -> None:
        """Wait for the end of a run; in tests time is another's."""
        if timeout is None:
            await end
        else:
            await asyncio.wait([end], timeout=timeout)

    def _new_pause(self) -> Callable[[], Coroutine[Any, Any, None]]:
        """What somebody waits for between two looks at the store; in tests time is another's."""
        return self._waiters.pause

    async def _unpack(self, payload: Payload, run: Run | None = None) -> bytes | msgspec.Raw:
        blobs = await self._store.get_blobs([payload.blob]) if payload.blob else {}
        return self._packer.unpack(payload, blobs, owners=() if run is None else (tree_mark(run.nonce),))

    def _result_codec(self, run: Run) -> ValueCodec:
        try:
            return self._registry.workflow(run.workflow, run.version).signature.result
        except WorkflowNotFoundError:
            return TAGGED

    def _registered(self, run: Run) -> tuple[type[BaseException], ...]:
        try:
            return self._registry.workflow(run.workflow, run.version).registered
        except WorkflowNotFoundError:
            return ()


def _status(status: RunStatus | str) -> RunStatus:
    if isinstance(status, RunStatus):
        return status
    return RunStatus(given.one_of("engine.list", "status", status, [each.value for each in RunStatus]))


def _cursor(where: str, before: Run | None) -> tuple[int, str] | None:
    """Where a page begins: behind the last run of the page before it."""
    if before is None:
        return None
    last = given.instance(where, "before", before, Run, like="page[-1], the last run of the page before")
    return last.created_at, last.id
