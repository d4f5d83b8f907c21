"""How much one request, and one sender, may ask for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from outlive._kernel.model.limit import TokenBucket
from outlive.http.exchange import ByteBudget
from outlive.http.principal import Principal, is_loopback, sender_of

ADMINS_PART = 10
"""One place in so many is for admins."""
CHECKS_WAITING_MAX = 100
"""How many checks of documents may wait."""


@dataclass(frozen=True, slots=True)
class ApiLimits:
    """How much one request, and one sender, may ask for."""

    body_bytes_max: int = 4 * 1024 * 1024
    open_body_bytes_max: int = 16 * 1024
    """The limit for the body of a request that needs no key: for a link to decide, and for a webhook without a token
    and a key."""
    bodies_bytes_max: int = 64 * 1024 * 1024
    """How many bytes the bodies of all requests under way may have together. A sender may have as many as are free: one
    gets half of them, two get a third each."""
    open_bodies_bytes_max: int = 8 * 1024 * 1024
    """How many bytes the bodies of senders without a key may have together: such a sender cannot use up what the others
    need. They are counted by address; a proxy of this machine, which sends for many, may have all."""
    body_seconds: float = 30.0
    """How long the body of a request may take to arrive."""
    read_seconds: float = 30.0
    """How long a client may leave an answer unread; what follows events ends then, and leaves its place."""
    check_again_seconds: float = 5.0
    """How often a request that follows events, or waits, is asked again who it is: a key that was revoked sees no more
    then. One that has waited is asked before its answer, too."""
    check_seconds: float = 20.0
    """How long the check of a document may take."""
    search_seconds: float = 20.0
    """How long a search for runs may take, with its wait for others. Two searches are done at once, one of each
    principal; principals take turns."""
    searches_waiting_max: int = 1_000
    """How many searches for runs may wait. A principal may have as many places as are free: one gets half of them."""
    wait_seconds_max: float = 60.0
    """How long a request may wait for a result or an answer."""
    rate: TokenBucket | None = None
    """How many requests one principal may send; None for no limit."""
    followers_max: int = 2_000
    """How many requests may follow events, or wait, at once; each stream that one follows counts as one more."""
    lists_max: int = 20
    """How many different lists of runs one principal may follow at once."""
    look_seconds: float = 0.25
    """How often a follower looks at the store at most; less often while nothing happens."""


class BodyBudgets:
    """The budgets of bodies: one for known senders, and a small one for all others."""

    def __init__(self, limits: ApiLimits) -> None:
        self.known = ByteBudget(limits.bodies_bytes_max)
        self.strangers = ByteBudget(limits.open_bodies_bytes_max)


def stranger_at(address: str) -> str:
    """The name in a `ByteBudget` of a sender without a key; none for a proxy of this machine, which sends for many."""
    return "" if is_loopback(address) else sender_of(address)


class Places:
    """The places of requests that follow events, or wait.

    A principal that is not an admin may have as many places as are free, and a tenth of all places is for admins. So
    one principal gets about half of the places, two get a third each, and there is always a place for another one.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._for_admins = most // ADMINS_PART
        self._taken: Counter[str] = Counter()
        """By the id of the principal."""

    def take(self, principal: Principal, count: int = 1) -> bool:
        """Take so many places, if there are as many for this principal."""
        free = self._most - self._taken.total()
        if not principal.may_use("admin", "store"):
            free -= self._for_admins + self._taken[principal.id]
        has_room = count <= free
        if has_room:
            self._taken[principal.id] += count
        return has_room

    def leave(self, principal: Principal, count: int = 1) -> None:
        """Give places back."""
        self._taken -= Counter({principal.id: count})  # A principal without places is forgotten.
