"""The options of a start on the wire: those of `client.start_options`, once for runs, flows and batches."""

from __future__ import annotations

from typing import Any, Literal, cast

from msgspec import Struct

from outlive._kernel.client.start_options import PlaceOptions, StartOptions
from outlive.http.wire.page import Instant, Name, RunId, Span


class Placed(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where runs wait for their turn."""

    queue: Name | None = None
    key: str | None = None
    """The key in the queue."""
    priority: int | None = None
    slots: int | None = None
    """How many slots of the queue a run takes; one unless given."""

    def place(self) -> PlaceOptions:
        """The place in the form of the engine."""
        return PlaceOptions(queue=self.queue, key=self.key, priority=self.priority, slots=self.slots)


class Start(Placed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of every start."""

    id: RunId | None = None
    """The id of the run: a start with the same id gives the same run. Without one, the header `Idempotency-Key` makes
    it; without that, the server does."""
    on_conflict: Literal["attach", "attach_open", "reject", "reject_open", "replace", "cancel_open"] = "attach"
    """The answer when the id is taken: give that run, give it if it has not ended, refuse, refuse if it has not ended,
    take its place at once, or take it when that run was cancelled and has ended."""
    timeout: Span | None = None
    """How long the run may take as a whole, from when a worker begins it."""
    tags: dict[str, str] | None = None
    headers: dict[str, str] | None = None
    delay: Span | None = None
    """How long from now it is to begin."""
    start_at: Instant | None = None
    """The instant instead."""
    begin_within: Span | None = None
    """How long after it is due a worker may begin it: else it fails, and no code of it runs."""

    def options(self, **other: Any) -> StartOptions:
        """The options in the form of the engine, with others in the place of some."""
        said = {name: getattr(self, name) for name in StartOptions.__annotations__} | other
        return cast("StartOptions", said)
