"""Limits: of an engine, of the rate and number of calls, and of failures.

    emails = outlive.Queue("emails", rate=outlive.limits.TokenBucket(100))
    engine = outlive.Engine(url, limits=outlive.limits.Limits(payload_bytes_max=1_000_000))

`Limits` is for an engine; the others are for queues, for steps, for starts and for `outlive.map`.
"""

from outlive._kernel.define.map import Tolerance
from outlive._kernel.model import Limits
from outlive._kernel.model.breaker import Breaker
from outlive._kernel.model.burst import Debounce, Throttle
from outlive._kernel.model.limit import FixedWindow, RateLimit, SlidingWindow, TokenBucket

__all__ = [
    "Breaker",
    "Debounce",
    "FixedWindow",
    "Limits",
    "RateLimit",
    "SlidingWindow",
    "Throttle",
    "TokenBucket",
    "Tolerance",
]
