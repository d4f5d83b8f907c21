"""Resources: what the handlers of a machine share in one process, such as a pool of connections.

A handler names what it wants by keyword-only parameters (`async def ship(data, *, db)`). A resource is set up when it
is wanted for the first time, once per event loop, and handlers that want it meanwhile wait. It is torn down when the
last engine on that loop has stopped, those set up last first. It is nothing of a run: no journal knows it, and workflow
code and routers, which run again in every replay, cannot have it.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import weakref
from collections.abc import Callable
from typing import Any

from outlive.errors import MachineError
from outlive.telemetry import log

Function = Callable[..., Any]


class Resource:
    """How one resource comes and goes."""

    def __init__(self, name: str, setup: Function, teardown: Function | None, health: Function | None) -> None:
        self.name = name
        self.setup = setup
        self.teardown = teardown
        self.health = health


class Shelf:
    """What is set up on one event loop, in this order."""

    def __init__(self) -> None:
        self.engines = 0
        self._ready: dict[Resource, asyncio.Future[Any]] = {}
        self._order: list[tuple[Resource, Any]] = []

    async def get(self, resource: Resource, bind: Callable[[Function], Function]) -> Any:
        """The resource, set up now if nobody has wanted it before; whoever comes meanwhile gets the same."""
        ready = self._ready.get(resource)
        if ready is None:
            # A task of its own: a handler that is cancelled must not take the set-up of the others with it.
            ready = self._ready[resource] = asyncio.ensure_future(self._set_up(resource, bind))
        try:
            return await asyncio.shield(ready)
        except Exception:
            # It failed, and the next attempt of a handler tries anew.
            self._ready.pop(resource, None)
            raise

    async def _set_up(self, resource: Resource, bind: Callable[[Function], Function]) -> Any:
        value = await _call(bind(resource.setup))
        self._order.append((resource, value))
        return value

    def find(self, resource: Resource) -> Any:
        """The resource, if it is set up; raises LookupError else."""
        return next(value for known, value in self._order if known is resource)

    def has(self, resource: Resource) -> bool:
        """Whether it is set up."""
        return any(known is resource for known, _ in self._order)

    async def close(self) -> None:
        """Tear everything down, last first; what fails does not keep the others from it."""
        self._ready.clear()
        while self._order:
            resource, value = self._order.pop()
            if resource.teardown is not None:
                try:
                    await _call(resource.teardown, value)
                except Exception:  # The user's code may raise anything.
                    log.exception("teardown failed: resource %s", resource.name)


_SHELVES: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Shelf] = weakref.WeakKeyDictionary()


def shelf() -> Shelf:
    """That of the running loop."""
    loop = asyncio.get_running_loop()
    if loop not in _SHELVES:
        _SHELVES[loop] = Shelf()
    return _SHELVES[loop]


def enter_engine() -> None:
    """An engine begins to run steps on this loop."""
    shelf().engines += 1


async def leave_engine() -> None:
    """It has stopped; the last one tears everything down."""
    own = shelf()
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
        self._known[resource.name] = resource
        self.bind(resource.setup)

    def problems(self) -> list[str]:
        """What handlers want and nobody has declared."""
        missing = [name for name in self._wanted if name not in self._known]
        return [f"{self._wanted[name]} wants the resource {name!r}, which is not declared" for name in missing]

    async def health(self) -> dict[str, str]:
        """How each resource is on this loop."""
        return {name: await self._health_of(resource) for name, resource in self._known.items()}

    async def _health_of(self, resource: Resource) -> str:
        if not shelf().has(resource):
            return "not set up"
        if resource.health is None:
            return "healthy"
        try:
            said = await _call(resource.health, shelf().find(resource))
        except Exception as error:  # That is what it is asked for.
            return f"unhealthy: {type(error).__qualname__}: {error}"
        return "healthy" if said in (None, True) else f"unhealthy: {said}"

    def bind(self, fn: Function) -> Function:
        """The function with its resources, or the function itself if it wants none."""
        parameters = inspect.signature(fn).parameters.values()
        names = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY and each.default is each.empty]
        if not names:
            return fn
        self._wanted |= dict.fromkeys(names, fn.__qualname__)
        bound = self._bound_source(fn, names) if inspect.isasyncgenfunction(fn) else self._bound(fn, names)
        functools.update_wrapper(bound, fn)
        others = [each for each in parameters if each.name not in names]
        bound.__signature__ = inspect.signature(fn).replace(parameters=others)  # type: ignore[attr-defined]
        return bound

    def _bound(self, fn: Function, names: list[str]) -> Function:
        async def call(*args: Any) -> Any:
            given = await self._get(names)
            if inspect.iscoroutinefunction(fn):
                return await fn(*args, **given)
            return await asyncio.to_thread(fn, *args, **given)

        return call

    def _bound_source(self, fn: Function, names: list[str]) -> Function:
        async def generate(*args: Any) -> Any:
            source = fn(*args, **await self._get(names))
            try:
                async for each in source:
                    yield each
            finally:
                await source.aclose()

        return generate

    async def _get(self, names: list[str]) -> dict[str, Any]:
        if problems := self.problems():
            raise MachineError(self._machine, problems)
        return {name: await shelf().get(self._known[name], self.bind) for name in names}


async def _call(fn: Function, *args: Any) -> Any:
    returned = fn(*args)
    return await returned if inspect.isawaitable(returned) else returned
