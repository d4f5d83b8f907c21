"""Checkpoints lie where runs do: in memory, on a file and on a server."""

from __future__ import annotations

from tests.engine.fixtures import engine, nobody_left, place

__all__ = ["engine", "nobody_left", "place"]
