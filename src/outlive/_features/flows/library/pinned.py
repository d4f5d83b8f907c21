"""Which documents of a flow runs may be pinned to: a worker loads them, and so does a check of a deploy."""

from __future__ import annotations

from outlive._features.flows.library.library import Library
from outlive._features.flows.library.records import FlowEntry, version_of
from outlive._kernel.model import RunFilter
from outlive._kernel.model.run import UNENDED
from outlive._kernel.store.contract import PAGE_SIZE_MAX, Store
from outlive.errors.flow import FlowDamagedError
from outlive.telemetry import log

EARLIER_MAX = 50
"""Earlier documents of a flow that count whether or not they have open runs; of those before, only these that have."""


async def pinned_hashes(store: Store, library: Library, name: str, entry: FlowEntry) -> list[str]:
    """The hashes of the documents of a flow that runs may be pinned to, the published one first."""
    if entry.deleted is not None and not entry.has_open_runs:
        return list(entry.brought)
    try:
        revisions = await library.revisions(name, entry)
    except FlowDamagedError as error:
        log.error("%s; runs of its earlier revisions wait", error)
        revisions = [] if entry.current is None else [entry.current]
    hashes = list(dict.fromkeys([*(revision.hash for revision in reversed(revisions)), *entry.brought]))
    if len(hashes) <= EARLIER_MAX:
        return hashes
    in_use = await _versions_in_use(store, name)
    return hashes[:EARLIER_MAX] + [digits for digits in hashes[EARLIER_MAX:] if version_of(digits) in in_use]


async def _versions_in_use(store: Store, name: str) -> set[int]:
    found: set[int] = set()
    place: tuple[int, str] | None = None
    wanted = RunFilter(workflow=name, statuses=UNENDED)
    while page := await store.list_runs(wanted, limit=PAGE_SIZE_MAX, after=place, oldest_first=True):
        place = page[-1].created_at, page[-1].id
        found |= {run.version for run in page}
    return found
