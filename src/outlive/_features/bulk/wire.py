"""Verbs for many runs in the background, on the wire."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, structs

from outlive._features.bulk.verbs import BulkProgress
from outlive.http.wire.page import Limit, Name, RunId, Span, Text
from outlive.http.wire.runs import WhichRuns


class Bulk(WhichRuns, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which runs a verb is for. At least one filter."""

    tags: dict[str, str] | None = None
    limit: Limit = 100
    """At most so many, the oldest first."""
    dry_run: bool = False
    """Only list the runs: nothing is done."""
    reason: Text = ""


class PauseRuns(Bulk, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which runs to pause. At least one filter."""

    by: Name | None = None
    """The person who does it. Only a caller that needs no key may say so; else it is the owner of the key."""


class BulkOfTrees(Bulk, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which runs a verb is for. At least one filter."""

    roots_only: bool = True
    """No child runs; false for all runs that the list of runs shows. A run whose root fits too is reached there."""


class BulkChoice(BulkOfTrees, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which runs a verb in the background is for. At least one filter."""

    limit: Annotated[int, Meta(ge=1, le=1_000_000)] = 1_000_000
    internal: bool = False
    """Include runs that the engine makes for itself."""
    by: Name | None = None
    """The person who asks for it. Only a caller that needs no key may say so; else it is the owner of the key."""
    id: RunId | None = None
    """A repeated id names the same operation. Without one, the id is made of the header `Idempotency-Key`."""


class StartBulk(BulkChoice, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A verb for many runs, in the background. At least one filter."""

    verb: Literal["cancel", "retry", "pause", "resume"]


class StartPurge(BulkChoice, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Deleting many runs, in the background. At least one filter."""

    older_than: Span = 3_600.0
    """Only runs that ended so many seconds ago."""


class BulkPageView(Struct, frozen=True):
    """A page of verbs for many runs, the newest first."""

    items: list[BulkProgress]
    next: str | None
    previous: str | None


def bulk_filters(bulk: Bulk) -> dict[str, Any]:
    """Filters as the verbs of the engine take them."""
    return {
        name: value
        for name, value in structs.asdict(bulk).items()
        if name == "roots_only" or (name not in ("by", "reason") and value)
    }
