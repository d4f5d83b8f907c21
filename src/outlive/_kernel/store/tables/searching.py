"""Which index finds the runs that a filter asks for.

Some fields of a filter have an index of their own, and one index finds all runs of a list; the other fields are looked
at run by run. So the index must be the narrowest one: `status="parked"` finds three runs where `tags={"tenant": "a"}`
finds a million, or the other way round. A database does not know that of values that it is given as parameters. When
there is a choice, the store counts the entries of each index, up to `SIZE_MAX`, and takes the shortest.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from outlive._kernel.model import RunFilter
from outlive._kernel.model.run import STORED, GroupField, in_group
from outlive._kernel.store.tables.rows import Text, tags_to_json

SIZE_MAX = 2_000
"""So many entries of an index are counted before it is taken for a long one."""
INSTANT_MAX = 2**63 - 1
_LAST_CHARACTER = "\U0010ffff"

ListPlace = tuple[int, str]
"""A place in a list of runs: `(created_at, id)`."""

GROUPS = "groups"
"""The index of workflow, status and being a child: it finds every run, in order of creation."""
AT = {"runs_with_tag": "entry.created_at", "runs_waiting_for": "entry.created_at"}
"""Where a source has the instant of creation, if that is not the row of the run: its index is in this order."""
SOURCES = (
    "runs_of_root",
    "runs_of_parent",
    "runs_of_owner",
    "runs_of_queue",
    "runs_waiting_for",
    "runs_sleeping",
    "runs_overdue",
    "runs_with_error",
    "runs_with_tag",
    "runs_finished",
    "runs_with_prefix",
    "runs_with_ids",
)
"""Files of SQL, each with the table and the index that find runs by one field of a filter."""


FILTER = " ".join(
    line
    for each in (Path(__file__).parent / "filter.sql").read_text("utf-8").splitlines()
    if (line := each.partition("--")[0].strip())
)
"""The conditions of a filter that all databases spell alike, with casts."""


class RunSearch(msgspec.Struct, frozen=True, kw_only=True):
    """A filter, and which part of the runs that pass it is wanted."""

    filter: RunFilter
    limit: int
    before: ListPlace | None = None
    after: ListPlace | None = None
    oldest_first: bool = False
    by: GroupField = "status"
    """By what runs are grouped, to be counted."""
    groups_max: int = 0

    @property
    def direction(self) -> str:
        """How the list is ordered."""
        return "ASC" if self.oldest_first else "DESC"

    @property
    def awaited(self) -> str | None:
        """The name in the table of waits that the runs must have. A person who is asked for approval is in that table
        too."""
        if self.filter.asks is None:
            return self.filter.waiting_for
        return f"@assignee/{self.filter.asks}" if self.filter.asks else "@approval"

    def values(self, text: Text) -> dict[str, Any]:
        """The values of the statements, by name, without the lists of statuses and ids: every field of the filter has
        its own, and some have another form."""
        wanted = self.filter
        until_at = None if wanted.until_at is None else wanted.until_at - 1
        lows = [at for at in (wanted.since_at, self.after and self.after[0]) if at is not None]
        highs = [at for at in (until_at, self.before and self.before[0]) if at is not None]
        fields = msgspec.structs.asdict(wanted)
        values = {name: text(value) if isinstance(value, str) else value for name, value in fields.items()}
        return values | {
            "limit": self.limit,
            "waiting_for": None if self.awaited is None else text(self.awaited),
            "low": max(lows, default=-INSTANT_MAX),
            "high": min(highs, default=INSTANT_MAX),
            "before": self.before and self.before[0],
            "before_id": self.before and text(self.before[1]),
            "after": self.after and self.after[0],
            "after_id": self.after and text(self.after[1]),
            "tags": tags_to_json(wanted.tags, text),
            "error_name": wanted.error and text(wanted.error.rpartition(".")[2]),
            "finished_low": -INSTANT_MAX if wanted.finished_since_at is None else wanted.finished_since_at,
            "finished_high": INSTANT_MAX if wanted.finished_until_at is None else wanted.finished_until_at,
            "id_end": wanted.id_prefix and text(wanted.id_prefix) + _LAST_CHARACTER,
        }


def group_search(search: RunSearch, group: str) -> RunSearch:
    """The search for the runs of one group."""
    return msgspec.structs.replace(search, filter=in_group(search.filter, search.by, group))


def known_groups(search: RunSearch) -> list[str] | None:
    """The groups that a search may find, if the filter says so."""
    wanted = search.filter
    match search.by:
        case "status":
            return sorted(status.value for status in wanted.statuses or STORED)
        case "workflow":
            return None if wanted.workflow is None else [wanted.workflow]
        case "queue":
            return None if wanted.queue is None else [wanted.queue]


class SearchIndex(msgspec.Struct, frozen=True):
    """An index that finds runs."""

    name: str
    """The name of its file, or `GROUPS`."""
    tag: tuple[str, str] | None = None

    def list_statement(self, search: RunSearch) -> str:
        """The statement that lists the runs of a search."""
        return (
            f"list_runs/{search.direction}"
            if self.name == GROUPS
            else f"list_found_runs/{self.name}/{search.direction}"
        )

    @property
    def count_statement(self) -> str:
        """The statement that counts the runs of a search."""
        return "count_runs" if self.name == GROUPS else f"count_found_runs/{self.name}"

    @property
    def measure_statement(self) -> str:
        """The statement that counts entries of this index, without a look at the runs."""
        return "measure_runs" if self.name == GROUPS else f"measure_found_runs/{self.name}"

    def values(self, text: Text) -> dict[str, Any]:
        """The values of its statements beside those of the search."""
        return {} if self.tag is None else {"tag_name": text(self.tag[0]), "tag_value": text(self.tag[1])}


def covering_source(wanted: RunFilter) -> SearchIndex | None:
    """The index that knows by itself which runs pass a filter: to count them it is enough to count its entries."""
    asked = msgspec.structs.replace(wanted, since_at=None, until_at=None)
    grouped = RunFilter(
        statuses=wanted.statuses,
        workflow=wanted.workflow,
        roots_only=wanted.roots_only,
        hides_internal=wanted.hides_internal,
    )
    if asked == grouped:
        return SearchIndex(GROUPS)
    if wanted.waiting_for is not None and asked == RunFilter(waiting_for=wanted.waiting_for):
        return SearchIndex("runs_waiting_for")
    if wanted.sleeps and asked == RunFilter(sleeps=True):
        return SearchIndex("runs_sleeping")
    if wanted.queue and asked == RunFilter(queue=wanted.queue):
        return SearchIndex("runs_of_queue")
    if wanted.error and "." not in wanted.error and asked == RunFilter(error=wanted.error):
        return SearchIndex("runs_with_error")
    if len(wanted.tags) == 1 and asked == RunFilter(tags=wanted.tags):
        return SearchIndex("runs_with_tag", next(iter(wanted.tags.items())))
    if wanted.id_prefix and wanted == RunFilter(id_prefix=wanted.id_prefix):
        return SearchIndex("runs_with_prefix")
    return None


def sources_of(wanted: RunFilter) -> list[SearchIndex]:
    """The indexes that can find the runs of a filter; the first one that is the shortest should be taken."""
    if wanted.ids:
        return [SearchIndex("runs_with_ids")]
    if wanted.root_id is not None:
        return [SearchIndex("runs_of_root")]
    if wanted.parent_id is not None:
        return [SearchIndex("runs_of_parent")]
    if wanted.owner:
        return [SearchIndex("runs_of_owner")]
    if wanted.overdue_at is not None:
        return [SearchIndex("runs_overdue")]
    is_awaited = wanted.waiting_for is not None or wanted.asks is not None
    found = [SearchIndex("runs_waiting_for")] if is_awaited else []
    found += [SearchIndex("runs_sleeping")] if wanted.sleeps else []
    found += [SearchIndex("runs_of_queue")] if wanted.queue else []
    found += [SearchIndex("runs_with_error")] if wanted.error is not None else []
    found += [SearchIndex("runs_with_tag", tag) for tag in wanted.tags.items()]
    if not found or wanted.statuses or wanted.workflow is not None:
        found.append(SearchIndex(GROUPS))
    # Last: these indexes are not in the order of creation, so they will not do for many runs.
    if wanted.finished_since_at is not None or wanted.finished_until_at is not None:
        found.append(SearchIndex("runs_finished"))
    if wanted.id_prefix:
        found.append(SearchIndex("runs_with_prefix"))
    return found
