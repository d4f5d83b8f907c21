"""A process as its machine knows it, so that its neighbours can see that it has died.

A number alone is not enough: it is given to another process some day, and in another container it means another one.
Together with the boot of the machine, the namespace of numbers and the moment of its start it names one process for
ever. Processes that share boot and namespace can look at it; all others wait for its lease. Linux only: elsewhere the
lease decides alone.
"""

from __future__ import annotations

import os
import re

from outlive._platform import ask_for_process, find_home, look_at_process

_NAME = re.compile(r"(?P<home>[0-9a-f-]+/\d+)/(?P<number>[1-9]\d*)/(?P<began>\d+)")
_DEAD = frozenset("ZX")
"""States of a process that will never run again, though its number is not free yet."""


def this_process() -> str:
    """The name of this process; empty if the system does not tell."""
    try:
        _, began = look_at_process(os.getpid())
        return f"{find_home()}/{os.getpid()}/{began}"
    except (OSError, IndexError):
        return ""


def is_gone(process: str) -> bool:
    """Whether this process has certainly died. False also if there is no telling from here."""
    name = _NAME.fullmatch(process)
    if name is None:
        return False
    try:
        if name["home"] != find_home():
            return False
        # Asked first: where /proc hides the processes of other users, they are not there to be looked at.
        ask_for_process(int(name["number"]))
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        pass  # It lives, and belongs to another user; or its number does.
    except OSError:
        return False
    try:
        state, began = look_at_process(int(name["number"]))
    except (OSError, IndexError):
        return False
    return state in _DEAD or began != name["began"]
