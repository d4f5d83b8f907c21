"""The outcomes of an attempt: one value says who hears of what its function returned or raised."""

from __future__ import annotations

import msgspec

from outlive._kernel.journal.event import AnyEvent
from outlive._kernel.store.contract import Transaction


class Wanted(msgspec.Struct, frozen=True, gc=False):
    """The run waits for it: the encoded result, or the event of a failure."""

    result: bytes | None
    failure: AnyEvent | None


class Late(msgspec.Struct, frozen=True, gc=False):
    """The run had given it up, and its function returned or failed all the same."""

    result: bytes | None
    error: BaseException | None


class RolledBack(msgspec.Struct, frozen=True, gc=False):
    """The run had given it up, and what it wrote in a transaction does not count."""

    transaction: Transaction


class Unwanted(msgspec.Struct, frozen=True, gc=False):
    """The run had given it up, and its function was not called or was stopped."""


AttemptOutcome = Wanted | Late | RolledBack | Unwanted
