"""A built-in workflow that does one verb to many runs.

    outlive.bulk@1      finds the runs that fit, page by page, and does the verb to each

Every worker has it. A retry needs the code of the run, so the runs of one workflow go, a page at a time, to a request
that only a worker with that code claims (`intervention`). All other verbs need no code, and a step here does them.

Each run is a deed in the audit log, under the name of the person who asked, with the id of this run as the request. So
a worker that takes this over in the middle of a page asks the log which runs are done already.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from outlive._kernel.define.in_step import CURRENT_STEP
from outlive._kernel.define.intervention import WHILE_STORE_IS_AWAY, Intervention, Refusal, intervention_spec
from outlive._kernel.define.own import OwnWorkflows
from outlive._kernel.journal.arguments import Signature
from outlive._kernel.model import Run, RunFilter
from outlive._kernel.model.queue import QueuePlace
from outlive._kernel.replay.ask import cancel_detached, end_of, run_step, start_detached, this_execution
from outlive._kernel.replay.command import StepOptions, StepSpec, WorkflowSpec
from outlive._kernel.replay.deciding import publish
from outlive._kernel.replay.ending import result_of
from outlive._kernel.replay.frame import SCOPE

BulkVerb = Literal["cancel", "retry", "pause", "resume", "purge"]
REFUSALS_MAX = 1_000
"""The limit for the refusals of one operation that are listed; the others are counted."""
REFUSALS_SHOWN = 20
"""While it goes on."""
OWN = "it says what was done to which runs, in the name of the person who asked for it"


class BulkRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The request of a verb for many runs: what it does, and to which runs."""

    verb: BulkVerb
    at: int
    """When it was asked for: runs that were created later are not meant."""
    wanted: RunFilter
    limit: int
    """At most so many, the oldest first."""
    ended_before: int = 0
    """Unless it is 0, only runs that ended before this instant."""
    by: str = ""
    """The principal who asked for it."""
    workflows: tuple[str, ...] | None = None
    """The only ones whose runs that one may change."""
    tags: dict[str, str] = {}
    """Which those runs have."""
    reason: str = ""


class BulkGroup(msgspec.Struct, frozen=True):
    """Runs of a page that go the same way."""

    run_ids: list[str]
    workflow: str = ""
    """The workflow whose code is needed, if it is."""
    version: int = 0
    queue: str = ""
    """The queue in whose line the request has to wait, if workers with the code take from that one only."""


class BulkPage(msgspec.Struct, frozen=True):
    """Some of the runs that fit."""

    groups: list[BulkGroup]
    refused: list[Refusal]
    """The runs on which no worker can carry out the verb."""
    after: str | None
    """Where the next page begins; None if there is none."""


class BulkTally(msgspec.Struct, kw_only=True):
    """The progress of a verb for many runs."""

    found: int = 0
    done: int = 0
    refused: int = 0
    refusals: list[Refusal] = []
    """Which, and why: the first 1,000."""

    def add(self, asked: int, refused: Iterable[Refusal]) -> None:
        """Count runs that it was tried with."""
        several = list(refused)
        self.found += asked
        self.refused += len(several)
        self.done += asked - len(several)
        self.refusals += several[: max(0, REFUSALS_MAX - len(self.refusals))]

    def shown(self) -> dict[str, Any]:
        """The progress, for people."""
        shown: dict[str, Any] = msgspec.to_builtins(self)
        return shown | {"refusals": shown["refusals"][:REFUSALS_SHOWN]}


async def run_bulk(request: BulkRequest) -> BulkTally:
    """Do it to all runs that fit, a page at a time."""
    execution, tally = this_execution("bulk"), BulkTally()
    after: str | None = None
    while tally.found < request.limit:
        page: BulkPage = await run_step(execution, _CHOOSE, _CHOOSE.options, (request, after, tally.found), {})
        tally.add(len(page.refused), page.refused)
        for group in page.groups:
            tally.add(len(group.run_ids), await _do(request, group))
            publish(execution, tally.shown())
        after = page.after
        if after is None:
            break
    return tally


async def _do(request: BulkRequest, group: BulkGroup) -> list[Refusal]:
    execution = this_execution("bulk")
    if not group.workflow:
        refused: list[Refusal] = await run_step(execution, _APPLY, _APPLY.options, (request, group.run_ids), {})
        return refused
    spec = intervention_spec(group.workflow, group.version)
    wanted = Intervention(
        verb="retry",
        run_id="",
        at=request.at,
        reason=request.reason,
        run_ids=group.run_ids,
        by=request.by,
        workflows=request.workflows,
        tags=request.tags,
        request=SCOPE.get().frame.id,
    )
    place = QueuePlace(queue=group.queue) if group.queue else None
    run_id = await start_detached(execution, spec, (wanted,), {}, place=place)
    try:
        ended = await end_of(execution, run_id, started=spec.name)
    except BaseException:
        cancel_detached(execution, run_id)
        raise
    answer = spec.signature.result.decode(execution.unpack_foreign(result_of(ended)), f"the answer of {run_id}")
    assert isinstance(answer, list)
    return answer


async def _choose(request: BulkRequest, after: str | None, found: int) -> BulkPage:
    engine = CURRENT_STEP.get().engine
    assert engine is not None
    page: BulkPage = await engine.bulk._page(request, after, found)
    return page


async def _apply(request: BulkRequest, run_ids: list[str]) -> list[Refusal]:
    source = CURRENT_STEP.get()
    assert source.engine is not None
    refused: list[Refusal] = await source.engine.bulk._apply(
        request.verb,
        run_ids,
        request=source.context().run_id,
        by=request.by,
        reason=request.reason,
        workflows=request.workflows,
        tags=request.tags,
    )
    return refused


def _step(name: str, fn: Any) -> StepSpec:
    options = StepOptions(retry=WHILE_STORE_IS_AWAY, unsettable=OWN)
    return StepSpec(name=name, fn=fn, signature=Signature(fn, name), is_async=True, options=options)


_CHOOSE, _APPLY = _step("outlive.choose", _choose), _step("outlive.apply", _apply)
BULK = WorkflowSpec(name="outlive.bulk", version=1, fn=run_bulk, signature=Signature(run_bulk, "outlive.bulk"))


class BulkWorkflows(OwnWorkflows):
    """The runs of verbs for many runs."""

    prefix = BULK.name
    specs = unqueued = retried = (BULK,)
    is_bounded = True

    def no_fork(self, root: Run) -> str:
        """Its steps act in the name of the person who asked, who may have been allowed more than this principal."""
        return "it is a verb for many runs; ask for that again"

    def no_retry_of(self, arguments: tuple[object, ...]) -> str:
        """Deleting runs is for an admin: others cannot begin again with what an admin asked for and stopped."""
        (request,) = arguments
        assert isinstance(request, BulkRequest)
        return "it deletes runs: an admin of the whole store may let it go on" if request.verb == "purge" else ""
