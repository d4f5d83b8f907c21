"""A handle of one run: the verbs with the id filled in."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from typing import Any, Generic, Literal, Protocol, TypeVar, Unpack, overload

from msgspec import UNSET

from outlive._kernel.client.asks import AskOptions
from outlive._kernel.client.changing import ChangeOptions
from outlive._kernel.client.client import Client
from outlive._kernel.client.contract import ApprovalVerbs, AskVerbs, DeadLetterVerbs, InboxVerbs
from outlive._kernel.client.finding import Page
from outlive._kernel.client.streams import StreamItem
from outlive._kernel.model import given
from outlive._kernel.model.approval import Approval
from outlive._kernel.model.under_way import StepUnderWay
from outlive._kernel.model.why import Why
from outlive._kernel.values.approval import ApprovalRequest
from outlive._kernel.values.dead_letter import DeadLetter
from outlive._kernel.values.event import Event
from outlive._kernel.values.inbox import UnreadMessage
from outlive._kernel.values.run import Run, Status, run_of
from outlive._platform import write_private

R = TypeVar("R")
T = TypeVar("T")


class RunVerbs(Protocol):
    """The verbs that the handle of a run needs: those of runs by their ids."""

    @property
    def approvals(self) -> ApprovalVerbs:
        """The approvals that runs ask for."""

    @property
    def asks(self) -> AskVerbs:
        """Asks that were sent before."""

    @property
    def inbox(self) -> InboxVerbs:
        """Messages that runs have not read."""

    @property
    def dead_letters(self) -> DeadLetterVerbs:
        """Messages that runs could not read."""

    async def history(self, run_id: str) -> list[Event]:
        """See `AnyEngine`."""

    async def steps(self, run_id: str, *, arguments: bool = False) -> list[StepUnderWay]:
        """See `AnyEngine`."""

    async def signal(self, run_id: str, name: str, payload: Any = None, *, key: str | None = None) -> None:
        """See `AnyEngine`."""

    @overload
    async def ask(self, run_id: str, name: str, body: Any = None, **options: Unpack[AskOptions]) -> Any: ...
    @overload
    async def ask(
        self, run_id: str, name: str, body: Any = None, *, reply: type[T], **options: Unpack[AskOptions]
    ) -> T: ...
    async def ask(
        self, run_id: str, name: str, body: Any = None, *, reply: Any = Any, **options: Unpack[AskOptions]
    ) -> Any:
        """See `AnyEngine`."""

    async def cancel(self, run_id: str, *, reason: str = "") -> Any:
        """See `AnyEngine`."""

    async def pause(self, run_id: str, *, by: str = "", reason: str = "") -> Any:
        """See `AnyEngine`."""

    async def resume(self, run_id: str) -> Any:
        """See `AnyEngine`."""

    async def retry(self, run_id: str, *, reason: str = "") -> Any:
        """See `AnyEngine`."""

    async def change(self, run_id: str, *, reason: str = "", **changes: Unpack[ChangeOptions]) -> None:
        """See `AnyEngine`."""

    async def skip_step(self, run_id: str, call: str | None = None, *, result: Any = UNSET) -> None:
        """See `AnyEngine`."""


class RunHandle(ABC, Generic[R]):
    """One run, wherever it runs: the same from an engine and from a connection."""

    def __init__(self, verbs: RunVerbs, run_id: str) -> None:
        self._verbs = verbs
        self.id = run_id

    @abstractmethod
    async def result(self, timeout: given.Span | None = None) -> R:
        """Wait for the result.

        Raises:
            RunFailedError: the run failed (its exception is the cause), was cancelled (`RunCancelledError`) or took too
            long (`RunTimedOutError`). RunParkedError: it is parked, or parks while you wait; it goes on once resumed.
            ResultTimeoutError: it has not ended within `timeout` seconds; it goes on.
        """

    async def status(self) -> Status:
        """Where it is in its life: `pending`, `running`, `waiting`, `parked`, or how it ended."""
        return (await self.info()).status

    @abstractmethod
    async def info(self) -> Run:
        """The run as it is now. See `types.Run`.

        Raises:
            RunNotFoundError: no run has this id.
        """

    @abstractmethod
    async def why(self) -> Why:
        """One sentence: what it waits for, or how it ended."""

    async def steps(self, *, arguments: bool = False) -> list[StepUnderWay]:
        """The steps that run now, the oldest first; for a root, the steps of its whole tree. Remote steps too.

        The steps of a run that this process moves are all known. A worker in another process tells of steps that have
        lasted for some seconds.

        Args:
            arguments: with the arguments, by the names of the parameters and without what the engine redacts. Another
                process tells only short ones.

        Raises:
            RunNotFoundError: no run has this id.
        """
        return await self._verbs.steps(self.id, arguments=arguments)

    async def history(self) -> list[Event]:
        """The journal of its tree, oldest first, without what the engine redacts. See `types.Event`."""
        return await self._verbs.history(self.id)

    @abstractmethod
    def follow(self, *, after: int = -1) -> AsyncIterator[Event]:
        """The journal of its tree, event by event, from the first one on and as it grows; ends with the tree.

        Args:
            after: the `seq` of the last event that is known already.

        Raises:
            RunNotFoundError: no run has this id.
            RunParkedError: nothing more comes before it is resumed.
        """

    @abstractmethod
    async def until(self, status: Status, *, timeout: given.Span | None = None) -> Run:
        """Wait until it has this status, and return it as it is then: `await run.until("waiting", timeout=5)`.

        A status that lasts for a moment only may be missed.

        Raises:
            RunNotFoundError: no run has this id. RunFinishedError: it has ended otherwise.
            ResultTimeoutError: it has not come to that within `timeout`.
        """

    @overload
    async def published(self) -> dict[str, Any]: ...
    @overload
    async def published(self, key: str, *, timeout: given.Span | None = None) -> Any: ...
    async def published(self, key: str | None = None, *, timeout: given.Span | None = None) -> Any:
        """The object that the run last showed with `outlive.publish`; empty if it showed none.

        Args:
            key: one field of it; waits until it is published.
            timeout: how long to wait for that field.

        Raises:
            RunNotFoundError: no run has this id. RunFinishedError: it has ended and never published the field.
            ResultTimeoutError: it has not published the field within `timeout`.
        """
        return await (self._published() if key is None else self._field(key, timeout))

    @abstractmethod
    async def _published(self) -> dict[str, Any]:
        """All that it has last shown of itself."""

    @abstractmethod
    async def _field(self, key: str, timeout: given.Span | None) -> Any:
        """One field of it, waited for."""

    @overload
    def stream(self, name: str, *, after: int = 0, redacted: bool = False) -> AsyncIterator[Any]: ...
    @overload
    def stream(self, name: str, kind: type[T], *, after: int = 0, redacted: bool = False) -> AsyncIterator[T]: ...
    @overload
    def stream(
        self, name: str, *, after: int = 0, positions: Literal[True], redacted: bool = False
    ) -> AsyncIterator[StreamItem[Any]]: ...
    @overload
    def stream(
        self, name: str, kind: type[T], *, after: int = 0, positions: Literal[True], redacted: bool = False
    ) -> AsyncIterator[StreamItem[T]]: ...
    async def stream(
        self, name: str, kind: Any = Any, *, after: int = 0, positions: bool = False, redacted: bool = False
    ) -> AsyncIterator[Any]:
        """The items that the run emits to a stream, in order, from the first on; ends when the run has ended.

        Args:
            kind: the type of the items; without one a model is read as an object.
            after: the position of the last item that is known already; the first one has position 1.
            positions: whether to give each item with its position, and with the step and the attempt it comes from.
            redacted: as people may see it: the stream is a field of its name, see `Engine.history`. A connection gives
                nothing else.

        Raises:
            RunNotFoundError: no run has this id.
            RunParkedError: nothing more comes before it is resumed.
            UnreadableError: an item is of another type, or damaged.
        """
        given.flag("run.stream", "positions", positions)
        async for item in self._items(name, kind, after=after, redacted=redacted):
            yield item if positions else item.value

    @abstractmethod
    def _items(self, name: str, kind: Any, *, after: int, redacted: bool) -> AsyncIterator[StreamItem[Any]]:
        """The items of a stream behind a position."""

    @abstractmethod
    def watch(self) -> AsyncIterator[dict[str, Any]]:
        """The object that the run shows with `outlive.publish`, now and after each change; ends when the run has ended.

        Changes that follow each other quickly may be seen as one.

        Raises:
            RunNotFoundError: no run has this id.
            RunParkedError: nothing more comes before it is resumed.
        """

    async def export(self, path: str | os.PathLike[str]) -> None:
        """Write the journal of its tree into a file, for `outlive.testing.replay`. It has nothing hidden, so a
        connection refuses it.

        Raises:
            ConfigurationError: this is a connection.
        """
        write_private(path, (await self._exported()).encode())

    @abstractmethod
    async def _exported(self) -> str:
        """The journal of its tree as lines of JSON."""

    async def signal(self, name: str, payload: Any = None, *, key: str | None = None) -> None:
        """Send it a signal; it is durable when this returns."""
        await self._verbs.signal(self.id, name, payload, key=key)

    async def ask(
        self,
        name: str,
        body: Any = None,
        *,
        key: str | None = None,
        timeout: given.Span | None = None,
        reply: Any = Any,
    ) -> Any:
        """Ask it something, and wait for the answer. See `Engine.ask`."""
        return await self._verbs.ask(self.id, name, body, key=key, timeout=timeout, reply=reply)

    async def answer(self, name: str, key: str, *, timeout: given.Span | None = None, reply: Any = Any) -> Any:
        """Wait for the answer to an ask that was sent before. See `Engine.asks.answer`."""
        return await self._verbs.asks.answer(self.id, name, key, timeout=timeout, reply=reply)

    async def cancel(self, *, reason: str = "") -> None:
        """Ask it to stop; the request is durable when this returns."""
        await self._verbs.cancel(self.id, reason=reason)

    async def approve(
        self, name: str, *, by: str | None = None, form: Any = None, comment: str = "", request: str | None = None
    ) -> Approval[Any]:
        """Approve what it asks for. See `Engine.approvals.approve`."""
        return await self._verbs.approvals.approve(self.id, name, by=by, form=form, comment=comment, request=request)

    async def reject(
        self, name: str, *, by: str | None = None, form: Any = None, comment: str = "", request: str | None = None
    ) -> Approval[Any]:
        """Reject what it asks for. See `Engine.approvals.approve`."""
        return await self._verbs.approvals.reject(self.id, name, by=by, form=form, comment=comment, request=request)

    async def approvals(self) -> Page[ApprovalRequest]:
        """The requests of the run to people, oldest first, with their decisions: by whom, what and when."""
        return await self._verbs.approvals.list(self.id)

    async def inbox(self, *, limit: int = 100) -> list[UnreadMessage]:
        """Messages that its code has not read, oldest first. See `Engine.inbox.list`."""
        return await self._verbs.inbox.list(self.id, limit=limit)

    async def dead_letters(self) -> list[DeadLetter]:
        """Messages that its code could not read, oldest first. See `Engine.dead_letters.list`."""
        return await self._verbs.dead_letters.list(self.id)

    async def pause(self, *, by: str = "", reason: str = "") -> None:
        """Let it begin nothing more until it is resumed. See `Engine.pause`."""
        await self._verbs.pause(self.id, by=by, reason=reason)

    async def resume(self) -> None:
        """Let it go on after it was parked or paused."""
        await self._verbs.resume(self.id)

    async def retry(self, *, reason: str = "") -> None:
        """Let it go on after it has failed, timed out or was cancelled. See `Engine.retry`."""
        await self._verbs.retry(self.id, reason=reason)

    async def change(self, *, reason: str = "", **changes: Unpack[ChangeOptions]) -> None:
        """Change its tags, its timeout, its queue or its start. See `Engine.change`."""
        await self._verbs.change(self.id, reason=reason, **changes)

    async def skip_step(self, call: str | None = None, *, result: Any = UNSET) -> None:
        """Let it go on after it was parked, without a step. See `Engine.skip_step`."""
        await self._verbs.skip_step(self.id, call, result=result)

    def __repr__(self) -> str:
        return f"<run {self.id}>"


class StoredRun(RunHandle[R]):
    """A run in the store of an engine."""

    def __init__(self, client: Client, run_id: str) -> None:  # Not through that of its base: a start costs each call.
        self._verbs = self._client = client
        self.id = run_id

    async def result(self, timeout: given.Span | None = None) -> R:
        result: R = await self._client.result(self.id, timeout)
        return result

    async def info(self) -> Run:
        return run_of(await self._client.shown.run(await self._client.info(self.id)))

    async def why(self) -> Why:
        return await self._client.why(self.id)

    async def follow(self, *, after: int = -1) -> AsyncIterator[Event]:
        async for event in self._client.follow(self.id, after=after):
            yield event

    async def until(self, status: Status, *, timeout: given.Span | None = None) -> Run:
        return run_of(await self._client.shown.run(await self._client.until(self.id, status, timeout=timeout)))

    async def _published(self) -> dict[str, Any]:
        return await self._client.published(self.id)

    async def _field(self, key: str, timeout: given.Span | None) -> Any:
        return await self._client.field(self.id, key, timeout=timeout)

    async def watch(self) -> AsyncIterator[dict[str, Any]]:
        async for fields in self._client.streams.published(self.id):
            yield fields

    async def _exported(self) -> str:
        return await self._client.export(self.id)

    async def _items(self, name: str, kind: Any, *, after: int, redacted: bool) -> AsyncIterator[StreamItem[Any]]:
        async for item in self._client.streams.items(self.id, name, after=after, kind=kind, redacted=redacted):
            yield item
