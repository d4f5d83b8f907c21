"""Events that programs send, and triggers: which of them start runs, and what became of an event.

(An event of a journal is another thing: a fact that one run has written. What is meant here comes from outside.)
"""

from __future__ import annotations

import hashlib
from typing import Any, Literal

import msgspec

EVENT = "event"
"""The tag, and the header, of a run that an event has started: the type of the event."""
EVENT_ID = "event_id"
"""The tag, and the header, with the id of that event."""
EVENT_SOURCE = "event_source"
"""The header with the source of the event."""
SINK = "sink"
"""The tag of a delivery: the name of the sink."""
EVENT_HOPS = "event_hops"
"""The header that says how many events, each sent by the run that the one before has started, led to a run."""
HOPS_MAX = 100
"""A run behind so many events sends none: workflows that start each other by events would never end."""
_DIGEST_CHARACTERS = 32


class SentEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event that a program has sent. The source, the type and the id together say which event it is."""

    type: str
    id: str
    source: str = ""
    data: Any = None
    """Plain JSON."""
    time: str = ""
    """When it was sent, in UTC."""

    @property
    def digest(self) -> str:
        """A digest of the event that the ids of all runs have in common which it starts."""
        whole = msgspec.json.encode([self.source, self.type, self.id])
        return hashlib.sha256(whole).hexdigest()[:_DIGEST_CHARACTERS]

    def run_id(self, workflow: str) -> str:
        """The id of the run of this workflow that the event starts: there is one, however often it is sent."""
        return f"{workflow}@{self.digest}"


class EventTrigger(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which events start a run of a workflow, and what the run is given."""

    event: str
    """The type of the events, or a pattern: see `fits`."""
    condition: str = ""
    """An expression over `event`: only an event for which it is true starts a run; empty for every event."""
    input: Any = msgspec.UNSET
    """JSON with expressions over `event`: what the run is given; unless set, the data of the event."""


Layout = Literal["standard", "github"]
"""The content that the signature of a webhook covers: the id, the time and the body (Standard Webhooks), or the body
alone."""


class WebhookTrigger(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A path at which HTTP requests start a run of a workflow, and how these prove who sends them."""

    path: str
    condition: str = ""
    input: Any = msgspec.UNSET
    token: SecretName | None = None
    """The secret with the token that a request has to give."""
    hmac: SecretName | None = None
    """The secret with the key of the signature over the body."""
    layout: Layout = "standard"
    """The content that the signature covers: the receiver decides it, and not the sender."""


class SecretName(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where the value of a secret is found, by the process that needs it."""

    name: str
    env: str | None = None
    """The environment variable that the document names."""


class TriggerSet(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The triggers of one workflow in one version."""

    events: tuple[EventTrigger, ...] = ()
    webhooks: tuple[WebhookTrigger, ...] = ()
    document: bytes = b""
    """The document of a flow in its canonical form, which says what input the flow takes; empty for a workflow in
    Python."""

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.events or self.webhooks)


def fits(pattern: str, event_type: str) -> bool:
    """Whether a pattern names this type: it is the type itself, `order.*` for all that begin with `order.`, or `*`."""
    if pattern.endswith("*"):
        return event_type.startswith(pattern[:-1])
    return pattern == event_type


def is_pattern(text: str) -> bool:
    """Whether it can name types of events: `*` stands at its end, if anywhere."""
    return "*" not in text[:-1]


class StartedRun(msgspec.Struct, frozen=True):
    """A run that an event has started."""

    workflow: str
    run_id: str
    is_new: bool = True
    """False if the event had started it before: it was sent twice."""

    def __repr__(self) -> str:
        return f"<StartedRun {self.run_id} of {self.workflow}{'' if self.is_new else ', which was there'}>"


class RefusedStart(msgspec.Struct, frozen=True):
    """A workflow that has a trigger for an event and cannot be given it."""

    workflow: str
    reason: str

    def __repr__(self) -> str:
        return f"<RefusedStart of {self.workflow}: {self.reason}>"


class Sent(msgspec.Struct, frozen=True):
    """The effects of one event."""

    id: str
    runs: list[StartedRun] = []
    """The runs that it has started, each in the transaction in which the event was taken; empty if no trigger fits."""
    refused: list[RefusedStart] = []
    """Workflows that were not started, because the data does not fit what they take or their trigger cannot read it."""
    deliveries: list[StartedRun] = []
    """The runs of `outlive.delivery` that deliver it to HTTP sinks."""

    def __repr__(self) -> str:
        return (
            f"<Sent {self.id}: {len(self.runs)} runs, {len(self.refused)} refused, {len(self.deliveries)} deliveries>"
        )


class TriggerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The triggers that start runs of a workflow, beside schedules and people."""

    workflow: str
    version: int
    """The version of the workflow that the new runs have."""
    events: list[str] = []
    """Types of events, and patterns."""
    webhooks: list[str] = []
    """Paths."""

    def __repr__(self) -> str:
        return f"<TriggerInfo of {self.workflow}: {' '.join([*self.events, *self.webhooks])}>"
