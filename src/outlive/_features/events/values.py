"""Where events are delivered to, as people and programs see it."""

from __future__ import annotations

import msgspec


class Sink(msgspec.Struct, frozen=True, kw_only=True):
    """Where events of some types are delivered to, over HTTP."""

    name: str
    url: str
    types: tuple[str, ...] = ("*",)
    """The types of events, or patterns as `order.*`."""
    secret: str | None = None
    """The name of the secret whose value signs the deliveries; the value is never stored."""

    def __repr__(self) -> str:
        return f"<Sink {self.name}: {' '.join(self.types)} to {self.url}>"
