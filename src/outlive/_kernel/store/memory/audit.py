"""The audit log as a list. The contract of each verb is in `outlive._kernel.store.audit`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from outlive._kernel.store.audit import Action, AuditFilter, AuditRow, decode_action, pruned, row_after, rows_to_add
from outlive._kernel.store.memory.state import MemoryState


class MemoryAudit:
    """The verbs of a store that are about its audit log."""

    _state: MemoryState

    def now(self) -> int:
        """The clock of the store."""
        raise NotImplementedError

    async def append_audit(self, actions: Sequence[Action]) -> None:
        """See `AuditTable`."""
        append_audit(self._state, actions, self.now())

    async def read_audit(self, *, after: int = 0, limit: int) -> list[AuditRow]:
        """See `AuditTable`."""
        return [row for row in self._state.audit if row.number > after][:limit]

    async def list_audit(self, wanted: AuditFilter, *, before: int | None = None, limit: int) -> list[AuditRow]:
        """See `AuditTable`. All rows are looked at."""
        rows = [row for row in reversed(self._state.audit) if before is None or row.number < before]
        return [row for row in rows if _is_wanted(row, wanted)][:limit]

    async def prune_audit(self, *, before: int, limit: int, key: bytes | None = None) -> int:
        """See `AuditTable`."""
        rows = self._state.audit
        most = min(limit, len(rows) - 1)
        count = next((place for place, row in enumerate(rows[:most]) if row.at >= before), max(most, 0))
        if count:
            last, self._state.audit = rows[count - 1], rows[count:]
            append_audit(self._state, [pruned(last, key)], self.now())
        return count

    async def carry_audit(self, rows: Sequence[AuditRow]) -> bool:
        """See `AuditTable`."""
        own = self._state.audit
        added = rows_to_add(own[-1] if own else None, rows)
        own += added or []
        return added is not None


def append_audit(state: MemoryState, actions: Iterable[Action], now: int) -> None:
    """Add actions to the end of the log."""
    for action in actions:
        state.audit.append(row_after(state.audit[-1] if state.audit else None, action, now))


def _is_wanted(row: AuditRow, wanted: AuditFilter) -> bool:
    action = decode_action(row.body)
    return (
        wanted.actor in (None, action.actor)
        and wanted.verb in (None, action.verb)
        and wanted.target in (None, action.target)
        and (wanted.since_at is None or row.at >= wanted.since_at)
        and (wanted.until_at is None or row.at < wanted.until_at)
    )
