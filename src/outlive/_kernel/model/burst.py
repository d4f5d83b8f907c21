"""Bursts: many starts that are to become one run.

`Debounce` waits until the starts have stopped for a while; the run has the arguments of the last one. `Throttle` lets
the first start through, and those of the next while are that run. Which run the starts of a key belong to lies in cells
of the store. A few hundred cells have all keys, and a key goes when its burst is long over, so that they do not grow.
"""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

import msgspec

from outlive._kernel.model import given
from outlive._kernel.model.instant import MICROSECONDS
from outlive.errors import ArgumentTypeError, InvalidArgumentError

BURST_CELLS = "outlive.bursts/"
CELLS_PER_WORKFLOW = 256
KEPT_MICROSECONDS = 24 * 3600 * MICROSECONDS
"""How long a burst is remembered after it should have begun: there may be no worker for a while."""


@dataclass(frozen=True, slots=True)
class Debounce:
    """Many starts in a short time are one run, with the arguments of the last one.

    Args:
        key: what the starts are about; starts of a workflow with the same key are one burst.
        quiet: seconds without a start after which the run begins.
        most: seconds after the first start at which it begins in any case; without it a burst that never stops keeps
            the run from beginning.
    """

    key: str
    quiet: given.Span
    most: given.Span | None = None

    def __post_init__(self) -> None:
        where = "Debounce"
        quiet, most = given.seconds(where, "quiet", self.quiet), given.some_seconds(where, "most", self.most)
        if most is not None and most < quiet:
            raise InvalidArgumentError(where, "most", self.most, "give at least as much as quiet")
        given.keep(self, key=_key(where, self.key), quiet=quiet, most=most)


@dataclass(frozen=True, slots=True)
class Throttle:
    """The first start of a while is a run at once, and the other starts of that while are the same run.

    Args:
        key: what the starts are about; it counts within the workflow.
        every: seconds from one run to the next.
    """

    key: str
    every: given.Span

    def __post_init__(self) -> None:
        where = "Throttle"
        given.keep(self, key=_key(where, self.key), every=given.seconds(where, "every", self.every))


class Burst(msgspec.Struct, frozen=True):
    """The run that starts of a key belong to."""

    run_id: str
    first_at: int
    """When the first of them came."""
    until_at: int
    """When the run begins at the latest, or when the next run may begin."""


def begins_at(debounce: Debounce, burst: Burst, now_at: int) -> int:
    """When the run is to begin, if a start comes now."""
    quiet_at = now_at + _microseconds(debounce.quiet)
    return quiet_at if debounce.most is None else min(quiet_at, burst.first_at + _microseconds(debounce.most))


def burst_after(gather: Debounce | Throttle, burst: Burst | None, run_id: str, now_at: int) -> Burst:
    """The burst to which a start belongs that comes now, given the known burst; a new burst is this run."""
    match gather:
        case Debounce():
            known = Burst(run_id, now_at, 0) if burst is None else burst
            return msgspec.structs.replace(known, until_at=begins_at(gather, known, now_at))
        case Throttle():
            if burst is not None and now_at < burst.until_at:
                return burst
            return Burst(run_id, now_at, now_at + _microseconds(gather.every))


Bursts = dict[str, Burst]
_decode = msgspec.json.Decoder(Bursts).decode


def _microseconds(span: given.Span) -> int:
    return round(given.seconds("outlive.limits", "span", span, or_zero=True) * MICROSECONDS)


def _key(where: str, key: object) -> str:
    return given.text(where, "key", key, like="shop-7", most=given.KEY_CHARACTERS_MAX)


def bursts_cell(workflow: str, key: str) -> str:
    """The name of the cell that a key lies in."""
    return f"{BURST_CELLS}{workflow}/{crc32(key.encode()) % CELLS_PER_WORKFLOW}"


def bursts_in(data: bytes | None, now_at: int) -> Bursts:
    """The bursts in a cell, without bursts that ended long ago; a cell that cannot be read has none."""
    try:
        found = _decode(data) if data else {}
    except msgspec.MsgspecError:
        return {}
    return {key: burst for key, burst in found.items() if burst.until_at + KEPT_MICROSECONDS > now_at}


def left_of_bursts(data: bytes, now_at: int) -> bytes | None:
    """The bursts in a cell that have not ended long ago."""
    left = bursts_in(data, now_at)
    return bursts_data(left) if left else None


def bursts_data(bursts: Bursts) -> bytes:
    """The content of the cell for these bursts."""
    return msgspec.json.encode(bursts)


def gathering(where: str, debounce: object, throttle: object) -> Debounce | Throttle:
    """How starts are gathered into one run, of which one way is given.

    Raises:
        InvalidArgumentError: both are given.
        ArgumentTypeError: it is something else.
    """
    if debounce is not None and throttle is not None:
        raise InvalidArgumentError(where, "throttle", throttle, "give debounce= or throttle=, not both")
    if debounce is not None and not isinstance(debounce, Debounce):
        raise ArgumentTypeError(where, "debounce", debounce, "give outlive.limits.Debounce(key='shop-7', quiet=30)")
    if throttle is not None and not isinstance(throttle, Throttle):
        raise ArgumentTypeError(where, "throttle", throttle, "give outlive.limits.Throttle(key='shop-7', every=60)")
    found = debounce or throttle
    assert found is not None
    return found
