"""The HTTP API of an engine, and webhooks that start flows.

    app = engine.asgi()                        # the API: an ASGI app, to mount in another one or to serve
    app = outlive.http.Webhooks(engine)        # the webhooks alone

`outlive serve` serves the API. Who may ask is what `auth` says: "keys", or a function such as `TrustedHeader`.
"""

from __future__ import annotations

from outlive.http.app import Api
from outlive.http.doors import StoredKeys, TrustedHeader
from outlive.http.limits import ApiLimits
from outlive.http.principal import Asking, Authenticate, FixedKeys, Principal, first_of, loopback
from outlive.http.webhooks import Webhooks

__all__ = [
    "Api",
    "ApiLimits",
    "Asking",
    "Authenticate",
    "FixedKeys",
    "Principal",
    "StoredKeys",
    "TrustedHeader",
    "Webhooks",
    "first_of",
    "loopback",
]
