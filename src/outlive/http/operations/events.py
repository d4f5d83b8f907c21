"""Events: what has happened starts runs, and is delivered to sinks. (Webhooks of flows are at `/webhooks`.)"""

from __future__ import annotations

from msgspec import Struct

import outlive.errors as e
from outlive._model.trigger import StartedRun
from outlive.client.events.sinks import Sink
from outlive.http.operation import Call, operation
from outlive.http.operations.runs import made_id
from outlive.http.wire.page import Done, Json, Name


class SendEvent(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that has happened."""

    type: Name
    """For example `order.created`."""
    data: Json = None
    id: Name | None = None
    """The same source, type and id again is the same event; made of the header `Idempotency-Key` unless given."""
    source: str = ""
    headers: dict[str, str] | None = None


class StartedBy(Struct, frozen=True):
    """A run that an event has started."""

    workflow: str
    run_id: str
    is_new: bool = True
    """False if the event had started it before: it was sent twice."""


class RefusedBy(Struct, frozen=True):
    """A workflow that was not started, and why."""

    workflow: str
    reason: str


class SentView(Struct, frozen=True):
    """What became of an event."""

    id: str
    runs: list[StartedBy]
    refused: list[RefusedBy]
    deliveries: list[StartedBy]
    """Runs that deliver it to sinks."""


class TriggerView(Struct, frozen=True):
    """What starts runs of a workflow, beside schedules and people."""

    workflow: str
    version: int
    events: list[str]
    webhooks: list[str]


class TriggersList(Struct, frozen=True):
    """Triggers."""

    items: list[TriggerView]


class SinkView(Struct, frozen=True):
    """Where events of some types are delivered to."""

    name: str
    url: str
    types: list[str]
    secret: str | None
    """The name of the secret that signs the deliveries; its value is not stored."""


class SinksList(Struct, frozen=True):
    """Sinks."""

    items: list[SinkView]


class SetSink(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where to deliver which events."""

    url: str
    types: list[Name] = []
    """For example `order.*`; all unless given."""
    secret: Name | None = None


@operation("events.send", "POST", "/events", scope="operator", answers=202, raises=(e.PayloadTooLargeError,))
async def send_event(call: Call, body: SendEvent) -> SentView:
    """Send an event: every workflow that has a trigger for it gets one run. The same event again starts nothing."""
    event_id = body.id or made_id(call, "event", body.type)
    sent = await call.engine.events.send(body.type, body.data, id=event_id, source=body.source, headers=body.headers)
    return SentView(
        sent.id,
        [await _started(call, it) for it in sent.runs],
        [RefusedBy(it.workflow, it.reason) for it in sent.refused],
        [await _started(call, it) for it in sent.deliveries],
    )


async def _started(call: Call, it: StartedRun) -> StartedBy:
    return StartedBy(it.workflow, it.run_id, it.is_new or await call.was_done(it.run_id))


@operation("events.triggers", "GET", "/triggers", scope="viewer")
async def list_triggers(call: Call) -> TriggersList:
    """What events and webhooks start, by the name of the workflow."""
    found = await call.engine.events.triggers()
    return TriggersList([TriggerView(it.workflow, it.version, it.events, it.webhooks) for it in found])


@operation("events.forget", "DELETE", "/triggers/{workflow}", scope="admin")
async def forget_triggers(call: Call, workflow: str) -> Done:
    """Start no runs of a workflow whose code is gone for good."""
    await call.engine.events.forget(workflow)
    return Done(workflow)


@operation("events.sinks", "GET", "/sinks", scope="viewer")
async def list_sinks(call: Call) -> SinksList:
    """Where events are delivered to, over HTTP."""
    return SinksList([_view(it) for it in await call.engine.events.sinks()])


@operation("events.set_sink", "PUT", "/sinks/{name}", scope="admin")
async def set_sink(call: Call, name: Name, body: SetSink) -> Done:
    """Deliver events of these types to an address, from now on."""
    await call.engine.events.add_sink(name, body.url, types=body.types or ("*",), secret=body.secret)
    return Done(name)


@operation("events.remove_sink", "DELETE", "/sinks/{name}", scope="admin")
async def remove_sink(call: Call, name: Name) -> Done:
    """Deliver nothing more to a sink. Deliveries that are under way fail."""
    await call.engine.events.remove_sink(name)
    return Done(name)


def _view(it: Sink) -> SinkView:
    return SinkView(it.name, it.url, list(it.types), it.secret)
