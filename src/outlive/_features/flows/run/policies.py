"""The policies of a document about attempts and limits, as the engine knows them; and which errors are worth another
attempt.

Two classes of errors, as in Stepflow. An error of *transport* says nothing about the step: it took too long, or what it
needs could not be reached. A step without a `retry` is tried again for these, a few times. Any other error is the
answer of the step, and is tried again only where the document, the step or the engine says so. What a step was given
and cannot read, and an expression that has no value, are never tried again: the next attempt would meet them again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from outlive._features.flows.document.model import RetryPolicy, seconds_of
from outlive._kernel.journal.failure import class_name
from outlive._kernel.model import Retry
from outlive._kernel.model.guard import Guard
from outlive._kernel.model.limit import RateLimit, SlidingWindow, Tier, TokenBucket
from outlive.errors import StepFailedError

TRANSPORT_ATTEMPTS = 4
"""The first, and three retries."""


def is_transport(error: BaseException) -> bool:
    """Whether an error says nothing about the step itself: it may not have been reached, or not have answered."""
    return isinstance(error, TimeoutError | ConnectionError)


TRANSPORT_RETRY = Retry(attempts=TRANSPORT_ATTEMPTS, first=1, factor=2, cap=10, when=is_transport)
"""For a step for which neither the document nor its code nor the engine says anything."""


def retry_of(policy: RetryPolicy) -> Retry:
    """The policy of a document."""
    return Retry(
        attempts=policy.attempts,
        first=seconds_of(policy.first),
        factor=policy.factor,
        cap=seconds_of(policy.cap),
        delay=policy.kind,
        elapsed_max=None if policy.elapsed_max is None else seconds_of(policy.elapsed_max),
        when=_is_worth_it(policy.on, policy.not_on) if policy.on or policy.not_on else None,
    )


def _is_worth_it(on: list[str | int], not_on: list[str | int]) -> Callable[[Any], bool]:
    """Whether an error has one of the first names, or there are none, and has none of the second."""
    is_named, is_excepted = _is_named(on), _is_named(not_on)
    return lambda error: (not on or is_named(error)) and not is_excepted(error)


def _is_named(names: list[str | int]) -> Callable[[Any], bool]:
    """Whether an error is one of these: by the name of its class or of one above it, or by its HTTP status."""
    statuses = {str(each) for each in names}

    def is_named(error: BaseException) -> bool:
        if isinstance(error, StepFailedError):
            status = error.attributes.get("status")
            return str(status) in statuses or not statuses.isdisjoint(_names(error.type_name))
        if str(getattr(error, "status", None)) in statuses:
            return True
        return any(not statuses.isdisjoint(_names(class_name(each))) for each in type(error).__mro__)

    return is_named


def _names(full: str) -> tuple[str, str]:
    return full, full.rpartition(".")[2]


_LIMIT = re.compile(
    r"^(?P<name>[A-Za-z_][A-Za-z0-9_.-]*) +(?P<count>[1-9][0-9]{0,8})"
    r"( */ *(?P<unit>[smhd])| +in +any +(?P<length>[1-9][0-9]{0,3}) *(?P<period>[smhd]))$"
)
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def guard_of_limit(limit: str, *, whose: str = "") -> Guard | None:
    """The limit that `limit: bank 10/s` or `limit: bank 5 in any 2s` says, shared by all workers; None if it says none.
    `whose` is added to its name."""
    match = _LIMIT.match(limit)
    if match is None:
        return None
    count = int(match["count"])
    if match["unit"]:
        tier: Tier = TokenBucket(count / _UNITS[match["unit"]], burst=count)
    else:
        tier = SlidingWindow(count, int(match["length"]) * _UNITS[match["period"]])
    return Guard(None, RateLimit(match["name"] + whose, tier, shared=True))
