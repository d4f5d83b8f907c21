"""The HTTP API of an engine, and webhooks that start flows.

    app = engine.asgi()                        # the API: an ASGI app, to mount in another one or to serve
    app = outlive.http.Webhooks(engine)        # the webhooks alone

`outlive serve` serves the API. Who may ask is what `auth` says: "keys", or a function such as `TrustedHeader`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlive._on_demand import on_demand
from outlive.http.app import Api
from outlive.http.doors import StoredKeys, TrustedHeader
from outlive.http.limits import ApiLimits
from outlive.http.principal import Asking, Authenticate, FixedKeys, Principal, first_of, loopback

if TYPE_CHECKING:
    from outlive._features.events.webhooks import Webhooks

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

if not TYPE_CHECKING:
    # The feature imports modules of this package.
    __getattr__ = on_demand(__name__, {"Webhooks": "outlive._features.events.webhooks"})
