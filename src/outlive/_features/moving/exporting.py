"""Taking one run to another store: `engine.export` and `engine.import_run`."""

from __future__ import annotations

from outlive._features.flows.library.carrying import bring_documents
from outlive._features.flows.library.library import library_of
from outlive._features.moving.tree_copy import check_copy, write_copy
from outlive._features.moving.tree_file import export_tree, tree_in
from outlive._features.security.audit_log import AuditLog
from outlive._kernel.client.acting import doing
from outlive._kernel.client.client import Client
from outlive._kernel.model import check_run_id
from outlive._kernel.store.contract import Store


class Exporting:
    """Writes the tree of a run as text, and makes a tree of such a text."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def export(self, run_id: str) -> str:
        """The journal of the tree that a run belongs to, as text. See `Engine.export`."""
        access = self._client.access
        run = await self._client.info(run_id)
        text = await export_tree(access.store, run)
        await AuditLog(access)._record("export", run.root_id)
        return text

    async def import_run(self, text: str, *, id: str | None = None, scratch: Store) -> str:
        """Write an exported tree into this store; the id of its root. See `Engine.import_run`."""
        access = self._client.access
        store = access.store  # Before the work: a verb on another loop is refused at once.
        copy = tree_in(text, source="the exported run")
        root_id = copy.root.id if id is None else check_run_id(id)
        await check_copy(copy, scratch)
        async with access.admission.start(root_id):
            # First: the run must not be here without the document that it goes on with. It stays if the id is taken.
            library = self._client.verbs_of(library_of)
            for document in copy.documents:
                with doing("flow.bring", document.name):
                    await bring_documents(library, [document], source="the exported run")
            with doing("import", root_id):
                await write_copy(store, copy, root_id=root_id)
        access.ring()
        return root_id
