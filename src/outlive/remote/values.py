"""Translates the values of a connection: filters become parameters, answers become results and errors."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

import msgspec

from outlive._features.batches.starting import BatchOptions
from outlive._kernel.client.message_start import NamedStart, is_named
from outlive._kernel.client.signal_many import GivenSignal
from outlive._kernel.client.start_options import OwnStartOptions, StartOptions
from outlive._kernel.define.map import Tolerance
from outlive._kernel.define.workflow import Bound, bound, refuse_unknown
from outlive._kernel.journal.failure import OWN_ERRORS, exception_of
from outlive._kernel.journal.plain import plain_json
from outlive._kernel.journal.value import codec_for
from outlive._kernel.model import RunStatus, given
from outlive._kernel.model.id import check_run_id
from outlive._kernel.model.queue import Queue
from outlive._kernel.model.under_way import timed_out
from outlive._kernel.values.failure import stored_failure
from outlive.errors import (
    ArgumentTypeError,
    InvalidArgumentError,
    RunCancelledError,
    RunFailedError,
    RunTimedOutError,
    StepFailedError,
    WrongArgumentsError,
)
from outlive.http.operation import OPERATIONS, Operation
from outlive.http.wire.runs import ResultView
from outlive.remote.refusal import raise_foreign
from outlive.remote.transport import Answer

OF_STORE = OwnStartOptions.__annotations__.keys() - StartOptions.__annotations__.keys()
PATH_CHARACTERS_MAX = 2_000
"""The limit for a name in a path: the server knows how long each may be."""


def start_fields(where: str, workflow: object, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a start as they are sent.

    Raises:
        ArgumentTypeError: there is no such option.
    """
    found = dict(options)
    refuse_unknown(
        workflow, {name: value for name, value in found.items() if name not in OwnStartOptions.__annotations__}
    )
    refuse_of_store(where, **{name: found.pop(name) for name in OF_STORE & found.keys()})
    if found.get("id") is not None:
        found["id"] = check_run_id(found["id"])
    found["timeout"] = seconds_of(where, "timeout", found.get("timeout"))
    found["delay"] = seconds_of(where, "delay", found.get("delay"))
    found["begin_within"] = seconds_of(where, "begin_within", found.get("begin_within"))
    found["queue"] = queue_of(found.get("queue"))
    return found


def one_start(where: str, call: Bound[Any] | tuple[Any, ...], options: Mapping[str, Any]) -> dict[str, Any]:
    """One of many starts as it is sent."""
    if isinstance(call, Bound):
        named = named_start(where, call, ())
    elif is_named(call):
        named = plain_start(where, NamedStart(*call))
    else:
        named = named_start(where, call[0], call[1:])
    return only_given(named._asdict() | start_fields(where, named.workflow, options))


def batch_fields(where: str, options: BatchOptions) -> dict[str, Any]:
    """The options of a batch as they are sent."""
    found: dict[str, Any] = dict(options)
    refuse_of_store(where, connection=found.pop("connection", None))
    tolerate: Tolerance | None = found.pop("tolerate", None)
    if tolerate is not None:
        found |= {"failures_max": tolerate.failures, "failures_ratio": tolerate.ratio}
    found["queue"] = queue_of(found.get("queue"))
    return found


def refuse_of_store(where: str, **options: Any) -> None:
    """See that nothing is given that needs the store itself.

    Raises:
        InvalidArgumentError: something is.
    """
    for name, value in options.items():
        if value is not None:
            wanted = "leave it out: it needs the store, and this is a connection to a server"
            raise InvalidArgumentError(where, name, value, wanted)


def seconds_of(where: str, name: str, value: given.Span | None) -> float | None:
    """A span of time as it is sent."""
    return None if value is None else given.seconds(where, name, value, or_zero=True)


def queue_of(queue: Queue | str | None) -> str | None:
    """The name of a queue, if there is one."""
    return None if queue is None else name_of(queue)


def name_of(queue: Queue | str) -> str:
    """The name of a queue."""
    return queue.name if isinstance(queue, Queue) else queue


def named_start(where: str, workflow: Any, args: tuple[Any, ...]) -> NamedStart:
    """A workflow whose code is here, as it is sent to a server: arguments that were bound by name go by name.

    Raises:
        WrongArgumentsError: it does not take so many arguments, or not these.
    """
    call: Bound[Any] = bound(workflow, args)
    spec = call.workflow.spec
    try:
        spec.signature.encode(call.args, call.kwargs)  # Arguments that do not fit are refused here, as by an engine.
    except WrongArgumentsError as error:
        raise error.at_start() from None
    arguments: Any = list(call.args)
    if call.kwargs:
        arguments = dict(inspect.Signature(spec.signature.parameters).bind(*call.args, **call.kwargs).arguments)
    return NamedStart(spec.name, plain_json(where, arguments), spec.version)


def plain_start(where: str, named: NamedStart) -> NamedStart:
    """A workflow by its name, with its arguments as JSON has them.

    Raises:
        ArgumentTypeError: they are neither by name nor in a list, or they are not plain JSON.
    """
    plain = None if named.arguments is None else plain_json(where, named.arguments)
    if not isinstance(plain, dict | list | None):
        wanted = f'give the arguments of {named.workflow} by name, for example {{"id": 7}}, or in a list'
        raise ArgumentTypeError(where, "arguments", named.arguments, wanted)
    return named._replace(arguments=plain)


def operation_of(where: str, name: str) -> Operation:
    """An operation of the API by its name.

    Raises:
        InvalidArgumentError: there is none.
    """
    found = OPERATIONS.get(name)
    if found is None:
        raise InvalidArgumentError(where, "operation_name", name, "give an `operationId` of docs/openapi.json")
    return found


def target_of(operation: Operation, path: Mapping[str, str]) -> str:
    """The path of an operation, with these names in it.

    Raises:
        InvalidArgumentError: it has others, or one of them is not text: an empty one would be another path.
    """
    if set(path) != set(operation.names):
        wanted = " and ".join(f"{name}=" for name in operation.names) or "no names"
        raise InvalidArgumentError(operation.name, "path", sorted(path), f"give {wanted}, for {operation.path}")
    places = {
        name: given.text(operation.name, name, value, like="order-7", most=PATH_CHARACTERS_MAX)
        for name, value in path.items()
    }
    return operation.path.format(**{name: quote(value, safe="") for name, value in places.items()})


def answer_of(operation: Operation, answer: Answer) -> Any:
    """The body of an answer, as the type that the operation has for this status; text if it is not JSON.

    Raises:
        ServerError: it is none of this operation: another program has answered, or another version of ours.
    """
    if answer.status not in operation.answers:
        raise_foreign(answer, "")
    if operation.media != "application/json":
        return answer.body.decode("utf-8", "replace")
    try:
        return msgspec.json.decode(answer.body, type=operation.answers[answer.status])
    except msgspec.MsgspecError as error:
        raise_foreign(answer, f"this is not an answer to {operation.name}: {error}")


def only_given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given: the rest is left to the server."""
    return {name: value for name, value in fields.items() if value is not None}


def attributed(by: str, reason: str) -> dict[str, Any]:
    """The fields of a request that say who acts, and why. Without a name it is the owner of the key."""
    return only_given({"by": by or None, "reason": reason or None})


def plain_filters(filters: Mapping[str, Any]) -> dict[str, Any]:
    """Filters as JSON."""
    found = dict(filters)
    status = found.get("status")
    if status is not None:
        several = [status] if isinstance(status, str) else list(status)
        found["status"] = [each.value if isinstance(each, RunStatus) else each for each in several]
    ids = found.get("ids")
    if ids is not None:
        found["ids"] = [ids] if isinstance(ids, str) else list(ids)
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


def start_of(
    where: str,
    start: tuple[Any, ...] | None,
    headers: Mapping[str, str] | None,
    on_conflict: str | None = None,
) -> dict[str, Any] | None:
    """The run that a message creates if there is none, as it is sent: a workflow with its arguments, or its name.

    Raises:
        InvalidArgumentError: headers are given, and no run to start. ArgumentTypeError: it is not a tuple.
    """
    if start is None:
        if headers:
            wanted = "they are for the run that it starts, and it starts none: give start=(workflow, ...) too"
            raise InvalidArgumentError(where, "headers", headers, wanted)
        if on_conflict not in (None, "attach"):
            wanted = "it is for the run that the message starts, and it starts none: give start=(workflow, ...) too"
            raise InvalidArgumentError(where, "on_conflict", on_conflict, wanted)
        return None
    workflow, *args = given.call(where, "start", start)
    if isinstance(workflow, str):
        named = plain_start(where, NamedStart(workflow, *args))
    else:
        named = named_start(where, workflow, tuple(args))
    open_only = on_conflict if on_conflict != "attach" else None
    return only_given({**named._asdict(), "headers": headers, "on_conflict": open_only})


def one_signal(where: str, signal: GivenSignal) -> dict[str, Any]:
    """One of many signals as it is sent."""
    fields = signal._asdict()
    start = start_of(where, fields.pop("start"), fields.pop("headers"), fields.pop("on_conflict"))
    return only_given({**fields, "payload": plain_json(where, signal.payload), "start": start})


def typed(kind: Any, value: Any, what: str) -> Any:
    """A value from the wire as a type of the caller; as it is if that is Any."""
    return value if kind is Any else codec_for(kind).decode(msgspec.json.encode(value), what)


def result_of(ended: ResultView, registered: tuple[type[BaseException], ...] = ()) -> Any:
    """The result of a run that has ended.

    Args:
        registered: the classes of errors that its workflow names, if its code is here.

    Raises:
        RunFailedError: it has none.
    """
    match RunStatus(ended.status):
        case RunStatus.SUCCEEDED:
            return ended.result
        case RunStatus.CANCELLED:
            raise RunCancelledError(ended.id, f"was cancelled: {ended.reason or 'no reason given'}")
        case RunStatus.TIMED_OUT:
            raise RunTimedOutError(ended.id, timed_out(ended.reason))
        case _ if ended.error is not None:
            failure = stored_failure(ended.error)
            cause = exception_of(failure, registered=(*registered, *OWN_ERRORS, StepFailedError))
            raise RunFailedError(ended.id, f"failed: {failure.type}: {failure.message}", failure) from cause
        case _:
            raise RunFailedError(ended.id, f"ended as {ended.status}")
