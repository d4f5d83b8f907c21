"""Queues: how full they are, what they allow, pausing them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, structs

import outlive.errors as e
from outlive._model.limit import FixedWindow, TokenBucket
from outlive._model.queue import SLOTS_MAX, TIERS_MAX, WEIGHT_MAX, WEIGHT_MIN, WEIGHTS_MAX, Hold, RateTier
from outlive._values.run import Status
from outlive.client.queues import QueueInfo
from outlive.http.operation import Call, operation
from outlive.http.wire.page import Done, Name
from outlive.http.wire.runs import CountView, Reasoned

MISSING = (e.QueueNotFoundError,)
Weight = Annotated[float, Meta(ge=WEIGHT_MIN, le=WEIGHT_MAX)]
Most = Annotated[int, Meta(ge=1, le=SLOTS_MAX)] | None | UnsetType


class RateView(Struct, frozen=True):
    """How many runs may begin: tokens a second and at once, or runs in a window of seconds."""

    kind: Literal["bucket", "window"]
    amount: Annotated[float, Meta(gt=0)]
    """Tokens a second of a bucket; runs in one window."""
    extent: Annotated[float, Meta(gt=0)]
    """Tokens that a bucket holds; seconds of a window."""


class SetQueue(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits to change; what is left out stays, and null is no limit."""

    concurrency: Most = UNSET
    """Runs under way at once in all workers."""
    per_worker: Most = UNSET
    """Those of one worker."""
    per_key: Most = UNSET
    """Those with the same key."""
    rate: Annotated[list[RateView], Meta(max_length=TIERS_MAX)] | UnsetType | None = UNSET
    """How often runs may begin; all of them hold at once."""
    weights: Annotated[dict[str, Weight], Meta(max_length=WEIGHTS_MAX)] | UnsetType | None = UNSET
    """How many turns a key has when others have one; all that have other than one."""


class QueueLimitsView(Struct, frozen=True):
    """What a queue allows; null for no limit."""

    concurrency: int | None
    per_worker: int | None
    per_key: int | None
    rate: list[RateView]
    priorities: bool
    """Whether runs with a higher priority go first."""
    ageing: float
    """Seconds of waiting that count as much as one step of priority."""
    weights: dict[str, float]
    """How often keys have their turn, where that is not once."""
    hold: Hold
    """Until when a run keeps its slot: to its `end`, or only while it is `running`."""


class HolderView(Struct, frozen=True):
    """A run that holds a slot."""

    id: str
    key: str
    status: Status
    worker: str


class WaitingKeyView(Struct, frozen=True):
    """A key of which runs wait for a slot."""

    key: str
    """Empty for the runs without one."""
    in_line: CountView
    """Its runs that wait, counted up to 1,000."""
    waiting: float
    """Seconds that the run has waited that waits longest of those that are first in its lines."""


class QueueView(Struct, frozen=True, kw_only=True):
    """A queue as it is now."""

    name: str
    limits: QueueLimitsView
    changed: list[str]
    """The limits that were set at run time."""
    paused: str
    """Why it gives no slots; empty if it does."""
    in_line: CountView
    """Runs that wait for a slot."""
    running: CountView
    """Runs that hold one."""
    later: CountView
    """Runs that will get in line at an instant of their own."""
    waiting: float | None
    """Seconds that the run has waited that waits longest of those that are first in their lines."""
    holders: list[HolderView]
    keys: list[WaitingKeyView] = []
    """Up to 20 keys that wait, the one that waits longest first."""


class QueuesList(Struct, frozen=True):
    """Queues."""

    items: list[QueueView]


@operation("GET", "/queues", scope="viewer")
async def list_queues(call: Call) -> QueuesList:
    """Every queue that has runs, that was changed, or that code declares; by name."""
    return QueuesList([_view(it) for it in await call.engine.queues.list()])


@operation("GET", "/queues/{name}", scope="viewer", raises=MISSING)
async def get_queue(call: Call, name: Name) -> QueueView:
    """How full a queue is, which runs hold its slots, and what it allows."""
    return _view(await call.engine.queues.stats(name))


@operation("PUT", "/queues/{name}", scope="admin")
async def set_queue(call: Call, name: Name, body: SetQueue) -> QueueView:
    """Change limits of a queue, for all workers and until they are reset."""
    given = {limit: value for limit, value in structs.asdict(body).items() if value is not UNSET}
    if body.rate:
        given["rate"] = [_tier_of(tier) for tier in body.rate]
    await call.engine.queues.set(name, **given)
    return _view(await call.engine.queues.stats(name))


@operation("POST", "/queues/{name}/reset", scope="admin", raises=MISSING)
async def reset_queue(call: Call, name: Name) -> QueueView:
    """Let the limits count again that code declares."""
    await call.engine.queues.reset(name)
    return _view(await call.engine.queues.stats(name))


@operation("POST", "/queues/{name}/pause", scope="operator", raises=MISSING)
async def pause_queue(call: Call, name: Name, body: Reasoned | None = None) -> Done:
    """Give no more slots; runs that hold one go on, and new ones may be started."""
    await call.engine.queues.pause(name, by=call.principal.name, reason=(body or Reasoned()).reason)
    return Done(name)


@operation("POST", "/queues/{name}/resume", scope="operator", raises=MISSING)
async def resume_queue(call: Call, name: Name) -> Done:
    """Give slots again."""
    await call.engine.queues.resume(name)
    return Done(name)


def _view(it: QueueInfo) -> QueueView:
    limits, waiting = it.limits, it.waiting
    return QueueView(
        name=it.name,
        limits=QueueLimitsView(
            limits.concurrency,
            limits.per_worker,
            limits.per_key,
            [_rate(tier) for tier in limits.rate],
            limits.priorities,
            limits.ageing,
            limits.weights,
            limits.hold,
        ),
        changed=list(it.changed),
        paused=it.paused,
        in_line=_count(it.in_line),
        running=_count(it.running),
        later=_count(it.later),
        waiting=None if waiting is None else waiting.total_seconds(),
        holders=[HolderView(each.id, each.key, each.status, each.worker) for each in it.holders],
        keys=[WaitingKeyView(each.key, _count(each.in_line), each.waiting.total_seconds()) for each in it.keys],
    )


def _tier_of(view: RateView) -> TokenBucket | FixedWindow:
    name, number = ("extent", view.extent) if view.kind == "bucket" else ("amount", view.amount)
    if not number.is_integer():
        raise e.InvalidArgumentError("rate", name, number, f"the {name} of a {view.kind} is a whole number of runs")
    return RateTier(view.kind, view.amount, view.extent).tier


def _rate(tier: RateTier) -> RateView:
    return RateView(tier.kind, tier.amount, tier.extent)


def _count(count: Any) -> CountView:
    return CountView(int(count), count.at_least)
