"""SIGINT as a background job of a shell has it (`nohup make test &`): ignored, and inherited as ignored by children.

And as a person at the keyboard means it.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ignored_interrupts() -> Iterator[None]:
    """Ignore SIGINT in this process; its children begin with that."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def keyboard() -> Iterator[None]:
    """Let SIGINT do what it does in a program that a person has begun: it raises KeyboardInterrupt."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def press_ctrl_c() -> None:
    """Press Ctrl-C."""
    signal.raise_signal(signal.SIGINT)
