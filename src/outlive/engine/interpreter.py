"""The engine's care for its interpreter: two switches for the whole process (decision 0007), and one refusal."""

from __future__ import annotations

import gc
import sys

from outlive.errors import ConfigurationError

SWITCH_INTERVAL_SECONDS = 0.0005
"""An event loop that is busy in short slices gives up the interpreter's lock only for moments, and takes it back before
a waiting thread has woken up. With Python's default a commit can then wait for seconds."""
COLLECT_AFTER_ALLOCATIONS = 10_000
"""Python's default looks for garbage every 700 allocations, that is after a dozen steps. A run that ends takes itself
apart, so there is nothing to find."""


def tune_interpreter() -> None:
    """Set both, unless the program has gone further already."""
    if sys.getswitchinterval() > SWITCH_INTERVAL_SECONDS:
        sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    first, second, third = gc.get_threshold()
    if 0 < first < COLLECT_AFTER_ALLOCATIONS:
        gc.set_threshold(COLLECT_AFTER_ALLOCATIONS, second, third)


def refuse_while_imported() -> None:
    """Refuse to start an engine in a script that a process of a step is only just importing.

    Raises:
        ConfigurationError: the script starts an engine when it is imported. Such a process would wait for itself.
    """
    # Only a program that imported `multiprocessing` can be in such a process, which says so while it imports.
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None and getattr(processes.current_process(), "_inheriting", False):
        raise ConfigurationError(
            "an engine is started while a process of a step imports this script; put what the script does under "
            '`if __name__ == "__main__":`'
        )
