"""The stores and the engine of these tests come from the harness in `tests.engine`."""

from __future__ import annotations

from tests.engine.fixtures import engine, nobody_left, place

__all__ = ["engine", "nobody_left", "place"]
