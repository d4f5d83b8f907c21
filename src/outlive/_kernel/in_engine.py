"""The part of a feature in an engine: the workflows and cells that it brings, and its part of a worker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from outlive._kernel.client.client import Client
from outlive._kernel.define.own import OwnWorkflows
from outlive._kernel.model.cells import Cells
from outlive._kernel.model.retention import Keep, KeepAudit
from outlive._kernel.model.worker import WorkerOptions
from outlive._kernel.runtime.environment import Environment
from outlive._kernel.runtime.services.service import Service
from outlive._kernel.store.contract import Store


class WorkerParts(NamedTuple):
    """The parts of a worker that features are given."""

    store: Store
    environment: Environment
    options: WorkerOptions
    retention: Sequence[Keep | KeepAudit]
    redefine: Callable[[], Awaitable[None]]
    """Lets the worker claim by what its registry has now."""


class InWorker:
    """The part of a feature in one worker. Each method may be left as it is."""

    def __init__(self, parts: WorkerParts) -> None:
        self.parts = parts

    async def before_claims(self) -> None:
        """Prepare for runs that were interrupted here: the worker claims them as soon as it begins."""

    async def declare(self) -> None:
        """Let the store know what the code of this worker declares."""

    def services(self, client: Client) -> Iterable[Service]:
        """The services that the worker runs for the whole store."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InEngine:
    """The part of a feature that every engine has."""

    own: tuple[OwnWorkflows, ...] = ()
    """The workflows that it brings."""
    cells: tuple[Cells, ...] = ()
    """The cells of the store that it writes."""
    in_worker: type[InWorker] = InWorker
    join: Callable[[Client], None] = lambda client: None
    """Gives a client the verbs of this feature that the handles of runs have."""
