"""Runs and journals as people may see them: readable, and without the fields that an engine redacts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from outlive._define.batch import OF_STEP, OF_WORKFLOW
from outlive._journal.event import AnyEvent, payloads_of
from outlive._journal.redaction import Redaction, RowNames
from outlive._model import Failure, Payload, Run
from outlive.client.access import Access
from outlive.errors import UnreadableError, WorkflowNotFoundError


class Shown:
    """Turns what is stored into what is shown."""

    def __init__(self, access: Access, redaction: Redaction) -> None:
        self._access = access
        self._redaction = redaction

    @property
    def hides(self) -> bool:
        """Whether there is anything that people may not see."""
        return bool(self._redaction)

    def run(self, run: Run) -> Run:
        """A run whose failure hides what the engine redacts."""
        if run.failure is None or not self._redaction:
            return run
        return msgspec.structs.replace(run, failure=self._redaction.hide_failure(run.failure))

    def plain(self, value: Any) -> Any:
        """A JSON value without what the engine redacts."""
        return self._redaction.hide(value) if self._redaction else value

    def failure(self, failure: Failure) -> Failure:
        """A failure that hides what the engine redacts."""
        return self._redaction.hide_failure(failure)

    async def events(self, events: Sequence[AnyEvent]) -> list[AnyEvent]:
        """A journal with every payload as JSON; one that cannot be read here says so in its place."""
        blobs = await self._access.blobs(payload for event in events for payload in payloads_of(event))

        def unpack(payload: Payload) -> Any:
            try:
                return msgspec.json.decode(self._access.packer.unpack(payload, blobs))
            except UnreadableError as error:
                return f"[unreadable: {error.reason}]"

        return self._redaction.hide_events(events, unpack=unpack, names=self._names)

    def _names(self, workflow: str, version: int) -> Sequence[str] | RowNames | None:
        if workflow.startswith((OF_STEP, OF_WORKFLOW)):
            item = self._access.registry.find_item(workflow, version)
            return RowNames(None if item is None else item.signature.names)
        try:
            return self._access.registry.workflow(workflow, version).signature.names
        except WorkflowNotFoundError:
            return None
