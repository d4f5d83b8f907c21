"""`engine.bulk`: one verb for many runs as one durable operation, which goes on when its caller has gone.

The operation is a run of a built-in workflow (`_features.bulk.workflow`). Its steps come back here: `page` finds the
runs,
`apply` does the verb to some of them. Every run is a deed in the audit log with the id of the operation, so a step that
is called again after a crash knows which runs are done.
"""

from __future__ import annotations

import builtins
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Unpack, get_args

import msgspec
from msgspec.structs import replace

from outlive._features.bulk.workflow import BULK, BulkGroup, BulkPage, BulkRequest, BulkTally, BulkVerb
from outlive._features.retention.purging import Purging, check_ended
from outlive._features.security.audit_log import AuditLog
from outlive._kernel.client.acting import ACTING, TOGETHER, GatheringCommits, acting, own_bounds
from outlive._kernel.client.bulk import TreeFilters, acted_on, side_by_side
from outlive._kernel.client.client import Client
from outlive._kernel.client.finding import Page, filter_of
from outlive._kernel.client.handle import RunHandle, StoredRun
from outlive._kernel.define.intervention import OF_RUN, Refusal
from outlive._kernel.define.workflow import Workflow
from outlive._kernel.journal.codec import creation_in
from outlive._kernel.model import TERMINAL, Run, RunStatus, check_run_id, definition_key, given
from outlive._kernel.model.instant import MICROSECONDS, instant_of
from outlive._kernel.model.retention import KEEP_SECONDS_MIN
from outlive._kernel.model.run import ENDED_BADLY, MOVING, OPEN, definition_shown
from outlive._kernel.values.run import Status
from outlive.errors import (
    EngineClosedError,
    InvalidArgumentError,
    OutliveError,
    RunNotFoundError,
    StoreError,
)
from outlive.errors.base import message_of

WHERE = "engine.bulk.start"
RUNS_MAX = 1_000_000
"""The most runs of one operation."""
PAGE_RUNS = 200
"""Runs that are found, and done, at once: what a worker that dies has to look at again."""
LISTED_MAX = 100
ENGINE = "outlive.bulk"
"""The actor of an operation for which the program names none."""
_STATUSES: dict[BulkVerb, tuple[RunStatus, ...]] = {
    "cancel": OPEN,
    "retry": ENDED_BADLY,
    "pause": MOVING,
    "resume": (RunStatus.PARKED,),
    "purge": TERMINAL,
}
"""The statuses of the runs that a verb takes unless the caller names others."""


class BulkProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far an operation has come."""

    id: str
    verb: BulkVerb
    status: Status
    """The status of the run that carries the operation out."""
    created_at: datetime
    by: str
    reason: str
    found: int
    """Runs that it was tried with so far."""
    done: int
    refused: int
    refusals: tuple[Refusal, ...]
    """Which runs refused, and why: the first 1,000, and while it goes on the first 20."""
    finished_at: datetime | None = None

    def __repr__(self) -> str:
        return f"<BulkProgress {self.id}: {self.verb}, {self.status}, {self.done} done, {self.refused} refused>"


class BulkOperation:
    """One verb for many runs, going on or ended."""

    def __init__(self, run: RunHandle[Any], progress: Callable[[str], Awaitable[BulkProgress]]) -> None:
        self.id = run.id
        self.run = run
        """The run that does it: `why()`, `info()`, `history()`."""
        self._progress = progress

    async def progress(self) -> BulkProgress:
        """How far it has come, and which runs have refused."""
        return await self._progress(self.id)

    async def result(self, timeout: given.Span | None = None) -> BulkProgress:
        """Wait for its end.

        Raises:
            RunFailedError: it was cancelled (`RunCancelledError`); what it has done stays.
            ResultTimeoutError: it goes on.
        """
        await self.run.result(timeout)
        return await self.progress()

    async def cancel(self, *, reason: str = "") -> None:
        """Ask it to stop; what it has done stays."""
        await self.run.cancel(reason=reason)

    def __repr__(self) -> str:
        return f"<bulk operation {self.id}>"


class BulkOperations:
    """Verbs for many runs, which workers carry out."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._access = client.access

    # -- For users -------------------------------------------------------------------------------------------

    async def start(
        self,
        verb: BulkVerb,
        *,
        id: str | None = None,
        by: str = "",
        reason: str = "",
        older_than: given.Span = KEEP_SECONDS_MIN,
        **filters: Unpack[TreeFilters],
    ) -> BulkOperation:
        """Do something to all runs that fit, in the background; durable when this returns.

        Workers do it, thousands of runs a minute, also if this program and any of them is killed. A run that refuses
        does not stop the others.

        Args:
            verb: `cancel`, `retry`, `pause`, `resume` or `purge`.
            id: the same id again is the same operation; made up unless given.
            by: who asks for it, for the audit log; the principal that acts (`engine.audit.acting`) unless given.
            reason: for the history of each run.
            older_than: for `purge`: only runs that ended so many seconds ago.
            filters: which runs, as `list` takes them: the oldest first, at most `limit` of them. At least one.

        Raises:
            InvalidArgumentError: no filter is given. RunExistsError: the id belongs to something else.
        """
        given.one_of(WHERE, "verb", verb, get_args(BulkVerb))
        options: dict[str, Any] = dict(filters)
        limit = given.whole(WHERE, "limit", options.pop("limit", RUNS_MAX), most=RUNS_MAX)
        roots_only = given.flag(WHERE, "roots_only", options.pop("roots_only", True))
        if options.pop("dry_run", False):
            raise InvalidArgumentError(WHERE, "dry_run", True, "list and count the runs before")
        if all(value is None for value in options.values()):
            raise InvalidArgumentError(
                WHERE, "workflow", None, "say by a filter which runs you mean, as the name of their workflow"
            )
        now_at, actor, bounds = self._access.store.now(), ACTING.get(), own_bounds()
        wanted = filter_of(WHERE, **options)
        if verb == "purge":
            check_ended(WHERE, wanted)
        until_at = now_at + 1 if wanted.until_at is None else min(wanted.until_at, now_at + 1)
        statuses = wanted.statuses or _STATUSES[verb]
        seconds = given.seconds(WHERE, "older_than", older_than, or_zero=True)
        request = BulkRequest(
            verb=verb,
            at=now_at,
            wanted=replace(wanted, statuses=statuses, roots_only=roots_only, until_at=until_at),
            limit=limit,
            ended_before=now_at - round(seconds * MICROSECONDS) if verb == "purge" else 0,
            by=given.text(WHERE, "by", by, like="ann", least=0) or ("" if actor is None else actor.name),
            workflows=None if bounds.workflows is None else tuple(sorted(bounds.workflows)),
            tags=bounds.tags,
            reason=given.text(WHERE, "reason", reason, like="", least=0, most=given.TEXT_CHARACTERS_MAX),
        )
        run_id = await self._client.start(Workflow(BULK, {}), (request,), id=None if id is None else check_run_id(id))
        return self.get(run_id)

    def get(self, operation_id: str) -> BulkOperation:
        """An operation by its id; whether there is such an operation shows when it is used."""
        return BulkOperation(StoredRun(self._client, check_run_id(operation_id)), self._progress)

    async def list(self, *, limit: int = 20, after: str | None = None) -> Page[BulkProgress]:
        """Operations, the newest first, each with how far it has come."""
        count = given.whole("engine.bulk.list", "limit", limit, most=LISTED_MAX)
        page = await self._client.list(workflow=BULK.name, limit=count, after=after)
        return Page([await self._progress_of(run) for run in page], next=page.next, previous=page.previous)

    async def _progress(self, operation_id: str) -> BulkProgress:
        """How far an operation has come.

        Raises:
            RunNotFoundError: no operation has this id.
        """
        return await self._progress_of(await self._client.info(operation_id))

    async def _progress_of(self, run: Run) -> BulkProgress:
        if run.workflow != BULK.name:
            raise RunNotFoundError(run.id)
        first = (await self._access.store.read_journal(run.journal, limit=1))[0]
        created = creation_in(first, nonce=run.nonce, run_id=run.id)
        (request,), _ = BULK.signature.decode(await self._access.unpack(created.input))
        assert isinstance(request, BulkRequest)
        tally = BulkTally()
        if run.result is not None:
            tally = BULK.signature.result.decode(await self._access.unpack(run.result), "what an operation has done")
        elif run.published is not None:
            tally = msgspec.convert(msgspec.json.decode(await self._access.unpack(run.published)), BulkTally)
        return BulkProgress(
            id=run.id,
            verb=request.verb,
            status=run.status.value,
            created_at=instant_of(run.created_at),
            by=request.by,
            reason=request.reason,
            found=tally.found,
            done=tally.done,
            refused=tally.refused,
            refusals=tuple(tally.refusals),
            finished_at=None if run.finished_at is None else instant_of(run.finished_at),
        )

    # -- For the workflow ------------------------------------------------------------------------------------

    async def _page(self, request: BulkRequest, after: str | None, found: int) -> BulkPage:
        """The next runs that fit, in groups that go the same way."""
        limit = min(PAGE_RUNS, request.limit - found)
        page = await self._client.page(WHERE, request.wanted, order="created_at", limit=limit, after=after)
        runs = acted_on(page, is_for_trees=request.verb in ("retry", "pause", "resume"))
        if request.ended_before:
            runs = [run for run in runs if run.finished_at is not None and run.finished_at < request.ended_before]
        if request.verb != "retry":
            return BulkPage([BulkGroup([run.id for run in runs])] if runs else [], [], page.next)
        groups, refused = await self._by_code(runs)
        return BulkPage(groups, refused, page.next)

    async def _by_code(self, runs: Sequence[Run]) -> tuple[builtins.list[BulkGroup], builtins.list[Refusal]]:
        """Runs by the code that they need, and those for which no live worker has it."""
        store = self._access.store
        roots = await store.find_runs([run.root_id for run in runs if run.number])
        live = [worker for worker in await store.list_workers(with_runs=False) if worker.is_live]
        known = {definition for worker in live for definition in worker.definitions}
        groups: dict[tuple[str, int, str], builtins.list[str]] = {}
        refused: builtins.list[Refusal] = []
        for run in runs:
            root = roots.get(run.root_id, run)
            queue = ""
            if definition_key(OF_RUN + root.workflow, root.version) not in known:
                # Workers that have it may take from queues only: the request waits in the line of the run.
                queue = root.queue if definition_key(root.workflow, root.version) in known else ""
                if not queue:
                    shown = definition_shown(root.workflow, root.version)
                    reason = (
                        f"no live worker has {shown}, and its code has to replay the history: start one that has it"
                    )
                    refused.append(Refusal(run.id, "RunNotRetriableError", reason))
                    continue
            groups.setdefault((root.workflow, root.version, queue), []).append(run.id)
        return [BulkGroup(ids, *code) for code, ids in groups.items()], refused

    async def _apply(
        self,
        verb: str,
        run_ids: Iterable[str],
        *,
        request: str,
        by: str = "",
        reason: str = "",
        workflows: Collection[str] | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> builtins.list[Refusal]:
        """Do the verb to these runs, side by side, as deeds of the operation `request`; return the refusals."""
        do = self._verb(verb, by, reason)
        log = AuditLog(self._access)

        async def done(run_id: str) -> Refusal | None:
            try:
                await do(run_id)
            except (StoreError, EngineClosedError):
                raise  # The step is called again when the store is back.
            except OutliveError as error:
                # A worker may have died when it was done and before the journal of the operation said so.
                if not await log._has_done(request, run_id):
                    return Refusal(run_id, type(error).__name__, message_of(error))
            return None

        token = TOGETHER.set(GatheringCommits(self._access.own_store))
        try:
            with acting(by or ENGINE, via="bulk", request=request, workflows=workflows, tags=tags):
                return [refusal async for refusal in side_by_side(list(run_ids), done) if refusal is not None]
        finally:
            TOGETHER.reset(token)

    def _verb(self, verb: str, by: str, reason: str) -> Callable[[str], Awaitable[Any]]:
        client = self._client
        match verb:
            case "cancel":
                return lambda run_id: client.cancel(run_id, reason=reason)
            case "retry":
                return lambda run_id: client.retry(run_id, reason=reason)
            case "pause":
                return lambda run_id: client.pause(run_id, by=by, reason=reason)
            case "resume":
                return client.resume
            case _:
                assert verb == "purge", verb
                return self._purge

    async def _purge(self, run_id: str) -> None:
        if not await self._client.verbs_of(Purging).purge_one(await self._client.info(run_id)):
            raise OutliveError(f"run {run_id} stays: an open run needs it")
