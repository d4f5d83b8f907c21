"""Batches: load a list, process each item as a step of its own, and finish with all results.

An item that fails does not fail the others: its exception stands in its slot. The list is journaled when it is loaded,
each item when it is done; a crash re-runs only the items that were under way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from outlive._define.machine.answer import Answer
from outlive._define.machine.asking import Function, Given, ask
from outlive._define.machine.kinds import Kind
from outlive._define.machine.place import Place
from outlive._define.machine.wire import NULL, Outcome
from outlive._define.map import Tolerance, map
from outlive._define.step import Step
from outlive._journal.failure import OWN_ERRORS, exception_of, failure_of
from outlive._journal.value import Stored, ValueCodec
from outlive._model import Failure
from outlive._replay.command import StepSpec
from outlive.errors import StepFailed, UnreadableError

ANY_NUMBER = Tolerance(ratio=1.0)


class _Slot(msgspec.Struct, omit_defaults=True):
    """What became of one item."""

    v: msgspec.Raw = NULL
    failure: Failure | None = None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[_Slot]).decode


class SlotsCodec:
    """The results of all items, failures among them, as what the last step of a batch is given."""

    def __init__(self, step: StepSpec, *, registered: tuple[type[BaseException], ...] = ()) -> None:
        self._step = step
        self._registered = (*step.registered, *registered, *OWN_ERRORS, StepFailed)

    def encode(self, value: Sequence[Any], what: str) -> bytes:
        """See `ValueCodec`."""
        return _encode([self._slot(each, what) for each in value])

    def decode(self, data: Stored, what: str) -> list[Any]:
        """See `ValueCodec`."""
        try:
            return [self._value(slot, what) for slot in _decode(data)]
        except msgspec.MsgspecError as error:
            raise UnreadableError(what, "the results of a batch", str(error)) from error

    def _slot(self, value: Any, what: str) -> _Slot:
        if isinstance(value, Exception):
            # Where it was raised again is of no interest, and may be another line in the next version of the code.
            return _Slot(failure=msgspec.structs.replace(failure_of(value), traceback="", cause=None))
        return _Slot(v=msgspec.Raw(self._step.signature.result.encode(value, what)))

    def _value(self, slot: _Slot, what: str) -> Any:
        if slot.failure is not None:
            return exception_of(slot.failure, registered=self._registered, step=self._step.name)
        return self._step.signature.result.decode(slot.v, what)


class BatchState(Kind):
    """Load, process, finish."""

    word = "batch"

    def __init__(
        self,
        load: StepSpec,
        item: Step[[Any], Any],
        finish: StepSpec,
        slots: ValueCodec,
        answer: Answer,
        fn: Function,
        *,
        concurrency: int,
    ) -> None:
        super().__init__(finish.name)
        self._load, self._item, self._finish = load, item, finish
        self._slots = slots
        self._answer = answer
        self._fn = fn
        self._concurrency = concurrency

    async def leave(self, data: msgspec.Raw, place: Place) -> Outcome:
        """See `Kind`."""
        items: list[Any] = await ask(self._load, data)
        results = await map(self._item, items, concurrency=self._concurrency, tolerate=ANY_NUMBER)
        given: Given = self._slots.encode(results, f"results of {self.name}")
        outcome: Outcome = await ask(self._finish, data, given)
        return outcome

    @property
    def targets(self) -> frozenset[str] | None:
        """See `Kind`."""
        return self._answer.to

    @property
    def functions(self) -> tuple[Function, ...]:
        """See `Kind`."""
        return (self._fn,)
