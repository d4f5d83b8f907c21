"""Deleting runs that have ended: by the rules of an engine (`Keep`), and when a person asks for it.

A run goes with its whole tree, in a batch of a few, and a batch is archived before it is deleted. Whether a tree may go
is judged by the store, in the transaction that deletes it (`_kernel.store.deleting`). What is judged here is only what
a store cannot know: the runs that carry a batch (`start_batch`) belong to it, and go with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Unpack

from msgspec.structs import replace

from outlive._features.batches.workflows import BATCH
from outlive._features.moving.tree_copy import read_copy
from outlive._features.moving.tree_file import write_tree
from outlive._features.retention.archive import Archive
from outlive._features.retention.values import Purge
from outlive._kernel.client.acting import purges
from outlive._kernel.client.bulk import WorkflowFilters
from outlive._kernel.client.client import Client
from outlive._kernel.client.finding import filter_of
from outlive._kernel.client.starting import Ids
from outlive._kernel.model import TERMINAL, Run, RunFilter, given
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.retention import KEEP_SECONDS_MIN, archive_of
from outlive._kernel.store.contract import PAGE_SIZE_MAX, Action, Store
from outlive.errors import InvalidArgumentError, OutliveError, StoreUnavailableError
from outlive.telemetry import log, run_fields

TREES_AT_ONCE = 50
"""Trees that are deleted in one transaction."""
PURGE_LIMIT = 1_000
PURGE_LIMIT_MAX = 10_000_000
CHUNK = "~chunk"
"""The words in the id of a run that carries a part of a batch, behind the id of the batch."""


class Purger:
    """Deletes trees of a store."""

    def __init__(self, store: Store, *, ids: Ids) -> None:
        self._store = store
        self._ids = ids
        self.archived = 0
        """How many trees it has written to archives."""

    async def delete(
        self, runs: Sequence[Run], *, ended_before: int, archive: Archive | None
    ) -> tuple[set[int], list[str]]:
        """Delete the trees of root runs that ended before an instant; their handles, and the archives they are in.

        Raises:
            ArchiveError: nothing was deleted.
        """
        roots = [run for run in runs if not await self._belongs_to_batch(run)]
        for run in roots:
            if run.workflow == BATCH.name:
                await self._delete_chunks(run, ended_before=ended_before, archive=archive)
        return await self._delete(roots, ended_before=ended_before, archive=archive)

    async def _belongs_to_batch(self, run: Run) -> bool:
        """Whether a run carries a part of a batch that is there: then its results are read with those of the batch."""
        return CHUNK in run.id and run.parent_id is not None and await self._store.find_run(run.parent_id) is not None

    async def _delete_chunks(self, batch: Run, *, ended_before: int, archive: Archive | None) -> None:
        """Delete the parts of a batch that can go; the batch itself goes after them. All of them ended before the batch
        did."""
        place: tuple[int, str] | None = None
        wanted = RunFilter(parent_id=batch.id, roots_only=True, statuses=TERMINAL)
        while page := await self._store.list_runs(wanted, limit=TREES_AT_ONCE, after=place, oldest_first=True):
            place = page[-1].created_at, page[-1].id
            await self._delete(page, ended_before=ended_before, archive=archive)

    async def _delete(
        self, roots: Sequence[Run], *, ended_before: int, archive: Archive | None
    ) -> tuple[set[int], list[str]]:
        files: list[str] = []
        if not roots:
            return set(), files
        journals = [run.journal for run in roots]
        if archive is not None:
            trees = await self._read(roots)
            journals = list(trees)
            if trees:
                files.append(
                    await archive.write(list(trees.values()), at=self._store.now(), mark=self._ids.new_id()[-8:])
                )
            self.archived += len(trees)
        return await self._delete_trees(journals, ended_before, purges(roots)), files

    async def _read(self, roots: Sequence[Run]) -> dict[int, str]:
        """The files of trees. One that cannot be read is left out, and stays."""
        trees: dict[int, str] = {}
        for run in roots:
            try:
                copy = await read_copy(self._store, run.journal)
            except StoreUnavailableError:
                raise
            except OutliveError as error:
                log.error("run %s is not deleted, because it cannot be archived: %s", run.id, error, extra=_fields(run))
                continue
            if copy is not None:
                trees[run.journal] = write_tree(copy, copy.root)
        return trees

    async def _delete_trees(
        self, journals: list[int], ended_before: int, audit: Mapping[int, Action] | None
    ) -> set[int]:
        """Delete; a tree that the database refuses to delete does not keep the others."""
        try:
            return set(await self._store.delete_trees(journals, ended_before=ended_before, audit=audit))
        except StoreUnavailableError:
            raise
        except OutliveError as error:
            if len(journals) == 1:
                log.error("the tree %s could not be deleted: %s", journals[0], error)
                return set()
        return set().union(*[await self._delete_trees([journal], ended_before, audit) for journal in journals])


def _fields(run: Run) -> dict[str, object]:
    return run_fields(run.id, run.workflow)


def check_ended(where: str, wanted: RunFilter) -> None:
    """Refuse statuses of runs that have not ended: these are not deleted."""
    if wanted.statuses and not all(status.is_terminal for status in wanted.statuses):
        ended = ", ".join(status.value for status in TERMINAL)
        given_ones = [status.value for status in wanted.statuses]
        raise InvalidArgumentError(where, "status", given_ones, f"only runs that ended go: {ended}")


class Purging:
    """`engine.purge`."""

    def __init__(self, client: Client) -> None:
        self._access, self._ids = client.access, client.ids

    async def purge_one(self, run: Run) -> bool:
        """Delete one root run that has ended, with its tree; False if an open run needs it."""
        store = self._access.store
        gone, _ = await Purger(store, ids=self._ids).delete([run], ended_before=store.now() + 1, archive=None)
        return bool(gone)

    async def purge(
        self,
        *,
        older_than: given.Span = KEEP_SECONDS_MIN,
        archive: Any = None,
        **options: Unpack[WorkflowFilters],
    ) -> Purge:
        """Delete runs that fit. See `Engine.purge`."""
        where, store = "engine.purge", self._access.store
        filters: dict[str, Any] = dict(options)
        limit = given.whole(where, "limit", filters.pop("limit", PURGE_LIMIT), most=PURGE_LIMIT_MAX)
        is_preview = given.flag(where, "dry_run", filters.pop("dry_run", False))
        seconds = given.seconds(where, "older_than", older_than, or_zero=True)
        if all(value is None for value in filters.values()):
            wanted = (
                "say by a filter which runs you mean, as the name of their workflow; or the status succeeded, for all"
            )
            raise InvalidArgumentError(where, "workflow", None, wanted)
        wanted_runs = filter_of(where, **filters)
        check_ended(where, wanted_runs)
        # Runs that the engine has made for itself go with the rest.
        statuses = wanted_runs.statuses or TERMINAL
        wanted_runs = replace(wanted_runs, statuses=statuses, roots_only=True, hides_internal=False)
        place = None if archive is None else Archive(archive_of(where, archive))
        ended_before = store.now() - round(seconds * MICROSECONDS)
        counted = _Counted()
        purger = Purger(store, ids=self._ids)
        after: tuple[int, str] | None = None
        while counted.found < limit:
            page = await store.list_runs(
                wanted_runs, limit=PAGE_SIZE_MAX if is_preview else TREES_AT_ONCE, after=after, oldest_first=True
            )
            due = [run for run in page if run.finished_at is not None and run.finished_at < ended_before]
            due = due[: limit - counted.found]
            counted.add(due)
            if due and not is_preview:
                gone, files = await purger.delete(due, ended_before=ended_before, archive=place)
                counted.deleted += len(gone)
                counted.files += files
            if not page:
                break
            after = page[-1].created_at, page[-1].id
        return counted.purge()


class _Counted:
    def __init__(self) -> None:
        self.found = self.deleted = 0
        self.files: list[str] = []
        self._ends: list[int] = []
        self._counts: Counter[str] = Counter()

    def add(self, runs: Sequence[Run]) -> None:
        self.found += len(runs)
        ends = [run.finished_at for run in runs if run.finished_at is not None]
        self._ends = [min(self._ends + ends), max(self._ends + ends)] if self._ends + ends else []
        self._counts.update(f"{run.workflow} {run.status.value}" for run in runs)

    def purge(self) -> Purge:
        ends = [datetime.fromtimestamp(at / MICROSECONDS, UTC) for at in self._ends]
        return Purge(
            found=self.found,
            deleted=self.deleted,
            oldest=ends[0] if ends else None,
            newest=ends[1] if ends else None,
            counts=dict(sorted(self._counts.items())),
            files=tuple(self.files),
        )
