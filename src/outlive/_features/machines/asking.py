"""How a machine asks for steps of its own, in a run and outside of one."""

from __future__ import annotations

from typing import Any, NoReturn

import msgspec

from outlive._kernel.define.plain import call_plainly, plain_saga
from outlive._kernel.define.resources import call
from outlive._kernel.define.step import UnstorableResultError
from outlive._kernel.journal.value import Stored, ValueCodec
from outlive._kernel.replay.ask import current_execution, read_or_park, run_step
from outlive._kernel.replay.command import StepSpec
from outlive._kernel.replay.frame import SCOPE
from outlive.errors import OutliveError


async def ask(spec: StepSpec, *pieces: msgspec.Raw | bytes) -> Any:
    """The result of a step; outside of a run it is called here and now."""
    execution = current_execution()
    if execution is not None:
        return await run_step(execution, spec, spec.options, pieces, {})
    undo = spec.options.undo
    saga = None if undo is None else plain_saga(spec.name)
    values, _ = spec.signature.decode(spec.signature.encode(pieces, {}))
    try:
        result = await call(call_plainly, spec, tuple(values), {})
    except UnstorableResultError as error:
        if saga is not None and undo is not None and error.given is not None:
            saga.book(spec.name, undo).complete(*error.given)
        raise error.cause from None
    if saga is not None and undo is not None:
        taken, _ = undo.signature.decode(undo.signature.encode((result,), {}))
        saga.book(spec.name, undo).complete(*taken)
    return result


async def readable(codec: ValueCodec, data: Stored, what: str) -> Any:
    """The value; a run whose data the code cannot read is parked."""
    execution = current_execution()
    if execution is None:
        return codec.decode(data, what)
    return await read_or_park(execution, lambda: codec.decode(data, what))


async def park(error: OutliveError) -> NoReturn:
    """Stop here: the code must be corrected, and failing the run would lose it."""
    execution = current_execution()
    if execution is None:
        raise error
    execution.park(error, SCOPE.get().frame.number)
    await execution.loop.create_future()
    raise AssertionError("a parked run goes on")
