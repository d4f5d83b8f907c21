"""Runs and journals as people may see them: readable, and without the fields that an engine redacts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from outlive._define.batch import OF_STEP, OF_WORKFLOW
from outlive._define.registry import Registry
from outlive._journal.event import AnyEvent
from outlive._journal.packing import Packer
from outlive._journal.payloads import payloads_of
from outlive._journal.redaction import Redaction, RowNames
from outlive._model import Payload, Run
from outlive._store.contract import Store
from outlive.errors import UnreadableError, WorkflowNotFoundError


class Shown:
    """Turns what is stored into what is shown."""

    def __init__(self, store: Store, *, packer: Packer, registry: Registry, redaction: Redaction) -> None:
        self._store = store
        self._packer = packer
        self._registry = registry
        self._redaction = redaction

    def run(self, run: Run) -> Run:
        """A run whose failure hides what the engine redacts."""
        if run.failure is None or not self._redaction:
            return run
        return msgspec.structs.replace(run, failure=self._redaction.hide_failure(run.failure))

    async def events(self, events: Sequence[AnyEvent]) -> list[AnyEvent]:
        """A journal with every payload as JSON; one that cannot be read here says so in its place."""
        wanted = {payload.blob for event in events for payload in payloads_of(event) if payload.blob}
        blobs = await self._store.get_blobs(list(wanted)) if wanted else {}

        def unpack(payload: Payload) -> Any:
            try:
                return msgspec.json.decode(self._packer.unpack(payload, blobs))
            except UnreadableError as error:
                return f"[unreadable: {error.reason}]"

        return self._redaction.hide_events(events, unpack=unpack, names=self._names)

    def _names(self, workflow: str, version: int) -> Sequence[str] | RowNames | None:
        if workflow.startswith((OF_STEP, OF_WORKFLOW)):
            item = self._registry.find_item(workflow, version)
            return RowNames(None if item is None else item.signature.names)
        try:
            return self._registry.workflow(workflow, version).signature.names
        except WorkflowNotFoundError:
            return None
