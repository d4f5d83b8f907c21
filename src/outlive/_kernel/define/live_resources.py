"""The resources that one engine has set up.

Each has one task from its set-up to its teardown: task groups and cancel scopes must be left by the task that entered
them. Steps that want a resource while it is set up wait for the same set-up; one that fails is tried again by the next
step that wants it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from outlive._kernel.define.resources import Resource, WantedResources, health_said, opened, wanted_by
from outlive._tasks import own_task, within
from outlive.errors import ArgumentTypeError, ResourceError
from outlive.telemetry import log

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

CLOSING_SECONDS = 30.0
"""How long an engine that stops waits for one teardown, and for set-ups that it has cancelled."""
HEALTH_SECONDS = 10.0
"""How long one health check may take."""


class _Life:
    """One resource from the beginning of its set-up on."""

    def __init__(self, resource: Resource[Any]) -> None:
        self.resource = resource
        self.ready: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        """Its value, or `ResourceError`."""
        self._is_over = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def begin(self, resources: LiveResources) -> None:
        """Set it up, in a task of its own: a step that is cancelled must not take the set-up of others with it."""
        self._task = own_task(self._live(resources), name="outlive-resource")

    async def _live(self, resources: LiveResources) -> None:
        try:
            async with opened(self.resource, await resources.get(wanted_by(self.resource))) as value:
                resources.began(self)
                self.ready.set_result(value)
                await self._is_over.wait()
        except (Exception, asyncio.CancelledError) as error:  # The user's code may raise anything.
            self._on_error(error, resources)
        finally:
            self.ready.cancel()
            resources.ended(self)

    def _on_error(self, error: BaseException, resources: LiveResources) -> None:
        name = self.resource.name
        if not self.ready.done():
            failed = ResourceError(name, f"could not be set up: {type(error).__qualname__}: {error}")
            failed.__cause__ = error
            resources.failed[self.resource] = f"unhealthy: {failed.reason}"
            self.ready.set_exception(failed)
            self.ready.exception()  # All who wanted it may be gone; it is not asyncio's to complain.
        elif resources.is_abandoned:
            return
        elif self._is_over.is_set():
            log.exception("teardown failed: resource %s", name)
        else:
            log.exception("resource %s has ended; the next step that uses it sets it up again", name)

    def cancel(self) -> None:
        """Its set-up is not wanted any more."""
        if self._task is not None:
            self._task.cancel()

    async def end(self) -> None:
        """Tear it down; it is cancelled when that takes too long."""
        assert self._task is not None
        self._is_over.set()
        await asyncio.wait([self._task], timeout=CLOSING_SECONDS)
        if not self._task.done():
            log.error("teardown failed: resource %s: it took longer than %g s", self.resource.name, CLOSING_SECONDS)
            self._task.cancel()


class LiveResources:
    """The resources that one engine has set up, in this order; and the values that it was given instead of setting them
    up."""

    def __init__(self, given: Mapping[Resource[Any], Any] | None = None) -> None:
        self._given = dict(given or {})
        self._lives: dict[Resource[Any], _Life] = {}
        self._order: list[_Life] = []
        self.failed: dict[Resource[Any], str] = {}
        """Why the last set-up of a resource failed."""
        self.is_abandoned = False
        """Whether the engine has died, as far as a test can do that."""

    async def get(self, wanted: WantedResources | None) -> dict[str, Any]:
        """The resources of a function, by the names of its parameters; a resource is set up now where it is used for
        the first time.

        Raises:
            ResourceError: the set-up failed.
        """
        if wanted is None:
            return {}
        return {name: await self._get(resource) for name, resource in wanted.resolve().items()}

    async def _get(self, resource: Resource[Any]) -> Any:
        if resource in self._given:
            given = self._given[resource]
            if not isinstance(given, Resource):
                return given
            resource = given
        life = self._lives.get(resource)
        if life is None:
            life = self._lives[resource] = _Life(resource)
            life.begin(self)
        return await asyncio.shield(life.ready)

    def began(self, life: _Life) -> None:
        """A resource is set up."""
        self._order.append(life)
        self.failed.pop(life.resource, None)

    def ended(self, life: _Life) -> None:
        """A resource is gone, or could not be set up: the next step that wants it tries."""
        self._lives.pop(life.resource, None)
        if life in self._order:
            self._order.remove(life)

    async def close(self) -> None:
        """Tear everything down, last first; what fails or hangs does not keep the others from it."""
        under_way = [life for life in self._lives.values() if not life.ready.done()]
        for life in under_way:
            life.cancel()
        if under_way:
            await asyncio.wait([life.ready for life in under_way], timeout=CLOSING_SECONDS)
        for life in under_way:
            if not life.ready.done():
                log.error("set-up does not end: resource %s", life.resource.name)
        while self._order:
            await self._order.pop().end()
        self.failed.clear()

    def abandon(self) -> None:
        """Die as a killed process does, for tests: what stands behind a `yield` is not run, unless in a `finally`."""
        self.is_abandoned = True
        for life in self._lives.values():
            life.cancel()

    async def health(self) -> dict[str, str]:
        """How each resource is that this engine has set up, or has tried to."""
        lives = list(self._order)
        said = await asyncio.gather(*map(_check, lives))
        return _by_name([*self.failed.items(), *zip([life.resource for life in lives], said, strict=True)])


async def _check(life: _Life) -> str:
    try:
        return await within(HEALTH_SECONDS, health_said(life.resource, life.ready.result()))
    except TimeoutError as error:
        return f"unhealthy: its check does not end: {error}"


def _by_name(found: list[tuple[Resource[Any], str]]) -> dict[str, str]:
    """Two resources may have one name, and both are shown."""
    named: dict[str, str] = {}
    for resource, said in found:
        name, number = resource.name, 1
        while name in named:
            number += 1
            name = f"{resource.name} ({number})"
        named[name] = said
    return named


def check_given(resources: object) -> dict[Resource[Any], Any]:
    """Check the `resources` of an engine."""
    if resources is None:
        return {}
    if not isinstance(resources, Mapping) or not all(isinstance(each, Resource) for each in resources):
        wanted = "give a dict from resources to what takes their place, for example {pool: FakePool()}"
        raise ArgumentTypeError("Engine", "resources", resources, wanted)
    return dict(resources)


# -- Outside of a run ----------------------------------------------------------------------------------------

_PLAIN: ContextVar[LiveResources] = ContextVar("outlive_plain_resources")


@asynccontextmanager
async def plain_resources() -> AsyncIterator[None]:
    """Around a machine that is called as a plain function: what its handlers want is set up for this one call."""
    live = LiveResources()
    token = _PLAIN.set(live)
    try:
        yield
    finally:
        _PLAIN.reset(token)
        await live.close()


def plain_resources_for(step: str, missing: Mapping[str, Resource[Any]]) -> LiveResources:
    """Where a step that is called as a plain function gets the resources that its caller has not given.

    Raises:
        ResourceError: no machine is around it, and no engine sets them up.
    """
    live = _PLAIN.get(None)
    if live is not None:
        return live
    name, resource = next(iter(missing.items()))
    raise ResourceError(
        resource.name,
        f"is not set up outside of a run, where step {step} was called as a plain function; give it by name: "
        f"{step}(..., {name}=...)",
    )
