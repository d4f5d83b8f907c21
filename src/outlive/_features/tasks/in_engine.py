"""Tasks in an engine."""

from outlive._kernel.in_engine import InEngine
from outlive._kernel.model.cells import Cells
from outlive._kernel.model.worker_steps import REMOTE_STEPS_CELLS, left_of_remote_steps

IN_ENGINE = InEngine(
    cells=(
        Cells(
            name=REMOTE_STEPS_CELLS,
            holds="what remote workers can do, by their queue",
            left=left_of_remote_steps,
        ),
    ),
)
