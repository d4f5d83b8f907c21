"""What a connection sends and gets, as values: filters become parameters, answers become results and errors."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

import msgspec

from outlive._define.workflow import bound
from outlive._journal.plain import plain_json
from outlive._model import Failure, RunStatus, given
from outlive.client.message_start import NamedStart
from outlive.errors import InvalidArgumentError, RunCancelled, RunFailed, RunTimedOut
from outlive.http.operation import Operation
from outlive.http.wire.runs import FailureView, ResultView


def target_of(operation: Operation, path: Mapping[str, str]) -> str:
    """The path of an operation, with these names in it."""
    return operation.path.format(**{name: quote(value, safe="") for name, value in path.items()})


def answer_of(operation: Operation, status: int, body: bytes) -> Any:
    """The body of an answer, as the type that the operation has for this status."""
    kind = operation.answers.get(status)
    return None if kind is None else msgspec.json.decode(body, type=kind)


def only_given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What was given: the rest is left to the server."""
    return {name: value for name, value in fields.items() if value is not None}


def plain_filters(filters: Mapping[str, Any]) -> dict[str, Any]:
    """Filters as JSON."""
    found = dict(filters)
    status = found.get("status")
    if status is not None:
        several = [status] if isinstance(status, str) else list(status)
        found["status"] = [each.value if isinstance(each, RunStatus) else each for each in several]
    return found


def query_of(filters: Mapping[str, Any]) -> dict[str, Any]:
    """Filters as parameters behind the question mark."""
    found = plain_filters(filters)
    tags = found.pop("tags", None) or {}
    if tags:
        found["tag"] = [f"{name}={value}" for name, value in tags.items()]
    for name, value in found.items():
        if isinstance(value, datetime):
            found[name] = value.isoformat()
        elif isinstance(value, bool):
            found[name] = str(value).lower()
    return found


def start_of(where: str, start: tuple[Any, ...] | None, headers: Mapping[str, str] | None) -> dict[str, Any] | None:
    """The run that a message creates if there is none, as it is sent: a workflow with its arguments, or its name.

    Raises:
        InvalidArgumentError: headers are given, and no run to start. ArgumentTypeError: it is no tuple.
    """
    if start is None:
        if headers:
            wanted = "they are for the run that it starts, and it starts none: give start=(workflow, ...) too"
            raise InvalidArgumentError(where, "headers", headers, wanted)
        return None
    workflow, *args = given.call(where, "start", start)
    if isinstance(workflow, str):
        named = NamedStart(workflow, *args)
    else:
        spec = bound(workflow, tuple(args)).workflow.spec
        named = NamedStart(spec.name, args, spec.version)
    arguments = None if named.arguments is None else plain_json(where, named.arguments)
    return only_given({**named._asdict(), "arguments": arguments, "headers": headers})


def failure_of(view: FailureView) -> Failure:
    """A failure as an engine has it."""
    cause = None if view.cause is None else failure_of(view.cause)
    return Failure(type=view.type, message=view.message, notes=tuple(view.notes), cause=cause, traceback=view.traceback)


def result_of(ended: ResultView) -> Any:
    """The result of a run that has ended.

    Raises:
        RunFailed: it has none.
    """
    match RunStatus(ended.status):
        case RunStatus.SUCCEEDED:
            return ended.result
        case RunStatus.CANCELLED:
            raise RunCancelled(ended.id, f"was cancelled: {ended.reason or 'no reason given'}")
        case RunStatus.TIMED_OUT:
            raise RunTimedOut(ended.id, "did not end within its timeout")
        case _ if ended.failure is not None:
            failure = failure_of(ended.failure)
            raise RunFailed(ended.id, f"failed: {failure.type}: {failure.message}", failure)
        case _:
            raise RunFailed(ended.id, f"ended as {ended.status}")
