"""A built-in workflow that delivers one event to one HTTP sink.

    outlive.delivery@1      sends the event until the sink has taken it

The outbox towards the world is these runs: they are created in the transaction that takes the event. What is pending is
a run that waits, with its attempts and the time of the next one in its journal; what could not be delivered is a run
that has failed, which a person finds and retries as every other run.
"""

from __future__ import annotations

import msgspec

from outlive._kernel.define.in_step import CURRENT_STEP
from outlive._kernel.define.own import OwnWorkflows
from outlive._kernel.journal.arguments import Signature
from outlive._kernel.model import Retry
from outlive._kernel.model.queue import Queue
from outlive._kernel.model.trigger import SentEvent
from outlive._kernel.replay.ask import run_step, this_execution
from outlive._kernel.replay.command import StepOptions, StepSpec, WorkflowSpec
from outlive.errors import EngineClosedError, OutliveError, StoreUnavailableError
from outlive.errors.outside import AnswerError, DeliveryRefusedError, HttpStatusError, UnreachableError

QUEUE = Queue("outlive.deliveries", concurrency=100, per_key=10, hold="running")
"""A sink that is slow, and one that is away, leaves slots to the others. A delivery that waits for its next attempt
holds none."""
AGAIN = Retry(
    attempts=15,
    first=5,
    factor=3,
    cap=6 * 3600,
    jitter=0.2,
    on=(UnreachableError, AnswerError, HttpStatusError, StoreUnavailableError, EngineClosedError),
)
"""For about two days: seconds at first, six hours in the end. A sink may say itself when it wants to be asked again."""


class Delivery(msgspec.Struct, frozen=True):
    """A delivery: an event, and the sink to which it goes."""

    sink: str
    event: SentEvent


async def _deliver(delivery: Delivery) -> int:
    """The status of the answer."""
    execution = this_execution("delivery")
    status: int = await run_step(execution, _STEP, _STEP.options, (delivery,), {})
    return status


async def _send(delivery: Delivery) -> int:
    engine = CURRENT_STEP.get().engine
    assert engine is not None
    return await engine.events._deliver(delivery.sink, delivery.event)


_STEP = StepSpec(
    name="outlive.deliver",
    fn=_send,
    signature=Signature(_send, "outlive.deliver"),
    is_async=True,
    options=StepOptions(retry=AGAIN),
    registered=(OutliveError, DeliveryRefusedError),
)
DELIVERY = WorkflowSpec(
    name="outlive.delivery",
    version=1,
    fn=_deliver,
    signature=Signature(_deliver, "outlive.delivery"),
    registered=(OutliveError,),
    queue=QUEUE,
)


class DeliveryWorkflows(OwnWorkflows):
    """The runs that deliver events to sinks."""

    prefix = DELIVERY.name
    specs = retried = (DELIVERY,)
