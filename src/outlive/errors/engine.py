"""Engines that are used where or when they cannot be."""

from __future__ import annotations

from outlive.errors.base import ConfigurationError, OutliveError


class EngineForkedError(OutliveError, RuntimeError):
    """The engine was entered before the process was forked."""

    def __init__(self, entered_in: int, used_in: int) -> None:
        self.entered_in, self.used_in = entered_in, used_in
        super().__init__(
            f"this engine belongs to process {entered_in} and was used by its fork {used_in}; make and enter an engine "
            f"in the child, or start the process another way (spawn)"
        )


class OtherLoopError(OutliveError, RuntimeError):
    """An async verb was used on another event loop than the one that entered the engine."""

    def __init__(self, where: str) -> None:
        self.where = where
        super().__init__(
            f"this engine belongs to the event loop that entered it, and was used {where}; from another thread use "
            f"`engine.sync`, or `asyncio.run_coroutine_threadsafe(engine.start(...), engine.loop)`"
        )


class SyncOnLoopError(OutliveError, RuntimeError):
    """`engine.sync` was used on the thread of the engine's own event loop."""

    def __init__(self) -> None:
        super().__init__(
            "engine.sync would wait here for the event loop that it blocks; in async code write "
            "`await engine.start(...)`, or call sync code with `await asyncio.to_thread(...)`"
        )


class MissingExtraError(ConfigurationError, ImportError):
    """A part of Outlive needs a package that is not installed."""

    def __init__(self, what: str, package: str, extra: str) -> None:
        self.what, self.package, self.extra = what, package, extra
        super().__init__(f"{what} needs the package {package}; run: pip install 'outlive[{extra}]'")


class EngineClosedError(OutliveError, RuntimeError):
    """The engine is not running."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(
            f"{what} needs a running engine; use it inside `async with outlive.Engine(...) as engine:`, "
            f"or without async inside `with outlive.Engine(...).sync as engine:`"
        )
