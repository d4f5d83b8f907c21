"""Flows and machines as graphs, for pictures; and checking a document, which stores nothing."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from msgspec import Meta, Struct

import outlive.errors as e
from outlive._features.flows.document.known_names import Listed
from outlive._features.flows.graph_wire import GraphView, graph_view
from outlive._features.flows.graphs import MachineGraph, check_text, graph_of_document
from outlive._features.flows.library.listed import ListedNames
from outlive._features.flows.operations import MISSING, DocumentText, FlowQuery, flows_of, input_of, unlisted
from outlive.errors.document import FlowError, Problem, dotted
from outlive.errors.program import UnknownWorkflowError
from outlive.http.asked import check_workflow
from outlive.http.operation import Call, operation
from outlive.http.wire.page import Name


class CheckFlow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A document to check."""

    document: DocumentText
    """The text: YAML or JSON."""


class ProblemView(Struct, frozen=True, kw_only=True):
    """One thing that is wrong with a document, or should be better."""

    code: str
    """Which rule it breaks."""
    message: str
    suggestion: str
    """The advice; may be empty."""
    path: str
    """Where it is in the data: `steps.charge.with.cents`."""
    line: int
    """Where it is in the text, counted from 1; 0 if that is not known."""
    column: int
    is_warning: bool
    """The flow can run all the same."""


class CheckedView(Struct, frozen=True, kw_only=True):
    """The result of a check of a document."""

    is_fine: bool
    """It can be published; there may be warnings."""
    name: str
    """The name of the flow; empty if it cannot be read."""
    problems: list[ProblemView]
    """In the order of the text; of many, the first mistakes and the first warnings."""
    graph: GraphView | None
    """Its steps; null if it cannot be read."""
    input: dict[str, Any] | None
    """The JSON Schema of its input; null if it takes any JSON."""


class VersionQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which version."""

    version: Annotated[int, Meta(ge=0)] | None = None
    """The newest unless given."""


@operation("flows.check", "POST", "/flows/check", scope="viewer", reach="nothing")
async def check_flow(call: Call, body: CheckFlow) -> CheckedView:
    """Say what is wrong with a document, each mistake with its line, and draw it; nothing is stored, nothing runs.

    It is checked with the steps that live workers run, unless the key is for some workflows or tags. Steps that neither
    workers nor this server have are warnings: workers that begin later may have them.
    """
    # A key that may not list the steps of all must not learn them from a check.
    sees_steps = call.principal.may_use("viewer", "store")
    listed = await call.view.verbs_of(ListedNames).read() if sees_steps else None
    return await call.beside(partial(_checked, call, body.document, listed))


def _checked(call: Call, text: str, listed: Listed | None) -> CheckedView:
    found = check_text(text, listed)
    problems = [*found.problems, *(unlisted(call, text) if found.document is not None else [])]
    in_order = sorted(problems, key=lambda each: (each.line, each.column))
    return CheckedView(
        is_fine=all(each.is_warning for each in problems),
        name="" if found.document is None else found.document.name,
        problems=[_problem(each) for each in in_order],
        graph=None if found.graph is None else graph_view(found.graph),
        input=None if found.document is None else input_of(found.document),
    )


@operation("flows.graph", "GET", "/flows/{name}/graph", scope="viewer", raises=(*MISSING, FlowError))
async def flow_graph(call: Call, name: Name, query: FlowQuery) -> GraphView:
    """The steps of a flow as boxes and arrows, with the line of each in the document."""
    found = await flows_of(call).get(name, revision=query.revision, draft=query.draft)
    return await call.beside(lambda: graph_view(graph_of_document(found.document, found.text)))


@operation(
    "workflows.graph", "GET", "/workflows/{name}/graph", scope="viewer", reach="code", raises=(UnknownWorkflowError,)
)
async def workflow_graph(call: Call, name: Name, query: VersionQuery) -> GraphView:
    """The states of a machine as boxes and arrows, as its workers have described them. That of a function is empty."""
    check_workflow(call, name)
    versions = [it.version for it in await call.engine.workflows.list() if it.name == name]
    if not versions or (query.version is not None and query.version not in versions):
        raise UnknownWorkflowError(name, query.version, sorted(versions), [])
    graph = await call.view.state_graph(name, max(versions) if query.version is None else query.version)
    return graph_view(None if graph is None else MachineGraph(name, graph), name)


@operation("runs.graph", "GET", "/runs/{run_id}/graph", scope="viewer", reach="run", raises=(e.RunNotFoundError,))
async def run_graph(call: Call, run_id: str) -> GraphView:
    """The steps of a run's flow, or the states of its machine, with where the run is in them.

    The graph of a function is empty. So is that of a flow whose document is not in the library, and that of a machine
    which no worker has described.
    """
    found = await call.view.graph(run_id, call.beside)
    name = "" if found is not None else (await call.view.run(run_id)).workflow
    return await call.beside(partial(graph_view, found, name))


def _problem(it: Problem) -> ProblemView:
    return ProblemView(
        code=it.code,
        message=it.message,
        suggestion=it.suggestion,
        path=dotted(it.path),
        line=it.line,
        column=it.column,
        is_warning=it.is_warning,
    )
