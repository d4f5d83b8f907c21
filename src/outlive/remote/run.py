"""One run behind an HTTP API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Never, TypeVar, get_args

import msgspec

from outlive._kernel.client.arrivals import in_time
from outlive._kernel.client.handle import RunHandle, RunVerbs
from outlive._kernel.client.streams import StreamItem
from outlive._kernel.model import given
from outlive._kernel.model.why import Why
from outlive._kernel.replay.command import WorkflowSpec
from outlive._kernel.values.event import Event
from outlive._kernel.values.run import Run, Status
from outlive.errors import ConfigurationError, ResultTimeoutError, RunFinishedError, RunParkedError
from outlive.http.wire.runs import NotEnded, ResultView, WhyView
from outlive.remote.connection import Connection
from outlive.remote.values import result_of, seconds_of, typed

R = TypeVar("R")
NewRun = Callable[[str], RunHandle[Any]]
"""Makes the handle of a run."""
WAIT_SECONDS = 20.0
"""How long the server is asked to wait for an end before it is asked again."""


class RemoteRun(RunHandle[R]):
    """A run that a server has. Without the code of its workflow here, its result is plain JSON."""

    def __init__(
        self, verbs: RunVerbs, connection: Connection, run_id: str, *, spec: WorkflowSpec | None = None
    ) -> None:
        super().__init__(verbs, run_id)
        self._connection, self._spec = connection, spec

    async def result(self, timeout: given.Span | None = None) -> R:
        loop, seconds = asyncio.get_running_loop(), seconds_of("run.result", "timeout", timeout)
        deadline = None if seconds is None else loop.time() + seconds
        while True:
            wait = WAIT_SECONDS if deadline is None else min(WAIT_SECONDS, max(0.0, deadline - loop.time()))
            found = await self._connection.operate("runs.result", query={"wait": wait}, run_id=self.id, patience=wait)
            if isinstance(found, ResultView):
                result: R = self._typed(result_of(found, () if self._spec is None else self._spec.registered))
                return result
            assert isinstance(found, NotEnded)
            if found.status == "parked" and (await self.info()).is_stopped:
                raise RunParkedError(self.id, found.why)
            if deadline is not None and loop.time() >= deadline:
                assert seconds is not None
                raise ResultTimeoutError(self.id, seconds, Why(found.why, *found.advice))

    def _typed(self, plain: Any) -> Any:
        if self._spec is None:
            return plain
        return self._spec.signature.result.decode(msgspec.json.encode(plain), f"the result of run {self.id}")

    async def info(self) -> Run:
        found: Run = await self._connection.operate("runs.info", run_id=self.id)
        return found

    async def why(self) -> Why:
        found: WhyView = await self._connection.operate("runs.why", run_id=self.id)
        return Why(found.why, *found.advice)

    async def until(self, status: Status, *, timeout: given.Span | None = None) -> Run:
        wanted = given.one_of("run.until", "status", status, get_args(Status))
        seconds = given.some_seconds("run.until", "timeout", timeout)
        return await in_time(self._until(wanted), self.id, seconds, what=f"come to {wanted}", why=self.why)

    async def _until(self, wanted: str) -> Run:
        run = await self.info()
        async for message in self._connection.follow("runs.follow", {"after": ""}, run_id=self.id):
            if run.status == wanted or run.has_ended:
                break
            if message.name == "run":
                news = msgspec.convert(message.data, Run)
                run = news if news.id == self.id else run
        if run.status != wanted:
            raise RunFinishedError(self.id, run.status, f"and will not be {wanted} any more")
        return run

    async def _published(self) -> dict[str, Any]:
        found: dict[str, Any] = (await self._connection.operate("runs.published", run_id=self.id)).fields
        return found

    async def _field(self, key: str, timeout: given.Span | None) -> Any:
        field = given.text("run.published", "key", key, like="stage")
        seconds = given.some_seconds("run.published", "timeout", timeout)
        fields = await self._published()
        if field in fields:
            return fields[field]
        return await in_time(self._shown(field), self.id, seconds, what=f"published {field!r}", why=self.why)

    async def _shown(self, name: str) -> Any:
        async for fields in self.watch():
            if name in fields:
                return fields[name]
        raise RunFinishedError(self.id, await self.status(), f"and has not published {name!r}")

    async def follow(self, *, after: int = -1) -> AsyncIterator[Event]:
        place: int | None = given.whole("run.follow", "after", after, least=-1)
        position = ""
        while place is not None:
            page = await self._connection.operate("runs.history", query={"after": place}, run_id=self.id)
            for event in page.items:
                yield event
            place, position = page.next, page.position
        async for message in self._connection.follow("runs.follow", {"after": position}, run_id=self.id):
            if message.name == "journal":
                yield msgspec.convert(message.data, Event)
            elif message.name == "run":
                run = msgspec.convert(message.data, Run)
                if run.number == 0 and run.is_stopped:
                    raise RunParkedError(run.id, run.reason)

    async def watch(self) -> AsyncIterator[dict[str, Any]]:
        async for message in self._connection.follow("runs.follow", {"after": ""}, run_id=self.id):
            if message.name == "published":
                yield message.data

    async def _items(self, name: str, kind: Any, *, after: int, redacted: bool) -> AsyncIterator[StreamItem[Any]]:
        query = {"after": given.whole("run.stream", "after", after, least=0)}
        async for message in self._connection.follow("runs.follow_stream", query, run_id=self.id, name=name):
            if message.name == "stream":
                item = msgspec.convert(message.data, StreamItem)
                value = typed(kind, item.value, f"item {item.position} of stream {name!r}")
                yield msgspec.structs.replace(item, value=value)

    async def _exported(self) -> Never:
        raise ConfigurationError(
            "run.export: an exported run has nothing hidden, so a server gives none; use an engine with its store"
        )
