"""Promises: values that come from outside by id. What journals keep of them, and what their ids are made of.

The id of a promise is the id of its run and a token, a hash that cannot be guessed. The run itself knows the promise by
its call. `PromiseTerms` and `Settlement` are stored, so fields may be added to them and none may change its meaning.
"""

from __future__ import annotations

import hashlib

import msgspec

from outlive._kernel.model.failure import Failure

PROMISE = "@promise"
_TOKEN_BYTES = 12


class PromiseTerms(msgspec.Struct, frozen=True, omit_defaults=True):
    """The terms of a promise: everything that a program without the code of its workflow must know to settle it."""

    type: str = ""
    """The type of the value, as its workflow wrote it; empty if any value is accepted."""
    schema: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """The JSON Schema of the value; unset if any value is fine."""


class Settlement(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a promise was settled: with a value, or with a failure."""

    value: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    failure: Failure | None = None


def promise_id(run_id: str, nonce: int, number: int, call: str) -> str:
    """The id of a promise, which `engine.promises.resolve` takes: safe in URLs, as the ids of runs are."""
    token = hashlib.blake2b(f"{nonce:x}/{number}/{call}".encode(), digest_size=_TOKEN_BYTES).hexdigest()
    return f"{run_id}:{token}"


def run_of_promise(promise: str) -> str:
    """The id of the run that a promise is of; empty if this cannot be the id of a promise."""
    run_id, _, token = promise.rpartition(":")
    return run_id if len(token) == 2 * _TOKEN_BYTES else ""


def promise_signal(generation: int, call: str) -> str:
    """The name of the signal that settles a promise. With the generation of the run: the next one may make the same
    promise again, and is given the messages that were on their way."""
    return f"{PROMISE}/{generation}/{call}"
