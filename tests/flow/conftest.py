"""Flows are tried in memory, on a file and on a server."""

from tests.engine.conftest import engine, nobody_left, place

__all__ = ["engine", "nobody_left", "place"]
