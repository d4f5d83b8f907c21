"""Deletes runs that have been kept for long enough, a few at a time, in every worker.

The workers of a store take turns by a cell that all of them share. It says when the next turn is, and for each rule how
far its walk over the ended runs has come: the first worker that comes takes the turn, and the others see that. One that
dies in its turn is not waited for longer than `TURN_SECONDS`. Nothing depends on the turns but the rate: what may
be deleted is judged by the store.

A walk goes over the runs of one workflow and one status, the oldest first, by the index by which they are listed. A run
that has to stay is passed by, and met again in the next walk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from outlive._features.retention.archive import Archive
from outlive._features.retention.purging import TREES_AT_ONCE, Purger
from outlive._kernel.model import Run, RunFilter, RunStatus
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.retention import Keep
from outlive._kernel.runtime.clock import Clock
from outlive._kernel.store.contract import Store
from outlive.errors.store import ArchiveError
from outlive.telemetry import Counters, log

RETENTION_CELL = "outlive.retention"
TURN_SECONDS = 60.0
"""After how long a turn is taken from a worker that has not ended it."""
TURN_SECONDS_MIN = 0.02
"""Between two turns, however little was done."""
WALK_SECONDS = 300.0
"""Between two walks over the runs of a rule."""
ARCHIVE_RETRY_SECONDS = 60.0
LOOKS_MAX = 200
"""Runs that are looked at in one turn, if fewer can go."""
LOOKS_PER_DELETE = 10
"""Looking at so many runs counts as much as deleting one."""


class Walk(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far the walk over the runs of one rule has come."""

    at: int = 0
    id: str = ""
    """The run behind which it goes on; empty for the first."""
    next_at: int = 0
    """When it goes on."""


class Turns(msgspec.Struct, frozen=True, omit_defaults=True):
    """The content of the cell."""

    next_at: int = 0
    """When the next turn is; while a worker has one, when that is taken from it."""
    walks: dict[str, Walk] = {}
    """By the workflow and the status."""


_decode = msgspec.json.Decoder(Turns).decode


def turns_in(data: bytes | None) -> Turns:
    """The turns in the cell; a cell that cannot be read has none, and all walks begin again."""
    try:
        return _decode(data) if data else Turns()
    except msgspec.MsgspecError:
        return Turns()


class Rule(NamedTuple):
    """How long runs of one workflow, or of all others, stay that ended in one way."""

    workflow: str | None
    status: RunStatus
    span: int
    """In microseconds."""
    archive: Archive | None

    @property
    def key(self) -> str:
        """The name of its walk."""
        return f"{self.workflow or '*'} {self.status.value}"


class Pruner:
    """Deletes what its rules let go. Safe in every worker of a store at once."""

    name = "pruner"

    def __init__(
        self, store: Store, rules: Sequence[Keep], *, clock: Clock, counters: Counters, deletes_per_second_max: int
    ) -> None:
        self._store = store
        self._counters = counters
        self._rules = list(_rules_of(rules))
        self._named = {rule.name for rule in rules}
        self._rate = deletes_per_second_max
        self._purger = Purger(store, ids=clock)

    async def run_once(self) -> float:
        """Take a turn, if it is time for one; seconds until the next."""
        now = self._store.now()
        seen = turns_in(await self._store.read_cell(RETENTION_CELL))
        if (left := self._left(seen, now)) > 0:
            return left
        taken: Turns | None = await self._store.change_cell(RETENTION_CELL, self._take)
        if taken is None:
            return 1.0  # Another worker was first.
        walks, cost = await self._prune_some(dict(taken.walks), self._store.now())
        has_more_room = await self._store.give_back()
        pause = max(TURN_SECONDS_MIN, cost / self._rate)

        def end(data: bytes | None, at: int) -> tuple[bytes, Turns]:
            # Rules of other workers, which this one does not have, stay as they are.
            after = Turns(next_at=at + round(pause * MICROSECONDS), walks={**turns_in(data).walks, **walks})
            return msgspec.json.encode(after), after

        turns = await self._store.change_cell(RETENTION_CELL, end)
        return pause if has_more_room else max(pause, self._left(turns, self._store.now()))

    async def _prune_some(self, walks: dict[str, Walk], now: int) -> tuple[dict[str, Walk], float]:
        """Go on with the walks that are due, until there was enough to do for one turn: how far they have come, and
        how much that counts."""
        looked = deleted = 0
        while looked < LOOKS_MAX and deleted < TREES_AT_ONCE and (rule := self._next_rule(walks, now)) is not None:
            walks[rule.key], more_looked, more_deleted = await self._prune(rule, walks.get(rule.key, Walk()), now)
            looked, deleted = looked + more_looked, deleted + more_deleted
        return walks, deleted + looked / LOOKS_PER_DELETE

    def _take(self, data: bytes | None, now: int) -> tuple[bytes, Turns | None]:
        turns = turns_in(data)
        if turns.next_at > now:
            return data or b"", None
        after = Turns(next_at=now + round(TURN_SECONDS * MICROSECONDS), walks=turns.walks)
        return msgspec.json.encode(after), turns

    def _left(self, turns: Turns, now: int) -> float:
        """Seconds until one of the rules of this worker is due."""
        first_at = min(turns.walks.get(rule.key, Walk()).next_at for rule in self._rules)
        return max(0, turns.next_at - now, first_at - now) / MICROSECONDS

    def _next_rule(self, walks: dict[str, Walk], now: int) -> Rule | None:
        """The rule that has waited longest."""
        due = [rule for rule in self._rules if walks.get(rule.key, Walk()).next_at <= now]
        return min(due, key=lambda rule: walks.get(rule.key, Walk()).next_at, default=None)

    async def _prune(self, rule: Rule, walk: Walk, now: int) -> tuple[Walk, int, int]:
        """Go on with a walk: how far it has come then, how many runs were looked at and how many deleted."""
        ended_before = now - rule.span
        wanted = RunFilter(
            workflow=rule.workflow, statuses=(rule.status,), roots_only=True, until_at=max(0, ended_before)
        )
        place = (walk.at, walk.id) if walk.id else None
        page = await self._store.list_runs(wanted, limit=TREES_AT_ONCE, after=place, oldest_first=True)
        due = [run for run in page if self._is_due(rule, run, ended_before)]
        try:
            gone, files = await self._purger.delete(due, ended_before=ended_before, archive=rule.archive)
        except ArchiveError as error:
            self._counters.archive_failures += 1
            log.error("%s", error)
            return msgspec.structs.replace(walk, next_at=now + round(ARCHIVE_RETRY_SECONDS * MICROSECONDS)), len(due), 0
        self._counters.runs_deleted += len(gone)
        self._counters.runs_archived += self._purger.archived
        self._purger.archived = 0
        if gone:
            log.info(
                "%d runs were deleted that ended as %s more than %d s ago%s",
                len(gone),
                rule.key,
                rule.span // MICROSECONDS,
                f"; they are in {files[0]}" if files else "",
            )
        if len(page) < TREES_AT_ONCE:
            return Walk(next_at=now + round(WALK_SECONDS * MICROSECONDS)), len(page), len(gone)
        return Walk(at=page[-1].created_at, id=page[-1].id, next_at=now), len(page), len(gone)

    def _is_due(self, rule: Rule, run: Run, ended_before: int) -> bool:
        is_own = rule.workflow is not None or run.workflow not in self._named
        return is_own and run.finished_at is not None and run.finished_at < ended_before


def _rules_of(rules: Sequence[Keep]) -> Iterator[Rule]:
    for keep in rules:
        archive = None if keep.archive is None else Archive(keep.archive)
        for status, span in keep.spans.items():
            yield Rule(keep.name, status, span, archive)
