"""Steps that are methods: the object is not an argument of the call, and no journal has it.

Looked up on an object (`gateway.charge`), such a step is called on that object. In a workflow that is an object which
the workflow code has again in every replay: one of the module, or one that the workflow makes. Taken from the class
and given a resource (`Gateway.charge.of(gateway)`), it is called on what the worker that runs it has set up.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MethodType
from typing import Any

import msgspec

from outlive._kernel.define.registry import where
from outlive._kernel.define.resources import Resource, wanted_in
from outlive._kernel.replay.command import StepOptions, StepSpec

Give = Callable[[StepSpec], StepSpec]
"""Makes of the step of a method one whose function has its object."""


def lacks_object(spec: StepSpec) -> bool:
    """Whether it is the step of a method, and has no object yet."""
    return spec.is_method and not isinstance(spec.fn, MethodType)


def with_object(spec: StepSpec, options: StepOptions, give: Give) -> tuple[StepSpec, StepOptions]:
    """A step, and options of a call, bound to an object; an undo that is a method is bound to the same object."""
    usual = _with_undo(spec.options, give)
    own = usual if options == spec.options else _with_undo(options, give)
    return msgspec.structs.replace(give(spec), options=usual), own


def _with_undo(options: StepOptions, give: Give) -> StepOptions:
    if options.undo is None or not lacks_object(options.undo):
        return options
    return msgspec.structs.replace(options, undo=give(options.undo))


def on_object(instance: object, spec: StepSpec) -> StepSpec:
    """The step, called on an object that is at hand."""
    return msgspec.structs.replace(spec, fn=MethodType(spec.fn, instance))


def on_resource(resource: Resource[Any], spec: StepSpec) -> StepSpec:
    """The step, called on a resource, which it gets by keyword."""
    method = spec.fn

    async def call(*args: Any, self: Any, **kwargs: Any) -> Any:
        return await method(self, *args, **kwargs)

    def call_sync(*args: Any, self: Any, **kwargs: Any) -> Any:
        return method(self, *args, **kwargs)

    called: Any = functools.wraps(method)(call if spec.is_async else call_sync)
    del called.__wrapped__  # Its signature is its own: the object comes by keyword.
    called.defined_at = where(method)
    known = {} if spec.resources is None else spec.resources.resolve()
    wanted = wanted_in({**known, "self": resource})
    return msgspec.structs.replace(spec, fn=called, resources=wanted, is_method=False)
