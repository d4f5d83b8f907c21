"""Fakes in the place of steps, for `TestEngine(steps={...})`: middleware that calls the fake and not the step.

The code of a remote step is in another program, which takes a run of its own as its task. So the fake of a remote step
is the workflow of that run, and the worker of the test engine takes it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from outlive._features.tasks.remote_step import RemoteStep, tasks_of
from outlive._kernel.client.slices import mismatch_of
from outlive._kernel.define.in_step import CURRENT_STEP, StepContext
from outlive._kernel.define.middleware import Middleware, Next
from outlive._kernel.define.registry import REGISTRY, Registry
from outlive._kernel.define.run_step import run_step
from outlive._kernel.define.step import Step
from outlive._kernel.journal.plain import plain_json
from outlive._kernel.model import given
from outlive._kernel.model.policy import NO_RETRY
from outlive._kernel.model.remote import RemoteTerms
from outlive._kernel.replay.command import WorkflowSpec
from outlive._kernel.runtime.tree.attempt import Attempt
from outlive.errors import ArgumentTypeError, DefinitionError
from outlive.errors.run import TaskOutputError


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
        for step, fake in fakes.items():
            given.function("TestEngine", f"steps[{getattr(step, 'name', step)}]", fake, like="fake_charge")
        self._fakes = {_name_of(step): fake for step, fake in fakes.items() if not isinstance(step, RemoteStep)}
        self._remote = [_task_of(step, fake) for step, fake in fakes.items() if isinstance(step, RemoteStep)]

    def added_to(self, registry: Registry | None) -> Registry | None:
        """The definitions of an engine and of the tasks of faked remote steps."""
        return (registry or REGISTRY).replacing(self._remote) if self._remote else registry

    async def on_step(self, step: StepContext, call_next: Next) -> Any:
        """Call the fake of this step, if it has one."""
        attempt = CURRENT_STEP.get()
        assert isinstance(attempt, Attempt)
        called = attempt.command.step
        fake = self._fakes.get(called.known_as or called.name)  # In a flow a step has the name of its place there.
        if fake is None:
            return await call_next()
        args, kwargs = called.signature.decode(attempt.command.arguments)
        found = fake(*args, **kwargs)
        return await found if inspect.isawaitable(found) else found


def _task_of(step: RemoteStep[Any, Any], fake: Callable[..., Any]) -> WorkflowSpec:
    """The workflow of the tasks of a remote step: it calls the fake once, and gives its result as plain JSON."""
    where = f"fake of remote step {step.name}"

    async def task(value: Any, terms: RemoteTerms) -> Any:
        # The workflow that waits for the task tries again, as the remote step says, and not the task.
        output = await run_step(_answering(fake, where), value, name=step.name, retry=NO_RETRY)
        if terms.schema is not msgspec.UNSET:
            mismatch = await mismatch_of(output, msgspec.json.decode(terms.schema))
            if mismatch is not None:
                raise TaskOutputError(step.name, terms.type, mismatch)
        return output

    return msgspec.structs.replace(tasks_of(step), fn=task)


def _answering(fake: Callable[..., Any], where: str) -> Callable[[Any], Any]:
    async def answer(value: Any) -> Any:
        found = fake(value)
        return plain_json(where, await found if inspect.isawaitable(found) else found)

    return answer


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
