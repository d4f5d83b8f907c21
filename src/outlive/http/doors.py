"""Doors to the API besides those in `principal`: the keys in the store, and a proxy that has asked who it is.

    engine.asgi(auth="keys")
    engine.asgi(auth=TrustedHeader("x-forwarded-user", proxies=["10.0.0.5"], scope="operator"))

`auth="keys"` is what a server for others needs: `outlive keys create` makes one. A trusted header is for a proxy in
front of the server that signs people in (OIDC): it is believed from the addresses that are listed, and from no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from outlive._features.security.key import LADDER, SCOPES, Scope
from outlive._kernel.client.acting import ACTOR_CHARACTERS_MAX
from outlive.engine import Engine
from outlive.errors import ConfigurationError
from outlive.http.principal import Asking, Authenticate, Principal, loopback
from outlive.http.proxies import Proxies

Auth: TypeAlias = Authenticate | Literal["loopback", "keys"]


class StoredKeys:
    """Keys of `engine.keys`, sent as `Authorization: Bearer olv_...`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def __call__(self, asking: Asking) -> Principal | None:
        """See `Authenticate`. Each request reads its key: one that is revoked is refused from then on."""
        if not asking.bearer:
            return None
        key = await self._engine.keys._find(asking.bearer)
        if key is None:
            return None
        workflows = None if key.workflows is None else frozenset(key.workflows)
        queues = None if key.queues is None else frozenset(key.queues)
        return Principal(key.name, frozenset({key.scope}), workflows, key=key.id, queues=queues, tags=key.tags)


class TrustedHeader:
    """A header in which a proxy says who asks.

    Args:
        header: its name, for example "x-forwarded-user". The proxy must remove it from what it is sent; `groups` too.
        proxies: the addresses, or networks, that the proxy sends from; the header is ignored from others.
        scope: what everyone may do whom the proxy lets through; None if only `scopes` says so.
        groups: the header that lists the groups of the person, separated by commas.
        scopes: the scope of the members of a group; the highest counts.

    Raises:
        ConfigurationError: an address or a scope is none, or no proxy is named.
    """

    def __init__(
        self,
        header: str,
        *,
        proxies: Iterable[str],
        scope: Scope | None = "viewer",
        groups: str = "",
        scopes: Mapping[str, Scope] | None = None,
    ) -> None:
        self._header, self._groups = header.lower(), groups.lower()
        self._is_proxy = Proxies(proxies)
        self._scope, self._scopes = scope, dict(scopes or {})
        if not self._is_proxy.networks:
            raise ConfigurationError("a trusted header needs the addresses of the proxies that may send it (proxies=)")
        if wrong := {it for it in (scope, *self._scopes.values()) if it is not None and it not in SCOPES}:
            raise ConfigurationError(f"{', '.join(sorted(wrong))} is not a scope; there are {', '.join(SCOPES)}")
        if bool(self._groups) != bool(self._scopes):
            raise ConfigurationError("groups= names the header with the groups, and scopes= what each of them may do")

    async def __call__(self, asking: Asking) -> Principal | None:
        """See `Authenticate`."""
        name = asking.headers.get(self._header, "").strip()
        if not 0 < len(name) <= ACTOR_CHARACTERS_MAX or "," in name or not name.isprintable():
            return None
        # It cannot be known which of two headers of one name the proxy wrote, and which the person.
        if {self._header, self._groups} & set(asking.repeated):
            return None
        if not self._is_proxy(asking.address):
            return None
        scope = self._scope_of(asking.headers.get(self._groups, ""))
        return None if scope is None else Principal(name, frozenset({scope}))

    def _scope_of(self, groups: str) -> Scope | None:
        found = [self._scopes[group] for each in groups.split(",") if (group := each.strip()) in self._scopes]
        if self._scope is not None:
            found.append(self._scope)
        return max(found, key=_height, default=None)


def _height(scope: Scope) -> int:
    return LADDER.index(scope) if scope in LADDER else -1


def door_of(engine: Engine, auth: Auth) -> Authenticate:
    """The function that tells who sends a request.

    Raises:
        ConfigurationError: it is the name of none.
    """
    if auth == "loopback":
        return loopback
    if auth == "keys":
        return StoredKeys(engine)
    if isinstance(auth, str):
        raise ConfigurationError(f"auth={auth!r} is none: give 'loopback', 'keys', or a function that says who asks")
    return auth
