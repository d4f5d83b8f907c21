"""Where a check of a deploy reads open runs from: a store, or the server of one.

Both give the same trees with the same journals, byte by byte, so the findings are the same.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import msgspec

from outlive._features.flows.document.model import from_canonical
from outlive._features.flows.flow import FlowWorkflow
from outlive._features.flows.library.loader import FlowLoader
from outlive._kernel.define.registry import Registry
from outlive._kernel.journal.codec import Row
from outlive._kernel.model import RunFilter, RunStatus
from outlive._kernel.model.run import UNENDED
from outlive._kernel.runtime.tree.claim_data import blob_ids
from outlive._kernel.store.contract import PAGE_SIZE_MAX, Store
from outlive.engine import Engine
from outlive.engine.url import store_for
from outlive.errors import OutliveError
from outlive.remote import Remote, connect
from outlive.testing.deploy.verdict import Tree

if TYPE_CHECKING:
    from outlive._features.deploys.open_runs import JournalView

COUNT_MAX = 1_000_000
SERVERS = ("http://", "https://")


class Read(NamedTuple):
    """Journals of trees, and what they keep elsewhere."""

    journals: list[tuple[Tree, list[Row]]]
    blobs: dict[str, bytes]


class Source(Protocol):
    """The open runs of one store. An async context manager."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def pages(self, workflow: str | None, *, most: int | None) -> AsyncIterator[list[Tree]]:
        """Open runs, the oldest first; at most so many."""

    async def count(self, workflow: str | None) -> int:
        """How many there are."""

    async def load_flows(self, registry: Registry) -> None:
        """Register the flows of the library, as a worker has them; their schedules stay as they are."""

    async def read(self, trees: Sequence[Tree]) -> Read:
        """The journals of `trees`. A tree that was deleted since it was listed is passed over."""


def source_for(engine: Engine, url: str) -> Source:
    """The runs at `url`, for code whose settings an engine has that is not entered."""
    if url.startswith(SERVERS):
        return ServerSource(url)
    return StoreSource(engine._store if url == engine.url else store_for(url, clock=engine._clock.now))


class StoreSource:
    """Reads a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def __aenter__(self) -> Self:
        # Migrating it is left to the first engine of the new release.
        await self._store.open(migrate=False)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._store.close()

    async def pages(self, workflow: str | None, *, most: int | None) -> AsyncIterator[list[Tree]]:
        """See `Source`."""
        place: tuple[int, str] | None = None
        while most is None or most > 0:
            limit = PAGE_SIZE_MAX if most is None else min(PAGE_SIZE_MAX, most)
            page = await self._store.list_runs(_filter(workflow), limit=limit, after=place, oldest_first=True)
            if not page:
                return
            place = page[-1].created_at, page[-1].id
            most = None if most is None else most - len(page)
            yield [Tree.of(run) for run in page]

    async def count(self, workflow: str | None) -> int:
        """See `Source`."""
        return await self._store.count_runs(_filter(workflow), limit=COUNT_MAX)

    async def load_flows(self, registry: Registry) -> None:
        """See `Source`."""
        await FlowLoader(self._store, registry, redefine=_tell_no_session).look()

    async def read(self, trees: Sequence[Tree]) -> Read:
        """See `Source`."""
        found = await self._store.read_journals([tree.journal for tree in trees]) if trees else {}
        ids = sorted(blob_ids(found.values(), ()))
        blobs = await self._store.get_blobs(ids) if ids else {}
        return Read([(tree, found[tree.journal]) for tree in trees if found.get(tree.journal)], blobs)


class ServerSource:
    """Reads through the HTTP API, with the key in OUTLIVE_KEY, which must be one of an admin."""

    def __init__(self, url: str) -> None:
        self._remote: Remote = connect(url)

    async def __aenter__(self) -> Self:
        await self._remote.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._remote.__aexit__(kind, error, trace)

    async def pages(self, workflow: str | None, *, most: int | None) -> AsyncIterator[list[Tree]]:
        """See `Source`."""
        after: str | None = None
        while most is None or most > 0:
            limit = PAGE_SIZE_MAX if most is None else min(PAGE_SIZE_MAX, most)
            page = await self._remote.list(order="created_at", limit=limit, after=after, **_filters(workflow))
            most = None if most is None else most - len(page)
            yield [
                Tree(
                    id=run.id,
                    definition=f"{run.workflow}@{run.version}",
                    is_damaged=run.status == RunStatus.DAMAGED.value,
                    reason=run.reason,
                )
                for run in page
            ]
            if page.next is None:
                return
            after = page.next

    async def count(self, workflow: str | None) -> int:
        """See `Source`."""
        return int(await self._remote.count(limit=COUNT_MAX, **_filters(workflow)))

    async def load_flows(self, registry: Registry) -> None:
        """See `Source`. A document that cannot be read costs only its own runs."""
        flows: list[FlowWorkflow] = []
        after: str | None = None
        while True:
            page = await self._remote.operate("deploys.documents", query={"after": after})
            for it in page.items:
                try:
                    flows.append(FlowWorkflow(from_canonical(it.canonical)))
                except (OutliveError, msgspec.MsgspecError):
                    continue
            after = page.next
            if after is None:
                registry.set_flows([flow.spec for flow in flows], page.published)
                return

    async def read(self, trees: Sequence[Tree]) -> Read:
        """See `Source`. A run that has begun another journal since it was listed is given with that one."""
        from outlive._features.deploys.operations import RUNS_MAX

        found = Read([], {})
        left = [tree.id for tree in trees]
        while left:
            asked, left = left[:RUNS_MAX], left[RUNS_MAX:]
            answer = await self._remote.operate("deploys.journals", body={"run_ids": asked})
            found.journals.extend(_journal_of(it) for it in answer.items)
            found.blobs.update(answer.blobs)
            left = [*answer.left, *left]
        return found


def _filter(workflow: str | None) -> RunFilter:
    return RunFilter(statuses=UNENDED, workflow=workflow, roots_only=True)


def _filters(workflow: str | None) -> dict[str, Any]:
    return {"status": UNENDED, "roots_only": True} | ({} if workflow is None else {"workflow": workflow})


def _journal_of(it: JournalView) -> tuple[Tree, list[Row]]:
    tree = Tree(
        id=it.id,
        definition=f"{it.workflow}@{it.version}",
        nonce=it.nonce,
        is_parked=it.is_parked,
        reason=it.reason if it.is_parked else "",
    )
    return tree, [(row.seq, row.format, row.crc, row.body) for row in it.rows]


async def _tell_no_session() -> None:
    """There is no session that could claim by it."""
