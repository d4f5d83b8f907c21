"""Flows of the library: revisions, drafts, and runs of them. Reading a document runs nothing of it."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct

import outlive.errors as e
from outlive._features.flows.document.declarations import secret_addresses
from outlive._features.flows.document.inputs import input_schema, variable_schema
from outlive._features.flows.document.model import Document, Variable, hash_of
from outlive._features.flows.document.reading import read
from outlive._features.flows.document.validating import document_of
from outlive._features.flows.outside import settings
from outlive._features.flows.outside.addresses import fixed_vars
from outlive._features.flows.values import Flow, FlowRevision
from outlive._features.flows.verbs import Flows
from outlive.errors.document import FlowError, FlowInputError, Problem
from outlive.errors.flow import FlowDamagedError, FlowDisabledError, FlowInUseError, FlowNotFoundError, StaleFlowError
from outlive.http.asked import made_id
from outlive.http.operation import Call, operation
from outlive.http.principal import LOCAL
from outlive.http.wire.page import Done, Json, Name
from outlive.http.wire.runs import Attributed, Started
from outlive.http.wire.start import Start

MISSING = (FlowNotFoundError,)
CHANGES = (*MISSING, StaleFlowError, FlowError)
Revision = Annotated[int, Meta(ge=0)] | None
DocumentText = Annotated[str, Meta(min_length=1, max_length=1024 * 1024)]


class ApplyFlow(Attributed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A document to check and publish, or to keep as a draft."""

    document: DocumentText
    """The text: YAML or JSON."""
    expected: Revision = None
    """The revision (of a draft, its number) that you have changed; 0 for a new one. Without, what is there is
    replaced."""


class PublishFlow(Attributed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why a draft is published, and who does it."""

    expected: Revision = None


class RollbackFlow(Attributed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which revision to publish again."""

    to: Revision = None
    """The one before the published one unless given."""
    expected: Revision = None


class DeleteFlowQuery(Attributed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to delete a flow."""

    force: bool = False
    """Delete it also while runs of it are open."""
    expected: Revision = None


class FlowQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which document."""

    revision: Revision = None
    """The published one unless given."""
    draft: bool = False


class StartFlow(Start, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run of a flow."""

    input: Json = None
    vars: dict[str, Json] | None = None
    overrides: dict[str, Json] | None = None
    """Changes of its steps for this run, a JSON merge patch for each: retries, timeouts and limits, or what the
    document lets a start change. An admin of the whole store may change everything."""
    revision: Revision = None


def flows_of(call: Call) -> Flows:
    """`engine.flows` for one request: documents are read beside the event loop."""
    return call.view.flows(call.beside)


class FlowsList(Struct, frozen=True):
    """Flows."""

    items: list[Flow]


class RevisionsList(Struct, frozen=True):
    """Revisions, the newest first."""

    items: list[FlowRevision]


class DocumentView(Struct, frozen=True):
    """A document of the library."""

    name: str
    revision: int
    """0 for a draft, and for the document of a run."""
    hash: str
    text: str
    input: dict[str, Any] | None
    """The JSON Schema of what a run of it is given; null if it takes any JSON."""
    vars: dict[str, Any] | None
    """The JSON Schema of the variables that a start may give, an object by name; null if it has none."""


@operation("flows.list", "GET", "/flows", scope="viewer", raises=(FlowDamagedError,))
async def list_flows(call: Call) -> FlowsList:
    """Every flow of the library, by name."""
    return FlowsList(await flows_of(call).list())


@operation("flows.apply", "POST", "/flows", scope="admin", raises=CHANGES)
async def apply_flow(call: Call, body: ApplyFlow) -> Flow:
    """Check a document and publish it as the next revision of its name. The same content again changes nothing."""
    by = call.person(body.by)
    await call.beside(partial(_check_environment, call, body.document))
    return await flows_of(call).apply(body.document, by=by, reason=body.reason, expected=body.expected)


@operation("flows.info", "GET", "/flows/{name}", scope="viewer", raises=MISSING)
async def get_flow(call: Call, name: Name) -> Flow:
    """One flow of the library."""
    return await flows_of(call).info(name)


@operation("flows.get", "GET", "/flows/{name}/document", scope="viewer", raises=MISSING)
async def get_document(call: Call, name: Name, query: FlowQuery) -> DocumentView:
    """The document of a flow: of the published revision unless another one, or the draft, is asked for."""
    found = await flows_of(call).get(name, revision=query.revision, draft=query.draft)
    return await call.beside(partial(_document, found.name, found.revision, found.hash, found.text, found.document))


@operation(
    "runs.document",
    "GET",
    "/runs/{run_id}/document",
    scope="viewer",
    reach="run",
    raises=(e.RunNotFoundError, *MISSING),
)
async def run_document(call: Call, run_id: str) -> DocumentView:
    """The document of the flow that a run was started with, whatever was published since."""
    run = await call.view.run(run_id)
    try:
        document, text = await flows_of(call).document_of(run)
    except FlowDamagedError:
        raise FlowNotFoundError(run.workflow, lacks=f"document in the library for run {run_id}") from None
    return await call.beside(partial(_document, run.workflow, 0, hash_of(document), text, document))


@operation("flows.history", "GET", "/flows/{name}/history", scope="viewer", raises=MISSING)
async def flow_history(call: Call, name: Name) -> RevisionsList:
    """The revisions of a flow: who published which document, when, and why."""
    return RevisionsList(await flows_of(call).history(name))


@operation("flows.save_draft", "POST", "/flows/drafts", scope="admin", raises=CHANGES)
async def save_draft(call: Call, body: ApplyFlow) -> Flow:
    """Keep a document as the draft of its flow. Nothing runs it before it is published."""
    by = call.person(body.by)
    await call.beside(partial(_check_environment, call, body.document))
    return await flows_of(call).save_draft(body.document, by=by, reason=body.reason, expected=body.expected)


@operation("flows.publish", "POST", "/flows/{name}/publish", scope="admin", raises=CHANGES)
async def publish_flow(call: Call, name: Name, body: PublishFlow | None = None) -> Flow:
    """Check the draft of a flow and publish it."""
    said = body or PublishFlow()
    by = call.person(said.by)
    if await call.was_done(name):
        return await flows_of(call).info(name)
    return await flows_of(call).publish(name, by=by, reason=said.reason, expected=said.expected)


@operation("flows.discard_draft", "DELETE", "/flows/{name}/draft", scope="admin", raises=MISSING)
async def discard_draft(call: Call, name: Name) -> Flow:
    """Forget the draft of a flow."""
    return await flows_of(call).discard_draft(name)


@operation("flows.rollback", "POST", "/flows/{name}/rollback", scope="admin", raises=CHANGES)
async def rollback_flow(call: Call, name: Name, body: RollbackFlow | None = None) -> Flow:
    """Publish the document of an earlier revision again, as a new revision."""
    said = body or RollbackFlow()
    by = call.person(said.by)
    if await call.was_done(name):
        return await flows_of(call).info(name)
    return await flows_of(call).rollback(name, to=said.to, by=by, reason=said.reason, expected=said.expected)


@operation("flows.enable", "POST", "/flows/{name}/enable", scope="admin", raises=MISSING)
async def enable_flow(call: Call, name: Name) -> Flow:
    """Let a flow start runs again, by name and by its triggers."""
    return await flows_of(call).enable(name)


@operation("flows.disable", "POST", "/flows/{name}/disable", scope="admin", raises=MISSING)
async def disable_flow(call: Call, name: Name, body: Attributed | None = None) -> Flow:
    """Let a flow start no more runs; its triggers rest. Runs under way go on."""
    said = body or Attributed()
    return await flows_of(call).disable(name, by=call.person(said.by), reason=said.reason)


@operation("flows.delete", "DELETE", "/flows/{name}", scope="admin", raises=(*CHANGES, FlowInUseError))
async def delete_flow(call: Call, name: Name, query: DeleteFlowQuery) -> Done:
    """Take a flow out of the library. Its runs stay."""
    by = call.person(query.by)
    if not await call.was_done(name):
        await flows_of(call).delete(name, force=query.force, by=by, reason=query.reason, expected=query.expected)
    return Done(name)


@operation(
    "flows.start",
    "POST",
    "/flows/{name}/runs",
    scope="operator",
    answers=201,
    raises=(*MISSING, FlowDisabledError, FlowInputError, FlowError, e.RunExistsError, e.PayloadTooLargeError),
)
async def start_flow(call: Call, name: Name, body: StartFlow | None = None) -> Started:
    """Start a run of a flow; its input is checked against the document. As a start of a workflow otherwise."""
    said = body or StartFlow()
    run_id = said.id or made_id(call, "run")
    if run_id is not None and said.on_conflict != "attach" and await call.was_done(run_id):
        return Started(run_id)
    options = said.options(id=run_id, headers=call.run_headers(said.headers))
    run = await flows_of(call).start(
        name, said.input, vars=said.vars, overrides=said.overrides, revision=said.revision, **options
    )
    return Started(run.id)


def unlisted(call: Call, text: str) -> list[Problem]:
    """A problem for each environment variable and each secret that a document names and the operator does not list.

    Variables of servers and workers hold passwords, and a run shows what it reads: a person who may publish flows may
    not read all of them. Nor may the document send any secret of the workers: those of other flows, of endpoints and of
    sinks are found by their names too. A caller of a server without keys, which is on this machine, may.

    Raises:
        FlowError: the text cannot be read.
    """
    if call.principal is LOCAL:
        return []
    reading = read(text)
    document, refused = document_of(reading), list[Problem]()
    for name, variable in document.vars.items():
        if variable.secret and not settings.current().bounds_of(name).lists(document.name):
            refused.append(
                Problem(
                    code="unlisted-secret",
                    message=f"a document that comes with a key may not name the secret {name}",
                    path=("vars", name, "secret"),
                    suggestion=f"let the operator list the flow in [flows.grants.{name}] flows of the server",
                )
            )
        if variable.env and not _may_name(name, variable, variable.env):
            refused.append(
                Problem(
                    code="unlisted-env",
                    message=f"a document that comes with a key may not name the environment variable {variable.env}",
                    path=("vars", name, "env"),
                    suggestion="let the operator list it in [flows] environment of the server, or leave `env` out",
                )
            )
    refused += [replace(each, is_warning=False) for each in secret_addresses(document)]
    return reading.positions.located(refused)


def _may_name(name: str, variable: Variable, env: str) -> bool:
    """Whether a variable of a document that comes with a key may name this environment variable."""
    known = settings.current()
    of_secret = variable.secret and known.bounds_of(name).env == env
    if not of_secret and (env.upper().startswith(settings.ENVIRONMENT) or known.secret_with(env) is not None):
        return False  # The value of a secret, by another name or as no secret at all.
    return of_secret or any(fnmatchcase(env, each) for each in known.environment)


def _check_environment(call: Call, text: str) -> None:
    """See that a document names no environment variable and no secret that its sender may not use.

    Raises:
        FlowError: it does, or is none.
    """
    if refused := unlisted(call, text):
        raise FlowError(refused)


def input_of(document: Document) -> dict[str, Any] | None:
    """The JSON Schema of what a run of a flow is given."""
    return input_schema(document) or None


def _document(name: str, revision: int, hash: str, text: str, document: Document) -> DocumentView:  # noqa: A002
    return DocumentView(name, revision, hash, text, input_of(document), _vars_of(document))


def _vars_of(document: Document) -> dict[str, Any] | None:
    """None of them is required: the environment of the server may have variables that a start does not give."""
    properties: dict[str, Any] = {}
    fixed = fixed_vars(document)
    for name, variable in document.vars.items():
        if not variable.secret and name not in fixed:
            schema = variable_schema(variable)
            plain = dict(schema) if isinstance(schema, dict) else {"type": schema} if isinstance(schema, str) else {}
            default = {} if variable.default is UNSET else {"default": variable.default}
            properties[name] = plain | default
    return {"type": "object", "properties": properties, "additionalProperties": False} if properties else None
