"""Whether a store is whole, for tests: `outlive._features.fsck`, and every root run."""

from __future__ import annotations

from collections.abc import AsyncIterator

from outlive._features.fsck.checker import Checker, check_store
from outlive._features.fsck.problem import Kind, Problem
from outlive._kernel.model import Run, RunFilter
from outlive._kernel.store.contract import PAGE_SIZE_MAX, Store

__all__ = ["Checker", "Kind", "Problem", "check_store", "each_root"]


async def each_root(store: Store) -> AsyncIterator[Run]:
    """Every root run, newest first."""
    before: tuple[int, str] | None = None
    while page := await store.list_runs(RunFilter(roots_only=True), limit=PAGE_SIZE_MAX, before=before):
        for run in page:
            yield run
        before = (page[-1].created_at, page[-1].id)
