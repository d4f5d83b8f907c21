"""What people do to runs: stop them, pause them, bring them back, and try them another way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack, overload

from msgspec import UNSET

from outlive.client.bulk import BulkFilters, RunOutcome, WorkflowFilters
from outlive.client.client import Client
from outlive.client.handle import RunHandle


class Interventions:
    """The verbs of an engine that change the life of a run."""

    @property
    def _verbs(self) -> Client:
        """The client of an engine that runs."""
        raise NotImplementedError

    @overload
    async def cancel(self, run_id: str, *, reason: str = "") -> None: ...
    @overload
    async def cancel(self, *, reason: str = "", **filters: Unpack[WorkflowFilters]) -> list[RunOutcome]: ...
    async def cancel(
        self, run_id: str | None = None, *, reason: str = "", **filters: Unpack[WorkflowFilters]
    ) -> list[RunOutcome] | None:
        """Ask a run to stop: durable when this returns; reaches its steps and children, wherever they run.

        Its `finally` blocks run. A workflow that catches the `CancelledError` and returns has succeeded. A run that no
        worker has taken up yet ends at once, and its code never runs. Asking twice is asking once.

        Args:
            filters: instead of an id, which runs: see `retry`; those that have not ended unless `status` says so.

        Raises:
            RunNotFoundError, RunFinishedError.
        """
        return await self._verbs.cancel(run_id, reason=reason, **filters)

    async def pause(
        self,
        run_id: str | None = None,
        *,
        workflow: str | None = None,
        all: bool = False,
        by: str = "",
        reason: str = "",
        **filters: Unpack[BulkFilters],
    ) -> list[RunOutcome] | None:
        """Let a run with its tree, all runs of a workflow, or everything begin nothing more; durable when this returns.

        Steps that run end, and their results are kept. No step begins, no timer fires, signals are buffered, and those
        who wait for the result wait on. A run of a paused workflow may be started, and waits. A worker of another
        process hears of the pause of a workflow within its `poll_seconds`.

        Args:
            workflow: its name; runs of it inside the trees of others are not paused.
            all: everything in this store.
            by, reason: for `why`.
            filters: pause those runs, of a workflow or of any, that fit now, one by one: see `retry`.

        Raises:
            RunNotFoundError, RunFinishedError. RunParkedError: it is parked for another reason.
        """
        return await self._verbs.pause(run_id, workflow=workflow, all=all, by=by, reason=reason, **filters)

    async def resume(
        self,
        run_id: str | None = None,
        *,
        workflow: str | None = None,
        all: bool = False,
        **filters: Unpack[BulkFilters],
    ) -> list[RunOutcome] | None:
        """Let a parked run go on, for example with new code; or what was paused.

        Args:
            workflow, all: as they were paused. A run that was paused by itself stays paused.
            filters: resume the parked runs that fit, one by one: see `retry`.

        Raises:
            RunNotFoundError, RunNotParkedError.
        """
        return await self._verbs.resume(run_id, workflow=workflow, all=all, **filters)

    @overload
    async def retry(self, run_id: str, *, reason: str = "") -> None: ...
    @overload
    async def retry(self, *, reason: str = "", **filters: Unpack[WorkflowFilters]) -> list[RunOutcome]: ...
    async def retry(
        self, run_id: str | None = None, *, reason: str = "", **filters: Unpack[WorkflowFilters]
    ) -> list[RunOutcome] | None:
        """Let a run that has failed, timed out or was cancelled go on at what failed; durable when this returns.

        The same run goes on: its id, its completed steps and its history stay. The step that failed is called again
        with all its attempts; a deadline begins again, and timers are as far away as they were. The code of the
        workflow must be in this process: a replay finds what failed. A run of a tree is retried with its whole tree.

        Args:
            reason: for the history.
            filters: instead of an id, which runs, as `list` takes them: the oldest first, at most `limit` (100) of
                them; with `dry_run=True` nothing is done. The answer has one outcome for each: its `id`, the `status`
                that it had, whether it is `done`, and else the `error`; one that refuses does not stop the others.

        Raises:
            RunNotFoundError. RunNotRetriableError: it has not ended or has succeeded, its saga was rolled back, no step
            failed and the code would raise the same again, or the code is not here; nothing was changed.
        """
        return await self._verbs.retry(run_id, reason=reason, **filters)

    async def fork(
        self,
        run_id: str,
        *,
        at: str | int | None = None,
        set: Mapping[str, Any] | None = None,
        input: tuple[Any, ...] | Mapping[str, Any] | None = None,
        version: int | None = None,
        id: str | None = None,
        reason: str = "",
    ) -> RunHandle[Any]:
        """Start a new run with the history of another one up to some point, edited; durable when this returns.

        The other run stays as it is, whether it is open or has ended. Completed steps of the copied history are not
        called again. What an edit changes is done again: from the first one on, a step counts as completed only if the
        code still asks for it with the same arguments. The code of the workflow must be in this process.

        Args:
            at: the call that is not copied, nor anything behind it: the name of a step, its call as `history` has it
                ("charge#2"), or the number of an event; without, all but the end of the run is copied.
            set: results of steps, by name or call, of the types that the steps return.
            input: other arguments of the workflow: a tuple, or a mapping by name.
            version: another version of the workflow.
            id: of the new run; made up unless given.
            reason: for the history.

        Raises:
            RunNotFoundError, RunExistsError. RunNotForkableError: there is no such call, the code contradicts the
            history, or it is not here; nothing was written.
        """
        client = self._verbs
        new_id = await client.fork(run_id, at=at, set=set, input=input, version=version, id=id, reason=reason)
        return RunHandle(client, new_id)

    async def skip_step(self, run_id: str, call: str | None = None, *, result: Any = UNSET) -> None:
        """Let a parked run go on without calling a step that is in flight; the request is durable when this returns.

        If there is no such step, or `result` does not fit it, the run is parked again and the reason says so. An undo
        that is skipped counts as done.

        Args:
            call: which step, as `history` calls it; may be left out if only one is in flight.
            result: what the step is to have returned; without, the workflow gets `StepSkipped`.

        Raises:
            RunNotFoundError, RunNotParkedError, RunFinishedError, UnserialisableError, InboxFullError.
        """
        await self._verbs.skip_step(run_id, call, result=result)
