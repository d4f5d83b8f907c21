"""The workflows that workers can run, as people and programs see them."""

from __future__ import annotations

from typing import Any

import msgspec


class WorkflowInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One workflow in one version, as workers have described it."""

    name: str
    version: int
    arguments: dict[str, Any] | None = None
    """The JSON Schema of its arguments, an object by name; None until a worker has described it."""
    result: dict[str, Any] | None = None
    """The JSON Schema of its result; None if it can be anything."""
    workers: int = 0
    """How many live workers can run it."""

    def __repr__(self) -> str:
        return f"<WorkflowInfo {self.name}@{self.version}: {self.workers} workers>"
