"""What steps really did: a line when an attempt begins and a line when it ends.

The engine knows nothing of this file. It is compared with the journals: what a journal says is done must have been
done, and must not have been begun by a worker that could know that it was.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

import outlive
from proof.storm.witness import write

PLACE = "OUTLIVE_STORM_EFFECTS"
"""The environment variable that tells a worker where to write: a file, or the address of a witness."""


class Effect(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One mark of one attempt of one call, or a worker that says it is ready."""

    at: float
    pid: int
    mark: str
    """`begin`, `end`, `failed`, or `ready` for a worker."""
    run: str = ""
    step: str = ""
    place: int = 0
    """The operation of the program that asked for it."""
    key: str = ""
    epoch: int = 0
    attempt: int = 0
    thread: int = 0
    """The thread that did it."""


@contextmanager
def effect(place: int) -> Iterator[None]:
    """Mark the beginning and the end of what a step does."""
    _mark("begin", place)
    try:
        yield
    except BaseException:
        _mark("failed", place)
        raise
    _mark("end", place)


def mark_ready() -> None:
    """A worker has opened its store and works."""
    write(os.environ[PLACE], Effect(at=time.time(), pid=os.getpid(), mark="ready"))


def _mark(mark: str, place: int) -> None:
    me = outlive.current_step()
    line = Effect(
        at=time.time(),
        pid=os.getpid(),
        mark=mark,
        run=me.run_id,
        step=me.name,
        place=place,
        key=me.idempotency_key,
        epoch=me.epoch,
        attempt=me.attempt,
        thread=threading.get_native_id(),
    )
    write(os.environ[PLACE], line)
