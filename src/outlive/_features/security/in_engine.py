"""Keys, tokens and the audit log in an engine."""

from __future__ import annotations

from collections.abc import Iterable

from outlive._features.security.audit_pruner import AuditPruner
from outlive._features.security.audit_sealer import AuditSealer
from outlive._features.security.keys import KEY_CELLS
from outlive._features.security.run_tokens import TOKEN_CELLS, left_of_token
from outlive._kernel.client.client import Client
from outlive._kernel.in_engine import InEngine, InWorker
from outlive._kernel.model.cells import Cells
from outlive._kernel.model.retention import KeepAudit
from outlive._kernel.runtime.services.service import Service


class SecurityInWorker(InWorker):
    """Prunes and seals the audit log."""

    def services(self, client: Client) -> Iterable[Service]:
        """The services that `KeepAudit` asks for."""
        keep = next((keep for keep in self.parts.retention if isinstance(keep, KeepAudit)), None)
        if keep is not None and keep.span is not None:
            yield AuditPruner(self.parts.store, keep)
        if keep is not None and keep.key is not None:
            yield AuditSealer(self.parts.store, keep.key)


IN_ENGINE = InEngine(
    cells=(
        Cells(name=KEY_CELLS, holds="an API key, by its id", verb="key.change"),
        Cells(name=TOKEN_CELLS, holds="a token for one run, by its id", verb="token.change", left=left_of_token),
    ),
    in_worker=SecurityInWorker,
)
