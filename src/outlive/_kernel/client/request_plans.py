"""Which runs a request chose that is for many: a second try of it is for the same ones.

A request with filters, such as "retry what failed today", changes what its filters find. If the server is killed in the
middle, a second try would find other runs. So a request that its sender has named writes down the runs that it found
before it does anything, and every later try of it reads them. The newest plans are kept in one cell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from outlive._kernel.store.contract import Store
from outlive._kernel.values.run import Status

REQUESTS_CELL = "outlive.requests"
PLANS_MAX = 20
"""How many plans are kept: a try that comes after so many other requests for many runs chooses again."""
RUNS_MAX = 1_000
"""The limit for the runs of one plan."""


class PlannedRun(msgspec.Struct, frozen=True, array_like=True):
    """A run that a request is for, as it was when it was chosen."""

    id: str
    workflow: str
    status: Status
    finished_at: int = 0


class _Plan(msgspec.Struct, frozen=True):
    request: str
    runs: list[PlannedRun]


_decode = msgspec.json.Decoder(list[_Plan]).decode


class RequestPlans:
    """The plans of one store."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._open_store = store

    async def find(self, request: str) -> list[PlannedRun] | None:
        """The runs that an earlier try of this request chose; None if there was none."""
        return _find(await self._open_store().read_cell(REQUESTS_CELL), request)

    async def keep(self, request: str, runs: Sequence[PlannedRun]) -> list[PlannedRun]:
        """Write down what a request is for; what the first of several tries at once has written counts."""

        def add(held: bytes | None, _: int) -> tuple[bytes, list[PlannedRun]]:
            found = _find(held, request)
            if held is not None and found is not None:
                return held, found
            plans = [*_plans(held), _Plan(request, list(runs))][-PLANS_MAX:]
            return msgspec.json.encode(plans), list(runs)

        return await self._open_store().change_cell(REQUESTS_CELL, add)


def _plans(held: bytes | None) -> list[_Plan]:
    return [] if held is None else _decode(held)


def _find(held: bytes | None, request: str) -> list[PlannedRun] | None:
    return next((plan.runs for plan in _plans(held) if plan.request == request), None)
