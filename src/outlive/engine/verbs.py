"""The verbs of an engine. Each is that of a client, and says what users must know of it."""

from __future__ import annotations

import builtins
from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, Callable, Coroutine, Iterable
from typing import Any, Never, TypeVar, TypeVarTuple

from msgspec import UNSET

from outlive._define.map import Tolerance
from outlive._define.workflow import Startable, refuse_unknown
from outlive._journal.event import AnyEvent
from outlive._model import Run, RunStatus, given, known_run_id
from outlive._model.approval import Approval
from outlive.client.audit import ApprovalEntry
from outlive.client.batch import Batch
from outlive.client.checkpoints import CheckpointStore
from outlive.client.client import Client, OnConflict
from outlive.client.handle import RunHandle
from outlive.client.recovery import Incomplete
from outlive.client.set_aside import SetAside

R = TypeVar("R")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class EngineVerbs(ABC):
    """What an engine can be asked to do."""

    @property
    @abstractmethod
    def _verbs(self) -> Client:
        """Who does it."""

    async def start(
        self,
        workflow: Startable[*Ts, R],
        *args: *Ts,
        id: str | None = None,
        on_conflict: OnConflict = "attach",
        timeout: given.Span | None = None,
        tags: dict[str, str] | None = None,
        connection: Any = None,
        **unknown: Never,
    ) -> RunHandle[R]:
        """Start a run; it is durable when this returns.

        Args:
            id: the same id again is the same run; made up unless given.
            on_conflict: when the id is taken: `attach` gives that run (if it is one of this workflow), `reject` raises
                `RunExistsError`, `replace` cancels it (it stays in the store as `<id>~old1`) and starts anew.
            timeout: seconds that the run may take as a whole.
            tags: text for searching.
            connection: your own connection to the PostgreSQL database that the store lies in, with a transaction open
                on it: the run is created in that transaction, and nothing of it runs before you commit.
        """
        refuse_unknown(workflow, unknown)
        return await self._verbs.start(
            workflow, *args, id=id, on_conflict=on_conflict, timeout=timeout, tags=tags, connection=connection
        )

    def get(self, run_id: str) -> RunHandle[Any]:
        """A handle of a run; whether there is such a run shows when it is used."""
        return RunHandle(self._verbs, known_run_id("engine.get", run_id))

    async def start_batch(
        self,
        work: Callable[[T], Coroutine[object, None, R]],
        rows: Iterable[T] | AsyncIterable[T],
        *,
        concurrency: int = 20,
        id: str | None = None,
        tags: dict[str, str] | None = None,
        tolerate: Tolerance | None = None,
    ) -> Batch[R]:
        """Call a step or a workflow for each of many rows, each durable on its own; durable when this returns.

        Args:
            work: takes one argument, the row.
            rows: any iterable, sync or async; read once, a few hundred at a time.
            concurrency: how many items are under way at once, in all workers together.
            id: the same id again is the same batch, and its rows are not read again; made up unless given.
            tolerate: how many items may fail before the batch does; all of them unless given.

        Raises:
            RunExistsError: the id is that of something else.
        """
        return await self._verbs.batches.start(work, rows, concurrency=concurrency, id=id, tags=tags, tolerate=tolerate)

    def get_batch(self, batch_id: str) -> Batch[Any]:
        """A batch by its id; whether there is such a batch shows when it is used."""
        return self._verbs.batches.get(known_run_id("engine.get_batch", batch_id, name="batch_id"))

    @property
    def checkpoints(self) -> CheckpointStore:
        """Checkpoints of programs that keep their own state, in the store of this engine and with its codecs. No run of
        the engine reads or writes them."""
        return self._verbs.checkpoints

    async def signal(
        self,
        run_id: str,
        name: str,
        payload: Any = None,
        *,
        key: str | None = None,
        start: tuple[Any, ...] | None = None,
    ) -> None:
        """Send a signal to a run; it is durable when this returns, and buffered until the run asks for it.

        Args:
            key: the same key again, for this run and name, is the same signal.
            start: `(workflow, *args)`: create the run in the same transaction if there is none.

        Raises:
            RunNotFoundError, RunFinishedError, SignalTypeError, InboxFullError.
        """
        await self._verbs.signal(run_id, name, payload, key=key, start=start)

    async def approve(
        self, run_id: str, name: str, *, by: str, form: Any = None, comment: str = "", request: str | None = None
    ) -> Approval[Any]:
        """Approve what a run asks for; the decision is durable when this returns.

        The first decision is the only one: whoever decides later gets it back, with `is_first` False.

        Args:
            by: who decides; for the audit.
            form: what they filled in, as plain values or as the form's own type.
            request: the id of the request (`ApprovalEntry.id`); the oldest open one of this name unless given.

        Raises:
            RunNotFoundError, ApprovalNotFoundError, ApprovalClosedError, ApprovalFormError, InboxFullError.
        """
        return await self.get(run_id).approve(name, by=by, form=form, comment=comment, request=request)

    async def reject(
        self, run_id: str, name: str, *, by: str, form: Any = None, comment: str = "", request: str | None = None
    ) -> Approval[Any]:
        """Reject what a run asks for. As `approve`, and the form may be left out."""
        return await self.get(run_id).reject(name, by=by, form=form, comment=comment, request=request)

    async def approvals(self, run_id: str) -> list[ApprovalEntry]:
        """What a run and its children have asked people for, oldest first, with who decided what and when."""
        return await self.get(run_id).approvals()

    async def set_aside(self, run_id: str) -> builtins.list[SetAside]:
        """Messages that a run and its children could not read, oldest first: signals of another type than the workflow
        waits for, decisions whose form its validator refuses.

        They are in nobody's way: the run waits for the next signal, or has asked again. Send a right one with `signal`;
        `signal(run_id, it.name, it.value)` sends the same one again, for code that can read it by now.
        """
        return await self._verbs.set_aside(run_id)

    async def cancel(self, run_id: str, *, reason: str = "") -> None:
        """Ask a run to stop: durable when this returns; reaches its steps and children, wherever they run.

        Its `finally` blocks run. A workflow that catches the `CancelledError` and returns has succeeded. A run that no
        worker has taken up yet ends at once, and its code never runs. Asking twice is asking once.

        Raises:
            RunNotFoundError, RunFinishedError.
        """
        await self._verbs.cancel(run_id, reason=reason)

    async def resume(self, run_id: str) -> None:
        """Let a parked run go on, for example with new code.

        Raises:
            RunNotFoundError, RunNotParkedError.
        """
        await self._verbs.resume(run_id)

    async def skip_step(self, run_id: str, call: str | None = None, *, result: Any = UNSET) -> None:
        """Let a parked run go on without calling a step that is in flight; the wish is durable when this returns.

        If there is no such step, or `result` does not fit it, the run is parked again and the reason says so. An undo
        that is skipped counts as done.

        Args:
            call: which step, as `history` calls it; may be left out if only one is in flight.
            result: what the step is to have returned; without, the workflow gets `StepSkipped`.

        Raises:
            RunNotFoundError, RunNotParkedError, RunFinishedError, UnserialisableError, InboxFullError.
        """
        await self._verbs.skip_step(run_id, call, result=result)

    async def history(self, run_id: str, *, redacted: bool = False) -> list[AnyEvent]:
        """The journal of the tree that a run belongs to, verified.

        Args:
            redacted: as people may see it: payloads as JSON, decoded and without the fields in `redact`, which are
                also blacked out in failures and reasons.
        """
        return await self._verbs.history(run_id, redacted=redacted)

    async def export(self, run_id: str) -> str:
        """The journal of the tree that a run belongs to, verified, as lines of JSON: for `outlive.testing.replay`."""
        return await self._verbs.export(run_id)

    async def recovery(self, *, limit: int = 100, before: Run | None = None) -> list[Incomplete]:
        """Runs that do not move and why, newest first: parked, left behind by a worker that is gone, or due while no
        live worker has their definition. `before`, the last run of a page, gives the next one."""
        return await self._verbs.recovery(limit=limit, before=before)

    async def list(
        self,
        *,
        status: RunStatus | str | None = None,
        workflow: str | None = None,
        tags: dict[str, str] | None = None,
        roots_only: bool = False,
        limit: int = 100,
        before: Run | None = None,
    ) -> list[Run]:
        """Runs that fit, newest first; `before`, the last run of a page, gives the next one."""
        return await self._verbs.list(
            status=status, workflow=workflow, tags=tags, roots_only=roots_only, limit=limit, before=before
        )
