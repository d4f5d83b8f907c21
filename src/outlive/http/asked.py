"""Requests that name runs, workflows or ids, and how keys narrow them: the same for operations of all features."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from msgspec import structs

import outlive.errors as e
from outlive._kernel.model.why import Why
from outlive.errors.program import UnknownWorkflowError
from outlive.http.operation import Call
from outlive.http.principal import bounds_shown
from outlive.http.problem import Problem
from outlive.http.wire.page import tags_of
from outlive.http.wire.runs import RunsQuery as Query

T = TypeVar("T")
PAGE_BYTES_MAX = 4 * 1024 * 1024
"""A page has no more bytes of payloads than this, unless it is one event, or one item of a batch."""


async def why_of(call: Call, run_id: str) -> Why:
    """The wait of a run, without runs that the principal may not know of."""
    return await call.view.why(run_id, bounds=call.principal.bounds)


def check_workflow(call: Call, workflow: str) -> None:
    """See that a principal may use a workflow; one that it may not know of is not there.

    Raises:
        Problem: it may not.
    """
    if not call.principal.may_see(workflow):
        raise UnknownWorkflowError(workflow, None, [], [])


async def check_id(call: Call, run_id: str | None) -> None:
    """See that a principal that is bound takes no id from a run that it may not see: it could replace that one.

    Raises:
        RunExistsError: there is such a run.
    """
    if run_id in await foreign_ids(call, [run_id]):
        raise id_of_others(str(run_id))


async def foreign_ids(call: Call, run_ids: Sequence[str | None]) -> set[str]:
    """The ids of these that runs have which the principal may not see."""
    bounds = call.principal.bounds
    wanted = [run_id for run_id in run_ids if run_id is not None]
    if bounds.is_open or not wanted:
        return set()
    return {run_id for run_id, run in (await call.view.rows_of(wanted)).items() if not bounds.allow(run)}


def id_of_others(run_id: str) -> e.RunExistsError:
    """The refusal of an id that a run has which the principal may not see."""
    return e.RunExistsError(run_id, "it is none of yours", "use another id")


Q = TypeVar("Q", bound=Query)


def narrowed(call: Call, query: Q) -> Q:
    """The query of a principal, as far as it may see the answer: a bound one sees roots within its bounds only.

    A child is in the tree of another run, which may be one that the principal may not see, whatever tags the child has.

    Raises:
        Problem: it asks for runs of other workflows or with other tags, or does not say of which workflow.
    """
    asked, own = call.principal, call.principal.workflows
    if asked.bounds.is_open:
        return query
    if own is not None and query.workflow not in own:
        wanted = f"Give the parameter workflow: one of {', '.join(sorted(own)) or 'none'}."
        raise Problem(403, "forbidden", f"{asked.name} may see some workflows only", wanted)
    tags = narrowed_tags(call, tags_of(query.tag)) or {}
    return structs.replace(query, roots_only=True, tag=[f"{name}={value}" for name, value in tags.items()])


def narrowed_tags(call: Call, tags: dict[str, str] | None) -> dict[str, str] | None:
    """The tags that a principal looks for, with those of its own.

    Raises:
        Problem: it looks for runs with another value.
    """
    own, wanted = call.principal.tags, tags or {}
    if any(wanted.get(name, value) != value for name, value in own.items()):
        detail = f"{call.principal.name} may see {bounds_shown(call.principal)} only"
        raise Problem(403, "forbidden", detail, "Leave the tag out: it is added to what you look for.")
    return wanted | own or None


async def with_room(call: Call, start: Awaitable[T], run_id: str | None, on_conflict: str) -> T:
    """The result of a start. One that cancels the run which has its id is given up when that takes too long; the run
    stops all the same.

    Raises:
        RunExistsError: it has not ended in time.
    """
    if on_conflict != "cancel_open":
        return await start
    try:
        async with asyncio.timeout(call.limits.wait_seconds_max):
            return await start
    except TimeoutError:
        stops = "it was asked to stop and has not ended"
        raise e.RunExistsError(str(run_id), stops, "send the start again when it has") from None


def made_id(call: Call, kind: str, *parts: str) -> str | None:
    """An id made of the header `Idempotency-Key`: the same for the same request of the same principal.

    Args:
        parts: what the request is for, as far as its path does not say so.
    """
    if not call.request:
        return None
    whole = "\0".join([call.request, *parts])
    return f"{kind}-{hashlib.sha256(whole.encode()).hexdigest()[:32]}"
