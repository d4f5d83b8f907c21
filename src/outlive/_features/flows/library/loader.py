"""Gives a worker the flows of the library in its store, in every revision that may have open runs.

A run is pinned to the document that it was started with, and a worker claims it only if it has that document. So a
worker registers the published revision of every flow and the earlier ones, before it claims for the first time, and
again when the index of the library has changed: it is rung, and looks now and then all the same. A document is made a
flow when it is loaded, and its plan when a run needs it.

A flow whose steps this process lacks is not a definition of the worker: another one may have them. What is missing is
listed with the definitions of the worker, so that `why` can say it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from outlive._features.flows.library.library import Library
from outlive._features.flows.library.pinned import pinned_hashes
from outlive._features.flows.library.records import INDEX_CELL, LOADER, FlowEntry, Index, index_in
from outlive._features.flows.library.schedules import declare_flows
from outlive._kernel.define.registry import Registry
from outlive._kernel.store.contract import Store
from outlive.errors import OutliveError, StoreError
from outlive.errors.flow import FlowDamagedError
from outlive.telemetry import log

if TYPE_CHECKING:
    from outlive._features.flows.flow import FlowWorkflow

LOOK_SECONDS = 5.0
"""How often a worker looks at the index, if no ring reached it."""

Redefine = Callable[[], Awaitable[None]]
"""Lets the session claim by what the registry has."""


class FlowLoader:
    """Loads the flows of one store for one worker."""

    name = LOADER

    def __init__(
        self, store: Store, registry: Registry, *, redefine: Redefine, nonce: Callable[[], int] | None = None
    ) -> None:
        """With `nonce`, where random numbers come from, it lets the store know the schedules of flows."""
        self._store = store
        self._registry = registry
        self._redefine = redefine
        self._nonce = nonce
        self._library = Library(lambda: store)
        self._data: bytes | None = None
        """The index as it was last read."""
        self._index: Index = {}
        self._hashes: dict[str, list[str]] = {}
        """The documents that each flow is loaded with, by the name of the flow."""
        self._loaded: dict[tuple[str, str], FlowWorkflow | None] = {}
        """By the name of the flow and the hash of the document; None for one that cannot be read."""
        self._unreadable: set[tuple[str, str]] = set()
        """Documents that cannot be read: they are tried again with every look, because a person may have written them
        again."""

    async def run_once(self) -> float:
        """Load what has changed; see `Service`."""
        await self.look()
        return LOOK_SECONDS

    async def look(self) -> None:
        """Compare the index with what is loaded, and load what is new."""
        data = await self._store.read_cell(INDEX_CELL)
        if data == self._data and not self._unreadable:
            return
        try:
            index = index_in(data)
        except FlowDamagedError as error:
            # The flows that are loaded run on, and so does everything that is not a flow.
            log.error("%s; no flow is loaded before that is repaired", error)
            self._data = data
            return
        for name, entry in index.items():
            if self._index.get(name) != entry:
                self._hashes[name] = await pinned_hashes(self._store, self._library, name, entry)
        wanted = {(name, digits) for name, hashes in self._hashes.items() for digits in hashes}
        loaded = self._loaded
        self._loaded = {key: loaded.get(key) or await self._load(*key) for key in sorted(wanted)}
        published = {name: entry.current.version for name, entry in index.items() if entry.current is not None}
        self._registry.set_flows([flow.spec for flow in self._loaded.values() if flow is not None], published)
        await self._redefine()
        if self._nonce is not None and index:
            flows = {name: (entry, self._find_published(name, entry)) for name, entry in index.items()}
            await declare_flows(self._store, flows, nonce=self._nonce)
        self._data, self._index = data, index
        self._unreadable &= wanted

    def _find_published(self, name: str, entry: FlowEntry) -> FlowWorkflow | None:
        return None if entry.current is None else self._loaded.get((name, entry.current.hash))

    async def _load(self, name: str, digits: str) -> FlowWorkflow | None:
        """A document as a flow; one that cannot be read costs only its own runs."""
        from outlive._features.flows.document.model import from_canonical
        from outlive._features.flows.flow import FlowWorkflow

        try:
            flow = FlowWorkflow(from_canonical((await self._library.document(name, digits)).canonical))
        except StoreError:
            raise
        except (OutliveError, msgspec.MsgspecError) as error:
            if (name, digits) not in self._unreadable:
                self._unreadable.add((name, digits))
                log.error("flow %s (%s) cannot be loaded, and its runs wait: %s", name, digits, error)
            return None
        self._unreadable.discard((name, digits))
        return flow
