"""The context of a running step, and how the code that it calls finds that."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

from outlive._kernel.model.trigger import Sent, SentEvent
from outlive.errors.program import NotInRunError


class EventSender(Protocol):
    """The part of `engine.events` that a step of Outlive's own needs."""

    async def send(
        self, event_type: str, data: Any = None, *, id: str | None = None, source: str = "", headers: Any = None
    ) -> Sent:
        """See `Events.send`."""

    async def _deliver(self, sink: str, event: SentEvent) -> int:
        """Send an event to a sink, once; the status of its answer."""


class BulkSteps(Protocol):
    """The part of `engine.bulk` that a step of Outlive's own needs."""

    async def _page(self, request: Any, after: str | None, found: int) -> Any:
        """The next runs that a verb for many runs is for."""

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
    ) -> list[Any]:
        """Do it to some of them; returns the runs that refused, and why."""


class Verbs(Protocol):
    """The part of its engine that a step of Outlive's own needs."""

    @property
    def events(self) -> EventSender:
        """See `Engine.events`."""

    @property
    def bulk(self) -> BulkSteps:
        """See `Engine.bulk`."""

    async def signal(self, run_id: str, name: str, payload: Any = None, *, key: str | None = None) -> None:
        """See `Engine.signal`."""

    @property
    def ask(self) -> Callable[..., Coroutine[Any, Any, Any]]:
        """See `Engine.ask`."""

    @property
    def start(self) -> Callable[..., Coroutine[Any, Any, Any]]:
        """See `Engine.start`."""

    @property
    def get(self) -> Callable[[str], Any]:
        """See `Engine.get`."""

    async def cancel(self, run_id: str, *, reason: str = "") -> Any:
        """See `Engine.cancel`."""

    async def retry(self, run_id: str, *, reason: str = "") -> Any:
        """See `Engine.retry`."""

    async def fork(
        self,
        run_id: str,
        *,
        at: str | int | None = None,
        set: Mapping[str, Any] | None = None,
        input: Any = None,
        version: int | None = None,
        id: str | None = None,
        reason: str = "",
    ) -> Any:
        """See `Engine.fork`."""

    async def history(self, run_id: str) -> list[Any]:
        """See `Engine.history`."""


class StepSource(Protocol):
    """The attempt that runs a step."""

    @property
    def engine(self) -> Verbs | None:
        """The engine that runs it; None in a process of its own."""

    @property
    def is_cancelled(self) -> bool:
        """See `StepContext`."""

    def context(self) -> StepContext:
        """The facts about itself that the step can read."""

    def now_at(self) -> int:
        """The time of its engine."""

    def heartbeat(self, progress: Any) -> None:
        """See `StepContext`."""

    def publish(self, fields: dict[str, Any]) -> None:
        """See `outlive.publish`."""

    def emit(self, stream: str, value: Any) -> Future[None] | None:
        """See `outlive.emit`; if there is no room for more, what is done when there is. From any thread."""


@dataclass(frozen=True, slots=True)
class StepContext:
    """The facts about itself that a running step can read."""

    run_id: str
    """The run that called it."""
    workflow: str
    """The name of that run's workflow."""
    name: str
    """The name of the step."""
    attempt: int
    """1 for the first."""
    epoch: int
    """The fencing token: rises with every take-over of the run."""
    idempotency_key: str
    """A key that all attempts of this call share, on whatever worker; every other call has another one."""
    last_progress: Any
    """The progress that an earlier attempt gave to `heartbeat`, or None."""
    headers: dict[str, str]
    """The headers that `engine.start(..., headers=...)` gave to that run, or to the run that started it."""
    _source: StepSource = field(repr=False, compare=False)

    @property
    def is_cancelled(self) -> bool:
        """Whether nothing waits for this attempt any more; a sync step should look now and then and return."""
        return self._source.is_cancelled

    def heartbeat(self, progress: Any = None) -> None:
        """Say that the step is alive, and save how far it came; the next attempt finds that in `last_progress`. Cheap,
        from any thread."""
        self._source.heartbeat(progress)


CURRENT_STEP: contextvars.ContextVar[StepSource] = contextvars.ContextVar("outlive_step")


REDACT: contextvars.ContextVar[Callable[[str], str]] = contextvars.ContextVar("outlive_redact")
"""Takes what must not be seen out of a text, for a step that is given such a thing."""


def current_step() -> StepContext:
    """The step that is running here."""
    try:
        return CURRENT_STEP.get().context()
    except LookupError:
        raise NotInRunError("current_step", "a step") from None
