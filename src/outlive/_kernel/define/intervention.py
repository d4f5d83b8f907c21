"""A built-in workflow that does what an operator asks for where the code is.

    outlive.intervention:<name>@<version>   retries or forks one run of this workflow

A retry and a fork replay the journal of a run. A program that does not have the code starts a run of this workflow. Its
definition names the code that is needed, so only a worker that has it claims the run, as with the chunks of a batch. A
step calls the verb of the engine that it runs in, and the result of the run is the answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from outlive._kernel.define.in_step import CURRENT_STEP
from outlive._kernel.define.own import Code, OwnWorkflows, declare_own
from outlive._kernel.define.step_run import STEP_VERSION
from outlive._kernel.journal.arguments import Signature
from outlive._kernel.journal.event import RunForked, RunRetried
from outlive._kernel.journal.failure import failure_of
from outlive._kernel.model import Failure, Retry, Run
from outlive._kernel.model.giver import giving_policies
from outlive._kernel.model.instant import instant_of
from outlive._kernel.replay.ask import run_step, this_execution
from outlive._kernel.replay.command import StepOptions, StepSpec, WorkflowSpec
from outlive.errors import EngineClosedError, OutliveError, RunExistsError, StoreUnavailableError
from outlive.errors.run import RunNotRetriableError

OF_RUN = "outlive.intervention:"
WHILE_STORE_IS_AWAY = Retry(attempts=2**31, first=0.1, factor=2, cap=10, on=(StoreUnavailableError, EngineClosedError))
"""Try again for as long as the store is away."""


class Refusal(msgspec.Struct, frozen=True):
    """A run that refused a verb for many runs."""

    id: str
    error: str
    """The class of the error."""
    message: str

    def __repr__(self) -> str:
        return f"<Refusal {self.id}: {self.error}: {self.message}>"


class Intervention(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The request of an operator."""

    verb: Literal["retry", "fork"]
    run_id: str
    at: int
    """When it was asked for, by the clock of the store."""
    reason: str = ""
    new_id: str = ""
    """The id of the fork; this and all that follows is for a fork."""
    place: str | int | None = None
    """Where it leaves the history of the other run."""
    results: dict[str, msgspec.Raw] = {}
    input: msgspec.Raw = msgspec.Raw(b"null")
    """The arguments as a journal has them; null for those of the other run."""
    version: int | None = None
    run_ids: list[str] = []
    """The ids of many runs to retry, for the operation `request`; this and all that follows."""
    request: str = ""
    by: str = ""
    workflows: tuple[str, ...] | None = None
    tags: dict[str, str] = {}


InterventionAnswer = Failure | list[Refusal] | None
"""Why it was refused; None if it was done. For many runs: the runs that refused."""


async def _intervene(wanted: Intervention) -> InterventionAnswer:
    refusal: InterventionAnswer = await run_step(this_execution("intervention"), _STEP, _STEP.options, (wanted,), {})
    return refusal


async def _carry_out(wanted: Intervention) -> InterventionAnswer:
    verbs = CURRENT_STEP.get().engine
    assert verbs is not None
    if wanted.run_ids:
        refused: list[Refusal] = await verbs.bulk._apply(
            wanted.verb,
            wanted.run_ids,
            request=wanted.request,
            by=wanted.by,
            reason=wanted.reason,
            workflows=wanted.workflows,
            tags=wanted.tags,
        )
        return refused
    try:
        if wanted.verb == "retry":
            await verbs.retry(wanted.run_id, reason=wanted.reason)
        else:
            with giving_policies():
                await verbs.fork(
                    wanted.run_id,
                    at=wanted.place,
                    set=wanted.results,
                    input=None if bytes(wanted.input) == b"null" else wanted.input,
                    version=wanted.version,
                    id=wanted.new_id,
                    reason=wanted.reason,
                )
    except (RunNotRetriableError, RunExistsError) as error:
        # The worker may have died when it was done and before the journal of this run said so.
        return None if await _is_done(verbs, wanted) else failure_of(error)
    except WHILE_STORE_IS_AWAY.on:
        raise
    except OutliveError as error:
        return failure_of(error)
    return None


async def _is_done(verbs: Any, wanted: Intervention) -> bool:
    """Whether the run says that it has happened since it was asked for."""
    since = instant_of(wanted.at)
    events = [event for event in await verbs.history(wanted.new_id or wanted.run_id) if event.at >= since]
    if wanted.verb == "retry":
        return any(event.type == RunRetried.__name__ for event in events)
    return any(event.type == RunForked.__name__ and event.data["origin"] == wanted.run_id for event in events)


_STEP = StepSpec(
    name="outlive.intervene",
    fn=_carry_out,
    signature=Signature(_carry_out, "outlive.intervene"),
    is_async=True,
    options=StepOptions(retry=WHILE_STORE_IS_AWAY, unsettable="it says what became of another run"),
)
_SIGNATURE = Signature(_intervene, "outlive.intervention")


def intervention_spec(workflow: str, version: int) -> WorkflowSpec:
    """The workflow that intervenes in runs of this workflow and version."""
    return WorkflowSpec(name=OF_RUN + workflow, version=version, fn=_intervene, signature=_SIGNATURE)


class InterventionWorkflows(OwnWorkflows):
    """Requests to retry or fork a run where its code is."""

    prefix = OF_RUN

    def find(self, code: Code, name: str, version: int) -> WorkflowSpec | None:
        """The request, if this process has the code of the run that it is about."""
        workflow = name.removeprefix(OF_RUN)
        return intervention_spec(workflow, version) if code.has_workflow(workflow, version) else None

    def names(self, runnable: Iterable[WorkflowSpec], steps: Iterable[StepSpec]) -> Iterable[tuple[str, int]]:
        """One for each workflow, and each step, whose runs can be retried here."""
        of_steps = [(OF_RUN + step.name, STEP_VERSION) for step in steps]
        return [*((OF_RUN + spec.name, spec.version) for spec in runnable), *of_steps]

    def no_retry(self, root: Run) -> str:
        """A request is made again and not retried."""
        return "it is a request to retry or fork another run; ask for that again"

    no_fork = no_retry


declare_own(InterventionWorkflows())
