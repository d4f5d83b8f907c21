"""Requests that were refused, in the audit log.

Requests that are refused must not fill the store, and one sender's must not hide another's. So each principal has a
bucket of rows of its own, and strangers have one together. What a principal was refused because it is for admins has a
large bucket, apart from the rest: that it was tried is what people look for. Refusals that find their bucket empty are
counted, and a row says how many they were: with the next refusal that is written, or ten minutes later.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from contextvars import Context

from outlive._kernel.client.secret_token import read_token, without_secrets
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.limit import EMPTY, TierLevel, TokenBucket, charge, fits_at
from outlive._kernel.store.audit import Action
from outlive._tasks import own_task
from outlive.engine import Engine
from outlive.errors import OutliveError
from outlive.http.exchange import Request
from outlive.http.guesses import COUNTED_MAX
from outlive.http.operation import Operation
from outlive.http.principal import Principal
from outlive.http.problem import Problem
from outlive.telemetry import log

ADMIN_ROWS = TokenBucket(rate=1, burst=1_000)
"""The rows of what one principal was refused because it is for admins."""
OWN_ROWS = TokenBucket(rate=1 / 60, burst=20)
"""The rows of what else one principal was refused."""
STRANGERS_ROWS = TokenBucket(rate=1 / 600, burst=20)
"""The rows of all who are not known, together: with those of counts at most 308 a day."""
STRANGER = "unknown"
ADDRESSES_MAX = 1_000
"""How many different addresses one count knows."""
COUNT_SECONDS = 600.0
"""How long a count waits for a row."""
REFUSALS = "refusals"
"""The verb of a row that only says how many there were."""
FORBIDDEN, UNAUTHENTICATED = 403, 401
TARGET_CHARACTERS_MAX = 200
_Sender = tuple[str, str, bool]
"""The key and the name of a principal, both empty for strangers; whether it is about what is for admins."""


def is_denial(problem: Problem, request: Request) -> bool:
    """Whether a request was refused because of who asked, with something that was to open the door; a request without
    is nothing that is worth a row."""
    return problem.status == FORBIDDEN or (problem.status == UNAUTHENTICATED and "authorization" in request.headers)


class _Refused:
    """The refusals of one sender."""

    __slots__ = ("actor", "addresses", "count", "key", "level")

    def __init__(self, actor: str, key: str) -> None:
        self.actor, self.key = actor, key
        self.level: TierLevel = EMPTY
        self.count = 0
        """How many refusals have no row."""
        self.addresses: set[str] = set()
        """Where these came from."""

    def leave_out(self, address: str) -> None:
        """Count one that has no row."""
        self.count += 1
        if len(self.addresses) < ADDRESSES_MAX:
            self.addresses.add(address)

    def take_count(self) -> str:
        """A sentence about refusals without a row, which is given once; empty if there are none."""
        if not self.count:
            return ""
        said = f"{self.count:,} more were not written, from {len(self.addresses):,} addresses"
        self.count = 0
        self.addresses.clear()
        return said


class Denials:
    """Writes down what was refused."""

    def __init__(self, engine: Engine, *, now: Callable[[], float]) -> None:
        self._engine, self._now = engine, now
        self._senders: OrderedDict[_Sender, _Refused] = OrderedDict()
        self._is_waiting = False
        """Whether counts are written soon."""

    async def note(
        self, request: Request, problem: Problem, principal: Principal | None, operation: Operation | None
    ) -> None:
        """Write a request down that was refused because of who asked."""
        if principal is not None and not principal.name:
            principal = None
        bucket = _bucket_of(principal, operation)
        sender = self._sender(principal, is_for_admins=bucket is ADMIN_ROWS)
        now_at = int(self._now() * MICROSECONDS)
        if fits_at(bucket, sender.level, 1, now_at) > now_at:
            sender.leave_out(request.address)
            self._write_counts_later()
            return
        sender.level = charge(bucket, sender.level, 1, now_at)
        token = read_token("olv", request.headers.get("authorization", "").rpartition(" ")[2])
        await self._append(
            Action(
                actor=sender.actor,
                verb=request.method[:20] if operation is None else operation.name,
                target=_printable(without_secrets(request.path)[:TARGET_CHARACTERS_MAX]),
                reason="; ".join(filter(None, [f"{problem.status} {problem.code}", sender.take_count()])),
                key="" if token is None else token.id,
                via="http",
                address=request.address,
                is_denied=True,
            )
        )

    def _sender(self, principal: Principal | None, *, is_for_admins: bool) -> _Refused:
        """The refusals of a sender; the sender that was refused nothing for the longest time is forgotten."""
        key, name = ("", "") if principal is None else (principal.key, principal.name)
        named = key, name, is_for_admins
        sender = self._senders.pop(named, None) or _Refused(name or STRANGER, key)
        self._senders[named] = sender
        if len(self._senders) > COUNTED_MAX:
            self._senders.popitem(last=False)
        return sender

    def _write_counts_later(self) -> None:
        if not self._is_waiting:
            self._is_waiting = True
            asyncio.get_running_loop().call_later(COUNT_SECONDS, self._begin_counts, context=Context())

    def _begin_counts(self) -> None:
        own_task(self.write_counts(), name="outlive-http-refusals")

    async def write_counts(self) -> None:
        """Write down how many refusals have no row of their own."""
        self._is_waiting = False
        counted = [(sender, said) for sender in self._senders.values() if (said := sender.take_count())]
        await self._append(
            *(
                Action(actor=it.actor, verb=REFUSALS, reason=said, key=it.key, via="http", is_denied=True)
                for it, said in counted
            )
        )

    async def _append(self, *actions: Action) -> None:
        try:
            await self._engine.audit._append(actions)
        except OutliveError as error:  # It was refused all the same.
            log.warning("refused requests are not in the audit log: %s", type(error).__name__)


def _bucket_of(principal: Principal | None, operation: Operation | None) -> TokenBucket:
    if principal is None:
        return STRANGERS_ROWS
    return ADMIN_ROWS if operation is not None and operation.scope == "admin" else OWN_ROWS


def _printable(text: str) -> str:
    return "".join(each if each.isprintable() else "?" for each in text)
