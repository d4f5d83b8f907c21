"""Fakes in the place of steps, for `TestEngine(steps={...})`: middleware that calls the fake and not the step."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from outlive._define.in_step import CURRENT_STEP, StepContext
from outlive._define.middleware import Middleware, Next
from outlive._define.registry import REGISTRY
from outlive._define.step import Step
from outlive._model import given
from outlive._runtime.tree.attempt import Attempt
from outlive.errors import ArgumentTypeError, DefinitionError


class FakeSteps(Middleware):
    """Calls fakes with what the workflow gave to their steps; retries, timeouts and the journal are those of the step.

    Args:
        fakes: a function, async or not, for each step or name of a step. (Type checkers take no `Step[...]` of two
            kinds as the keys of one mapping, so anything goes there for them.)

    Raises:
        ArgumentTypeError: one is not for a step, or is not a function.
        DefinitionError: no step has this name.
    """

    def __init__(self, fakes: Mapping[Any, Callable[..., Any]]) -> None:
        self._fakes = {_name_of(step): fake for step, fake in fakes.items()}
        for name, fake in self._fakes.items():
            given.function("TestEngine", f"steps[{name}]", fake, like="fake_charge")

    async def on_step(self, step: StepContext, call_next: Next) -> Any:
        """Call the fake of this step, if it has one."""
        fake = self._fakes.get(step.name)
        if fake is None:
            return await call_next()
        attempt = CURRENT_STEP.get()
        assert isinstance(attempt, Attempt)
        args, kwargs = attempt.command.step.signature.decode(attempt.command.arguments)
        found = fake(*args, **kwargs)
        return await found if inspect.isawaitable(found) else found


def _name_of(step: object) -> str:
    if isinstance(step, Step):
        return step.name
    if not isinstance(step, str):
        wanted = "give steps or their names, for example steps={charge: fake_charge}"
        raise ArgumentTypeError("TestEngine", "steps", step, wanted)
    if REGISTRY.find_step(step) is None:
        # A misspelt name would leave the real step in its place, and the test would call it.
        raise DefinitionError(
            f"TestEngine: no step is named {step!r}: import the module that defines it, or correct it"
        )
    return step
