"""Greetings in an engine: their cell, and the service that answers them."""

from __future__ import annotations

from collections.abc import Iterable

from outlive._kernel.client.client import Client
from outlive._kernel.in_engine import InEngine, InWorker
from outlive._kernel.model.cells import Cells
from outlive._kernel.runtime.services.service import Service
from outlive._kernel.store.contract import Store
from tests.house.greetings.verbs import GREETINGS_CELL, answer_all


class Greeter:
    """Answers greetings."""

    name = "greeter"

    def __init__(self, store: Store) -> None:
        self._store = store

    async def run_once(self) -> float:
        """Answer what is there; look again in a moment."""
        await answer_all(self._store)
        return 0.05


class GreetingsInWorker(InWorker):
    """Answers greetings."""

    def services(self, client: Client) -> Iterable[Service]:
        """The service that answers."""
        yield Greeter(self.parts.store)


IN_ENGINE = InEngine(
    cells=(Cells(name=GREETINGS_CELL, holds="greetings", verb="greeting.add"),), in_worker=GreetingsInWorker
)
