"""The states of breakers and rate limits: in this engine, or in cells of the store that all its workers share.

A shared cell is changed by the store in one transaction, by a pure function, at an instant of the store's clock. A
store that is away is asked again until it answers: an attempt waits rather than begins uncounted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from outlive._kernel.model.breaker import BREAKER_CELLS, Breaker, BreakerState
from outlive._kernel.model.limit import LIMIT_CELLS, LimitState, RateLimit, dated
from outlive._kernel.runtime.clock import Clock
from outlive._kernel.runtime.wakeup import Wakeup
from outlive._kernel.store.contract import Store
from outlive.errors import CommitUnknownError, StoreUnavailableError
from outlive.telemetry import log

STORE_RETRY_SECONDS = 0.5

T = TypeVar("T")
StepOf = Callable[[Any, int], tuple[Any, T]]
"""From the state and the instant to the next state and an answer."""

_encode = msgspec.json.Encoder().encode


class LimitCells:
    """The states of one engine's breakers and limits."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._own: dict[str, Any] = {}

    async def change(self, of: Breaker | RateLimit, step: StepOf[T], *, is_repeatable: bool = True) -> T:
        """Take one step.

        Raises:
            CommitUnknownError: it is not known whether the step was taken, and it is not repeatable.
        """
        if not of.shared:
            return self.change_own(of, step)
        kind = type(_fresh(of))

        def change(data: bytes | None, now_at: int) -> tuple[bytes, T]:
            state, answer = step(_fresh(of) if data is None else _read(data, kind, of), now_at)
            return _encode(dated(of, state) if isinstance(of, RateLimit) else state), answer

        while True:
            try:
                answer: T = await self._store.change_cell(_name(of), change)
            except CommitUnknownError:
                if not is_repeatable:
                    raise
            except StoreUnavailableError:
                """Nothing happened."""
            else:
                return answer
            await Wakeup().sleep(STORE_RETRY_SECONDS)

    def change_own(self, of: Breaker | RateLimit, step: StepOf[T]) -> T:
        """Take one step with a state that only this engine has."""
        name = _name(of)
        self._own[name], answer = step(self._own.get(name) or _fresh(of), self._clock.now())
        return answer


def _read(data: bytes, kind: type[Any], of: Breaker | RateLimit) -> Any:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as error:  # Written by another release, or damaged: waiting would not help.
        log.warning("%s begins with an empty state, because its stored state cannot be read: %s", _name(of), error)
        return _fresh(of)


def _name(of: Breaker | RateLimit) -> str:
    return f"{BREAKER_CELLS if isinstance(of, Breaker) else LIMIT_CELLS}{of.name}"


def _fresh(of: Breaker | RateLimit) -> BreakerState | LimitState:
    return BreakerState() if isinstance(of, Breaker) else LimitState()
