"""`engine.flows` through a server: the library of flows behind it.

A document is read and checked here before it is sent, with the steps that this process knows, so that a mistake is
reported with its file and its line; the server checks it again with the steps that the server knows.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from outlive._features.flows.library.reading import document_given, read_document
from outlive._features.flows.operations import DocumentView
from outlive._features.flows.values import Flow, FlowRevision
from outlive._features.flows.verbs import StoredFlow
from outlive._kernel.client.handle import RunHandle
from outlive._kernel.client.start_options import StartOptions
from outlive._kernel.journal.plain import plain_json
from outlive._kernel.values.run import Run
from outlive.remote.connection import Connection
from outlive.remote.run import NewRun
from outlive.remote.values import attributed, only_given, start_fields

if TYPE_CHECKING:
    from outlive._features.flows.document.model import Document
    from outlive._features.flows.flow import FlowWorkflow

PURGE_AT_ONCE = 1_000


class RemoteFlows:
    """`engine.flows`."""

    def __init__(self, connection: Connection, new_run: NewRun) -> None:
        self._connection, self._new_run = connection, new_run

    # -- Changing what is published --------------------------------------------------------------------------

    async def apply(
        self,
        document: str | Path | Document | FlowWorkflow,
        *,
        by: str = "",
        reason: str = "",
        expected: int | None = None,
    ) -> Flow:
        """See `Flows.apply`."""
        text = document_given("engine.flows.apply", document).text
        body = only_given({"document": text, **attributed(by, reason), "expected": expected})
        return await self._info("flows.apply", body=body)

    async def save_draft(
        self,
        document: str | Path | Document | FlowWorkflow,
        *,
        by: str = "",
        reason: str = "",
        expected: int | None = None,
    ) -> Flow:
        """See `Flows.save_draft`."""
        text = document_given("engine.flows.save_draft", document, checks=False).text
        body = only_given({"document": text, **attributed(by, reason), "expected": expected})
        return await self._info("flows.save_draft", body=body)

    async def publish(self, name: str, *, by: str = "", reason: str = "", expected: int | None = None) -> Flow:
        """See `Flows.publish`."""
        read_document((await self.get(name, draft=True)).text)
        return await self._change("flows.publish", name, **attributed(by, reason), expected=expected)

    async def discard_draft(self, name: str) -> Flow:
        """See `Flows.discard_draft`."""
        return await self._info("flows.discard_draft", name=name)

    async def rollback(
        self, name: str, *, to: int | None = None, by: str = "", reason: str = "", expected: int | None = None
    ) -> Flow:
        """See `Flows.rollback`."""
        return await self._change("flows.rollback", name, to=to, **attributed(by, reason), expected=expected)

    async def enable(self, name: str) -> Flow:
        """See `Flows.enable`."""
        return await self._info("flows.enable", name=name)

    async def disable(self, name: str, *, by: str = "", reason: str = "") -> Flow:
        """See `Flows.disable`."""
        return await self._change("flows.disable", name, **attributed(by, reason))

    async def delete(
        self,
        name: str,
        *,
        force: bool = False,
        runs: bool = False,
        by: str = "",
        reason: str = "",
        expected: int | None = None,
    ) -> None:
        """See `Flows.delete`. Ended runs go with `runs=True` a thousand in a request."""
        query = {"force": force, **attributed(by, reason), "expected": expected}
        await self._connection.operate("flows.delete", query=query, name=name)
        purge = {"workflow": name, "older_than": 0, "limit": PURGE_AT_ONCE}
        while runs and (await self._connection.operate("bulk.purge", body=purge)).deleted:
            pass

    async def _info(self, operation: str, **options: Any) -> Flow:
        found: Flow = await self._connection.operate(operation, **options)
        return found

    async def _change(self, operation: str, name: str, **body: Any) -> Flow:
        return await self._info(operation, body=only_given(body), name=name)

    # -- Starting runs ---------------------------------------------------------------------------------------

    async def start(
        self,
        name: str,
        input: Any = None,
        *,
        vars: Mapping[str, Any] | None = None,  # noqa: A002  # As documents call them.
        overrides: Mapping[str, Any] | None = None,
        revision: int | None = None,
        **options: Unpack[StartOptions],
    ) -> RunHandle[Any]:
        """See `Flows`."""
        where = "engine.flows.start"
        data = plain_json(where, {"input": input, "vars": vars, "overrides": overrides})
        body = only_given({**data, "revision": revision, **start_fields(where, name, options)})
        found = await self._connection.operate("flows.start", body=body, name=name)
        return self._new_run(found.id)

    # -- Looking ---------------------------------------------------------------------------------------------

    async def list(self) -> builtins.list[Flow]:
        """See `Flows.list`."""
        items: builtins.list[Flow] = (await self._connection.operate("flows.list")).items
        return items

    async def info(self, name: str) -> Flow:
        """See `Flows.info`."""
        return await self._info("flows.info", name=name)

    async def get(self, name: str, *, revision: int | None = None, draft: bool = False) -> StoredFlow:
        """See `Flows.get`."""
        query = only_given({"revision": revision, "draft": "true" if draft else None})
        return _stored_of(await self._connection.operate("flows.get", query=query, name=name))

    async def history(self, name: str) -> builtins.list[FlowRevision]:
        """See `Flows.history`."""
        items: builtins.list[FlowRevision] = (await self._connection.operate("flows.history", name=name)).items
        return items

    async def document_of(self, run: Run) -> tuple[Document, str]:
        """See `Flows.document_of`.

        Raises:
            FlowNotFoundError: the run is none of a flow, or was started from a file.
        """
        stored = _stored_of(await self._connection.operate("runs.document", run_id=run.id))
        return stored.document, stored.text


# -- From the wire -----------------------------------------------------------------------------------------------------


def _stored_of(view: DocumentView) -> StoredFlow:
    document = read_document(view.text, checks=False).document
    return StoredFlow(name=view.name, revision=view.revision, hash=view.hash, text=view.text, document=document)
