"""The triggers of the flows in the library of a store: what is published and enabled now.

They are read from the documents themselves when an event is taken, and are in no other place: so what is published or
disabled counts for the next event, whether or not a worker has loaded it. A document never changes, and is read once.
"""

from __future__ import annotations

from outlive._features.events.triggers import Triggers
from outlive._features.flows.library.library import Library
from outlive._features.flows.library.records import INDEX_CELL, FlowEntry, index_in
from outlive._kernel.store.contract import Store
from outlive.errors.flow import FlowDamagedError
from outlive.telemetry import log


class LibraryTriggers:
    """The triggers of published flows, by name."""

    def __init__(self) -> None:
        self._held: bytes | None = None
        self._known: dict[str, Triggers | None] = {}
        self._of_documents: dict[str, Triggers | None] = {}
        """By the hash of the document; None for one without triggers."""

    async def read(self, store: Store) -> dict[str, Triggers | None]:
        """The triggers of the published flows now; None for a flow that starts nothing by itself."""
        held = await store.read_cell(INDEX_CELL)
        if held != self._held:
            index = index_in(held)
            found = {name: await self._find(store, name, entry) for name, entry in index.items()}
            used = {entry.current.hash for entry in index.values() if entry.current is not None}
            self._of_documents = {key: each for key, each in self._of_documents.items() if key in used}
            self._held, self._known = held, found
        return self._known

    async def _find(self, store: Store, name: str, entry: FlowEntry) -> Triggers | None:
        if entry.current is None or entry.disabled is not None:
            return None
        digits = entry.current.hash
        if digits not in self._of_documents:
            try:
                document = (await Library(lambda: store).document(name, digits)).canonical
            except FlowDamagedError as error:
                log.error("events start no run of flow %s: %s", name, error)
                return None
            self._of_documents[digits] = _triggers_in(document, entry.current.version)
        return self._of_documents[digits]


def _triggers_in(canonical: bytes, version: int) -> Triggers | None:
    from outlive._features.flows.document.model import from_canonical
    from outlive._features.flows.run.triggers import described_as, triggers_in

    document = from_canonical(canonical)
    found = triggers_in(document)
    return Triggers(version=version, described=described_as(document), all=found) if found else None
