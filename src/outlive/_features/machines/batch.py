"""Batches: load a list, process each item as a step of its own, and finish with all results.

An item that fails does not fail the others: its exception stands in its slot. The list is journaled when it is loaded,
each item when it is done; a crash re-runs only the items that were under way.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from outlive._features.machines.answer import Answer
from outlive._features.machines.asking import ask
from outlive._features.machines.building import Function, StateBuilder, Targets
from outlive._features.machines.kinds import Kind
from outlive._features.machines.snapshots import MachineSnapshots
from outlive._features.machines.split import result_codec
from outlive._features.machines.wire import NULL, StateResult
from outlive._kernel.define.map import Tolerance, map
from outlive._kernel.define.step import Step
from outlive._kernel.journal.arguments import Signature
from outlive._kernel.journal.failure import OWN_ERRORS, exception_of, failure_of
from outlive._kernel.journal.value import Stored
from outlive._kernel.model import Failure, Retry
from outlive._kernel.replay.command import StepOptions, StepSpec
from outlive.errors import DefinitionError, StepFailedError, UnreadableError

ANY_NUMBER = Tolerance(ratio=1.0)


class _Slot(msgspec.Struct, omit_defaults=True):
    """The outcome of one item."""

    v: msgspec.Raw = NULL
    failure: Failure | None = None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[_Slot]).decode


class SlotsCodec:
    """The results of all items, failures among them, as what the last step of a batch is given."""

    def __init__(self, step: StepSpec, *, registered: tuple[type[BaseException], ...] = ()) -> None:
        self._step = step
        self._registered = (*step.registered, *registered, *OWN_ERRORS, StepFailedError)

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
        builder: StateBuilder,
        to: Targets,
        *,
        load: Function,
        process: Function | Step[[Any], Any],
        finish: Function,
        concurrency: int,
        load_and_finish_retry: Retry | None,
        **item_options: Any,
    ) -> None:
        name, answer = builder.name, builder.answer(finish, to)
        super().__init__(name, answer.to, finish)
        self._concurrency = concurrency
        self._load = builder.step(
            load,
            name=f"{name}.load",
            result=result_codec(f"{name}.load", load),
            finish=lambda values, items: _many(items, answer),
            retry=load_and_finish_retry,
        )
        self._item = _item_step(builder, process, item_options)
        item_retry: Retry | None = item_options["retry"]
        registered = () if item_retry is None else item_retry.on
        self._slots = SlotsCodec(self._item.spec, registered=registered)
        self._finish = builder.step(
            finish,
            codecs=(self._slots,),
            finish=lambda values, returned: answer.read(values[0], returned),
            retry=load_and_finish_retry,
        )

    async def leave(self, data: msgspec.Raw, snapshots: MachineSnapshots) -> StateResult:
        """See `Kind`."""
        items: list[Any] = await ask(self._load, data)
        results = await map(self._item, items, concurrency=self._concurrency, tolerate=ANY_NUMBER)
        result: StateResult = await ask(self._finish, data, self._slots.encode(results, f"results of {self.name}"))
        return result


def _many(items: Any, answer: Answer) -> Any:
    """The items that a batch has loaded; any other value is refused."""
    if not isinstance(items, Collection) or isinstance(items, str | bytes | Mapping):
        raise answer.refused(f"{items!r} from its load", "a list of items")
    return items


def _item_step(
    builder: StateBuilder, process: Function | Step[[Any], Any], options: dict[str, Any]
) -> Step[[Any], Any]:
    """The step of one item; one made of a plain function is known to this machine only."""
    if isinstance(process, Step):
        item = process
    else:
        name, wanted = f"{builder.name}.item", builder.wanted_by(process)
        spec = StepSpec(
            name=name,
            fn=process,
            signature=Signature(process, name, without=() if wanted is None else wanted.names),
            is_async=inspect.iscoroutinefunction(process),
            options=StepOptions(),
            resources=wanted,
        )
        item = Step(spec, spec.options)
    if not item.spec.signature.takes_one:
        raise DefinitionError(f"{builder.name}: its process {item.name} must take one argument, an item")
    return item.options(**options) if any(option is not None for option in options.values()) else item
