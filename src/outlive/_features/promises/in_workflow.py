"""`outlive.promise`: a value that a program outside settles, by an id that can be sent anywhere.

A promise is a signal with a name of its own and a key, so it can be settled before it is awaited, comes once, and is
set aside if the code cannot read it. What it takes goes into the journal, as JSON Schema: a program that settles it
need not have the code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any, Generic, TypeVar, overload
from zlib import crc32

import msgspec

from outlive._kernel.journal.event import PromiseMade
from outlive._kernel.journal.failure import OWN_ERRORS, exception_of, rebuild
from outlive._kernel.journal.form import FormType, form_type
from outlive._kernel.journal.value import TAGGED, Stored, type_name
from outlive._kernel.model import Failure, given
from outlive._kernel.model.payload import NO_PAYLOAD
from outlive._kernel.model.promise import PROMISE, PromiseTerms, Settlement, promise_id, promise_signal
from outlive._kernel.replay.ask import take_signal, this_execution
from outlive._kernel.replay.frame import SCOPE, Frame
from outlive.errors import ConfigurationError, PromiseFailedError, StepFailedError, UnreadableError

T = TypeVar("T")

WHERE = "outlive.promise"
_decode = msgspec.json.Decoder(Settlement).decode


class _SettlementCodec:
    """Reads how a promise was settled; the value as one of its type."""

    def __init__(self, kind: FormType | None) -> None:
        self._kind = kind

    def encode(self, value: Any, what: str) -> bytes:
        """A workflow settles nothing."""
        raise NotImplementedError

    def decode(self, data: Stored, what: str) -> tuple[Any, Failure | None]:
        """The value, or the failure."""
        try:
            settled = _decode(data)
        except msgspec.MsgspecError as error:
            raise UnreadableError(what, "a settlement", str(error)) from error
        if settled.failure is not None or settled.value is msgspec.UNSET:
            return None, settled.failure or Failure("RuntimeError", "it was settled with nothing")
        return (TAGGED if self._kind is None else self._kind).decode(settled.value, what), None


class Promise(Generic[T]):
    """A value that comes from outside: `await` it, as often as you like."""

    def __init__(self, id: str, frame: Frame, name: str, kind: FormType | None) -> None:
        self.id = id
        """Text that can be sent anywhere: `engine.promises.resolve(id, value)` and `fail(id, error)` take it."""
        self._frame, self._name, self._codec = frame, name, _SettlementCodec(kind)
        self._lock = asyncio.Lock()
        self._settled: tuple[Any, Failure | None] | None = None

    def __await__(self) -> Generator[Any, None, T]:
        return self._result().__await__()

    async def _result(self) -> T:
        execution = this_execution("promise")
        async with self._lock:  # One waiter takes the message, for all of them.
            if self._settled is None:
                self._settled = await take_signal(execution, self._name, self._codec, what=f"promise {self.id}")
        value: T
        value, failure = self._settled
        if failure is not None:
            raise self._error(failure)
        return value

    def _error(self, failure: Failure) -> BaseException:
        registered = self._frame.spec.registered
        error = rebuild(failure, registered)
        if error is None:
            error = PromiseFailedError(self.id, failure.error, failure.message)
            error.__cause__ = exception_of(failure, registered=(*registered, *OWN_ERRORS, StepFailedError))
        return error

    def __repr__(self) -> str:
        return f"<promise {self.id}>"


@overload
def promise() -> Promise[Any]: ...
@overload
def promise(kind: type[T]) -> Promise[T]: ...
def promise(kind: Any = Any) -> Promise[Any]:
    """Make a promise: a value of type `kind` that a program outside settles once, with
    `engine.promises.resolve(promise.id, value)` or `engine.promises.fail(promise.id, error)`.

    Settled before it is awaited, it is kept. Raises in `await`: the error that it was failed with, if that is a builtin
    one or named in the `raises` of the workflow, else `PromiseFailedError`.
    """
    execution = this_execution("promise")
    execution.refuse_if_dropped()
    form = None if kind is Any else _form_of(given.kind(WHERE, "kind", kind))
    terms = PromiseTerms() if form is None else PromiseTerms(type_name(kind), msgspec.Raw(form.schema_json))
    scope = SCOPE.get()
    frame, call = scope.frame, scope.call(PROMISE)
    data = msgspec.json.encode(terms)
    execution.record(
        PromiseMade(at=0, run=frame.number, call=call, payload=NO_PAYLOAD, digest=crc32(data)),
        data,
    )
    name = promise_signal(execution.generation, call)
    made = Promise[Any](promise_id(frame.id, execution.nonce, frame.number, call), frame, name, form)
    frame.promises[name] = made.id
    return made


def _form_of(kind: Any) -> FormType:
    try:
        return form_type(kind)
    except ConfigurationError as error:
        reason = error.__cause__ or error
        raise ConfigurationError(
            f"{WHERE}: kind={type_name(kind)} cannot be described as JSON: {reason}; use a dataclass, a msgspec "
            f"struct, a pydantic model or plain types, or leave it out"
        ) from error
