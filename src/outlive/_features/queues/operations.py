"""Queues: how full they are, what they allow, pausing them."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType, structs

import outlive.errors as e
from outlive._kernel.model.limit import Tier, TokenBucket
from outlive._kernel.model.queue import SLOTS_MAX, TIERS_MAX, WEIGHT_MAX, WEIGHT_MIN, WEIGHTS_MAX, WINDOWS, TierKind
from outlive._kernel.values.queue import QueueState
from outlive.errors.run import QueueNotFoundError
from outlive.http.operation import Call, operation
from outlive.http.wire.page import Done, Name, Span, seconds_of
from outlive.http.wire.runs import Attributed

MISSING = (QueueNotFoundError,)
Weight = Annotated[float, Meta(ge=WEIGHT_MIN, le=WEIGHT_MAX)]
Most = Annotated[int, Meta(ge=1, le=SLOTS_MAX)] | None | UnsetType


class SetTier(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many runs may begin: tokens a second and at once, or runs in a window of time."""

    kind: TierKind
    """`window` for a `FixedWindow`, `sliding` for a `SlidingWindow`."""
    amount: Annotated[float, Meta(gt=0)]
    """Tokens a second of a bucket; runs in one window."""
    burst: Annotated[int, Meta(ge=1)] | None = None
    """Tokens that a bucket holds; the amount rounded up unless given."""
    span: Span | None = None
    """How long a window is."""


class SetQueue(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits to change; what is left out stays, and null removes the limit."""

    concurrency: Most = UNSET
    """Slots in all workers: runs under way at once, if each takes one."""
    per_worker: Most = UNSET
    """Slots in one worker."""
    per_key: Most = UNSET
    """Runs under way at once with the same key."""
    rate: Annotated[list[SetTier], Meta(max_length=TIERS_MAX)] | UnsetType | None = UNSET
    """How often runs may begin; all of them hold at once."""
    weights: Annotated[dict[str, Weight], Meta(max_length=WEIGHTS_MAX)] | UnsetType | None = UNSET
    """How many turns a key has when others have one; all that have other than one."""


class QueuesList(Struct, frozen=True):
    """Queues."""

    items: list[QueueState]


@operation("queues.list", "GET", "/queues", scope="viewer")
async def list_queues(call: Call) -> QueuesList:
    """Every queue that has runs, that was changed, or that code declares; by name."""
    return QueuesList(await call.engine.queues.list())


@operation("queues.stats", "GET", "/queues/{name}", scope="viewer", raises=MISSING)
async def get_queue(call: Call, name: Name) -> QueueState:
    """How full a queue is, which runs hold its slots, and what it allows."""
    return await call.engine.queues.stats(name)


@operation("queues.set", "PUT", "/queues/{name}", scope="admin")
async def set_queue(call: Call, name: Name, body: SetQueue) -> QueueState:
    """Change limits of a queue, for all workers and until they are reset."""
    given = {limit: value for limit, value in structs.asdict(body).items() if value is not UNSET}
    if body.rate:
        given["rate"] = [_tier_of(tier) for tier in body.rate]
    await call.engine.queues.set(name, **given)
    return await call.engine.queues.stats(name)


@operation("queues.reset", "POST", "/queues/{name}/reset", scope="admin", raises=MISSING)
async def reset_queue(call: Call, name: Name) -> QueueState:
    """Let the limits count again that code declares."""
    await call.engine.queues.reset(name)
    return await call.engine.queues.stats(name)


@operation("queues.pause", "POST", "/queues/{name}/pause", scope="operator", raises=MISSING)
async def pause_queue(call: Call, name: Name, body: Attributed | None = None) -> Done:
    """Give no more slots; runs that hold one go on, and new ones may be started."""
    said = body or Attributed()
    await call.engine.queues.pause(name, by=call.person(said.by), reason=said.reason)
    return Done(name)


@operation("queues.resume", "POST", "/queues/{name}/resume", scope="operator", raises=MISSING)
async def resume_queue(call: Call, name: Name) -> Done:
    """Give slots again."""
    await call.engine.queues.resume(name)
    return Done(name)


def _tier_of(said: SetTier) -> Tier:
    foreign = "span" if said.kind == "bucket" else "burst"
    if (given := getattr(said, foreign)) is not None:
        raise e.InvalidArgumentError("rate", foreign, given, f"leave it out: kind {said.kind!r} has none")
    if said.kind == "bucket":
        return TokenBucket(said.amount, said.burst or 0)
    if said.span is None:
        raise e.InvalidArgumentError("rate", "span", None, "say how long the window is", example="1m")
    if not said.amount.is_integer():
        raise e.InvalidArgumentError("rate", "amount", said.amount, "the amount of a window is a whole number of runs")
    return WINDOWS[said.kind](int(said.amount), seconds_of(said.span))
