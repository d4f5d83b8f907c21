"""Built-ins that run other flows: `flow`, a child in the same tree, and `start`, a run of its own."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from outlive._cel import ANY, STRING
from outlive._features.flows.built_in.contract import BuiltIn, Call
from outlive._features.flows.run.plain_data import PlainArguments
from outlive._features.flows.run.target import OfDocument, WorkflowTarget, workflow_meant
from outlive._kernel.model import check_run_id
from outlive._kernel.model import given as checked
from outlive._kernel.replay.ask import start_detached, this_execution
from outlive.errors.document import FlowInputError
from outlive.errors.step import FlowStepError


class FlowArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `flow`."""

    name: str
    """The name of a flow, or of a workflow, whose arguments are then the fields of `input`."""
    input: Any = {}
    vars: dict[str, Any] = {}


class RunFlow:
    """Runs another flow as a child in the same tree; its result is the output of that."""

    name = "flow"
    arguments = FlowArguments
    is_control = True
    result = ANY

    async def run(self, call: Call, given: FlowArguments) -> Any:
        """See `BuiltIn`."""
        spec = workflow_meant(this_execution(call.id), given.name, given.name)
        takes_input = getattr(spec.signature, "takes_input", False)
        if given.vars and not takes_input:
            raise FlowStepError(call.id, f"{given.name} is not a flow, and takes no `vars`")
        target = WorkflowTarget(given.name, spec, takes_input=takes_input, values=given.vars)
        return await target.run(this_execution(call.id), call.scope, given.input)


class StartArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `start`."""

    name: str
    """The name of a flow, or of a workflow, whose arguments are then the fields of `input`."""
    input: Any = {}
    vars: dict[str, Any] = {}
    id: str | None = None
    """The id of the new run; a start with the same id gives the same run."""
    tags: dict[str, str] = {}


class Start:
    """Starts a run of its own, which outlives this one; its result is the id of that run."""

    name = "start"
    arguments = StartArguments
    is_control = True
    result = STRING

    async def run(self, call: Call, given: StartArguments) -> str:
        """See `BuiltIn`."""
        execution = this_execution(call.id)
        spec = workflow_meant(execution, given.name, given.name)
        args: tuple[Any, ...] = ()
        kwargs: dict[str, Any] = given.input
        if not getattr(spec.signature, "takes_input", False):
            spec = replace(spec, signature=PlainArguments(spec.signature, spec.name, is_checked=True))
        else:
            args, kwargs = (given.input,), {"vars": given.vars} if given.vars else {}
            spec = replace(spec, signature=OfDocument(spec.signature))
            try:
                spec.signature.encode(args, kwargs)
            except FlowInputError:
                if not execution.is_replaying:
                    raise
                # The run was started long ago, with a document that took it: the journal does not say which.
                spec = replace(spec, signature=PlainArguments(spec.signature, spec.name))
        return await start_detached(
            execution,
            spec,
            args,
            kwargs,
            run_id=None if given.id is None else check_run_id(given.id),
            tags=checked.tags(f"step {call.id}", given.tags),
        )


BUILT_INS: dict[str, BuiltIn] = {each.name: each for each in (RunFlow(), Start())}
