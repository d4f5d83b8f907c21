"""Two switches of the interpreter that a worker sets for the whole process (decision 0007)."""

from __future__ import annotations

import gc
import sys

SWITCH_INTERVAL_SECONDS = 0.0005
"""An event loop that is busy in short slices gives up the interpreter's lock only for moments, and takes it back before
a waiting thread has woken up. With Python's default a commit can then wait for seconds."""
COLLECT_AFTER_ALLOCATIONS = 10_000
"""Python's default looks for garbage every 700 allocations, that is after a dozen steps. A run that ends takes itself
apart, so there is nothing to find."""


def tune_interpreter() -> None:
    """Set both, unless somebody has gone further already."""
    if sys.getswitchinterval() > SWITCH_INTERVAL_SECONDS:
        sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    first, second, third = gc.get_threshold()
    if 0 < first < COLLECT_AFTER_ALLOCATIONS:
        gc.set_threshold(COLLECT_AFTER_ALLOCATIONS, second, third)
