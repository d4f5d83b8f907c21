"""The rights of an API key."""

from __future__ import annotations

from typing import Literal, TypeAlias

Scope: TypeAlias = Literal["viewer", "operator", "admin", "worker"]
LADDER: tuple[Scope, ...] = ("viewer", "operator", "admin")
"""Each of them may do what those before it may."""
SCOPES: tuple[Scope, ...] = (*LADDER, "worker")
"""A worker may take steps over HTTP, and nothing else."""
