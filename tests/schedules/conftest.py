"""Schedules are tried in memory, on a file and on a server, by a clock that skips."""

from tests.limits.conftest import nobody_left, world

__all__ = ["nobody_left", "world"]
