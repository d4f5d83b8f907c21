"""Promises of runs, which programs outside settle."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

import outlive.errors as e
from outlive._kernel.model.promise import run_of_promise
from outlive.errors.run import InboxFullError, PromiseNotFoundError, PromiseTypeError
from outlive.http.operation import Call, operation
from outlive.http.wire.page import Json, Name, Text

SETTLES = (
    PromiseNotFoundError,
    PromiseTypeError,
    e.RunNotFoundError,
    e.RunFinishedError,
    InboxFullError,
)


class Resolve(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The value of a promise."""

    value: Json = None


class Fail(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The error of a promise."""

    message: Text
    type: Name = "RemoteError"
    """The name of the error; the run gets `PromiseFailedError` with it, or its own class of this name."""


class SettledView(Struct, frozen=True):
    """A promise that is settled."""

    id: str
    is_new: bool
    """Whether this request has settled it, or an earlier try of it with the same `Idempotency-Key`; else another one
    has."""


@operation("promises.resolve", "POST", "/promises/{promise_id}/resolve", scope="operator", raises=SETTLES)
async def resolve_promise(call: Call, promise_id: str, body: Resolve | None = None) -> SettledView:
    """Settle a promise of a run with a value. It is settled once."""
    is_first = await call.engine.promises.resolve(promise_id, (body or Resolve()).value)
    return SettledView(promise_id, is_first or await call.was_done(run_of_promise(promise_id)))


@operation("promises.fail", "POST", "/promises/{promise_id}/fail", scope="operator", raises=SETTLES)
async def fail_promise(call: Call, promise_id: str, body: Fail) -> SettledView:
    """Settle a promise of a run with an error, which is raised where the run awaits it."""
    is_first = await call.engine.promises.fail(promise_id, _error(body))
    return SettledView(promise_id, is_first or await call.was_done(run_of_promise(promise_id)))


def _error(body: Fail) -> Exception:
    # The class is named by the request and never looked up: it only carries its name into the journal.
    name = body.type if body.type.isidentifier() else "RemoteError"
    kind: Any = type(name, (Exception,), {"__module__": "remote"})
    error: Exception = kind(body.message)
    return error
