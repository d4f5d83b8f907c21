"""SIGINT as a background job of a shell has it (`nohup make test &`): ignored, and inherited as ignored by children."""

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
