"""Delivers one event to one sink: one request, signed in the layout of Standard Webhooks."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import msgspec

from outlive._features.events.signing import ID, signed_headers
from outlive._features.events.sinks import read_sinks
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.trigger import SentEvent
from outlive._kernel.store.contract import Store
from outlive.errors import OutliveError
from outlive.errors.outside import DeliveryRefusedError, HttpStatusError, SecretError, SettingsError, UnreachableError

TOTAL_SECONDS = 30.0
ANSWER_BYTES_MAX = 64 * 1024
RETRY_AFTER_SECONDS_MAX = 24 * 3600.0
WORTH_ANOTHER = frozenset({408, 409, 425, 429})
"""Answers of the kind 4xx that may be others later. A sink that answers with any other one will not take the event."""


async def deliver(store: Store, name: str, event: SentEvent) -> int:
    """Send an event to a sink; the status of its answer, which is 2xx.

    Raises:
        UnreachableError, AnswerError, HttpStatusError: it was not taken now, and may be later.
        DeliveryRefusedError: it will not be taken.
    """
    from outlive._features.flows.outside import settings  # Only a worker that delivers something needs it.
    from outlive._features.flows.outside.http_client import Request
    from outlive._features.flows.outside.secrets import find_value

    sink = (await read_sinks(store)).get(name)
    if sink is None:
        raise DeliveryRefusedError(name, event.id, "there is no such sink any more")
    body = msgspec.json.encode(event)
    # Equal for every attempt, and without characters that an id may have and a header may not.
    delivery = f"evt_{event.digest}"
    headers = {"content-type": "application/json", ID: delivery}
    try:
        if sink.secret is not None:
            now = store.now() / MICROSECONDS
            headers |= signed_headers(find_value(sink.secret), delivery, body, now_seconds=now)
        request = Request(
            url=sink.url,
            method="POST",
            headers=headers,
            body=body,
            total_seconds=TOTAL_SECONDS,
            bytes_max=ANSWER_BYTES_MAX,
            redirects_max=0,
            bounds=() if sink.secret is None else (settings.current().bounds_of(sink.secret),),
        )
        answer = await settings.current().fetcher.fetch(request)
    except UnreachableError:
        raise
    except (SecretError, SettingsError) as error:
        # Another worker may have what is missing, and so may this one when its environment is right.
        raise UnreachableError(f"sink {name}", f"cannot be sent anything: {error}") from None
    except OutliveError as error:
        raise DeliveryRefusedError(name, event.id, str(error)) from None
    if 200 <= answer.status < 300:
        return answer.status
    if 400 <= answer.status < 500 and answer.status not in WORTH_ANOTHER:
        raise DeliveryRefusedError(name, event.id, f"it answered with status {answer.status}")
    after = _seconds_in(answer.headers.get("retry-after", ""), now_seconds=store.now() / MICROSECONDS)
    raise HttpStatusError(answer.status, request=f"sink {name}", retry_after=after)


def _seconds_in(retry_after: str, *, now_seconds: float) -> float | None:
    """After how long a sink wants to be asked again, if it says so."""
    if retry_after.isascii() and retry_after.isdecimal():
        return min(float(retry_after), RETRY_AFTER_SECONDS_MAX)
    try:
        at = parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    seconds = at.timestamp() - datetime.fromtimestamp(now_seconds, UTC).timestamp()
    return min(max(seconds, 0.0), RETRY_AFTER_SECONDS_MAX)
