"""What the parts of a connection need of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Protocol

from outlive._model import given
from outlive._values.run import Run
from outlive.remote.following import Message


class Connection(Protocol):
    """A connection to a server; see `Remote`."""

    async def operate(
        self,
        operation_name: str,
        /,
        *,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
        patience: float = 0.0,
        **path: str,
    ) -> Any:
        """Any operation of the API by its name."""

    def follow(
        self, operation_name: str, query: Mapping[str, object] | None = None, /, **path: str
    ) -> AsyncIterator[Message]:
        """The messages of an operation that sends them one by one, until it is over."""

    async def info(self, run_id: str) -> Run:
        """A run as its row says it."""

    def get(self, run_id: str) -> Any:
        """A handle of a run."""

    async def result(self, run_id: str, timeout: given.Span | None = None) -> Any:
        """Wait for the result of a run."""
