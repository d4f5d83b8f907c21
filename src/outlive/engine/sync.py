"""The verbs of an engine for code without `await`.

There is one engine and one colour inside; this is a bridge, not a second copy. A call is handed to the event loop of
the engine, and the calling thread waits for its outcome. Whatever public verb the engine or one of its handles has is
found by its name here too, so a new verb needs nothing in this file but, for type checkers, a line.

Two ways to get there:

* the program has an event loop, and the engine runs on it: `engine.sync` is for its other threads. On the thread of
  that loop a call would wait for itself, and raises instead;
* the program has none: `with outlive.Engine(...).sync as engine:` starts a thread with a loop of its own, enters the
  engine there, and leaves it at the end.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, TypeVarTuple

from outlive._interrupts import run_to_end
from outlive._kernel.replay.ask import current_execution
from outlive.errors import ConfigurationError, EngineClosedError
from outlive.errors.program import NotDurableError, SyncOnLoopError

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Hosted(Protocol):
    """The part of an engine that this bridge needs."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop that it runs on; None while it does not."""

    async def __aenter__(self) -> Any: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Bridge:
    """Hands calls to the event loop of an engine and waits for them."""

    def __init__(self, engine: Hosted) -> None:
        self._engine = engine

    def call(self, what: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The outcome of a function, async or not, that is called on the engine's loop; things with async methods
        come back as their blocking counterparts."""
        loop = self._loop()

        async def run() -> Any:
            outcome = what(*args, **kwargs)
            return await outcome if inspect.isawaitable(outcome) else outcome

        waiting = run()
        try:
            future = asyncio.run_coroutine_threadsafe(waiting, loop)
        except RuntimeError as error:  # The loop was closed a moment ago.
            waiting.close()
            raise EngineClosedError("this") from error
        try:
            return self.blocking(future.result())
        except concurrent.futures.CancelledError as error:
            # Only the end of the loop cancels it.
            raise EngineClosedError("this") from error
        finally:
            # Ctrl-C comes here while the call is under way: what waits for us need not wait any longer.
            future.cancel()

    def blocking(self, thing: Any) -> Any:
        """The blocking counterpart of a thing that has async methods; anything else as it is."""
        if isinstance(thing, AsyncIterator):
            return self._each(thing)
        if type(thing) is list:
            return [self.blocking(each) for each in thing]
        return Blocking(self, thing) if _has_async(type(thing)) else thing

    def _each(self, items: AsyncIterator[Any]) -> Iterator[Any]:
        try:
            while True:
                yield self.call(items.__anext__)
        except StopAsyncIteration:
            return
        finally:
            if isinstance(items, AsyncGenerator):
                # With its engine it has ended already; to forget it is not an error.
                with suppress(EngineClosedError):
                    self.call(items.aclose)

    def _loop(self) -> asyncio.AbstractEventLoop:
        if current_execution() is not None:
            raise NotDurableError("an engine's verb")
        loop = self._engine.loop
        if loop is None:
            raise EngineClosedError("this")
        if asyncio._get_running_loop() is loop:
            raise SyncOnLoopError()
        return loop


class Blocking:
    """A thing whose async methods are called like plain ones."""

    def __init__(self, bridge: Bridge, inner: Any) -> None:
        self._bridge = bridge
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        found = getattr(self._inner, name)
        if not inspect.isroutine(found):
            return self._bridge.blocking(found)

        def call(*args: Any, **kwargs: Any) -> Any:
            return self._bridge.call(found, *args, **kwargs)

        call.__name__, call.__doc__ = name, inspect.getdoc(found)
        return call

    def __dir__(self) -> list[str]:
        return [name for name in dir(self._inner) if not name.startswith("_")]

    def __repr__(self) -> str:
        return f"<blocking {self._inner!r}>"


class Verb(Generic[P, T]):
    """For type checkers: an async verb as its blocking counterpart."""

    def __init__(self, verb: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> None: ...

    def __get__(self, thing: object, owner: type) -> Callable[P, T]:
        raise NotImplementedError


class BlockingEngine(Blocking):
    """The verbs that an engine and a connection share, for sync code.

    As a context manager it runs the engine on a thread of its own, for programs that have no event loop.
    """

    def __init__(self, engine: Hosted) -> None:
        super().__init__(Bridge(engine), engine)
        self._host: Host | None = None

    def __enter__(self) -> Self:
        if self._host is not None or self._inner.loop is not None:
            raise ConfigurationError("this engine is running already; make another Engine(...) for a second one")
        host = Host(self._inner)
        host.start()
        self._host = host
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        host, self._host = self._host, None
        if host is not None:
            host.stop()


class Host:
    """A thread with an event loop for one engine."""

    def __init__(self, engine: Hosted) -> None:
        self._engine = engine
        self._entered: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._left: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._leave: asyncio.Event | None = None
        self._is_leaving = False
        # A daemon: it does not keep a program that was stopped twice.
        self.thread = threading.Thread(target=self.live, name="outlive-sync", daemon=True)

    def start(self) -> None:
        """Enter the engine; what it raises is raised here."""
        self.thread.start()
        try:
            self._entered.result()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Leave the engine and wait until it has stopped."""
        self._is_leaving = True
        # Not in a fork, which has the loop of its parent and not the thread.
        if self._loop is not None and self._leave is not None and self.thread.is_alive():
            with suppress(RuntimeError):  # It ends by itself, and has closed its loop just now.
                self._loop.call_soon_threadsafe(self._leave.set)
        self.thread.join()
        if self._left.done():
            self._left.result()

    def live(self) -> None:
        """The life of its thread: enter the engine, and leave it when it is stopped."""
        with asyncio.Runner() as runner:
            run_to_end(runner, self._run())

    async def _run(self) -> None:
        self._loop, self._leave = asyncio.get_running_loop(), asyncio.Event()
        try:
            async with self._engine:
                self._entered.set_result(None)
                if not self._is_leaving:  # Ctrl-C may have come before there was an event to set.
                    await self._leave.wait()
        except BaseException as error:  # The thread that waits for this one raises it.
            (self._left if self._entered.done() else self._entered).set_exception(error)


def _has_async(cls: type) -> bool:
    """Whether a class of ours has methods that must be awaited."""
    if not cls.__module__.startswith("outlive."):
        return False
    members = [member for base in cls.__mro__ for name, member in vars(base).items() if not name.startswith("_")]
    return any(inspect.iscoroutinefunction(member) or inspect.isasyncgenfunction(member) for member in members)
