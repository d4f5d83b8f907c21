"""Events: what has happened starts runs, and is delivered to sinks. (Webhooks of flows are at `/webhooks`.)"""

from __future__ import annotations

from msgspec import Struct, structs

import outlive.errors as e
from outlive._features.events.values import Sink
from outlive._features.flows.outside import settings
from outlive._features.flows.outside.allowed_hosts import parse_url
from outlive._kernel.model.trigger import Sent, StartedRun, TriggerInfo
from outlive.http.asked import made_id
from outlive.http.operation import Call, operation
from outlive.http.principal import LOCAL
from outlive.http.problem import Problem
from outlive.http.wire.page import Done, Json, Name


class SendEvent(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that has happened."""

    type: Name
    """For example `order.created`."""
    data: Json = None
    id: Name | None = None
    """The id of the event: with the same source, type and id it is the same event; made of the header `Idempotency-Key`
    unless given."""
    source: str = ""
    headers: dict[str, str] | None = None


class TriggersList(Struct, frozen=True):
    """Triggers."""

    items: list[TriggerInfo]


class SinksList(Struct, frozen=True):
    """Sinks."""

    items: list[Sink]


class SetSink(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where to deliver which events."""

    url: str
    types: list[Name] = []
    """For example `order.*`; all unless given."""
    secret: Name | None = None


@operation("events.send", "POST", "/events", scope="operator", answers=202, raises=(e.PayloadTooLargeError,))
async def send_event(call: Call, body: SendEvent) -> Sent:
    """Send an event: every workflow that has a trigger for it gets one run. The same event again starts nothing."""
    event_id = body.id or made_id(call, "event", body.type)
    sent = await call.engine.events.send(body.type, body.data, id=event_id, source=body.source, headers=body.headers)
    runs, deliveries = [[await _seen(call, it) for it in started] for started in (sent.runs, sent.deliveries)]
    return structs.replace(sent, runs=runs, deliveries=deliveries)


async def _seen(call: Call, it: StartedRun) -> StartedRun:
    """A run as this request, or an earlier try of it, has started it."""
    return structs.replace(it, is_new=it.is_new or await call.was_done(it.run_id))


@operation("events.triggers", "GET", "/triggers", scope="viewer")
async def list_triggers(call: Call) -> TriggersList:
    """The workflows that events and webhooks start, by name."""
    return TriggersList(await call.engine.events.triggers())


@operation("events.forget", "DELETE", "/triggers/{workflow}", scope="admin")
async def forget_triggers(call: Call, workflow: str) -> Done:
    """Start no runs of a workflow whose code is gone for good."""
    await call.engine.events.forget(workflow)
    return Done(workflow)


@operation("events.sinks", "GET", "/sinks", scope="viewer")
async def list_sinks(call: Call) -> SinksList:
    """Where events are delivered to, over HTTP."""
    return SinksList(await call.engine.events.sinks())


@operation("events.add_sink", "PUT", "/sinks/{name}", scope="admin")
async def add_sink(call: Call, name: Name, body: SetSink) -> Done:
    """Deliver events of these types to an address, from now on.

    A sink that comes with a key names a secret only for servers that the operator lists for it.
    """
    if body.secret is not None and call.principal is not LOCAL:
        _check_secret(body.secret, body.url)
    await call.engine.events.add_sink(name, body.url, types=body.types or ("*",), secret=body.secret)
    return Done(name)


def _check_secret(secret: str, url: str) -> None:
    """See that the operator says that this secret signs what is sent to this server: a signature for a server of
    strangers can be sent on to another one that believes it.

    Raises:
        Problem: the operator does not say that. UrlError: nothing can be sent there.
    """
    places = settings.current().bounds_of(secret).places
    target = parse_url(url)
    if places is None or not any(place.has(target) for place in places):
        detail = f"a sink that comes with a key may not name this secret for {target.origin}"
        advice = "Let the operator list that server in `hosts` of the secret: [flows.grants.NAME] of the server."
        raise Problem(403, "forbidden", detail, advice)


@operation("events.remove_sink", "DELETE", "/sinks/{name}", scope="admin")
async def remove_sink(call: Call, name: Name) -> Done:
    """Deliver nothing more to a sink. Deliveries that are under way fail."""
    await call.engine.events.remove_sink(name)
    return Done(name)
