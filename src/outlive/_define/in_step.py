"""What a step may know and do while it runs, and how the code that it calls finds that."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

from outlive._model.trigger import Sent, SentEvent
from outlive.errors.program import NotInRunError


class EventSender(Protocol):
    """What a step of Outlive's own asks of `engine.events`."""

    async def send(
        self, event_type: str, data: Any = None, *, id: str | None = None, source: str = "", headers: Any = None
    ) -> Sent:
        """See `Events.send`."""

    async def deliver(self, sink: str, event: SentEvent) -> int:
        """Send an event to a sink, once; the status of its answer."""


class BulkSteps(Protocol):
    """What a step of Outlive's own asks of `engine.bulk`."""

    async def page(self, request: Any, after: str | None, found: int) -> Any:
        """The next runs that a verb for many runs is for."""

    async def apply(
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
        """Do it to some of them; those that refused, and why."""


class Verbs(Protocol):
    """What a step of Outlive's own asks of the engine that runs it."""

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
    """What runs a step: its attempt."""

    @property
    def engine(self) -> Verbs | None:
        """The engine that runs it; None in a process of its own."""

    @property
    def is_cancelled(self) -> bool:
        """See `StepContext`."""

    def context(self) -> StepContext:
        """What the step may know of itself."""

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
    """What a running step may know of itself."""

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
    """The same for every attempt of this call, on whatever worker; different for every other call."""
    last_progress: Any
    """What an earlier attempt gave to `heartbeat`, or None."""
    headers: dict[str, str]
    """What `engine.start(..., headers=...)` gave to that run, or to the run that started it."""
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
