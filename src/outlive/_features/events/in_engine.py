"""Events in an engine."""

from outlive._features.events.sinks import SINKS_CELL
from outlive._features.events.triggers import TRIGGERS_CELL, declare
from outlive._features.events.workflow import DeliveryWorkflows
from outlive._kernel.in_engine import InEngine, InWorker
from outlive._kernel.model.cells import Cells


class EventsInWorker(InWorker):
    """Declares the triggers of the code."""

    async def declare(self) -> None:
        """Let the store know the triggers that the code declares."""
        registry, store = self.parts.environment.registry, self.parts.store
        if registry.triggers():
            await declare(registry, store, began_at=store.now())


IN_ENGINE = InEngine(
    own=(DeliveryWorkflows(),),
    cells=(
        Cells(name=SINKS_CELL, holds="the sinks of events", verb="sink.change"),
        Cells(name=TRIGGERS_CELL, holds="the triggers that code has declared", verb="trigger.change"),
    ),
    in_worker=EventsInWorker,
)
