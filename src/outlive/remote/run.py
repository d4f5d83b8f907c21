"""One run behind an HTTP API: the verbs with the id filled in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Generic, Literal, TypeVar, Unpack, get_args, overload

import msgspec
from msgspec import UNSET

from outlive._model import given
from outlive._model.approval import AnyApproval
from outlive._model.under_way import StepUnderWay
from outlive._values.approval import ApprovalRequest
from outlive._values.dead_letter import DeadLetter
from outlive._values.event import Event
from outlive._values.run import Run, Status
from outlive.client.arrivals import in_time
from outlive.client.finding import Page
from outlive.client.streams import StreamItem
from outlive.errors import RunFinishedError, RunParkedError
from outlive.http.sse import StreamItemView
from outlive.remote.following import Message
from outlive.remote.values import DecideOptions, typed

R = TypeVar("R")
T = TypeVar("T")


class RemoteRun(Generic[R]):
    """One run, wherever it runs."""

    def __init__(self, remote: Any, run_id: str, decode: Any = None) -> None:
        """`remote` has the verbs; it makes these."""
        self._remote = remote
        self._decode = decode
        self.id = run_id

    async def result(self, timeout: given.Span | None = None) -> R:
        """Wait for the result: as the workflow's own type if it was started by its function, else as plain JSON.

        Raises:
            RunFailedError: the run failed, was cancelled (`RunCancelledError`) or took too long (`RunTimedOutError`).
            RunParkedError: it is parked. ResultTimeoutError: it has not ended within `timeout` seconds; it goes on.
        """
        found = await self._remote.result(self.id, timeout)
        result: R = found if self._decode is None else self._decode(found)
        return result

    async def info(self) -> Run:
        """The run as its row says it."""
        found: Run = await self._remote.info(self.id)
        return found

    async def status(self) -> Status:
        """Where it is in its life."""
        return (await self.info()).status

    async def why(self) -> str:
        """One sentence: what it waits for, or how it ended."""
        found: str = await self._remote.why(self.id)
        return found

    async def steps(self, *, arguments: bool = False) -> list[StepUnderWay]:
        """The steps that run now, without what is redacted. See `RunHandle.steps`."""
        found: list[StepUnderWay] = await self._remote.steps(self.id, arguments=arguments)
        return found

    async def history(self) -> list[Event]:
        """The journal of its tree, without what is redacted."""
        found: list[Event] = await self._remote.history(self.id)
        return found

    async def until(self, status: Status, *, timeout: given.Span | None = None) -> Run:
        """Wait until it has this status, and return it as it is then. See `RunHandle.until`."""
        wanted = given.one_of("run.until", "status", status, get_args(Status))
        seconds = given.some_seconds("run.until", "timeout", timeout)
        return await in_time(self._until(wanted), self.id, seconds, what=f"come to {wanted}", why=self.why)

    async def _until(self, wanted: str) -> Run:
        run = await self.info()
        async for message in self._messages():
            if run.status == wanted or run.has_ended:
                break
            if message.name == "run":
                news = msgspec.convert(message.data, Run)
                run = news if news.id == self.id else run
        if run.status != wanted:
            raise RunFinishedError(self.id, run.status, f"and will not be {wanted} any more")
        return run

    @overload
    async def published(self) -> dict[str, Any]: ...
    @overload
    async def published(self, key: str, *, timeout: given.Span | None = None) -> Any: ...
    async def published(self, key: str | None = None, *, timeout: given.Span | None = None) -> Any:
        """What it last showed of itself with `outlive.publish`, or one field of it. See `RunHandle.published`."""
        fields: dict[str, Any] = (await self._remote.operate("runs.published", run_id=self.id)).fields
        if key is None:
            return fields
        field = given.text("run.published", "key", key, like="stage")
        seconds = given.some_seconds("run.published", "timeout", timeout)
        if field in fields:
            return fields[field]
        return await in_time(self._field(field), self.id, seconds, what=f"published {field!r}", why=self.why)

    async def _field(self, name: str) -> Any:
        async for fields in self.watch():
            if name in fields:
                return fields[name]
        raise RunFinishedError(self.id, await self.status(), f"and has not published {name!r}")

    async def follow(self, *, after: int = -1) -> AsyncIterator[Event]:
        """The journal of its tree, event by event, from the first one on and as it grows; ends with the tree.

        Args:
            after: the `seq` of the last event that is known already.

        Raises:
            RunNotFoundError: no run has this id.
            RunParkedError: nothing more comes before it is resumed.
        """
        place: int | None = given.whole("run.follow", "after", after, least=-1)
        position = ""
        while place is not None:
            page = await self._remote.operate("runs.history", query={"after": place}, run_id=self.id)
            for event in page.items:
                yield event
            place, position = page.next, page.position
        async for message in self._messages(after=position):
            if message.name == "journal":
                yield msgspec.convert(message.data, Event)
            elif message.name == "run":
                run = msgspec.convert(message.data, Run)
                if run.number == 0 and run.is_stopped:
                    raise RunParkedError(run.id, run.reason)

    async def _messages(self, *, after: str = "") -> AsyncIterator[Message]:
        """Everything that happens to it behind a message, as `GET /runs/{id}/follow` of the API sends it."""
        async for message in self._remote.follow("runs.follow", {"after": after}, run_id=self.id):
            yield message

    @overload
    def stream(self, name: str, *, after: int = 0) -> AsyncIterator[Any]: ...
    @overload
    def stream(self, name: str, kind: type[T], *, after: int = 0) -> AsyncIterator[T]: ...
    @overload
    def stream(
        self, name: str, kind: type[T], *, after: int = 0, positions: Literal[True]
    ) -> AsyncIterator[StreamItem[T]]: ...
    @overload
    def stream(self, name: str, *, after: int = 0, positions: Literal[True]) -> AsyncIterator[StreamItem[Any]]: ...
    async def stream(
        self, name: str, kind: Any = Any, *, after: int = 0, positions: bool = False
    ) -> AsyncIterator[Any]:
        """What it emits to a stream, in order, from the first item on; ends when the run has ended.

        Args:
            kind: the type of the items; without, they come as plain JSON.
            positions: give each item as a `StreamItem`, with its position: the last one, as `after`, goes on behind it.
        """
        given.whole("run.stream", "after", after, least=0)
        async for message in self._remote.follow("runs.follow_stream", {"after": after}, run_id=self.id, name=name):
            if message.name == "stream":
                item = msgspec.convert(message.data, StreamItemView)
                value = typed(kind, item.value, f"item {item.position} of stream {name!r}")
                yield StreamItem(item.position, value, item.call, item.attempt, item.epoch) if positions else value

    async def watch(self) -> AsyncIterator[dict[str, Any]]:
        """What it shows of itself with `outlive.publish`, whenever that changes; ends when the run has ended."""
        async for message in self._messages():
            if message.name == "published":
                yield message.data

    async def signal(self, name: str, payload: Any = None, *, key: str | None = None) -> None:
        """Send it a signal. See `Engine.signal`."""
        await self._remote.signal(self.id, name, payload, key=key)

    async def ask(
        self,
        name: str,
        body: Any = None,
        *,
        key: str | None = None,
        timeout: given.Span | None = None,
        reply: Any = Any,
    ) -> Any:
        """Ask it something, and wait for its answer. See `Engine.ask`."""
        return await self._remote.ask(self.id, name, body, key=key, timeout=timeout, reply=reply)

    async def answer(self, name: str, key: str, *, timeout: given.Span | None = None, reply: Any = Any) -> Any:
        """The answer to an ask that was sent before. See `Engine.asks.answer`."""
        return await self._remote.asks.answer(self.id, name, key, timeout=timeout, reply=reply)

    async def approve(self, name: str, **options: Unpack[DecideOptions]) -> AnyApproval:
        """Approve what it asks for. See `Remote.approvals.approve`."""
        found: AnyApproval = await self._remote.approvals.approve(self.id, name, **options)
        return found

    async def reject(self, name: str, **options: Unpack[DecideOptions]) -> AnyApproval:
        """Reject what it asks for. See `Remote.approvals.approve`."""
        found: AnyApproval = await self._remote.approvals.reject(self.id, name, **options)
        return found

    async def approvals(self) -> Page[ApprovalRequest]:
        """Everything that it and its children have asked people for."""
        found: Page[ApprovalRequest] = await self._remote.approvals.list(self.id)
        return found

    async def dead_letters(self) -> list[DeadLetter]:
        """Messages that it and its children could not read."""
        found: list[DeadLetter] = await self._remote.dead_letters.list(self.id)
        return found

    async def cancel(self, *, reason: str = "") -> None:
        """Ask it to stop."""
        await self._remote.cancel(self.id, reason=reason)

    async def retry(self, *, reason: str = "") -> None:
        """Let it go on at what failed."""
        await self._remote.retry(self.id, reason=reason)

    async def pause(self, *, by: str = "", reason: str = "") -> None:
        """Let it begin nothing more."""
        await self._remote.pause(self.id, reason=reason)

    async def resume(self) -> None:
        """Let it go on."""
        await self._remote.resume(self.id)

    async def skip_step(self, call: str | None = None, *, result: Any = UNSET) -> None:
        """Let it go on without the step in flight."""
        await self._remote.skip_step(self.id, call, result=result)

    def __repr__(self) -> str:
        return f"<RemoteRun {self.id}>"
