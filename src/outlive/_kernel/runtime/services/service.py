"""The protocol of a service of a worker."""

from __future__ import annotations

from typing import Protocol


class Service(Protocol):
    """Something that a worker does now and then for the whole store."""

    @property
    def name(self) -> str:
        """The name of the service in the log."""

    async def run_once(self) -> float:
        """Do what is due now; for how many seconds there is nothing to do, unless it is rung.

        All workers of a store do this at the same time, and each may be killed at any point of it.
        """
