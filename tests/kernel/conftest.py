"""The stores and the engine of these tests come from the harness in `tests.engine`."""

from __future__ import annotations

from tests.engine.fixtures import engine, nobody_left, place
from tests.engine.loop_time import loop_time

__all__ = ["engine", "loop_time", "nobody_left", "place"]
