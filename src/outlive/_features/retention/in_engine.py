"""Retention in an engine."""

from __future__ import annotations

from collections.abc import Iterable

from outlive._features.retention.blob_collector import BLOBS_CELL, BlobCollector
from outlive._features.retention.cell_collector import CELL_TURNS_CELL, CellCollector
from outlive._features.retention.pruner import RETENTION_CELL, Pruner
from outlive._kernel.client.client import Client
from outlive._kernel.in_engine import InEngine, InWorker
from outlive._kernel.model.cells import Cells
from outlive._kernel.model.retention import Keep
from outlive._kernel.runtime.services.service import Service


class RetentionInWorker(InWorker):
    """Deletes runs, blobs and cells that are kept no longer."""

    def services(self, client: Client) -> Iterable[Service]:
        """The pruner and the collectors, if the engine has rules."""
        store, environment, _, retention, _ = self.parts
        rules, counters = [keep for keep in retention if isinstance(keep, Keep)], environment.counters
        if rules:
            rate = environment.limits.deletes_per_second_max
            yield Pruner(store, rules, clock=environment.clock, counters=counters, deletes_per_second_max=rate)
            yield BlobCollector(store, packer=environment.packer, counters=counters)
            yield CellCollector(store, counters=counters)


IN_ENGINE = InEngine(
    cells=(
        Cells(name=RETENTION_CELL, holds="whose turn it is to delete runs, and how far that is"),
        Cells(name=BLOBS_CELL, holds="whose turn it is to delete blobs, and how far that is"),
        Cells(name=CELL_TURNS_CELL, holds="whose turn it is to remove cells, and how far that is"),
    ),
    in_worker=RetentionInWorker,
)
