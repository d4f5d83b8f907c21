"""`engine.events`: sends events, each of which starts one run of every workflow that has a trigger for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Any
from urllib.parse import urlsplit

from outlive._features.events.delivering import deliver
from outlive._features.events.library import LibraryTriggers
from outlive._features.events.matching import Match, Webhook, match
from outlive._features.events.sinks import Sinks, drop_sink, put_sink, read_sinks
from outlive._features.events.triggers import TRIGGERS_CELL, Known, declared_in, forget, triggers_in
from outlive._features.events.values import Sink
from outlive._features.events.workflow import DELIVERY, QUEUE, Delivery
from outlive._kernel.client.acting import doing
from outlive._kernel.client.birth import birth
from outlive._kernel.client.client import Client
from outlive._kernel.client.placing import QueueChoice
from outlive._kernel.journal.described import Described
from outlive._kernel.journal.plain import plain_json
from outlive._kernel.model import given
from outlive._kernel.model.instant import instant_text
from outlive._kernel.model.trigger import (
    EVENT,
    EVENT_HOPS,
    EVENT_ID,
    EVENT_SOURCE,
    HOPS_MAX,
    SINK,
    RefusedStart,
    Sent,
    SentEvent,
    StartedRun,
    TriggerInfo,
    fits,
    is_pattern,
)
from outlive._kernel.store.contract import Change, Outcome
from outlive.errors import InvalidArgumentError
from outlive.telemetry import log

WHERE = "engine.events.send"
_DESCRIBED = Described(arguments={})


class Events:
    """Takes events, and starts the runs that they trigger."""

    def __init__(self, client: Client) -> None:
        self._access, self._starter = client.access, client.starter
        self._new_id = client.new_id
        """An id for an event that has none."""
        self._held: bytes | None = None
        self._known: Known = {}
        self._library = LibraryTriggers()

    async def send(
        self,
        event_type: str,
        data: Any = None,
        *,
        id: str | None = None,
        source: str = "",
        headers: Mapping[str, str] | None = None,
        connection: Any = None,
    ) -> Sent:
        """Send an event: every workflow that has a trigger for it gets one run; what became of it.

        The runs are created in one transaction, and durable when this returns. The same source, type and id again is
        the same event: a workflow that has its run of it gets no other one. So a sender that was not answered, or
        that got `CommitUnknownError`, sends the event again.

        Args:
            event_type: what has happened, for example "order.created".
            data: plain values; dataclasses, msgspec structs and pydantic models become such.
            id: which event it is, for example the id that the sender of a webhook gave it; made up unless given.
            source: where it comes from; ids of two sources do not clash.
            headers: of the runs, beside `event`, `event_id` and `event_source`.
            connection: your own connection to the store's PostgreSQL with an open transaction: the runs exist if and
                only if you commit. See `Engine.start`.

        Raises:
            InvalidArgumentError: the data is not JSON, or the run that sends it was itself started behind too many
            events that runs have sent; nothing was started.
        """
        event = self._event(event_type, data, id, source)
        matches, refused = await match(event, await self._triggers())
        sinks = [each for each in (await self._sinks()).values() if any(fits(it, event.type) for it in each.types)]
        return await self._take(event, matches, refused, sinks, headers=headers, connection=connection)

    async def _take(
        self,
        event: SentEvent,
        matches: Sequence[Match],
        refused: list[RefusedStart],
        sinks: Sequence[Sink] = (),
        *,
        headers: Mapping[str, str] | None = None,
        connection: Any = None,
    ) -> Sent:
        """Create the runs that an event starts, all of them in one transaction; see `send`. For `outlive.http`."""
        said = _headers(event, headers)
        births = [await self._birth(event, each, said) for each in matches]
        births += [await self._delivery(event, each, said) for each in sinks]
        for each in refused:
            log.warning("event %s (%s) did not start workflow %s: %s", event.id, event.type, each.workflow, each.reason)
        if not births and not refused:
            log.info("event %s (%s) fits no trigger", event.id, event.type)
        outcomes = await self._create(births, connection) if births else []
        started = [
            StartedRun(each.runs[0].workflow, each.runs[0].id, outcome is Outcome.COMMITTED)
            for each, outcome in zip(births, outcomes, strict=True)
        ]
        return Sent(event.id, started[: len(matches)], refused, started[len(matches) :])

    async def triggers(self) -> list[TriggerInfo]:
        """The workflows that events and webhooks start, by name."""
        return [
            TriggerInfo(
                workflow=name,
                version=each.version,
                events=[trigger.event for trigger in each.all.events],
                webhooks=[trigger.path for trigger in each.all.webhooks],
            )
            for name, each in sorted((await self._triggers()).items(), key=itemgetter(0))
            if each.all
        ]

    async def forget(self, workflow: str) -> None:
        """Start no runs of a workflow whose code is gone for good. Its triggers come back when a worker starts that has
        it; a flow of the library is disabled or deleted there instead."""
        name = given.text("engine.events.forget", "workflow", workflow, like="order")
        with doing("trigger.forget", name):
            await forget(self._access.store, name)

    # -- Delivering events over HTTP -------------------------------------------------------------------------

    async def add_sink(self, name: str, url: str, *, types: Sequence[str] = ("*",), secret: str | None = None) -> None:
        """Deliver events of these types to an address over HTTP, from now on; a sink of this name is changed.

        Each event is a POST with `id`, `type`, `source`, `time` and `data` as JSON, at least once, with the same
        `webhook-id` every time. It is tried again for about two days while the sink is away or answers with 5xx, 408,
        409, 425 or 429, and given up at once if it answers with another 4xx. Deliveries are runs of `outlive.delivery`,
        with the tag `sink`: failed ones are the dead letters, and `engine.retry` tries them again.

        Args:
            types: the types of events, "order.*" for all that begin with "order."; all unless given.
            secret: the name of the secret whose value signs the deliveries, in the layout of Standard Webhooks. The
                worker that delivers has the value, as steps of flows have theirs.
        """
        where = "engine.events.add_sink"
        wanted = given.texts(where, "types", types, like="order.*")
        if not wanted or not all(map(is_pattern, wanted)):
            advice = "name at least one type of events; `*` stands at the end"
            raise InvalidArgumentError(where, "types", types, advice, example=["order.*"])
        sink = Sink(
            name=given.label(where, name, like="crm"),
            url=_address(where, url),
            types=wanted,
            secret=None if secret is None else _secret_name(where, secret),
        )
        with doing("sink.set", sink.name):
            await put_sink(self._access.store, sink)

    async def remove_sink(self, name: str) -> None:
        """Deliver nothing more to a sink, if there is one. Deliveries that are under way fail."""
        name = given.text("engine.events.remove_sink", "name", name, like="crm")
        with doing("sink.remove", name):
            await drop_sink(self._access.store, name)

    async def sinks(self) -> list[Sink]:
        """All sinks, by name."""
        return sorted((await self._sinks()).values(), key=attrgetter("name"))

    async def _sinks(self) -> Sinks:
        return await read_sinks(self._access.store)

    async def _deliver(self, sink: str, event: SentEvent) -> int:
        """Send an event to a sink, once; the status of its answer. For the step of `outlive.delivery`."""
        return await deliver(self._access.store, sink, event)

    async def _delivery(self, event: SentEvent, sink: Sink, headers: dict[str, str]) -> Change:
        arguments = DELIVERY.signature.encode((Delivery(sink.name, event),), {})
        created, blobs = await self._starter.created_described(
            WHERE,
            DELIVERY.name,
            DELIVERY.version,
            _DESCRIBED,
            arguments,
            tags={EVENT: event.type, EVENT_ID: event.id, SINK: sink.name},
            headers=headers,
            choice=QueueChoice(queue=QUEUE, key=sink.name),
        )
        return birth(event.run_id(f"{DELIVERY.name}.{sink.name}"), created, blobs)

    # -- What others of ours need ----------------------------------------------------------------------------

    def _now(self) -> int:
        """The time by the clock of the store, in microseconds since 1970."""
        return self._access.store.now()

    async def _webhooks(self, path: str) -> list[Webhook]:
        """The webhooks of flows that are at this path."""
        return [
            Webhook(workflow, triggers, trigger)
            for workflow, triggers in sorted((await self._triggers()).items(), key=itemgetter(0))
            for trigger in triggers.all.webhooks
            if trigger.path == path
        ]

    def _event(self, event_type: object, data: object, id: object, source: object) -> SentEvent:
        kind = given.text(WHERE, "event_type", event_type, like="order.created")
        if "*" in kind:
            raise InvalidArgumentError(
                WHERE, "event_type", kind, "`*` is for triggers; give the type of this one event"
            )
        return SentEvent(
            type=kind,
            id=self._new_id() if id is None else given.text(WHERE, "id", id, like="evt_123"),
            source=given.text(WHERE, "source", source, like="shop", least=0),
            data=plain_json(WHERE, data),
            time=instant_text(self._access.store.now()),
        )

    async def _triggers(self) -> Known:
        """The triggers that the store knows, and those of this process that no worker has declared yet. A flow of the
        library takes the place of code that has its name."""
        held = await self._access.store.read_cell(TRIGGERS_CELL)
        if held != self._held:
            self._held, self._known = held, triggers_in(held)
        library = await self._library.read(self._access.store)
        known = declared_in(self._access.registry) | self._known
        if not library:
            return known
        return {name: each for name, each in (known | library).items() if each is not None}

    async def _birth(self, event: SentEvent, match: Match, headers: dict[str, str]) -> Change:
        created, blobs = await self._starter.created_described(
            WHERE,
            match.workflow,
            match.triggers.version,
            match.triggers.described,
            match.arguments,
            tags={EVENT: event.type, EVENT_ID: event.id},
            headers=headers,
        )
        return birth(event.run_id(match.workflow), created, blobs)

    async def _create(self, births: list[Change], connection: Any) -> list[Outcome]:
        """Create the runs of an event, all of them in one transaction; runs that exist stay as they are."""
        store = self._access.store
        if connection is not None:
            return [await store.request_start(connection, each) for each in births]
        async with self._access.admission.start(*(each.runs[0].id for each in births)):
            outcomes = [outcome for outcome, _ in await store.commit(births)]
        self._access.ring()
        return outcomes


def _headers(event: SentEvent, given_: object) -> dict[str, str]:
    """The headers of the runs that an event starts.

    Raises:
        InvalidArgumentError: the run that sends it is behind too many events.
    """
    said = given.headers(WHERE, given_)
    hops = said.get(EVENT_HOPS, "0")
    if not hops.isdecimal() or int(hops) >= HOPS_MAX:
        wanted = (
            f"it was started behind {hops} events, each of them sent by a run that the one before has started; "
            f"workflows that start each other in a circle never end: let one of them send another type"
        )
        raise InvalidArgumentError(WHERE, "event_type", event.type, wanted)
    own = {EVENT: event.type, EVENT_ID: event.id, EVENT_HOPS: str(int(hops) + 1)}
    return said | own | ({EVENT_SOURCE: event.source} if event.source else {})


def _secret_name(where: str, secret: object) -> str:
    name = given.text(where, "secret", secret, like="crm_key")
    if not name.isidentifier() or name.startswith("whsec_"):
        # The value is not said again: it may be the secret itself, and errors are logged.
        wanted = (
            "give the name of a secret, letters, digits and `_`, and not its value: the worker that delivers finds the "
            "value of `crm_key` in OUTLIVE_SECRET_CRM_KEY"
        )
        raise InvalidArgumentError(where, "secret", "...", wanted)
    return name


def _address(where: str, url: object) -> str:
    plain = given.text(where, "url", url, like="https://crm.example/hooks", most=given.TEXT_CHARACTERS_MAX)
    parts = urlsplit(plain)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidArgumentError(where, "url", url, "give an address that begins with https:// or http://")
    if parts.username or parts.password:
        wanted = "it has a password in it, and is shown to people; sign the deliveries instead, with a secret"
        raise InvalidArgumentError(where, "url", f"{parts.scheme}://...", wanted)
    return plain
