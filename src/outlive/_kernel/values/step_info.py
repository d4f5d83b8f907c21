"""The steps that workers run, as people and programs see them."""

from __future__ import annotations

from typing import Any

import msgspec


class StepInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One step that a live worker runs: of Python, or a remote step of a worker in any language."""

    name: str
    """The name by which a document calls it: `shop.reserve`, or `gpu/resize` for a remote step."""
    queue: str
    """The queue from which remote workers take it; empty for a step of Python."""
    arguments: dict[str, Any] | None = None
    """The JSON Schema of its arguments, an object by name, or of the input of a remote step; None if its workers have
    not described it."""
    result: dict[str, Any] | None = None
    """The JSON Schema of its result; None if it can be anything."""
    workers: int = 0
    """How many live workers run it."""

    def __repr__(self) -> str:
        return f"<StepInfo {self.name}: {self.workers} workers>"
