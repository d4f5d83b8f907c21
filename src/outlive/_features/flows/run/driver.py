"""The function of every flow: runs the steps of a plan, each when what it needs is there.

*One at a time costs nothing extra.* While a single step is ready and none runs, it is awaited in the task of the run. A
task is made only where steps run side by side.

*Names.* A step is known in the journal by its id, in whatever task it runs: `charge`, and not `2/charge`. A part of a
built-in that is not a step of its own (a timer, a child) stands in a scope named after the step: `nap/@timer`. So the
journal of a run says the same whether two steps met or not.

*Lazy.* Steps are asked for: the output asks for what it needs now, these for what they need, and each looks again when
that is there. Where the document alone says which steps run, all are asked for at once, and each waits for all that it
refers to. So do runs that began before there were choices (`Plan.has_choices`); a mark in the journal
(`outlive.patched`) tells which rule a run has (`Rule`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from operator import attrgetter
from typing import Any, NoReturn, cast

from outlive._cel import Template
from outlive._cel.demand import Steps
from outlive._features.flows.document.references import expression_errors
from outlive._features.flows.run.plan import Plan, PlannedStep, Rule
from outlive._features.flows.run.queued import run_one
from outlive._kernel.define.saga import saga
from outlive._kernel.journal.failure import class_name
from outlive._kernel.replay.ask import this_execution
from outlive._kernel.replay.deciding import patched
from outlive._kernel.replay.execution import Execution
from outlive._kernel.replay.frame import SCOPE
from outlive._kernel.replay.frame import Scope as Place
from outlive.errors import OutliveError, StepFailedError
from outlive.errors.document import FlowError

UNDO_SECONDS = 3600.0
"""How long the roll-back of a flow may take before the run is parked, as for a machine."""
LAZY = "outlive.flow.lazy"
"""The mark of runs in which a step runs only if the branch is taken that needs it."""

Scope = dict[str, Any]

_PLACE = attrgetter("place")


async def run_plan(plan: Plan, scope: Scope) -> Any:
    """Run the steps of a plan in the run that this is; its output. `scope` has all names but `steps` of this plan."""
    execution = this_execution(f"flow {plan.document.name}")
    rule = plan.lazy if plan.has_choices and patched(execution, LAZY) else plan.eager
    if not plan.is_saga:
        return await _Drive(plan, rule, scope, execution, SCOPE.get()).run()
    async with saga(undo_timeout=UNDO_SECONDS):
        return await _Drive(plan, rule, scope, execution, SCOPE.get()).run()


class _Drive:
    """One plan under way."""

    def __init__(self, plan: Plan, rule: Rule, scope: Scope, execution: Execution, place: Place) -> None:
        self._plan, self._rule, self._execution, self._place = plan, rule, execution, place
        self._results: dict[str, Any] = scope.get("steps", {}).copy()
        self._scope = {**scope, "steps": self._results}
        self._running: dict[asyncio.Task[None], PlannedStep] = {}
        self._error: BaseException | None = None
        self._ready: deque[PlannedStep] = deque()
        self._unfinished = set(plan.steps)
        self._asked = set(rule.roots)
        self._waiting: dict[str, list[PlannedStep | None]] = {}
        """The steps that look again when a step has ended; None stands for the output."""
        self._left: dict[str, int] = {}
        """For how many steps each one still waits."""
        self._failures: dict[str, Exception] = {}
        """Steps that have failed, and whose default needs steps."""
        self._look([*(plan.steps[id] for id in rule.roots), None], [])

    async def run(self) -> Any:
        """Run everything, and render the output."""
        try:
            await self._run_all()
        except asyncio.CancelledError:
            await self._stop()
            raise
        if self._error is not None:
            await self._stop()
            raise self._error
        output = self._plan.output
        return None if output is None else output.render(self._scope)

    async def _run_all(self) -> None:
        plan, ready, running = self._plan, self._ready, self._running
        while True:
            while ready and len(running) < plan.at_once:
                step = ready.popleft() if plan.is_breadth_first else ready.pop()
                if running or (ready and plan.at_once > 1):
                    running[asyncio.create_task(self._run_beside(step), name=step.id)] = step
                    continue
                try:
                    await self._run_step(step)
                except Exception as error:
                    self._error = self._error or error
                    if plan.stops:
                        return
                else:
                    self._release(step)
            if not running:
                return
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            if self._take_done() and plan.stops:
                return

    def _take_done(self) -> bool:
        """Take what has ended out of what runs; whether any of it failed."""
        for task, step in [(task, step) for task, step in self._running.items() if task.done()]:
            del self._running[task]
            error = asyncio.CancelledError() if task.cancelled() else task.exception()
            if error is None:
                self._release(step)
            else:
                self._error = self._error or error
        return self._error is not None

    async def _stop(self) -> None:
        """Cancel what still runs, and wait for it, however often this is cancelled meanwhile."""
        was_cancelled = False
        while running := [task for task in self._running if not task.done()]:
            for task in running:
                task.cancel()
            try:
                await asyncio.wait(running)
            except asyncio.CancelledError:
                was_cancelled = True
        for task in self._running:
            if not task.cancelled():
                task.exception()  # Looked at: the first failure counts.
        if was_cancelled:
            raise asyncio.CancelledError

    # -- Which steps are ready -------------------------------------------------------------------------------

    def _look(self, left: list[PlannedStep | None], ready: list[PlannedStep]) -> None:
        """See what each needs now: let it begin beside the ready ones, or ask for the steps that it waits for."""
        plan = self._plan
        while left:
            step = left.pop()
            missing = self._missing(step)
            if not missing:
                if step is not None:
                    ready.append(step)
                continue
            self._left[step.id if step else ""] = len(missing)
            for id in missing:
                self._waiting.setdefault(id, []).append(step)
                if id not in self._asked:
                    self._asked.add(id)
                    left.append(plan.steps[id])
        if len(ready) > 1:
            # The first in the document begins first, whichever end of the line is served.
            ready.sort(key=_PLACE, reverse=not plan.is_breadth_first)
        self._ready += ready

    def _missing(self, step: PlannedStep | None) -> Steps:
        """The steps that must end before this one is called, or before more is known."""
        scope, unfinished = self._scope, self._unfinished
        if step is None:
            return self._rule.output.missing(scope, unfinished)
        needs = self._rule.needs[step.id]
        if step.id in self._failures:
            error = error_data(self._failures[step.id])
            return needs.default.missing({**scope, "error": error}, unfinished)
        asked = needs.begin.missing(scope, unfinished)
        if step.condition is not None:
            if asked:
                return asked
            try:
                if not step.condition(scope):
                    return asked
            except Exception:
                return asked  # It is raised again where the step begins, and fails that.
        return asked | needs.call.missing(scope, unfinished)

    def _release(self, step: PlannedStep) -> None:
        """Let the steps go on that have waited for this one as the last."""
        if step.id in self._failures:
            self._look([step], [])
            return
        self._unfinished.discard(step.id)
        ready: list[PlannedStep] = []
        again: list[PlannedStep | None] = []
        for waiting in self._waiting.pop(step.id, ()):
            id = waiting.id if waiting else ""
            self._left[id] -= 1
            if self._left[id]:
                continue
            if waiting is not None and self._rule.needs[id].are_certain and id not in self._failures:
                ready.append(waiting)
            else:
                again.append(waiting)
        if ready or again:
            self._look(again, ready)

    # -- One step --------------------------------------------------------------------------------------------

    async def _run_beside(self, step: PlannedStep) -> None:
        SCOPE.set(self._place)
        await self._run_step(step)

    async def _run_step(self, step: PlannedStep) -> None:
        """Call a step; or, when what its default needs is there, give it that."""
        scope = self._scope
        if step.id in self._failures:
            self._fall_back(step, self._failures.pop(step.id))
            return
        try:
            if step.condition is not None and not step.condition(scope):
                self._results[step.id] = None
                return
            given = self._rule.needs[step.id].given.render(scope)
            if not step.target.has_own_scope:
                self._results[step.id] = await step.target.run(self._execution, scope, given)
            else:
                self._results[step.id] = await self._in_place(step, scope, given)
        except Exception as error:
            if step.default is None:
                raise
            self._failures[step.id] = error
            if not self._missing(step):
                self._fall_back(step, self._failures.pop(step.id))

    def _fall_back(self, step: PlannedStep, error: Exception) -> None:
        """Put the default in the place of the result."""
        default = cast("Template", step.default)
        self._results[step.id] = default.render({**self._scope, "error": error_data(error)})

    async def _in_place(self, step: PlannedStep, scope: Scope, given: Any) -> Any:
        """Call what is not a step by itself, in a scope that has the name of the step."""
        before = SCOPE.set(self._place.named(step.id))
        try:
            return await step.target.run(self._execution, scope, given)
        finally:
            SCOPE.reset(before)


def error_data(error: BaseException) -> dict[str, str]:
    """The value of `error` in an expression."""
    if isinstance(error, StepFailedError):
        return {"type": error.type_name.rpartition(".")[2], "message": error.message}
    return {"type": class_name(type(error)).rpartition(".")[2], "message": str(error)}


def driver_of(
    begin: Callable[[Any, Any, Any, Any, Any], tuple[Plan, Scope]],
) -> Callable[..., Coroutine[Any, Any, Any]]:
    """The function of a flow's workflow; `begin` gives the plan and the scope of a run with these arguments."""

    # Users give these names. `step` is given by a flow that has one of its steps in a queue, and
    # `may` by the code that has checked the others.
    async def drive(
        input: Any = None,
        *,
        vars: Any = None,  # noqa: A002
        overrides: Any = None,
        step: Any = None,
        may: Any = None,
    ) -> Any:
        with expression_errors():
            try:
                plan, scope = begin(input, vars, overrides, step, may)
            except FlowError as error:
                await park(error)
            scope["run"] = {"id": SCOPE.get().frame.id}
            if step is not None:
                return await run_one(this_execution("a flow"), plan.find(step["path"]).target, scope, step)
            return await run_plan(plan, scope)

    return drive


async def park(error: OutliveError) -> NoReturn:
    """Stop here: this worker cannot run the document as it is, and failing the run would lose it."""
    execution = this_execution("a flow")
    execution.park(error, SCOPE.get().frame.number)
    await execution.loop.create_future()
    raise AssertionError("a parked run goes on")
