"""Deletes rows of the audit log that have been kept for long enough, in every worker: one verb, one transaction."""

from __future__ import annotations

from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.retention import KeepAudit
from outlive._kernel.store.contract import Store
from outlive.telemetry import log

ROWS_AT_ONCE = 1_000
REST_SECONDS = 3_600.0
"""Between two looks, if there is nothing more to delete. A look that deletes adds a row that says so."""
MORE_SECONDS = 1.0


class AuditPruner:
    """Deletes from the beginning of the log."""

    name = "audit pruner"

    def __init__(self, store: Store, keep: KeepAudit) -> None:
        assert keep.span is not None, "rows that stay for ever need no pruner"
        self._store, self._span, self._key = store, keep.span, keep.key

    async def run_once(self) -> float:
        """Delete what is too old, at most so many rows; seconds until the next look."""
        before = self._store.now() - self._span
        gone = await self._store.prune_audit(before=before, limit=ROWS_AT_ONCE, key=self._key)
        if gone:
            log.info("%d rows of the audit log were deleted that are older than %d s", gone, self._span // MICROSECONDS)
        return MORE_SECONDS if gone == ROWS_AT_ONCE else REST_SECONDS
