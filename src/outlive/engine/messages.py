"""What users send to runs: signals, and asks, which have an answer."""

from __future__ import annotations

from typing import Any, TypeVar, Unpack, overload

from outlive._model import given
from outlive.client.asks import AskOptions
from outlive.client.client import Client

T = TypeVar("T")


class Messages:
    """The verbs of an engine that send a message of the user's own."""

    @property
    def _verbs(self) -> Client:
        """The client of an engine that runs."""
        raise NotImplementedError

    async def signal(
        self,
        run_id: str,
        name: str,
        payload: Any = None,
        *,
        key: str | None = None,
        start: tuple[Any, ...] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        """Send a signal to a run; it is durable when this returns, and buffered until the run asks for it.

        Args:
            key: the same key again, for this run and name, is the same signal.
            start: `(workflow, *args)`: create the run in the same transaction if there is none.
            headers: of the run that it starts, as of `start`.

        Raises:
            RunNotFoundError, RunFinishedError, SignalTypeError, InboxFullError.
        """
        await self._verbs.signal(run_id, name, payload, key=key, start=start, headers=headers)

    @overload
    async def ask(self, run_id: str, name: str, body: Any = None, **options: Unpack[AskOptions]) -> Any: ...
    @overload
    async def ask(
        self, run_id: str, name: str, body: Any = None, *, reply: type[T], **options: Unpack[AskOptions]
    ) -> T: ...
    async def ask(
        self, run_id: str, name: str, body: Any = None, *, reply: Any = Any, **options: Unpack[AskOptions]
    ) -> Any:
        """Ask a run something (`outlive.asks`), and wait for its answer, which it gives exactly once.

        Args:
            options: `key`, `start`, `timeout`; see `AskOptions`.
            reply: the type of the answer; without, it comes as plain values.

        Raises:
            AskFailed, AskRefusedError, AskTimeoutError, RunNotFoundError, RunParkedError, InboxFullError.
        """
        return await self._verbs.ask(run_id, name, body, reply=reply, **options)

    async def answer(
        self, run_id: str, name: str, key: str, *, timeout: given.Span | None = None, reply: Any = Any
    ) -> Any:
        """Wait for the answer to an ask that was sent before, by any process; `AskNotFoundError` if it was not."""
        return await self._verbs.answer(run_id, name, key, timeout=timeout, reply=reply)
