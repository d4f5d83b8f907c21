"""The audit log in an engine."""

from __future__ import annotations

from collections.abc import Iterable

from outlive._kernel.in_engine import InEngine, InWorker
from outlive._model.retention import KeepAudit
from outlive._runtime.services.audit_pruner import AuditPruner
from outlive._runtime.services.audit_sealer import AuditSealer
from outlive._runtime.services.service import Service
from outlive.client.client import Client


class AuditInWorker(InWorker):
    """Prunes and seals the audit log."""

    def services(self, client: Client) -> Iterable[Service]:
        """The services that `KeepAudit` asks for."""
        keep = next((keep for keep in self.parts.retention if isinstance(keep, KeepAudit)), None)
        if keep is not None and keep.span is not None:
            yield AuditPruner(self.parts.store, keep)
        if keep is not None and keep.key is not None:
            yield AuditSealer(self.parts.store, keep.key)


IN_ENGINE = InEngine(in_worker=AuditInWorker)
