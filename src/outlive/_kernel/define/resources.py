"""Resources: what the steps of one worker share and no journal can hold, such as a pool of connections.

A step takes a resource by a parameter: `db=outlive.use(pool)` anywhere, or, in a machine that has declared the name, a
keyword-only parameter without a default (`async def ship(data, *, db)`). A resource is nothing of a run: workflow code
and routers, which run again in every replay, cannot have one. What is set up, and when, is in `live_resources`.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast, overload

from outlive._kernel.model import given
from outlive.errors import ArgumentTypeError, DefinitionError
from outlive.errors.program import MachineError

if TYPE_CHECKING:
    from contextlib import _AsyncGeneratorContextManager, _GeneratorContextManager

Function = Callable[..., Any]
T = TypeVar("T")


class Resource(Generic[T]):
    """How one resource comes and goes; made by `outlive.resource`, and given to steps by `outlive.use`."""

    def __init__(
        self,
        name: str,
        setup: Function,
        teardown: Function | None = None,
        health: Function | None = None,
        *,
        wanted: WantedResources | None = None,
    ) -> None:
        self.name = name
        self.setup = setup
        self._wanted = wanted
        self.health = health
        self._teardown = teardown

    def __repr__(self) -> str:
        return f"<resource {self.name}>"


@contextlib.asynccontextmanager
async def opened(resource: Resource[T], wanted: Mapping[str, Any]) -> AsyncIterator[T]:
    """Set a resource up; tear it down on leaving the block.

    Args:
        wanted: the resources that its set-up takes, by the names of its parameters.
    """
    made = resource.setup(**wanted)
    if isinstance(made, contextlib._AsyncGeneratorContextManager):
        async with made as value:
            yield value
    elif isinstance(made, contextlib._GeneratorContextManager):
        with made as value:
            yield value
    else:
        value = await made if inspect.isawaitable(made) else made
        yield value
        if resource._teardown is not None:
            await call(resource._teardown, value)


def wanted_by(resource: Resource[Any]) -> WantedResources | None:
    """The resources that the set-up of a resource takes."""
    return resource._wanted


async def health_said(resource: Resource[T], value: T) -> str:
    """How a resource is, in words: "healthy", or what its `health` has to say."""
    try:
        said = None if resource.health is None else await call(resource.health, value)
    except Exception as error:  # It is asked for just this.
        return f"unhealthy: {type(error).__qualname__}: {error}"
    return "healthy" if said in (None, True) else f"unhealthy: {said}"


class _ResourceDecorator(Protocol):
    """The result of `outlive.resource`, for type checkers."""

    @overload
    def __call__(self, fn: Callable[..., _AsyncGeneratorContextManager[T]], /) -> Resource[T]: ...
    @overload
    def __call__(self, fn: Callable[..., _GeneratorContextManager[T]], /) -> Resource[T]: ...
    @overload
    def __call__(self, fn: Callable[..., AsyncIterator[T]], /) -> Resource[T]: ...
    @overload
    def __call__(self, fn: Callable[..., Iterator[T]], /) -> Resource[T]: ...
    @overload
    def __call__(self, fn: Callable[..., Awaitable[T]], /) -> Resource[T]: ...
    @overload
    def __call__(self, fn: Callable[..., T], /) -> Resource[T]: ...


@overload
def resource(fn: Callable[..., _AsyncGeneratorContextManager[T]], /) -> Resource[T]: ...
@overload
def resource(fn: Callable[..., _GeneratorContextManager[T]], /) -> Resource[T]: ...
@overload
def resource(fn: Callable[..., AsyncIterator[T]], /) -> Resource[T]: ...
@overload
def resource(fn: Callable[..., Iterator[T]], /) -> Resource[T]: ...
@overload
def resource(fn: Callable[..., Awaitable[T]], /) -> Resource[T]: ...
@overload
def resource(fn: Callable[..., T], /) -> Resource[T]: ...
@overload
def resource(*, name: str | None = None, health: Callable[[Any], Any] | None = None) -> _ResourceDecorator: ...


def resource(
    fn: Function | None = None, /, *, name: str | None = None, health: Callable[[Any], Any] | None = None
) -> Any:
    """Make a function a resource: what it yields or returns is shared by the steps of one worker that use it.

    Set up when a step uses it for the first time, once per engine, and torn down when the engine stops, the newest
    first. A generator, async or not, is torn down by what it does after its `yield`; so is a function below
    `contextlib.asynccontextmanager`. What any other function returns is used as it is. Its parameters may use other
    resources.

    Args:
        name: for people; the function's name unless given.
        health: given the resource, raises or says what is wrong; for `engine.health()`.
    """

    def define(fn: Function) -> Resource[Any]:
        if not callable(fn):
            raise ArgumentTypeError("@outlive.resource", "fn", fn, "give a function, best an `async def` that yields")
        own_name = getattr(fn, "__qualname__", repr(fn)) if name is None else given.label("@outlive.resource", name)
        where = f"resource {own_name}"
        if health is not None:
            given.function(where, "health", health, like="ping")
            count_taken(f"health of {where}", health, 1)
        uses = uses_of(where, fn)
        count_taken(f"setup of {where}", fn, 0, may_use=True)
        if inspect.isasyncgenfunction(fn):
            fn = contextlib.asynccontextmanager(fn)
        elif inspect.isgeneratorfunction(fn):
            fn = contextlib.contextmanager(fn)
        return Resource(own_name, fn, health=health, wanted=wanted_in(uses))

    return define if fn is None else define(fn)


@dataclass(frozen=True, slots=True)
class _Use:
    """The default of a parameter that takes a resource."""

    resource: Resource[Any]


def use(resource: Resource[T]) -> T:
    """The default of a parameter of a step that is to be given a resource: `db: Pool = outlive.use(pool)`.

    The parameter is not an argument of the call in a workflow. A test that calls the step as a plain function gives it.
    """
    wanted = given.instance("outlive.use", "resource", resource, Resource, like="a function below @outlive.resource")
    return cast("T", _Use(wanted))


# -- What functions want -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WantedResources:
    """The resources that a function takes by keyword: got by the code that calls it, before the call begins."""

    names: tuple[str, ...]
    resolve: Callable[[], Mapping[str, Resource[Any]]]
    """All of them, by the name of the parameter."""


def wanted_in(uses: Mapping[str, Resource[Any]]) -> WantedResources | None:
    """The resources of a function that uses these; None if it uses none."""
    return WantedResources(tuple(uses), lambda: uses) if uses else None


def uses_of(where: str, fn: Function) -> dict[str, Resource[Any]]:
    """The resources that the parameters of a function use.

    Raises:
        DefinitionError: a parameter that is given by position comes behind one of them.
    """
    uses: dict[str, Resource[Any]] = {}
    for parameter in _parameters(fn):
        if isinstance(parameter.default, _Use):
            uses[parameter.name] = parameter.default.resource
        elif uses and parameter.kind in (*BY_POSITION, parameter.VAR_POSITIONAL):
            last = [*uses][-1]
            raise DefinitionError(
                f"{where}: its parameter {parameter.name!r} comes behind {last!r}, which takes a resource; make "
                f"{last!r} the last one"
            )
    return uses


def refuse_uses(where: str, fn: Function) -> None:
    """Refuse resources for code that is run again in every replay.

    Raises:
        DefinitionError: a parameter uses one.
    """
    for name in uses_of(where, fn):
        raise DefinitionError(
            f"{where}: its parameter {name!r} takes a resource, and a workflow runs again in every replay: use the "
            f"resource in a step, and call that"
        )


def missing_in(
    wanted: WantedResources, fn: Function, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Resource[Any]]:
    """The resources that a function wants and these arguments do not give."""
    given = inspect.signature(fn).bind_partial(*args, **kwargs).arguments
    return {name: resource for name, resource in wanted.resolve().items() if name not in given}


class Resources:
    """The resources that one machine has declared by name, for the keyword-only parameters of its handlers."""

    def __init__(self, machine: str) -> None:
        self._machine = machine
        self._known: dict[str, Resource[Any]] = {}
        self._wanted: dict[str, str] = {}

    def add(
        self, name: str, setup: Function | Resource[Any], teardown: Function | None, health: Function | None
    ) -> Resource[Any]:
        """Declare one; the same name again replaces it."""
        if isinstance(setup, Resource):
            made = setup
        else:
            wanted = self.wanted_by(setup)
            count_taken(f"setup of resource {name}", setup, 0, may_use=True, wanted=wanted)
            for fn in (teardown, health):
                if fn is not None:
                    count_taken(f"resource {name}", fn, 1)
            made = Resource(f"{self._machine}.{name}", setup, teardown, health, wanted=wanted)
        self._known[name] = made
        return made

    def problems(self) -> list[str]:
        """Resources that handlers want and no declaration has, and resources that would wait for themselves."""
        missing = [name for name in self._wanted if name not in self._known]
        circles = filter(None, map(self._circle, self._known))
        return [
            *(f"{self._wanted[name]} wants the resource {name!r}, which is not declared" for name in missing),
            *(f"the setup of resource {' wants '.join(circle)}, and so waits for itself" for circle in circles),
        ]

    def _circle(self, name: str) -> list[str]:
        """The way from a resource over what its setup wants by name back to it, if there is one."""
        ways, seen = [[name]], set[str]()
        while ways:
            way = ways.pop()
            for wanted in _names_asked(self._known[way[-1]].setup):
                if wanted == name:
                    return [*way, name]
                if wanted in self._known and wanted not in seen:
                    seen.add(wanted)
                    ways.append([*way, wanted])
        return []

    def wanted_by(self, *fns: Function) -> WantedResources | None:
        """The resources that functions want, used or by name; None if they want none."""
        uses: dict[str, Resource[Any]] = {}
        for fn in fns:
            for name, used in uses_of(fn.__qualname__, fn).items():
                if uses.setdefault(name, used) is not used:
                    raise DefinitionError(
                        f"{fn.__qualname__} uses {used.name} as {name!r}, and another function of the same state uses "
                        f"{uses[name].name} so; give one of the parameters another name"
                    )
        asked = {name: fn for fn in fns for name in _names_asked(fn)}
        if not asked:
            return wanted_in(uses)
        self._wanted |= {name: fn.__qualname__ for name, fn in asked.items()}
        return WantedResources((*uses, *asked), functools.partial(self._resolve, uses, tuple(asked)))

    def _resolve(self, uses: dict[str, Resource[Any]], names: Sequence[str]) -> dict[str, Resource[Any]]:
        if not self._known.keys() >= {*names}:
            raise MachineError(self._machine, self.problems())
        return uses | {name: self._known[name] for name in names}


BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _parameters(fn: Function) -> list[inspect.Parameter]:
    try:
        return [*inspect.signature(fn).parameters.values()]
    except ValueError:  # Something like `dict`, which says nothing of itself.
        return []


def _names_asked(fn: Function) -> list[str]:
    """The resources that a function of a machine asks for by name."""
    return [each.name for each in _parameters(fn) if each.kind is each.KEYWORD_ONLY and each.default is each.empty]


def only_wanted(fn: Function, resources: Mapping[str, Any]) -> Function:
    """The function with those of the resources that it wants."""
    names = [*_names_asked(fn), *uses_of(fn.__qualname__, fn)]
    return functools.partial(fn, **{name: resources[name] for name in names}) if names else fn


def count_taken(
    name: str, fn: Function, given: int, *, wanted: WantedResources | None = None, may_use: bool = False
) -> int:
    """How many of the arguments that we give a function takes, besides the resources that it wants.

    Raises:
        DefinitionError: it wants more.
    """
    taken = needed = 0
    known = () if wanted is None else wanted.names
    try:
        signature = inspect.signature(fn)
    except ValueError:  # Something like `dict`, which says nothing of itself.
        return given
    for parameter in signature.parameters.values():
        is_use = isinstance(parameter.default, _Use)
        asks = is_use or (parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty)
        if asks and parameter.name not in known and not (is_use and may_use):
            raise DefinitionError(
                f"{name}: {fn.__qualname__}{signature} asks for {parameter.name!r}, and only steps are given "
                "resources: ask in the handler of a state that is a step, or in a branch, an item or an undo"
            )
        if parameter.kind is parameter.VAR_POSITIONAL:
            taken = given
        elif parameter.kind in BY_POSITION and not is_use:
            taken += 1
            needed += parameter.default is parameter.empty
    if needed > given:
        raise DefinitionError(f"{name}: {fn.__qualname__}{signature} wants more than the {given} it is given")
    return min(taken, given)


async def call(fn: Function, *args: Any, **kwargs: Any) -> Any:
    """The return value of a function, be it async or not."""
    returned = fn(*args, **kwargs)
    return await returned if inspect.isawaitable(returned) else returned
