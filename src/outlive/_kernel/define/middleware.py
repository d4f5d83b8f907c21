"""Middleware: code of the user around every start, every attempt of a step and every workflow of an engine.

Each hook gets what it is around and `call_next`, which goes on with the next middleware and at last with the thing
itself. An engine without middleware has empty tuples here, and calls nothing of this.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from outlive._kernel.define.in_run import RunContext, current_run
from outlive._kernel.define.in_step import StepContext
from outlive._kernel.model import Run
from outlive.errors import ArgumentTypeError, DefinitionError

Next = Callable[[], Awaitable[Any]]
Hook = Callable[[Any, Next], Coroutine[Any, Any, Any]]


@dataclass(slots=True)
class StartCall:
    """A start that an engine is asked for."""

    workflow: str
    version: int
    id: str
    """The id of the run, given or made up."""
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)
    """The headers that were given; a hook may add to them, and change them."""


class Middleware:
    """Override the hooks that you need; `Engine(middleware=[...])` calls the first one outermost.

    What a hook returns is the outcome, so it ends with `return await call_next()`. What it raises counts as raised by
    what it is around.
    """

    async def on_start(self, start: StartCall, call_next: Next) -> Any:
        """Around `engine.start`, `start_batch` and `signal(..., start=...)`, where they are called."""
        return await call_next()

    async def on_step(self, step: StepContext, call_next: Next) -> Any:
        """Around every attempt of a step, in the context of the step: context variables that it sets are seen there."""
        return await call_next()

    async def on_workflow(self, run: RunContext, call_next: Next) -> Any:
        """Around every workflow, child runs too, in the loop of the run. It runs again in every replay, and must be as
        deterministic as the workflow; `run.is_replaying` is for logs and measurements."""
        return await call_next()


class RunTracer(Middleware):
    """Middleware that also follows runs through their lives, on whatever worker: see `outlive.middleware.Tracing`.

    What follows is called in the middle of moving runs: it must be quick, and must not raise.
    """

    is_off = False
    """Whether it has nothing to do in this process; then it is left out."""

    def ended(self, run: Run, headers: dict[str, str], *, retried: int = 0) -> None:
        """The end of a run is durable; called once for each end. `headers` are those of its tree, and `retried` is the
        event that brought it back after an earlier end, or 0."""

    def taken_over(self, run: Run, headers: dict[str, str], *, worker: str) -> None:
        """This worker has taken a tree over, given by its root, from one that was lost."""

    def pass_on(self, headers: dict[str, str], run: Run) -> dict[str, str]:
        """The headers of a tree that this run brings about: a detached run, a fork, the next generation."""
        return headers


class Hooks(NamedTuple):
    """The hooks of an engine, outermost first."""

    on_start: tuple[Hook, ...] = ()
    on_step: tuple[Hook, ...] = ()
    on_workflow: tuple[Hook, ...] = ()
    tracer: RunTracer | None = None


HOOKS = ("on_start", "on_step", "on_workflow")

NO_HOOKS = Hooks()
"""The hooks of an engine without middleware."""


def hooks_of(middleware: object, guards: Sequence[object] = ()) -> Hooks:
    """The hooks of the middleware of an engine, with Outlive's own (`guards`) outermost.

    Raises:
        DefinitionError: one has no hook, or a hook that is not async.
    """
    if not isinstance(middleware, Sequence) or isinstance(middleware, str):
        wanted = "give a list, for example middleware=[Tracing()]"
        raise ArgumentTypeError("Engine", "middleware", middleware, wanted)
    present = [each for each in (*guards, *middleware) if not (isinstance(each, RunTracer) and each.is_off)]
    own = [_own_hooks(each) for each in present]
    start, step, workflow = (tuple(hooks[name] for hooks in own if name in hooks) for name in HOOKS)
    return Hooks(start, step, workflow, next((each for each in present if isinstance(each, RunTracer)), None))


def _own_hooks(middleware: object) -> dict[str, Hook]:
    found: dict[str, Hook] = {}
    for name in HOOKS:
        hook = getattr(middleware, name, None)
        if hook is None or getattr(type(middleware), name, None) is getattr(Middleware, name):
            continue
        if isinstance(middleware, type) or not inspect.iscoroutinefunction(hook):
            wanted = f"write `async def {name}(self, call, call_next)`, and give an object, not its class"
            raise DefinitionError(f"middleware {middleware!r}: its {name} cannot be called: {wanted}")
        found[name] = hook
    if not found:
        raise DefinitionError(f"middleware {middleware!r} has no hook: define one of {', '.join(HOOKS)}")
    return found


def around(hooks: Sequence[Hook], subject: object, inner: Next) -> Next:
    """A function that calls the hooks around something."""
    for hook in reversed(hooks):
        inner = partial(hook, subject, inner)
    return inner


Begin = Callable[[], Coroutine[Any, Any, Any]]
AroundWorkflow = Callable[[Begin], Coroutine[Any, Any, Any]]


def around_workflow(hooks: Hooks) -> AroundWorkflow | None:
    """The function that an execution calls instead of a workflow, with the function that begins the workflow; None if
    no hook wants that."""
    return partial(_run_workflow, hooks.on_workflow) if hooks.on_workflow else None


async def _run_workflow(hooks: Sequence[Hook], begin: Begin) -> Any:
    return await around(hooks, current_run(), begin)()
