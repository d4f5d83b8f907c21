"""What users send to runs: signals, asks, promises and decisions; and what a run could not read."""

from __future__ import annotations

from typing import Any, TypeVar, Unpack, overload

from outlive._model import given, known_run_id
from outlive._model.approval import Approval
from outlive.client.asks import AskOptions
from outlive.client.client import Client
from outlive.client.handle import RunHandle
from outlive.client.set_aside import SetAside

T = TypeVar("T")


class Messages:
    """The verbs of an engine that send a message of the user's own."""

    @property
    def _verbs(self) -> Client:
        """The client of an engine that runs."""
        raise NotImplementedError

    async def signal(
        self,
        run_id: str,
        name: str,
        payload: Any = None,
        *,
        key: str | None = None,
        start: tuple[Any, ...] | None = None,
        headers: dict[str, str] | None = None,
        connection: Any = None,
    ) -> None:
        """Send a signal to a run; it is durable when this returns, and buffered until the run asks for it.

        Args:
            key: the same key again, for this run and name, is the same signal.
            start: `(workflow, *args)`: create the run in the same transaction if there is none.
            headers: of the run that it starts, as of `start`.
            connection: your own connection to the PostgreSQL database that the store lies in, with a transaction open
                on it: the signal is sent if and only if you commit.

        Raises:
            RunNotFoundError, RunFinishedError, SignalTypeError, InboxFullError.
        """
        await self._verbs.signal(run_id, name, payload, key=key, start=start, headers=headers, connection=connection)

    async def resolve(self, promise: str, value: Any = None) -> bool:
        """Settle a promise of a run (`outlive.promise`) with a value, given its id; durable when this returns.

        Settled once: whether it was this call that settled it. If not, nothing has changed; an earlier try of yours may
        have settled it.

        Raises:
            PromiseNotFoundError: no promise has this id. PromiseTypeError: it takes another type.
            RunNotFoundError, RunFinishedError, InboxFullError.
        """
        return await self._verbs.promises.resolve(promise, value)

    async def fail(self, promise: str, error: Exception) -> bool:
        """Settle a promise of a run with an error, which is raised where the run awaits it. As `resolve`."""
        return await self._verbs.promises.fail(promise, error)

    @overload
    async def ask(self, run_id: str, name: str, body: Any = None, **options: Unpack[AskOptions]) -> Any: ...
    @overload
    async def ask(
        self, run_id: str, name: str, body: Any = None, *, reply: type[T], **options: Unpack[AskOptions]
    ) -> T: ...
    async def ask(
        self, run_id: str, name: str, body: Any = None, *, reply: Any = Any, **options: Unpack[AskOptions]
    ) -> Any:
        """Ask a run something (`outlive.asks`), and wait for its answer, which it gives exactly once.

        Args:
            options: `key`, `start`, `headers`, `timeout`; see `AskOptions`.
            reply: the type of the answer; without, it comes as plain values.

        Raises:
            AskFailed, AskRefusedError, AskTimeoutError, RunNotFoundError, RunParkedError, InboxFullError.
        """
        return await self._verbs.ask(run_id, name, body, reply=reply, **options)

    async def answer(
        self, run_id: str, name: str, key: str, *, timeout: given.Span | None = None, reply: Any = Any
    ) -> Any:
        """Wait for the answer to an ask that was sent before, by any process; `AskNotFoundError` if it was not."""
        return await self._verbs.answer(run_id, name, key, timeout=timeout, reply=reply)

    async def approve(
        self, run_id: str, name: str, *, by: str, form: Any = None, comment: str = "", request: str | None = None
    ) -> Approval[Any]:
        """Approve what a run asks for; the decision is durable when this returns.

        The first decision is the only one: a later one gets it back, with `is_first` False.

        Args:
            by: who decides; for the audit.
            form: what they filled in, as plain values or as the form's own type.
            request: the id of the request (`ApprovalEntry.id`); the oldest open one of this name unless given.

        Raises:
            RunNotFoundError, ApprovalNotFoundError, ApprovalClosedError, ApprovalFormError, InboxFullError.
        """
        return await self._handle(run_id).approve(name, by=by, form=form, comment=comment, request=request)

    async def reject(
        self, run_id: str, name: str, *, by: str, form: Any = None, comment: str = "", request: str | None = None
    ) -> Approval[Any]:
        """Reject what a run asks for. As `approve`, and the form may be left out."""
        return await self._handle(run_id).reject(name, by=by, form=form, comment=comment, request=request)

    async def set_aside(self, run_id: str) -> list[SetAside]:
        """Messages that a run and its children could not read, oldest first: signals of another type than the workflow
        waits for, decisions whose form its validator refuses.

        They block nothing: the run waits for the next signal, or has asked again. Send a right one with `signal`;
        `signal(run_id, it.name, it.value)` sends the same one again, for code that can read it by now.
        """
        return await self._verbs.set_aside(run_id)

    def _handle(self, run_id: str) -> RunHandle[Any]:
        return RunHandle(self._verbs, known_run_id("engine.get", run_id))
