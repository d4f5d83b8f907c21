"""The HTTP API of an engine, and webhooks that start flows.

from outlive.http import Api, Webhooks

app = engine.asgi()         # the API: an ASGI app, to mount in another one or to serve (`outlive serve`)
app = Webhooks(engine)      # the webhooks alone
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
