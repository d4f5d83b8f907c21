"""The principal of a request: its rights, and how a request names its sender.

`Authenticate` is the seam: a function that is given what a request says of its sender, and gives a principal or None.
Three of them are here: `loopback`, for programs of the same machine; `FixedKeys`, for keys that the program knows; and
`first_of`, which asks one after the other.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import TypeAlias

import msgspec

from outlive._features.security.key import LADDER, SCOPES, Scope
from outlive._kernel.model.bounds import Bounds, bounds_of
from outlive.errors import ConfigurationError

NO_SCOPE = "none"
"""The scope of an operation that anyone may use, and that shows nothing."""
SECRET_CHARACTERS_MIN = 32
WITHIN_WORKFLOWS = frozenset({"run", "runs", "code", "workflow", "nothing"})
"""The reach of operations that a principal of some workflows may use; see `operation.Reach`."""
WITHIN_TAGS = frozenset({"run", "runs", "code", "tagged", "nothing"})
"""The reach of operations that a principal of runs with some tags may use."""
ADDRESSES_MAX = 1_000
"""How many addresses of senders are remembered as those of this machine or of another one."""
SENDERS_BITS = 64
"""How much of an address of IPv6 is the sender: a network has all addresses that begin so."""
_FORWARDED = ("forwarded", "via", "x-real-ip", "x-client-ip", "true-client-ip", "cf-connecting-ip")
_FORWARDED_PREFIX = "x-forwarded-"
"""The prefix of the headers that a proxy adds: then the sender is not the machine that the connection comes from."""


class Principal(msgspec.Struct, frozen=True):
    """The sender of a request, and its rights."""

    name: str
    """For the audit, and as the person who decides. One without a name is not let in."""
    scopes: frozenset[Scope]
    workflows: frozenset[str] | None = None
    """The only workflows that it may see and use; None for all."""
    namespace: str = ""
    key: str = ""
    """The id of the API key that was used; for the audit."""
    queues: frozenset[str] | None = None
    """The only queues that a worker may claim tasks from; None for all."""
    names_others: bool = False
    """Whether it may say that another person acts (`by` in a request)."""
    tags: dict[str, str] = {}
    """It may see and use only runs with all of these tags, and what it starts has them; empty for all runs."""

    @property
    def bounds(self) -> Bounds:
        """Which runs it may know of."""
        return bounds_of(self.workflows, self.tags)

    @property
    def id(self) -> str:
        """The id by which its places are counted: its key, or else everything that identifies it. Two keys may have one
        name."""
        return self.key or "\0".join(self.owner)

    @property
    def owner(self) -> list[str]:
        """The parts that tell its requests from those of others: two tenants may call their keys the same."""
        return [self.namespace, self.name, *(f"{name}={value}" for name, value in sorted(self.tags.items()))]

    def may(self, scope: str) -> bool:
        """Whether it may use an operation with this scope."""
        if scope in self.scopes or scope == NO_SCOPE:
            return True
        return any(scope in LADDER[: LADDER.index(own)] for own in self.scopes if own in LADDER)

    def may_use(self, scope: str, reach: str) -> bool:
        """Whether it may use an operation with this scope and reach: of one that is bound, each bound has to be one
        that such operations keep to."""
        of_workflows = self.workflows is None or reach in WITHIN_WORKFLOWS
        return self.may(scope) and of_workflows and (not self.tags or reach in WITHIN_TAGS)

    def may_see(self, workflow: str) -> bool:
        """Whether it may know of runs of a workflow."""
        return self.workflows is None or workflow in self.workflows

    def may_claim_from(self, queue: str) -> bool:
        """Whether a worker may have tasks of a queue."""
        return self.queues is None or queue in self.queues


class Follower(Principal, frozen=True, kw_only=True):
    """One with a token of a run, which it may follow, and nothing else."""

    run: str
    nonce: int
    """The nonce of the tree of that run, because another run can take its id."""
    stream: str
    """The only stream of the run that it may follow; empty for everything."""


def bounds_shown(principal: Principal) -> str:
    """The bounds of a principal, in words."""
    said = [] if principal.workflows is None else ["some workflows"]
    if principal.tags:
        said.append("runs with " + ", ".join(f"{name}={value}" for name, value in sorted(principal.tags.items())))
    return " and ".join(said) or "everything"


ANONYMOUS = Principal("", frozenset())
"""The principal of operations that ask for none."""


class Asking(msgspec.Struct, frozen=True):
    """The parts of a request that name its sender."""

    headers: Mapping[str, str]
    """By their names in lower case."""
    address: str
    """Where the connection comes from; empty if that is not known."""
    repeated: Collection[str] = ()
    """The names of headers that came more than once, and are joined with commas."""
    http_version: str = "1.1"
    """The version of HTTP that it speaks."""

    @property
    def bearer(self) -> str:
        """The key in `Authorization: Bearer ...`; empty if there is none."""
        kind, _, key = self.headers.get("authorization", "").partition(" ")
        return key.strip() if kind.lower() == "bearer" else ""

    @property
    def is_local(self) -> bool:
        """Whether a program of this machine asks, and no proxy for another one. nginx speaks HTTP/1.0 to a
        server by default, and adds no header; programs speak 1.1."""
        if self.http_version == "1.0":
            return False
        is_forwarded = any(name in _FORWARDED or name.startswith(_FORWARDED_PREFIX) for name in self.headers)
        return is_loopback(self.address) and not is_forwarded


Authenticate: TypeAlias = Callable[[Asking], Awaitable[Principal | None]]
"""Says who asks; None if it cannot tell. It raises nothing but `StoreUnavailableError`."""

LOCAL = Principal("local", frozenset(SCOPES), names_others=True)


async def loopback(asking: Asking) -> Principal | None:
    """Programs of this machine may do everything, without a key; a request with one is not for this door."""
    return LOCAL if asking.is_local and "authorization" not in asking.headers else None


class FixedKeys:
    """Keys that the program knows, and whose they are: `FixedKeys({secret: Principal("ci", frozenset({"operator"}))})`.

    Raises:
        ConfigurationError: a key is too short to be one that cannot be guessed.
    """

    def __init__(self, keys: Mapping[str, Principal]) -> None:
        short = [of.name for key, of in keys.items() if len(key) < SECRET_CHARACTERS_MIN]
        if short:
            raise ConfigurationError(
                f"the key of {', '.join(short)} has fewer than {SECRET_CHARACTERS_MIN} characters; make one with "
                f"python -c 'import secrets; print(secrets.token_urlsafe(32))'"
            )
        self._keys = [(_digest(key), principal) for key, principal in keys.items()]

    async def __call__(self, asking: Asking) -> Principal | None:
        """See `Authenticate`. All keys are compared, whichever fits."""
        given, found = _digest(asking.bearer), None
        for digest, principal in self._keys:
            if hmac.compare_digest(given, digest):
                found = principal
        return found


def first_of(*doors: Authenticate) -> Authenticate:
    """Asks one after the other, and takes the first principal."""

    async def ask(asking: Asking) -> Principal | None:
        for door in doors:
            found = await door(asking)
            if found is not None:
                return found
        return None

    return ask


@lru_cache(ADDRESSES_MAX)
def is_loopback(address: str) -> bool:
    """Whether an address is one of this machine alone."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return found.is_loopback or (mapped is not None and mapped.is_loopback)


@lru_cache(ADDRESSES_MAX)
def sender_of(address: str) -> str:
    """The sender with an address, as far as the address says that."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if found.version == 4 or found.ipv4_mapped is not None:
        return address
    return str(ip_network((found, SENDERS_BITS), strict=False))


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
