"""`engine.events`: sends events, each of which starts one run of every workflow that has a trigger for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

from outlive._journal.plain import plain_json
from outlive._model import given
from outlive._model.schedule import tick_text
from outlive._model.trigger import (
    EVENT,
    EVENT_HOPS,
    EVENT_ID,
    EVENT_SOURCE,
    HOPS_MAX,
    RefusedStart,
    Sent,
    SentEvent,
    StartedRun,
)
from outlive._store.contract import Change, Outcome
from outlive.client.access import Access
from outlive.client.birth import birth
from outlive.client.events.matching import Match, Webhook, match
from outlive.client.events.triggers import CELL, Known, declared_in, triggers_in
from outlive.client.starting import Starter
from outlive.errors import InvalidArgumentError
from outlive.telemetry import log

WHERE = "engine.events.send"


class Events:
    """Takes events, and starts the runs that they trigger."""

    def __init__(self, access: Access, *, starter: Starter, new_id: Callable[[], str]) -> None:
        self._access = access
        self._starter = starter
        self.new_id = new_id
        """An id for an event that has none."""
        self._held: bytes | None = None
        self._known: Known = {}

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
            InvalidArgumentError: the data is no JSON, or the run that sends it was itself started behind too many
            events that runs have sent; nothing was started.
        """
        event = self._event(event_type, data, id, source)
        matches, refused = match(event, await self._triggers())
        return await self.take(event, matches, refused, headers=headers, connection=connection)

    async def take(
        self,
        event: SentEvent,
        matches: list[Match],
        refused: list[RefusedStart],
        *,
        headers: Mapping[str, str] | None = None,
        connection: Any = None,
    ) -> Sent:
        """Create the runs that an event starts, all of them in one transaction; see `send`."""
        said = _headers(event, headers)
        births = [await self._birth(event, each, said) for each in matches]
        for each in refused:
            log.warning("event %s (%s) did not start workflow %s: %s", event.id, event.type, each.workflow, each.reason)
        outcomes = await self._create(births, connection) if births else []
        runs = [
            StartedRun(each.workflow, event.run_id(each.workflow), outcome is Outcome.COMMITTED)
            for each, outcome in zip(matches, outcomes, strict=True)
        ]
        if not runs and not refused:
            log.info("event %s (%s) fits no trigger", event.id, event.type)
        return Sent(event.id, runs, refused)

    def now(self) -> int:
        """The time by the clock of the store, in microseconds since 1970."""
        return self._access.store.now()

    async def webhooks(self, path: str) -> list[Webhook]:
        """The webhooks of flows that are at this path."""
        return [
            Webhook(workflow, triggers, trigger)
            for workflow, triggers in sorted((await self._triggers()).items(), key=itemgetter(0))
            for trigger in triggers.all.webhooks
            if trigger.path == path
        ]

    def _event(self, event_type: object, data: object, id: object, source: object) -> SentEvent:
        return SentEvent(
            type=given.text(WHERE, "event_type", event_type, like="order.created"),
            id=self.new_id() if id is None else given.text(WHERE, "id", id, like="evt_123"),
            source=given.text(WHERE, "source", source, like="shop", least=0),
            data=plain_json(WHERE, data),
            time=tick_text(self._access.store.now()),
        )

    async def _triggers(self) -> Known:
        """The triggers that the store knows, and those of this process that no worker has declared yet."""
        held = await self._access.store.read_cell(CELL)
        if held != self._held:
            self._held, self._known = held, triggers_in(held)
        return declared_in(self._access.registry) | self._known

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
        """Create the runs of an event, all of them in one transaction; those that exist stay as they are."""
        store = self._access.store
        if connection is not None:
            return [await store.request_start(connection, each) for each in births]
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
