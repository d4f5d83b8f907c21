"""Seals the audit log with a key that the store does not have, in every worker that has one."""

from __future__ import annotations

from outlive._kernel.store.audit import SEALED, STORE, AuditFilter, sealed
from outlive._kernel.store.contract import Store

SEAL_SECONDS = 600.0


class AuditSealer:
    """Adds a row that proves all rows before it, if there are new ones."""

    name = "audit sealer"

    def __init__(self, store: Store, key: bytes) -> None:
        self._store, self._key = store, key

    async def run_once(self) -> float:
        """Seal the last row, unless it is a seal; seconds until the next look."""
        rows = await self._store.list_audit(AuditFilter(), limit=1)
        if rows and not await self._is_seal(rows[0].number):
            await self._store.append_audit([sealed(rows[0], self._key)])
        return SEAL_SECONDS

    async def _is_seal(self, number: int) -> bool:
        last = AuditFilter(actor=STORE, verb=SEALED)
        return any(row.number == number for row in await self._store.list_audit(last, limit=1))
