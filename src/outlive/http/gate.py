"""Default deny: what every request passes before anything of it is parsed or looked at.

First where it was sent to and by which page (`Host`, `Origin`: a page of another site, or a name that was rebound to
this machine, must not use what the person before the browser may). Then who asks; then whether that one may use this
operation, and how often. Only operations whose scope is "none" are used without a principal; the gate is given the
operation itself, so that no spelling of a path can look like one of these.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from outlive._features.security.key import Scope
from outlive._features.security.run_tokens import PREFIX, TokenRecord
from outlive._kernel.client.secret_token import has_form
from outlive.http.exchange import Request
from outlive.http.guesses import Guesses, Meter
from outlive.http.limits import ApiLimits
from outlive.http.operation import Operation
from outlive.http.principal import ANONYMOUS, NO_SCOPE, Asking, Authenticate, Follower, Principal, bounds_shown
from outlive.http.problem import Problem

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
ANY_HOST = "*"
SAFE = ("GET", "HEAD")
KEY_CHARACTERS_MAX = 500
_NO_KEY = ("this server does not know who asks", "Send a key: Authorization: Bearer ...")
_WRONG_KEY = (
    "this server does not accept the key in the header Authorization: it is unknown, revoked or has expired",
    "Send a key that is active: Authorization: Bearer ... (`outlive keys list` shows which are)",
)


class Gate:
    """Lets requests through, or refuses them."""

    def __init__(
        self,
        authenticate: Authenticate,
        *,
        hosts: Iterable[str],
        origins: Iterable[str],
        limits: ApiLimits,
        now: Callable[[], float],
        find_token: Callable[[str], Awaitable[TokenRecord | None]] | None = None,
    ) -> None:
        self._authenticate = authenticate
        self._find_token = find_token
        self._hosts = frozenset(host.lower().strip("[]") for host in hosts)
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)
        self._guesses = Guesses(now)
        self._rate = None if limits.rate is None else Meter(limits.rate, now)

    def check_place(self, request: Request, operation: Operation | None) -> None:
        """See that the request was meant for this server, and that no page of another site sent it.

        Kubernetes and load balancers probe a server by its address, so that is enough for a probe. A page that has
        rebound a name to this machine has that name in its requests.

        Raises:
            Problem: it was not.
        """
        host = request.headers.get("host", "")
        is_known = ANY_HOST in self._hosts or name_in(host) in self._hosts
        if not is_known and not (_is_probe(operation) and _is_address(host)):
            raise Problem(
                403,
                "host_refused",
                "the header Host names a host that this server does not answer for",
                "Use one of the names that the server was given (hosts=, or --allowed-hosts).",
            )
        # Requests that only read too: an app around this one may let pages of other sites see the answers (CORS).
        origin = request.headers.get("origin")
        if origin is not None and origin.lower() not in self._origins and not _is_page_of(origin, host):
            raise _other_site("Origin")
        # A person follows links of other sites to a page. What the API gives is for our own pages.
        is_for_anyone = operation is None or operation.scope == NO_SCOPE
        if request.method in SAFE and is_for_anyone:
            return
        if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and origin is None:
            raise _other_site("Sec-Fetch-Site")

    async def principal(self, request: Request, operation: Operation | None) -> Principal:
        """The principal of a request; also for a path that does not exist, so that only a principal that may ask learns
        what exists.

        Raises:
            Problem: that is not known.
        """
        if operation is not None and operation.scope == NO_SCOPE:
            return ANONYMOUS
        given = request.headers.get("authorization")
        wait = 0.0 if given is None else self._guesses.wait(given, request.address)
        # No sender finds one of our own secrets by trying, so others at its address do not shut out who has one.
        if wait and not has_form(_asking(request).bearer):
            raise _too_many_guesses(wait)
        found = await self._sender_of(request)
        if found is None or not found.name:  # Without a name the audit log could not say who did it.
            if wait:
                raise _too_many_guesses(wait)
            if given is not None:
                self._guesses.note_wrong(given, request.address)
            detail, advice = _NO_KEY if given is None else _WRONG_KEY
            raise _unauthenticated(detail, advice)
        if given is not None:
            self._guesses.note_right(given)
        if self._rate is not None:
            if wait := self._rate.wait(found.id):
                raise _too_often(f"{found.name} sends more requests than it may", wait)
            self._rate.count(found.id)
        return found

    async def is_still(self, principal: Principal, request: Request) -> bool:
        """Whether a request that goes on for long still comes from the same principal, with the same rights."""
        return await self._sender_of(request) == principal

    async def _sender_of(self, request: Request) -> Principal | None:
        """The sender of a request: by its token of a run, or else by the door."""
        asking = _asking(request)
        if self._find_token is None or not asking.bearer.startswith(f"{PREFIX}_"):
            return await self._authenticate(asking)
        found = await self._find_token(asking.bearer)
        if found is None:
            return None
        scopes = frozenset[Scope]({"viewer"})
        return Follower(found.by, scopes, key=found.key, run=found.run_id, nonce=found.nonce, stream=found.stream)

    async def check_again(self, principal: Principal, request: Request) -> None:
        """See that a request that has waited still comes from the same principal, with the same rights.

        Raises:
            Problem: it does not.
        """
        if principal is not ANONYMOUS and not await self.is_still(principal, request):
            raise _unauthenticated(*_WRONG_KEY)

    def check_scope(self, principal: Principal, operation: Operation, names: Mapping[str, str]) -> None:
        """See that a principal may use an operation on what is named in its path.

        Raises:
            Problem: it may not.
        """
        if isinstance(principal, Follower) and not _is_followed(principal, operation, names):
            raise Problem(
                403,
                "forbidden",
                f"{operation.name} is not what this token is for: it follows one run"
                + (", and one stream of it" if principal.stream else ""),
                "Use a key; or have a token made for this run.",
            )
        if not principal.may(operation.scope):
            raise Problem(
                403,
                "forbidden",
                f"{operation.name} needs the scope {operation.scope}, and {principal.name} has "
                f"{', '.join(sorted(principal.scopes)) or 'none'}",
                f"Use a key with the scope {operation.scope}.",
            )
        if not principal.may_use(operation.scope, operation.reach):
            raise Problem(
                403,
                "forbidden",
                f"{operation.name} is for more than {principal.name} may use: {bounds_shown(principal)} only",
                "Use a key that is not bound so.",
            )


def _is_followed(principal: Follower, operation: Operation, names: Mapping[str, str]) -> bool:
    """Whether an operation follows what the token of a principal is for."""
    is_its_stream = not principal.stream or names.get("name") == principal.stream
    return operation.for_tokens and names.get(operation.run_name) == principal.run and is_its_stream


def _asking(request: Request) -> Asking:
    return Asking(request.headers, request.peer, request.repeated, request.http_version)


def _is_page_of(origin: str, host: str) -> bool:
    """Whether an origin is one of the server that a request was sent to; the one of a page without any is "null"."""
    try:
        place = urlsplit(origin).netloc
    except ValueError:
        return False
    return bool(place) and place == host


def _is_probe(operation: Operation | None) -> bool:
    """Whether it says that the process lives and can serve, to anyone, and nothing else."""
    return operation is not None and operation.scope == NO_SCOPE and operation.namespace == "health"


def _is_address(host: str) -> bool:
    try:
        ip_address(name_in(host))
    except ValueError:
        return False
    return True


def name_in(host: str) -> str:
    """The name in a header `Host`, without the port."""
    name = host.lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.partition(":")[0]


def key_in(request: Request) -> str | None:
    """The header `Idempotency-Key`.

    Raises:
        Problem: it is empty, or no text that can be one.
    """
    key = request.headers.get("idempotency-key")
    if key is None:
        return None
    if not 0 < len(key) <= KEY_CHARACTERS_MAX or not key.isprintable() or not key.isascii():
        detail = f"the header Idempotency-Key takes 1 to {KEY_CHARACTERS_MAX} printable characters"
        raise Problem(400, "malformed", detail, "Make one for each thing to do, and send it with each try.")
    return key


def _unauthenticated(detail: str, advice: str) -> Problem:
    return Problem(401, "unauthenticated", detail, advice, {"www-authenticate": "Bearer"})


def _other_site(header: str) -> Problem:
    return Problem(
        403,
        "origin_refused",
        f"the header {header} says that a page of another site sends this",
        "Send it from a page of this server; behind a proxy that changes Host, name the page's origin (origins=).",
    )


def _too_many_guesses(wait: float) -> Problem:
    return _too_often("too many wrong keys came from this address", wait)


def _too_often(detail: str, wait: float) -> Problem:
    return Problem(
        429,
        "rate_limited",
        detail,
        "Wait for as long as the header Retry-After says.",
        {"retry-after": str(int(wait) + 1)},
    )
