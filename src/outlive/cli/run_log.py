"""Keeps the log from saying what a command says itself: a command that follows a run shows each failure once."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_own_lines(run_id: str) -> Iterator[None]:
    """Leave out the lines that a worker of this process logs about this run and its children. What the program itself
    logs stays: it has other loggers."""

    def is_of_another(record: logging.LogRecord) -> bool:
        return str(getattr(record, "run_id", "")).partition("~")[0] != run_id

    log = logging.getLogger("outlive")
    log.addFilter(is_of_another)
    try:
        yield
    finally:
        log.removeFilter(is_of_another)
