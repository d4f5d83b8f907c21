"""Starting a batch: the rows are stored first, then the one run that looks after them is started."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

import msgspec

from outlive._define.batch import BATCH, Plan, chunk_name
from outlive._define.step import Step
from outlive._define.workflow import Workflow
from outlive._journal.packing import Packer
from outlive._model import check_run_id, check_tags
from outlive._replay.command import StepSpec, WorkflowSpec
from outlive.client.batch import Batch, Reader
from outlive.client.cutting import Rows, cut
from outlive.client.handle import RunHandle
from outlive.errors import ConfigurationError, RunExistsError

_BATCH: Workflow[[Plan], Any] = Workflow(BATCH, {})


class Tolerates(Protocol):
    """How many items may fail: `outlive.Tolerance`."""

    @property
    def failures(self) -> int | None:
        """So many."""

    @property
    def ratio(self) -> float | None:
        """Such a share of all."""


class Start(Protocol):
    """How the client starts a run."""

    async def __call__(
        self, workflow: Workflow[..., Any], *args: Any, id: str | None, tags: dict[str, str] | None
    ) -> RunHandle[Any]:
        """Start a run, or attach to that of this id."""


class Batches:
    """Starts batches, and finds them again."""

    def __init__(
        self, *, packer: Packer, reader: Reader, start: Start, get: Callable[[str], Any], new_id: Callable[[], str]
    ) -> None:
        self._packer = packer
        self._reader = reader
        self._start = start
        self._get = get
        self._new_id = new_id

    async def start(
        self,
        work: Callable[[Any], Coroutine[object, None, Any]],
        rows: Rows,
        *,
        concurrency: int,
        id: str | None,
        tags: dict[str, str] | None,
        tolerate: Tolerates | None,
    ) -> Batch[Any]:
        """Start a batch. See `Engine.start_batch`."""
        item = _item_of(work)
        if concurrency < 1:
            raise ConfigurationError(f"start_batch(concurrency={concurrency!r}): it must be 1 or more")
        run_id = self._new_id() if id is None else check_run_id(id)
        check_tags(tags)  # Before the rows are read, which can be done once only.
        if id is None or await self._reader.store.find_run(run_id) is None:
            name, version = chunk_name(item)
            chunks = await cut(item, rows, batch_id=run_id, packer=self._packer, store=self._reader.store)
            plan = Plan(item=name, version=version, chunks=chunks, concurrency=concurrency)
            if tolerate is not None:
                plan = _tolerating(plan, tolerate)
            await self._start(_BATCH, plan, id=run_id, tags=tags)
        return await self._attach(run_id, item)

    async def _attach(self, run_id: str, item: StepSpec | WorkflowSpec) -> Batch[Any]:
        """The batch of this id, if it is one of this item."""
        batch = self.get(run_id)
        run = await batch.run.info()
        plan = await self._reader.plan_of(run)
        if (plan.item, plan.version) != chunk_name(item):
            raise RunExistsError(run_id, f"{run.status.value}, a batch of {plan.item.rpartition(':')[2]}")
        return batch

    def get(self, run_id: str) -> Batch[Any]:
        """A batch by its id. See `Engine.get_batch`."""
        return Batch(self._get(run_id), self._reader)


def _item_of(work: Any) -> StepSpec | WorkflowSpec:
    if not isinstance(work, Step | Workflow):
        raise TypeError(f"start_batch({work!r}, ...): give it a step or a workflow")
    if isinstance(work, Workflow):
        work._check_startable()
    if isinstance(work, Step) and work.has_own_options:
        raise ConfigurationError(
            f"start_batch({work!r}, ...): options of a call are not kept with a batch; put them into @outlive.step(...)"
        )
    if not work.spec.signature.takes_one:
        raise TypeError(f"start_batch({work!r}, ...): it is called with one argument, the row, and does not take that")
    return work.spec


def _tolerating(plan: Plan, tolerate: Tolerates) -> Plan:
    """The plan with the number of failures that is too many by whichever measure is stricter."""
    limits = [] if tolerate.failures is None else [tolerate.failures]
    limits += [] if tolerate.ratio is None else [int(tolerate.ratio * plan.total)]
    return msgspec.structs.replace(plan, failures_max=min(limits, default=None))
