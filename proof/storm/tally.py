"""What the engines of a trial counted, written down now and then: a killed one leaves its last tally."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import fields

import msgspec

from outlive.telemetry import Counters
from outlive.testing.line_file import append

PLACE = "OUTLIVE_STORM_TALLIES"
"""The environment variable that tells a worker where the file is. Without it nothing is written."""
PAUSE_SECONDS = 0.25


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """The counters of one engine at one moment."""

    at: float
    pid: int
    counts: dict[str, int]


async def keep_tally(counters: Counters) -> None:
    """Write the counters down until cancelled."""
    place = os.environ.get(PLACE)
    while place:
        with suppress(OSError):  # The disk of this process may be full by plan; a tally more or less is no matter.
            append(place, Tally(at=time.time(), pid=os.getpid(), counts=counts_of(counters)))
        await asyncio.sleep(PAUSE_SECONDS)


def counts_of(counters: Counters) -> dict[str, int]:
    """The counters that are numbers; how long things took is of no matter to a storm."""
    found = {each.name: getattr(counters, each.name) for each in fields(counters)}
    return {name: value for name, value in found.items() if isinstance(value, int)}


def total(tallies: Iterable[Tally]) -> Counter[str]:
    """What all engines counted together, by their last words."""
    last = {tally.pid: tally.counts for tally in tallies}
    found: Counter[str] = Counter()
    for counts in last.values():
        found.update(counts)
    return found
