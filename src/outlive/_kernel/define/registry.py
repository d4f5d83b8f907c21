"""Which workflows and steps this process has, by name.

A restarted process must find the code of a run by the name in its journal, so a definition needs a name that means one
thing: defining a name twice is an error, unless it is the same function again (a reloaded module, a notebook cell run
twice, a script that is also imported).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from outlive._kernel.define.declaration import Declaration
from outlive._kernel.define.own import RESERVED, family_of, own_families
from outlive._kernel.define.step_run import STEP_VERSION, run_of
from outlive._kernel.model import given
from outlive._kernel.model.remote import RemoteTerms
from outlive._kernel.model.trigger import TriggerSet
from outlive._kernel.replay.command import StepSpec, WorkflowSpec
from outlive.errors import DefinitionError, InvalidArgumentError
from outlive.errors.program import DuplicateDefinitionError, LocalDefinitionError, WorkflowNotFoundError

BY_NAME = STEP_VERSION
"""In the place of a version: the version that the name alone means. It is that of the runs of a step, whose name no
workflow has."""


class DeclaredRemote(NamedTuple):
    """A remote step as code declares it."""

    spec: WorkflowSpec
    """The workflow of its tasks."""
    terms: RemoteTerms


class Registry:
    """Workflows by name and version, steps by name."""

    def __init__(self) -> None:
        self._workflows: dict[tuple[str, int], WorkflowSpec] = {}
        self._steps: dict[str, StepSpec] = {}
        self._declared: dict[tuple[str, str, int], Sequence[Declaration]] = {}
        """By the option of the decorator, and the name and version of the workflow."""
        self._current: dict[str, int] = {}
        """The version of a flow that is meant by its name: its versions are hashes, and have no order."""
        self._triggers: dict[tuple[str, int], TriggerSet] = {}
        self._flows: dict[tuple[str, int], WorkflowSpec] = {}
        """Flows of the library of a store, in every revision that may have open runs."""
        self._published: dict[str, int] = {}
        """The version of such a flow that a start by its name means."""
        self._remote: dict[str, DeclaredRemote] = {}
        """Remote steps that code declares, by the name that documents have for them."""
        self._definitions: list[str] | None = None
        """The result of `definitions`, until something is added."""
        self._counted = (0, 0)
        """How many workflows and steps there were then: another registry may add to the same ones."""

    def with_own_flows(self) -> Registry:
        """A registry with these definitions, also definitions that are added later; and with flows of the library of
        one store, which no other engine of this process sees."""
        own = Registry()
        own._workflows, own._steps, own._declared = self._workflows, self._steps, self._declared
        own._triggers, own._remote = self._triggers, self._remote
        own._current, own._flows, own._published = self._current, dict(self._flows), dict(self._published)
        return own

    def replacing(self, specs: Iterable[WorkflowSpec]) -> Registry:
        """A registry with these definitions, in which these workflows replace those of the same names and versions."""
        own = self.with_own_flows()
        own._workflows = self._workflows | {(spec.name, spec.version): spec for spec in specs}
        return own

    @contextmanager
    def forgetting(self) -> Iterator[None]:
        """Forget at the end what is defined inside: for tests that make definitions, so that no other test has them."""
        before = [dict(each) for each in self._defined()]
        try:
            yield
        finally:
            for each, was in zip(self._defined(), before, strict=True):
                # In place: registries with flows of their own share them.
                each.clear()
                each.update(was)
            self._definitions = None

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Begin without the definitions of others, and have them back at the end: for tests that import a program, as
        other tests may use its names."""
        with self.forgetting():
            for each in self._defined():
                each.clear()
            self._definitions = None
            yield

    def _defined(self) -> list[dict[Any, Any]]:
        """The tables that the decorators fill."""
        return [self._workflows, self._steps, self._declared, self._current, self._triggers, self._remote]

    def set_flows(self, flows: Iterable[WorkflowSpec], published: Mapping[str, int]) -> None:
        """The flows of the library as they are now, and which version of each is published."""
        self._flows = {(spec.name, spec.version): spec for spec in flows}
        self._published = dict(published)
        self._definitions = None

    def add_workflow(self, spec: WorkflowSpec) -> None:
        """Define a workflow.

        Raises:
            DuplicateDefinitionError: another function has this name and version.
            DefinitionError: the name is one of ours.
        """
        if spec.name.startswith(RESERVED):
            raise DefinitionError(f"workflow {spec.name!r}: names that begin with {RESERVED!r} are Outlive's own")
        key = (spec.name, spec.version)
        _check_unique("workflow", spec.name, self._workflows.get(key), spec)
        self._workflows[key] = spec
        self._definitions = None

    def add_step(self, spec: StepSpec) -> None:
        """Define a step.

        Raises:
            DuplicateDefinitionError: another function has this name.
        """
        _check_unique("step", spec.name, self._steps.get(spec.name), spec)
        self._steps[spec.name] = spec
        self._definitions = None

    def add_remote(self, use: str, spec: WorkflowSpec, terms: RemoteTerms) -> None:
        """Know what a remote step takes and gives. Its code is elsewhere, so it may be declared more than once: the
        last declaration counts."""
        self._remote[use] = DeclaredRemote(spec, terms)

    def find_remote(self, use: str) -> DeclaredRemote | None:
        """A remote step that code declares, by the name that documents have for it: `gpu/resize`."""
        return self._remote.get(use)

    def remote_steps(self) -> list[str]:
        """The names that documents have for the remote steps which code declares."""
        return list(self._remote)

    def declare(self, option: str, spec: WorkflowSpec, declared: Sequence[Declaration]) -> None:
        """Keep what the decorator of a workflow was given; each declaration has a name."""
        self._declared[option, spec.name, spec.version] = declared

    def declared(self, option: str) -> list[tuple[WorkflowSpec, Declaration]]:
        """The declarations of the code by an option, each with the workflow that declares it: of one name the
        newest version only.

        Raises:
            InvalidArgumentError: two workflows have a declaration of the same name.
        """
        found: dict[str, tuple[WorkflowSpec, Declaration]] = {}
        current = {(spec.name, spec.version) for spec in self.newest() if not self.has_order(spec.name)}
        for (own, name, version), several in sorted(self._declared.items(), key=lambda item: item[0][2]):
            spec = self._workflows.get((name, version))
            if own != option or spec is None or not (self.has_order(spec.name) or (spec.name, spec.version) in current):
                continue
            for each in several:
                other, _ = found.get(each.name, (spec, each))
                if other.name != spec.name:
                    wanted = f"workflow {other.name} has one called {each.name} too; give this one another name="
                    raise InvalidArgumentError(f"workflow {spec.name}", option, each.name, wanted)
                found[each.name] = spec, each
        return list(found.values())

    def declares(self, option: str) -> bool:
        """Whether the code declares something by an option, or has flows that may have declared some before."""
        return bool(self._current) or any(own == option for own, *_ in self._declared)

    def add_triggers(self, spec: WorkflowSpec, triggers: TriggerSet) -> None:
        """Let events and webhooks start a workflow."""
        self._triggers[spec.name, spec.version] = triggers

    def triggers(self) -> list[tuple[WorkflowSpec, TriggerSet]]:
        """The workflows that have triggers, with these: of one name the newest version, if that has some."""
        if not self._triggers:
            return []
        keys = [((spec.name, spec.version), spec) for spec in self.newest()]
        return [(spec, self._triggers[key]) for key, spec in keys if key in self._triggers]

    def newest(self) -> list[WorkflowSpec]:
        """The workflows that users have defined, of one name the current version, else the highest one."""
        found = {spec.name: spec for spec in sorted(self._workflows.values(), key=_version)}
        found |= {key[0]: self._workflows[key] for key in self._current.items() if key in self._workflows}
        return list(found.values())

    def has_order(self, name: str) -> bool:
        """Whether the higher one of two versions of this workflow is the newer one."""
        return name not in self._current

    def find_step(self, name: str) -> StepSpec | None:
        """The step of this name, if this process has it."""
        return self._steps.get(name)

    def step_names(self) -> list[str]:
        """The names of the steps that users have defined."""
        return list(self._steps)

    def own_step_names(self) -> list[str]:
        """The names of the steps that users have defined, without those of Outlive itself."""
        return [name for name in self._steps if not name.startswith(RESERVED)]

    def set_current(self, name: str, version: int) -> None:
        """Say which version is meant when only the name is given."""
        self._current[name] = version

    def find_workflow(self, name: str) -> WorkflowSpec | None:
        """The workflow that is meant by this name alone: what the library has published, else the current version, else
        the highest one."""
        published = self._flows.get((name, self._published.get(name, 0)))
        current = published or self._workflows.get((name, self._current.get(name, 0)))
        versions = [version for own, version in self._workflows if own == name] if current is None else []
        return current if not versions else self._workflows[name, max(versions)]

    def workflow(self, name: str, version: int) -> WorkflowSpec:
        """The workflow that a journal names; with version `BY_NAME` the version that its name alone means.

        Raises:
            WorkflowNotFoundError: this process does not have it.
        """
        key = (name, version)
        spec = self._workflows.get(key) or self._flows.get(key) or self._find_own(name, version)
        if spec is None and version == BY_NAME:
            spec = self.find_workflow(name) or self.step_run(name)
        if spec is None:
            known = [f"{name}@{version}" for name, version in self._workflows]
            raise WorkflowNotFoundError(name, version or None, known)
        return spec

    def step_run(self, name: str) -> WorkflowSpec | None:
        """The workflow that runs the step of this name once, if this process has the step and no workflow of the
        name."""
        step = self._steps.get(name)
        return None if step is None or self.find_workflow(name) is not None else run_of(step)

    def steps_by_name(self) -> list[WorkflowSpec]:
        """The runs of the steps that programs without their code may start."""
        found = [self.step_run(name) for name, step in self._steps.items() if step.by_name]
        return [spec for spec in found if spec is not None]

    def defined(self, name: str, version: int) -> WorkflowSpec | None:
        """The workflow of users with this name and version, or the flow of the library, if this process has it."""
        key = (name, version)
        return self._workflows.get(key) or self._flows.get(key)

    def has_workflow(self, name: str, version: int) -> bool:
        """Whether this process has the code of runs that people retry and fork: of a user's workflow, of a flow of the
        library, or of one of our own workflows whose runs are retried as theirs."""
        if (name, version) in self._workflows or (name, version) in self._flows:
            return True
        if version == STEP_VERSION and self.step_run(name) is not None:
            return True
        family = family_of(name)
        return family is not None and any((name, version) == (spec.name, spec.version) for spec in family.retried)

    def _find_own(self, name: str, version: int) -> WorkflowSpec | None:
        family = family_of(name)
        return None if family is None else family.find(self, name, version)

    def workflows(self) -> list[WorkflowSpec]:
        """The workflows that users have defined."""
        return list(self._workflows.values())

    def _all(self) -> dict[tuple[str, int], WorkflowSpec]:
        return self._workflows | self._flows

    def runnable(self) -> list[WorkflowSpec]:
        """The workflows and flows of users that a worker of this process can run."""
        known = self._names()
        return [spec for spec in self._all().values() if spec.uses <= known]

    def lacking(self) -> dict[str, frozenset[str]]:
        """The flows that this process has and cannot run, as `name@version`, and the names that they need for it."""
        known = self._names()
        return {
            f"{name}@{version}": spec.uses - known
            for (name, version), spec in self._all().items()
            if not spec.uses <= known
        }

    def _names(self) -> set[str]:
        return {*self._steps, *(name for name, _ in self._workflows), *(name for name, _ in self._flows)}

    def definitions(self) -> list[str]:
        """Everything that a worker of this process can run, as `name@version`."""
        counted = (len(self._workflows), len(self._steps))
        if self._definitions is None or self._counted != counted:
            self._counted = counted
            runnable = self.runnable()
            own = [name for it in own_families() for name in it.names(runnable, self._steps.values())]
            workflows = {name for name, _ in self._all()}
            steps = [(name, STEP_VERSION) for name in self._steps if name not in workflows]
            names = [*((spec.name, spec.version) for spec in runnable), *steps, *own]
            self._definitions = sorted(f"{name}@{version}" for name, version in names)
        return list(self._definitions)


def _version(spec: WorkflowSpec) -> int:
    return spec.version


REGISTRY = Registry()
"""The registry that the decorators fill, and that an engine runs unless it is given another one."""


def check_function(kind: str, fn: Callable[..., Any], name: str | None) -> str:
    """The name of a function that can be a step or a workflow: the given name, or else its own.

    Raises:
        InvalidArgumentError: it is not a function, yields, or has no name that journals can use.
        LocalDefinitionError: a lambda or a function inside a function, which a restarted process cannot find by name.
        DefinitionError: it is a method that cannot be one, or hides from us that it is async.
    """
    own_name = None if name is None else given.label(f"@outlive.{kind}", name)
    given.function(f"@outlive.{kind}", "fn", fn, like="an `async def` at the top level of a module")
    qualname = getattr(fn, "__qualname__", None)
    if qualname is None:
        raise DefinitionError(
            f"{fn!r} cannot be a {kind}: it has no name; call it in a function of a module: `async def`"
        )
    if "<locals>" in qualname or "<lambda>" in qualname:
        raise LocalDefinitionError(kind, qualname, where(fn))
    _refuse_method(kind, fn, qualname)
    if inspect.iscoroutinefunction(inspect.unwrap(fn)) and not inspect.iscoroutinefunction(fn):
        raise DefinitionError(
            f"{qualname} at {where(fn)} is async, and the decorator below @outlive.{kind} hides that; write the "
            f"wrapper of that decorator as `async def` with `return await`, or put @outlive.{kind} directly above it"
        )
    return own_name or given.label(f"@outlive.{kind}", qualname if is_method(fn) else fn.__name__)


def _refuse_method(kind: str, fn: Any, qualname: str) -> None:
    """A method of a class has the class as its first argument, and a workflow could not find its object again."""
    if isinstance(fn, classmethod) or _first_parameter(fn) == "cls" or (kind == "workflow" and is_method(fn)):
        raise DefinitionError(
            f"{qualname} at {where(fn)} cannot be a {kind}: it is a method, and the journal cannot hold its object; "
            f"write a function at the top level of the module that takes what it needs as arguments, or a @staticmethod"
        )


def is_method(fn: Any) -> bool:
    """Whether it is a function of a class that is called on an object."""
    return "." in getattr(fn, "__qualname__", "") and _first_parameter(fn) == "self"


def _first_parameter(fn: Any) -> str:
    """The name of the first parameter of a function of a class; empty for any other, and for a bound method."""
    if inspect.ismethod(fn) or "." not in fn.__qualname__:
        return ""
    return next(iter(inspect.signature(fn).parameters), "")


def where(fn: Callable[..., Any]) -> str:
    """The place of a function, for people; a machine says itself where it was defined."""
    if isinstance(place := getattr(fn, "defined_at", None), str):
        return place
    code = getattr(fn, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else repr(fn)


def _check_unique(kind: str, name: str, known: StepSpec | WorkflowSpec | None, new: StepSpec | WorkflowSpec) -> None:
    if known is not None and not _is_same_function(known.fn, new.fn):
        raise DuplicateDefinitionError(kind, name, where(known.fn), where(new.fn))


def _is_same_function(known: Callable[..., Any], new: Callable[..., Any]) -> bool:
    if known is new:
        return True
    same_name = (known.__module__, known.__qualname__) == (new.__module__, new.__qualname__)
    # A script that is run and imported has two module names and one source file.
    same_file = _file_of(known) == _file_of(new) and known.__qualname__ == new.__qualname__
    return same_name or same_file


def _file_of(fn: Callable[..., Any]) -> str:
    return where(fn).rpartition(":")[0]
