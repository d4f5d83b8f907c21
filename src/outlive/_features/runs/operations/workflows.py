"""Workflows: what workers can run, and what it takes."""

from __future__ import annotations

from msgspec import Struct

from outlive._kernel.values.workflow import WorkflowInfo
from outlive.errors.program import UnknownWorkflowError
from outlive.http.asked import check_workflow
from outlive.http.operation import Call, operation
from outlive.http.wire.page import Done, Name
from outlive.http.wire.runs import Attributed


class WorkflowsList(Struct, frozen=True):
    """Workflows."""

    items: list[WorkflowInfo]


@operation("workflows.list", "GET", "/workflows", scope="viewer", reach="code")
async def list_workflows(call: Call) -> WorkflowsList:
    """Every workflow that workers have described, in every version, with the schemas of its arguments and result."""
    return WorkflowsList([it for it in await call.engine.workflows.list() if call.principal.may_see(it.name)])


@operation("workflows.get", "GET", "/workflows/{name}", scope="viewer", reach="code", raises=(UnknownWorkflowError,))
async def get_workflow(call: Call, name: Name) -> WorkflowsList:
    """The versions of one workflow."""
    check_workflow(call, name)
    found = [it for it in await call.engine.workflows.list() if it.name == name]
    if not found:
        raise UnknownWorkflowError(name, None, [], [])
    return WorkflowsList(found)


@operation("workflows.pause", "POST", "/workflows/{name}/pause", scope="operator", reach="workflow")
async def pause_workflow(call: Call, name: Name, body: Attributed | None = None) -> Done:
    """Let the runs of a workflow begin nothing more. New ones may be started, and wait."""
    check_workflow(call, name)
    said = body or Attributed()
    await call.engine.pause(workflow=name, by=call.person(said.by), reason=said.reason)
    return Done(name)


@operation("workflows.resume", "POST", "/workflows/{name}/resume", scope="operator", reach="workflow")
async def resume_workflow(call: Call, name: Name) -> Done:
    """Let the runs of a workflow go on."""
    check_workflow(call, name)
    await call.engine.resume(workflow=name)
    return Done(name)
