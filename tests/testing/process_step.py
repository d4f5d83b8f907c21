"""A step in a process, in a file of its own: the process imports it, and a file of tests takes long to import."""

from __future__ import annotations

import outlive


@outlive.step(process=True, name="crash.double")
def double_in_process(number: int) -> int:
    """Twice as much."""
    return number * 2
