"""Flows in an engine."""

from __future__ import annotations

from collections.abc import Iterable

from outlive._features.flows.library.loader import FlowLoader
from outlive._features.flows.library.records import DOCUMENT_CELLS, HISTORY_CELLS, INDEX_CELL
from outlive._kernel.client.client import Client
from outlive._kernel.in_engine import InEngine, InWorker, WorkerParts
from outlive._kernel.model.cells import Cells
from outlive._kernel.runtime.services.service import Service


class FlowsInWorker(InWorker):
    """Gives the worker the flows of the library."""

    def __init__(self, parts: WorkerParts) -> None:
        super().__init__(parts)
        store, environment, options, _, redefine = parts
        nonce = environment.clock.nonce if options.schedules else None
        self._loader = FlowLoader(store, environment.registry, redefine=redefine, nonce=nonce)

    async def before_claims(self) -> None:
        """Load the flows, so that runs of them that were interrupted here go on at once."""
        if self.parts.options.flows:
            await self._loader.look()

    def services(self, client: Client) -> Iterable[Service]:
        """The loader, which loads flows again when they change."""
        return (self._loader,) if self.parts.options.flows else ()


IN_ENGINE = InEngine(
    cells=(
        Cells(name=INDEX_CELL, holds="the index of the library of flows", verb="flow.change", service=FlowLoader.name),
        Cells(name=HISTORY_CELLS, holds="the earlier revisions of a flow, by its name"),
        Cells(name=DOCUMENT_CELLS, holds="the document of a flow, by its hash"),
    ),
    in_worker=FlowsInWorker,
)
