"""Requests that were refused, in the audit log.

A flood of them must not fill the store: a few are written, and the next row says how many were not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeGuard

from outlive._model.limit import EMPTY, Level, TokenBucket
from outlive._store.audit import Action
from outlive.client.secret_token import read_token, without_secrets
from outlive.engine import Engine
from outlive.errors import OutliveError
from outlive.http.exchange import Request
from outlive.http.operation import Operation
from outlive.http.principal import Principal
from outlive.http.problem import Problem
from outlive.telemetry import log

ROWS = TokenBucket(rate=1, burst=20)
"""How many rows one server writes a second, and at once."""
STRANGER = "unknown"
FORBIDDEN, UNAUTHENTICATED = 403, 401
TARGET_CHARACTERS_MAX = 200
_MICROSECONDS = 1_000_000


def is_denial(error: Exception, request: Request) -> TypeGuard[Problem]:
    """Whether a request was refused because of who asked, with something that was to open the door; a request without
    is nothing that is worth a row."""
    if not isinstance(error, Problem):
        return False
    return error.status == FORBIDDEN or (error.status == UNAUTHENTICATED and "authorization" in request.headers)


class Denials:
    """Writes down what was refused."""

    def __init__(self, engine: Engine, *, now: Callable[[], float]) -> None:
        self._engine, self._now = engine, now
        self._level: Level = EMPTY
        self._left_out = 0

    async def note(
        self, request: Request, problem: Problem, principal: Principal | None, operation: Operation | None
    ) -> None:
        """Write a request down that was refused because of who asked."""
        now_at = int(self._now() * _MICROSECONDS)
        if ROWS.earliest(self._level, 1, now_at) > now_at:
            self._left_out += 1
            return
        self._level = ROWS.charge(self._level, 1, now_at)
        token = read_token("olv", request.headers.get("authorization", "").rpartition(" ")[2])
        more = f"; {self._left_out:,} more were not written" if self._left_out else ""
        action = Action(
            actor=STRANGER if principal is None else principal.name,
            verb=request.method[:20] if operation is None else operation.name,
            target=_printable(without_secrets(request.path)[:TARGET_CHARACTERS_MAX]),
            reason=f"{problem.status} {problem.error}{more}",
            key="" if token is None else token.id,
            via="http",
            address=request.address,
            is_denied=True,
        )
        self._left_out = 0
        try:
            await self._engine.audit.append([action])
        except OutliveError as error:  # It was refused all the same.
            log.warning("a refused request is not in the audit log: %s", type(error).__name__)


def _printable(text: str) -> str:
    return "".join(each if each.isprintable() else "?" for each in text)
