"""The cells that the kernel itself writes."""

from __future__ import annotations

from outlive._kernel.client.definitions import WORKFLOWS_CELL
from outlive._kernel.client.request_plans import REQUESTS_CELL
from outlive._kernel.model.breaker import BREAKER_CELLS, left_of_breaker
from outlive._kernel.model.burst import BURST_CELLS, left_of_bursts
from outlive._kernel.model.cells import Cells
from outlive._kernel.model.limit import LIMIT_CELLS, left_of_limit
from outlive._kernel.model.pause import PAUSES_CELL
from outlive._kernel.model.queue import QUEUE_CELLS
from outlive._kernel.model.stalls import STALLS_CELL
from outlive._kernel.model.under_way import UNDER_WAY_CELLS
from outlive._kernel.model.worker_steps import STEPS_CELL

KERNEL_CELLS = (
    Cells(name=WORKFLOWS_CELL, holds="the workflows that workers have described"),
    Cells(name=BREAKER_CELLS, holds="the state of a breaker, by its name", left=left_of_breaker),
    Cells(name=LIMIT_CELLS, holds="the state of a limit, by its name", left=left_of_limit),
    Cells(name=BURST_CELLS, holds="the bursts of starts of a workflow", left=left_of_bursts),
    Cells(name=PAUSES_CELL, holds="the workflows that are paused", verb="pause"),
    Cells(name=QUEUE_CELLS, holds="a queue: its limits, and whether it is paused", verb="queue.change"),
    Cells(name=REQUESTS_CELL, holds="the ids that requests for several runs were given"),
    Cells(name=STALLS_CELL, holds="the runs that blocked event loops"),
    Cells(name=STEPS_CELL, holds="what the steps of workers take and give"),
    Cells(name=UNDER_WAY_CELLS, holds="the steps that a worker is in, by its session"),
)
