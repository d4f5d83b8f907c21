"""The plan of a flow for its driver, computed once from the document: which steps run, what each waits for and calls,
and its expressions, compiled.

*Lazy.* A step runs if the output needs it, directly or through other steps, or if it says `must_run`. A flow without an
output runs all its steps. What a branch needs (of `a ? b : c`, `$if`, `coalesce`, `switch`), what the `with` of a step
needs that has an `if`, and what `use_default` needs is known only in a run: `certain` are the other steps.

*Order.* A step waits for the steps that it refers to, in `with`, `if`, `on_error` or `undo`, and for those in `after`.
That is all there is: the order in the document only says which of two ready steps begins first.

What `use:` names is looked up when the flow is first run or checked, and not when it is read: the modules that define
the steps may be imported later.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from outlive._cel import Template, steps_in
from outlive._cel.demand import NOTHING, Demand, all_of
from outlive._features.flows.built_in import NAMES, find_built_in
from outlive._features.flows.document.model import Condition, Document, FlowStep, RetryPolicy, seconds_of
from outlive._features.flows.document.problems import did_you_mean
from outlive._features.flows.document.references import compile_value
from outlive._features.flows.outside.addresses import deciding_steps
from outlive._features.flows.run.plain_data import find_misfit
from outlive._features.flows.run.policies import guard_of_limit, retry_of
from outlive._features.flows.run.queued import QueuedTarget
from outlive._features.flows.run.target import (
    BuiltInTarget,
    ControlTarget,
    FlowTarget,
    RemoteTarget,
    RoutedTarget,
    StepTarget,
    Target,
    UndoTarget,
    WorkflowTarget,
)
from outlive._features.tasks.remote_step import remote_step_in
from outlive._kernel.define.registry import BY_NAME, REGISTRY
from outlive._kernel.journal.arguments import Signature
from outlive._kernel.model import Retry
from outlive._kernel.model.guard import Guard
from outlive._kernel.model.queue import check_queue
from outlive._kernel.model.remote import is_remote
from outlive._kernel.replay.ask import current_execution
from outlive._kernel.replay.command import StepKind, StepOptions, StepSpec, WorkflowSpec
from outlive.errors.document import FlowError, Path, Problem
from outlive.errors.program import WorkflowNotFoundError
from outlive.errors.step import FlowStepError

if TYPE_CHECKING:
    from outlive._features.flows.built_in.contract import BuiltIn
    from outlive._features.flows.outside.settings import Route

CONTROL = "what waits or decides"
Reference = tuple[str, ...]
Scope = Mapping[str, Any]


class Needs(NamedTuple):
    """The values and the steps that a step needs."""

    begin: Demand
    """The steps that must have ended before its condition is evaluated."""
    call: Demand
    """The other steps that must have ended before it is called."""
    default: Demand
    """The steps that must have ended before its default replaces its result."""
    given: Template
    """The template of its arguments."""
    are_certain: bool
    """Whether one look at the steps that have ended tells all that it needs until it is called."""


class Rule(NamedTuple):
    """Which steps of a plan run, and what each waits for."""

    roots: list[str]
    """The steps that run whatever the output needs."""
    output: Demand
    """The steps that the output needs."""
    needs: dict[str, Needs]
    """The needs of each step, by its id."""


class PlannedStep(msgspec.Struct, eq=False, kw_only=True):
    """One step of a plan."""

    id: str
    name: str
    """The name in the journal: its id, or for a call of `map` the name in the `use` of that `map`."""
    document: FlowStep
    condition: Callable[[Scope], bool] | None
    """Whether it runs; None if it always does."""
    given: Template
    """The template of its arguments."""
    default: Template | None
    """The template of the value that replaces its result if it fails; None if the flow fails with it."""
    undo: Template | None
    later: Any
    """The parts of `with` that its built-in renders itself, as it has prepared them."""
    references: frozenset[Reference]
    needs: frozenset[str]
    """The steps that come before it, if they run."""
    place: int
    """Its place in the document."""
    chosen: Needs
    """The needs of the branches that a run takes."""
    target: Target = cast("Target", None)
    """The code that it calls; None until that was looked up."""


class Plan:
    """A document as its driver sees it."""

    def __init__(self, document: Document, *, path: tuple[str, ...] = (), apart: Collection[str] = ()) -> None:
        """`path`: the steps that it is the body of. `apart`: the steps whose limit is shared with no other flow."""
        self.document = document
        self._apart = apart
        self._path = path
        self.output = compile_value(document.output) if document.has_output else None
        self.all_steps = planned = {
            id: self._plan(place, id, step) for place, (id, step) in enumerate(document.steps.items())
        }
        """All steps, also steps that do not run: for pictures."""
        wanted = self._wanted(planned)
        self.steps = {id: step for id, step in planned.items() if id in wanted}
        """The steps that may run."""
        runs_all = self.output is None or ("steps",) in self.output.references
        self.lazy = Rule(
            [id for id, step in self.steps.items() if runs_all or step.document.must_run],
            NOTHING if self.output is None else self.output.demand,
            {id: step.chosen for id, step in self.steps.items()},
        )
        """The rule by which a step runs only if a branch needs it that the run takes."""
        self.eager = Rule(
            list(self.steps),
            NOTHING,
            {
                id: Needs(Demand(step.needs), NOTHING, NOTHING, step.given, are_certain=True)
                for id, step in self.steps.items()
            },
        )
        """The rule by which all steps run, and each waits for all that it refers to."""
        self.certain = self._certain()
        """The steps that run in every run that comes to its end, if their own `if` holds."""
        self.has_choices = len(self.certain) < len(self.steps)
        """Whether only a run can tell which steps it needs."""
        _refuse_circles(self.steps)
        self.is_breadth_first = document.order == "breadth"
        self.stops = document.on_failure == "stop"
        self.at_once = document.concurrency or max(len(self.steps), 1)
        self.retry: Retry | None = None if document.retry is None else retry_of(document.retry)
        self.is_saga = False
        """Whether there may be something to undo; known when it is resolved."""
        self.is_resolved = False
        self._deciding: frozenset[str] = frozenset()
        """The steps whose results no person sets; known when it is resolved."""

    # -- Which steps, and in which order ---------------------------------------------------------------------

    def _plan(self, place: int, id: str, step: FlowStep) -> PlannedStep:
        raw, later = step.with_, None
        references: set[Reference] = set()
        built_in = find_built_in(step.use)
        deferred: frozenset[str] = getattr(built_in, "deferred", frozenset())
        if deferred and isinstance(raw, dict):
            kept = {name: value for name, value in raw.items() if name in deferred}
            raw = {name: value for name, value in raw.items() if name not in deferred}
            path = (*self._path, id)
            later = built_in.prepare(id, kept, path=path)  # type: ignore[union-attr]
            references |= later.references
        given = compile_value(raw)
        compile_chosen = getattr(built_in, "compile", None)
        chosen = (compile_chosen(raw) if compile_chosen else None) or given
        condition, asked, asks = _condition(id, step.if_)
        takes = [chosen.demand, Demand(steps_in(references))]
        on_error = step.on_error
        default = None
        if not isinstance(on_error, str) and on_error.use_default is not UNSET:
            default = compile_value(on_error.use_default)
            references |= default.references
        undo = None
        if step.undo is not None:
            undo = compile_value(step.undo.with_)
            references |= undo.references
            takes.append(Demand(steps_in(undo.references)))
        references |= given.references | asked
        needs = steps_in(references) | frozenset(step.after)
        begin, call = all_of([asks, Demand(frozenset(step.after))]), all_of(takes)
        are_certain = not begin.choices and (not call.choices if condition is None else call == NOTHING)
        return PlannedStep(
            id=id,
            name=id,
            document=step,
            condition=condition,
            given=given,
            default=default,
            undo=undo,
            later=later,
            references=frozenset(references),
            needs=frozenset(each for each in needs if each in self.document.steps),
            place=place,
            chosen=Needs(begin, call, NOTHING if default is None else default.demand, chosen, are_certain=are_certain),
        )

    def _wanted(self, planned: Mapping[str, PlannedStep]) -> set[str]:
        if self.output is None or ("steps",) in self.output.references:
            return set(planned)
        left = [id for id in steps_in(self.output.references) if id in planned]
        left += [id for id, step in planned.items() if step.document.must_run]
        wanted: set[str] = set()
        while left:
            id = left.pop()
            if id not in wanted:
                wanted.add(id)
                left += planned[id].needs
        return wanted

    def _certain(self) -> set[str]:
        left = [*self.lazy.roots, *self.lazy.output.always]
        certain: set[str] = set()
        while left:
            step = self.steps.get(left.pop())
            if step is not None and step.id not in certain:
                certain.add(step.id)
                left += step.chosen.begin.always
                if step.condition is None:
                    left += step.chosen.call.always
        return certain

    @property
    def references(self) -> frozenset[Reference]:
        """The references of an inner flow to the steps around it."""
        found = {each for step in self.steps.values() for each in step.references}
        found |= self.output.references if self.output is not None else frozenset()
        return frozenset(each for each in found if len(each) < 2 or each[1] not in self.document.steps)

    def find(self, path: Sequence[str]) -> PlannedStep:
        """A step by its id, behind the ids of the steps whose bodies it is in."""
        plan = self
        for id in path[:-1]:
            plan = plan.steps[id].later.plan
        return plan.steps[path[-1]]

    # -- What they call --------------------------------------------------------------------------------------

    @property
    def uses(self) -> frozenset[str]:
        """The registered steps and workflows that it needs."""
        found: set[str] = set()
        for step in self.steps.values():
            found |= {each.use for each in routes_of(step.document.use)}
            if step.document.undo is not None:
                found.add(step.document.undo.use)
            if step.later is not None:
                found |= step.later.uses
        return frozenset(each for each in found if each not in NAMES and not is_remote(each))

    def resolve(self) -> None:
        """Look up what all steps call.

        Raises:
            FlowError: something is not there, or cannot be called as the document says.
        """
        if self.is_resolved:
            return
        self._deciding = self._find_deciding()
        problems: list[Problem] = []
        for step in self.steps.values():
            try:
                step.target = self._target(step)
            except FlowError as error:
                problems += error.problems
        if problems:
            raise FlowError(problems)
        self.is_resolved = True

    def _target(self, step: PlannedStep) -> Target:
        target = self._unqueued_target(step)
        queue = step.document.queue
        targets = [each for _, each in target.choices] if isinstance(target, RoutedTarget) else [target]
        in_queues = [isinstance(each, WorkflowTarget | FlowTarget) for each in targets]
        if queue is None or all(in_queues):
            return target
        if any(in_queues):
            message = (
                f"the routes of {step.document.use!r} lead to steps and to workflows, and only one can be in a queue"
            )
            raise _unfit(step, "queue", "bad-route", message)
        check_queue(f"step {step.id}", queue)
        # The undo is booked where the flow waits; a step may have one of its own.
        undo = self._undo(step) or next((each.own_undo for each in targets if isinstance(each, StepTarget)), None)
        path = (*self._path, step.id)
        return QueuedTarget(step.name, path, target, queue, undo=undo, names=_with_variables(step.given))

    def _unqueued_target(self, step: PlannedStep) -> Target:
        choices = [(route, self._routed(step, route)) for route in routes_of(step.document.use)]
        if len(choices) == 1 and not choices[0][0].params:
            return choices[0][1]
        if len({target.has_own_scope for _, target in choices}) > 1:
            message = f"the routes of {step.document.use!r} in the settings lead to steps and to {CONTROL}"
            raise _unfit(step, "use", "bad-route", message)
        return RoutedTarget(choices)

    def _routed(self, step: PlannedStep, route: Route) -> Target:
        document = step.document
        if route.use == document.use and not route.params:
            return self._called(step)
        document = replace(document, use=route.use, with_=route.add_to(document.with_))
        return self._called(replace(step, document=document))

    def _called(self, step: PlannedStep) -> Target:
        use, undo = step.document.use, self._undo(step)
        self.is_saga = self.is_saga or undo is not None
        if is_remote(use):
            return self._remote(step, undo)
        built_in = find_built_in(use)
        if built_in is not None:
            return self._built_in(step, built_in, undo)
        spec = REGISTRY.find_step(use)
        if spec is not None:
            return self._step(step, spec, undo)
        workflow = _find_workflow(use)
        if workflow is not None:
            return self._workflow(step, workflow, undo)
        known = [*NAMES, *REGISTRY.step_names(), *(each.name for each in REGISTRY.workflows())]
        message = f"no step or workflow is registered as {use!r}, and no built-in is called so"
        raise _unfit(step, "use", "unknown-use", message, did_you_mean(use, known))

    def _step(self, step: PlannedStep, spec: StepSpec, undo: UndoTarget | None) -> Target:
        wanted = step.document
        kind = spec.kind
        if wanted.once:
            if kind not in (None, StepKind.ONCE):
                message = f"step {spec.name} is defined with {kind.value}=True, and `once` excludes that"
                raise _unfit(step, "once", "bad-once", message)
            kind = StepKind.ONCE
        self._check_arguments(step, spec.name, spec.signature)
        own = spec.options
        options = self._options(step, own)
        if undo is None and own.undo is not None:
            self.is_saga = True
            options = replace(options, undo=UndoTarget.of_step(own.undo))
        names = _with_variables(step.given)
        return StepTarget(step.name, spec, options, kind=kind, undo=undo, names=names)

    def _workflow(self, step: PlannedStep, spec: WorkflowSpec, undo: UndoTarget | None) -> Target:
        wanted = step.document
        for field, said in (
            ("once", wanted.once),
            ("limit", wanted.limit),
            ("heartbeat_timeout", wanted.heartbeat_timeout),
        ):
            if said:
                message = f"`{field}` is for steps, and {spec.name} is a workflow, which has steps of its own"
                raise _unfit(step, field, "not-for-workflows", message)
        takes_input = getattr(spec.signature, "takes_input", False)
        if not takes_input:
            self._check_arguments(step, spec.name, spec.signature)
        self.is_saga = True  # Its effect may have to be undone.
        options: dict[str, Any] = {"retry": _retry(wanted), "seconds": _seconds(wanted.timeout)}
        options |= {"queue": wanted.queue, "undo": undo}
        if takes_input:
            return FlowTarget(step.name, spec.name, **options)
        return WorkflowTarget(step.name, spec, **options)

    def _built_in(self, step: PlannedStep, built_in: BuiltIn, undo: UndoTarget | None) -> Target:
        wanted = step.document
        options = self._options(step, StepOptions())
        kind = StepKind.ONCE if wanted.once else None
        if not getattr(built_in, "is_control", False):
            return BuiltInTarget(
                step.name,
                self.document,
                built_in,
                options,
                kind=kind,
                later=step.later,
                undo=undo,
                names=_with_variables(step.given),
            )
        for field, said in (
            ("once", wanted.once),
            ("limit", wanted.limit),
            ("heartbeat_timeout", wanted.heartbeat_timeout),
            ("queue", wanted.queue),
        ):
            if said:
                message = f"`{field}` is for steps with an effect of their own, and {built_in.name} has none"
                raise _unfit(step, field, "not-for-control", message)
        if undo is not None:
            message = f"{built_in.name} has no effect of its own that could be undone"
            raise _unfit(step, "undo", "not-for-control", message)
        if step.later is not None:
            step.later.resolve(step.id)
            self.is_saga = True
        seconds, retry = _seconds(wanted.timeout), _retry(wanted)
        return ControlTarget(step.name, self.document, built_in, retry=retry, seconds=seconds, later=step.later)

    def _remote(self, step: PlannedStep, undo: UndoTarget | None) -> Target:
        wanted = step.document
        for field, said in (
            ("once", wanted.once),
            ("limit", wanted.limit),
            ("heartbeat_timeout", wanted.heartbeat_timeout),
            ("queue", wanted.queue),
            ("undo", undo),
        ):
            if said:
                message = f"`{field}` is for steps of Python, and {wanted.use} is a remote step; {_ELSEWHERE[field]}"
                raise _unfit(step, field, "not-for-remote-steps", message)
        options: dict[str, Any] = {"retry": _retry(wanted), "timeout_seconds": _seconds(wanted.timeout)}
        return RemoteTarget(remote_step_in(wanted.use, call=step.name, **options))

    def _undo(self, step: PlannedStep) -> UndoTarget | None:
        undo, template = step.document.undo, step.undo
        if undo is None or template is None:
            return None
        spec = REGISTRY.find_step(undo.use)
        if spec is not None:
            misfit = _misfit(undo.with_, spec.signature)
            if misfit:
                raise _unfit(step, "undo", "bad-arguments", f"step {spec.name}: {misfit}")
        else:
            built_in = find_built_in(undo.use)
            if built_in is None or getattr(built_in, "is_control", False):
                message = f"{undo.use!r} cannot undo a step: give a registered step, or a built-in with an effect"
                raise _unfit(step, "undo", "bad-undo", message, did_you_mean(undo.use, REGISTRY.step_names()))
        return UndoTarget(step.name, undo.use, template.render, names=_with_variables(template))

    def _options(self, step: PlannedStep, own: StepOptions) -> StepOptions:
        wanted = step.document
        guard = own.guard
        if wanted.limit is not None:
            whose = f" of starts of {self.document.name}" if step.id in self._apart else ""
            limited = guard_of_limit(wanted.limit, whose=whose)
            if limited is None:
                message = f"{wanted.limit!r} is not a rate limit; write its name and how many calls it allows"
                example = "for example `limit: bank 10/s` or `limit: bank 5 in any 2s`"
                raise _unfit(step, "limit", "bad-limit", message, example)
            guard = limited if guard is None else Guard(guard.breaker, limited.limit)
        return StepOptions(
            unsettable=_DECIDES if step.id in self._deciding else "",
            retry=_retry(wanted) or own.retry or self.retry,
            timeout_seconds=_seconds(wanted.timeout) or own.timeout_seconds,
            heartbeat_seconds=_seconds(wanted.heartbeat_timeout) or own.heartbeat_seconds,
            guard=guard,
        )

    def _find_deciding(self) -> frozenset[str]:
        """The steps whose results decide where a secret goes that the settings bind to no server."""
        from outlive._features.flows.outside import settings

        secrets = [name for name, each in self.document.vars.items() if each.secret]
        is_bound = all(settings.current().bounds_of(name).places is not None for name in secrets)
        return frozenset() if is_bound else deciding_steps(self.document)

    def _check_arguments(self, step: PlannedStep, name: str, signature: Signature) -> None:
        misfit = _misfit(step.document.with_, signature)
        if misfit:
            raise _unfit(step, "with", "bad-arguments", f"{name}: {misfit}")


_ELSEWHERE = {
    "once": "its worker learns from `claims` whether the task was claimed before",
    "limit": "limit its queue, with `outlive queues set`",
    "heartbeat_timeout": "its lease is the worker's, which says how long it lasts",
    "queue": "its queue is in its name",
    "undo": "call it in a workflow, and undo that",
}
"""Where a remote step has what the fields of other steps say."""
_DECIDES = "it decides where a secret goes, which the settings here bind to no server ([flows.grants.NAME] hosts)"


def routes_of(use: str) -> list[Route]:
    """The routes of a name in this environment."""
    from outlive._features.flows.outside import settings  # It brings a client for HTTP, which few flows need at once.

    return settings.current().routes_of(use)


def _with_variables(template: Template) -> frozenset[Reference]:
    """The references of a template, if a variable is among them: that may be a secret."""
    return template.references if any(each[0] == "vars" for each in template.references) else frozenset()


def _find_workflow(name: str) -> WorkflowSpec | None:
    """The workflow of this name; in a run also one that only its engine has, of the library in its store."""
    found, execution = REGISTRY.find_workflow(name), current_execution()
    if found is None and execution is not None:
        with suppress(WorkflowNotFoundError):
            return execution.resolve(name, BY_NAME)
    return found


def _condition(
    id: str, condition: Condition | None
) -> tuple[Callable[[Scope], bool] | None, frozenset[Reference], Demand]:
    """Whether a step runs, and what that depends on."""
    if condition is None or condition is True:
        return None, frozenset(), NOTHING
    if condition is False:
        return (lambda scope: False), frozenset(), NOTHING
    template = compile_value(condition if "${{" in condition else f"${{{{ {condition} }}}}")

    def holds(scope: Scope) -> bool:
        answer = template.render(scope)
        if answer is True or answer is False:
            return answer
        raise FlowStepError(
            id, f"`if` must be true or false, and is {_short(answer)}; compare it, for example `!= null`"
        )

    return holds, template.references, template.demand


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _retry(step: FlowStep) -> Retry | None:
    on_error = step.on_error
    if not isinstance(on_error, str) and isinstance(on_error.retry, RetryPolicy):
        return retry_of(on_error.retry)
    return None if step.retry is None else retry_of(step.retry)


def _seconds(span: float | str | None) -> float | None:
    return None if span is None else seconds_of(span)


def _misfit(given: Any, signature: Signature) -> str:
    if isinstance(given, str):
        return ""  # An expression: what it gives is seen when the step is called.
    if not isinstance(given, dict):
        return "`with` gives its arguments by name, and is not an object"
    if any(key.startswith("$") for key in given):
        return ""
    return find_misfit(signature, given)


def _unfit(step: PlannedStep, field: str, code: str, message: str, advice: str = "") -> FlowError:
    path: Path = ("steps", step.id, field)
    return FlowError([Problem(code=code, message=f"step {step.id}: {message}", path=path, suggestion=advice)])


def _refuse_circles(steps: Mapping[str, PlannedStep]) -> None:
    """Refuse steps that wait for each other; the checks of a document say so better, with the line."""
    left = {id: len(step.needs) for id, step in steps.items()}
    followers: dict[str, list[str]] = {id: [] for id in steps}
    for id, step in steps.items():
        for needed in step.needs:
            followers[needed].append(id)
    ready = [id for id, count in left.items() if not count]
    while ready:
        for follower in followers[ready.pop()]:
            left[follower] -= 1
            if not left[follower]:
                ready.append(follower)
        # A step that is done has nothing left.
    waiting = [id for id, count in left.items() if count]
    if waiting:
        message = f"these steps wait for each other: {', '.join(waiting)}"
        raise FlowError([Problem(code="cycle", message=message, path=("steps", waiting[0]))])
