"""Resources: what the handlers of a machine share in one process, such as a pool of connections.

A handler names what it wants by keyword-only parameters (`async def ship(data, *, db)`). A resource is set up when it
is wanted for the first time, once per event loop, and handlers that want it meanwhile wait. It is torn down when the
last engine on that loop has stopped, those set up last first; a set-up that is still under way then is cancelled. It is
nothing of a run: no journal knows it, and workflow code and routers, which run again in every replay, cannot have it.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from outlive._tasks import own_task
from outlive.errors import DefinitionError, MachineError
from outlive.telemetry import log

Function = Callable[..., Any]

CLOSING_SECONDS = 30.0
"""How long an engine that stops waits for one teardown, and for set-ups that it has cancelled."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The resources that a function wants: got by the code that calls it as a step, before the call begins."""

    names: tuple[str, ...]
    get: Callable[[], Awaitable[dict[str, Any]]]
    """All of them, by name, set up now if they are not."""


class Resource:
    """How one resource comes and goes."""

    def __init__(self, name: str, setup: Function, teardown: Function | None, health: Function | None) -> None:
        self.name = name
        self.setup = setup
        self.teardown = teardown
        self.health = health


class LoopResources:
    """What is set up on one event loop, in this order."""

    def __init__(self) -> None:
        self.engines = 0
        self._ready: dict[Resource, asyncio.Future[Any]] = {}
        self._order: list[tuple[Resource, Any]] = []

    async def get(self, resource: Resource, set_up: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """The resource, set up now if it is wanted for the first time; all who ask meanwhile get the same."""
        ready = self._ready.get(resource)
        if ready is None:
            # A task of its own: a handler that is cancelled must not take the set-up of the others with it, and none of
            # them is the current step of what all of them share.
            ready = self._ready[resource] = own_task(self._set_up(resource, set_up), name="outlive-resource")
            ready.add_done_callback(functools.partial(self._forget_failed, resource))
        return await asyncio.shield(ready)

    def _forget_failed(self, resource: Resource, ready: asyncio.Future[Any]) -> None:
        """The next attempt of a handler tries again, whatever the set-up died of."""
        is_failed = ready.cancelled() or ready.exception() is not None
        if is_failed and self._ready.get(resource) is ready:
            del self._ready[resource]

    async def _set_up(self, resource: Resource, set_up: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        value = await set_up()
        self._order.append((resource, value))
        return value

    def find(self, resource: Resource) -> list[Any]:
        """The resource alone if it is set up, else nothing."""
        return [value for known, value in self._order if known is resource][:1]

    async def close(self) -> None:
        """Tear everything down, last first; what fails or hangs does not keep the others from it."""
        await self._stop_set_ups()
        self._ready.clear()
        while self._order:
            resource, value = self._order.pop()
            if resource.teardown is not None:
                try:
                    await _tear_down(resource.teardown, value)
                except Exception:  # The user's code may raise anything.
                    log.exception("teardown failed: resource %s", resource.name)

    async def _stop_set_ups(self) -> None:
        """Cancel the set-ups under way; one that comes to its end all the same is torn down with the others."""
        under_way = {resource: ready for resource, ready in self._ready.items() if not ready.done()}
        for ready in under_way.values():
            ready.cancel()
        if under_way:
            await asyncio.wait(under_way.values(), timeout=CLOSING_SECONDS)
        for resource, ready in under_way.items():
            if not ready.done():
                log.error("set-up does not end: resource %s", resource.name)


_BY_LOOP: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, LoopResources] = weakref.WeakKeyDictionary()


def _here() -> LoopResources:
    """That of the running loop."""
    loop = asyncio.get_running_loop()
    if loop not in _BY_LOOP:
        _BY_LOOP[loop] = LoopResources()
    return _BY_LOOP[loop]


def enter_engine() -> None:
    """An engine begins to run steps on this loop."""
    _here().engines += 1


async def leave_engine() -> None:
    """It has stopped; the last one tears everything down."""
    own = _here()
    own.engines -= 1
    if not own.engines:
        await own.close()


class Resources:
    """The resources of one machine."""

    def __init__(self, machine: str) -> None:
        self._machine = machine
        self._known: dict[str, Resource] = {}
        self._wanted: dict[str, str] = {}

    def add(self, resource: Resource) -> None:
        """Declare one; the same name again replaces it."""
        count_taken(f"setup of resource {resource.name}", resource.setup, 0, wanted=self.wanted_by(resource.setup))
        for fn in (resource.teardown, resource.health):
            if fn is not None:
                count_taken(f"resource {resource.name}", fn, 1)
        self._known[resource.name] = resource

    def problems(self) -> list[str]:
        """What handlers want and no resource is declared for, and what would wait for itself."""
        missing = [name for name in self._wanted if name not in self._known]
        circles = filter(None, map(self._circle, self._known))
        return [
            *(f"{self._wanted[name]} wants the resource {name!r}, which is not declared" for name in missing),
            *(f"the setup of resource {' wants '.join(circle)}, and so waits for itself" for circle in circles),
        ]

    def _circle(self, name: str) -> list[str]:
        """The way from a resource over what its setup wants back to it, if there is one."""
        ways, seen = [[name]], set[str]()
        while ways:
            way = ways.pop()
            for wanted in wanted_by(self._known[way[-1]].setup):
                if wanted == name:
                    return [*way, name]
                if wanted in self._known and wanted not in seen:
                    seen.add(wanted)
                    ways.append([*way, wanted])
        return []

    async def health(self) -> dict[str, str]:
        """How each resource is on this loop."""
        return {name: await self._health_of(resource) for name, resource in self._known.items()}

    async def _health_of(self, resource: Resource) -> str:
        found = _here().find(resource)
        if not found:
            return "not set up"
        if resource.health is None:
            return "healthy"
        try:
            said = await _call(resource.health, *found)
        except Exception as error:  # That is what it is asked for.
            return f"unhealthy: {type(error).__qualname__}: {error}"
        return "healthy" if said in (None, True) else f"unhealthy: {said}"

    def wanted_by(self, *fns: Function) -> Wanted | None:
        """The resources that functions want; None if they want none."""
        names = {name: fn for fn in fns for name in wanted_by(fn)}
        if not names:
            return None
        self._wanted |= {name: fn.__qualname__ for name, fn in names.items()}
        return Wanted(tuple(names), functools.partial(self.get, tuple(names)))

    async def get(self, names: Sequence[str]) -> dict[str, Any]:
        """Resources by name; one that is not set up on this loop is set up now."""
        if not self._known.keys() >= {*names}:
            raise MachineError(self._machine, self.problems())
        found = {}
        for name in names:
            resource = self._known[name]
            found[name] = await _here().get(resource, functools.partial(self._set_up, resource))
        return found

    async def _set_up(self, resource: Resource) -> Any:
        return await _call(functools.partial(resource.setup, **await self.get(wanted_by(resource.setup))))


def wanted_by(fn: Function) -> list[str]:
    """The names of the resources that a function wants."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except ValueError:  # Something like `dict`, which says nothing of itself.
        return []
    return [each.name for each in parameters if each.kind is each.KEYWORD_ONLY and each.default is each.empty]


def count_taken(name: str, fn: Function, given: int, *, wanted: Wanted | None = None) -> int:
    """How many of the arguments that we give a function takes, besides the resources that it wants.

    Raises:
        DefinitionError: it wants more.
    """
    try:
        signature = inspect.signature(fn)
    except ValueError:  # Something like `dict`, which says nothing of itself.
        return given
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    taken = needed = 0
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            taken = given
        elif parameter.kind in by_position:
            taken += 1
            needed += parameter.default is parameter.empty
        elif parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty and wanted is None:
            raise DefinitionError(
                f"{name}: {fn.__qualname__}{signature} asks for {parameter.name!r}, and only steps are given "
                "resources: ask in the handler of a state that is a step, or in a branch, an item or an undo"
            )
    if needed > given:
        raise DefinitionError(f"{name}: {fn.__qualname__}{signature} wants more than the {given} it is given")
    return min(taken, given)


async def _tear_down(teardown: Function, value: Any) -> None:
    closing = own_task(_call(teardown, value), name="outlive-resource")
    try:
        await asyncio.wait([closing], timeout=CLOSING_SECONDS)
    finally:
        closing.cancel()
    if not closing.done():
        raise TimeoutError(f"it took longer than {CLOSING_SECONDS:g} s")
    closing.result()


async def _call(fn: Function, *args: Any) -> Any:
    returned = fn(*args)
    return await returned if inspect.isawaitable(returned) else returned
