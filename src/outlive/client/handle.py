"""A handle of one run: the verbs with the id filled in."""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar

from outlive._journal.event import AnyEvent
from outlive._model import Run, RunStatus

R = TypeVar("R")


class Verbs(Protocol):
    """What a handle asks of its client."""

    async def result(self, run_id: str, timeout: float | None = None) -> Any:
        """Wait for the end of a run."""

    async def info(self, run_id: str) -> Run:
        """The run as its row says it."""

    async def why(self, run_id: str) -> str:
        """What it waits for."""

    async def history(self, run_id: str, *, redacted: bool = False) -> list[AnyEvent]:
        """Its journal."""

    async def signal(self, run_id: str, name: str, payload: Any = None, *, key: str | None = None) -> None:
        """Send it a signal."""

    async def cancel(self, run_id: str, *, reason: str = "") -> None:
        """Ask it to stop."""

    async def resume(self, run_id: str) -> None:
        """Let it go on after it was parked."""


class RunHandle(Generic[R]):
    """One run, wherever it runs."""

    def __init__(self, verbs: Verbs, run_id: str) -> None:
        self._verbs = verbs
        self.id = run_id

    async def result(self, timeout: float | None = None) -> R:
        """Wait for the result.

        Raises:
            RunFailed: the run failed (its exception is the cause), was cancelled (`RunCancelled`) or took too long
            (`RunTimedOut`). ResultTimeoutError: it has not ended within `timeout` seconds; it goes on.
        """
        result: R = await self._verbs.result(self.id, timeout)
        return result

    async def status(self) -> RunStatus:
        """Where it is in its life."""
        return (await self._verbs.info(self.id)).status

    async def info(self) -> Run:
        """The run as its row says it."""
        return await self._verbs.info(self.id)

    async def why(self) -> str:
        """One sentence: what it waits for, or how it ended."""
        return await self._verbs.why(self.id)

    async def history(self, *, redacted: bool = False) -> list[AnyEvent]:
        """The journal of its tree, verified; `redacted`, as people may see it: see `Engine.history`."""
        return await self._verbs.history(self.id, redacted=redacted)

    async def signal(self, name: str, payload: Any = None, *, key: str | None = None) -> None:
        """Send it a signal; it is durable when this returns."""
        await self._verbs.signal(self.id, name, payload, key=key)

    async def cancel(self, *, reason: str = "") -> None:
        """Ask it to stop; the wish is durable when this returns."""
        await self._verbs.cancel(self.id, reason=reason)

    async def resume(self) -> None:
        """Let it go on after it was parked."""
        await self._verbs.resume(self.id)

    def __repr__(self) -> str:
        return f"<run {self.id}>"
