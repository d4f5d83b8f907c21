"""What breakers and rate limits remember: in this engine, or in cells of the store that all its workers share.

A shared cell is changed by the store in one transaction, by a pure function, at an instant of the store's clock. A
store that is away is asked again until it answers: it is better to wait than to let somebody through uncounted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from outlive._model.breaker import Breaker, BreakerState
from outlive._model.limit import LimitState, RateLimit
from outlive._runtime.clock import Clock
from outlive._runtime.wakeup import Wakeup
from outlive._store.contract import Store
from outlive.errors import CommitUnknownError, StoreUnavailableError
from outlive.telemetry import log

STORE_RETRY_SECONDS = 0.5

T = TypeVar("T")
StepOf = Callable[[Any, int], tuple[Any, T]]
"""Given what is remembered and the instant, what is to be remembered and an answer."""

_encode = msgspec.json.Encoder().encode


class Cells:
    """The states of one engine's breakers and limits."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._own: dict[str, Any] = {}

    async def change(self, of: Breaker | RateLimit, step: StepOf[T], *, is_repeatable: bool = True) -> T:
        """Take one step. One that is not repeatable is not taken again if nobody knows whether it was.

        Raises:
            CommitUnknownError: nobody knows, and it is not repeatable.
        """
        if not of.shared:
            return self.change_own(of, step)
        kind = type(_fresh(of))

        def change(data: bytes | None, now_at: int) -> tuple[bytes, T]:
            state, answer = step(_fresh(of) if data is None else _read(data, kind, of), now_at)
            return _encode(state), answer

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
        """Take one step with what only this engine remembers."""
        name = _name(of)
        self._own[name], answer = step(self._own.get(name) or _fresh(of), self._clock.now())
        return answer


def _read(data: bytes, kind: type[Any], of: Breaker | RateLimit) -> Any:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as error:  # By another release, or by no release at all: nobody can wait for that.
        log.warning("%s begins anew, because what it remembers cannot be read: %s", _name(of), error)
        return _fresh(of)


def _name(of: Breaker | RateLimit) -> str:
    return f"{'breaker' if isinstance(of, Breaker) else 'limit'}/{of.name}"


def _fresh(of: Breaker | RateLimit) -> BreakerState | LimitState:
    return BreakerState() if isinstance(of, Breaker) else LimitState()
