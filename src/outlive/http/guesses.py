"""How often each of many senders may do something, and how often one may try keys that are wrong."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable

from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.limit import EMPTY, TierLevel, TokenBucket, charge, fits_at
from outlive.http.principal import sender_of

COUNTED_MAX = 10_000
"""How many senders are counted at a time; the senders that have not asked for the longest time are forgotten."""
WRONG_KEYS = TokenBucket(rate=1, burst=20)
"""How many wrong keys one address may try, or one network of IPv6, which has all addresses that it wants."""


class Meter:
    """How often each of many senders may do something."""

    def __init__(self, bucket: TokenBucket, now: Callable[[], float]) -> None:
        self._bucket, self._now = bucket, now
        self._levels: OrderedDict[str, TierLevel] = OrderedDict()

    def wait(self, sender: str) -> float:
        """How many seconds a sender has to wait; 0 if not at all."""
        now_at = int(self._now() * MICROSECONDS)
        return max(0, fits_at(self._bucket, self._levels.get(sender, EMPTY), 1, now_at) - now_at) / MICROSECONDS

    def count(self, sender: str) -> None:
        """It has done it."""
        now_at = int(self._now() * MICROSECONDS)
        self._levels[sender] = charge(self._bucket, self._levels.pop(sender, EMPTY), 1, now_at)
        if len(self._levels) > COUNTED_MAX:
            self._levels.popitem(last=False)


class Guesses:
    """Slows down an address that tries keys. A key that was right lately still passes: many callers may share the
    address of a proxy, and one of them that tries keys must not shut the others out."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._wrong = Meter(WRONG_KEYS, now)
        self._right: OrderedDict[bytes, None] = OrderedDict()
        """Hashes of the keys that were right lately."""

    def wait(self, key: str, address: str) -> float:
        """How many seconds an address has to wait before it may try this key; 0 if not at all."""
        return 0.0 if _hash(key) in self._right else self._wrong.wait(sender_of(address))

    def note_right(self, key: str) -> None:
        """This key is right."""
        self._right[_hash(key)] = None
        self._right.move_to_end(_hash(key))
        if len(self._right) > COUNTED_MAX:
            self._right.popitem(last=False)

    def note_wrong(self, key: str, address: str) -> None:
        """This key is wrong, or no longer right."""
        self._wrong.count(sender_of(address))
        self._right.pop(_hash(key), None)


def _hash(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
