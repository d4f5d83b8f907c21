"""`engine.audit`: who did what, from the store, and whether the log is whole."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from outlive._model import given
from outlive._model.instant import instant_of
from outlive._store.audit import NO_HASH, PRUNED, STORE, Action, AuditFilter, AuditRow, decode_action, hash_of
from outlive._store.contract import PAGE_SIZE_MAX
from outlive.client.access import Access
from outlive.client.acting import ACTING
from outlive.client.finding import Page
from outlive.errors import InvalidArgumentError

PROBLEMS_MAX = 100
NUMBER_DIGITS_MAX = 18
"""Of the number of a row; what a store can keep has a digit more."""
_MICROSECONDS = 1_000_000


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One action."""

    number: int
    at: datetime
    """By the clock of the store."""
    actor: str
    verb: str
    target: str
    """What it was done to: a run, a workflow, a schedule, a queue, a flow, a key."""
    reason: str
    key: str
    """The id of the API key that was used."""
    via: str
    """The way in: `http`, `cli` or `code`."""
    address: str
    is_denied: bool
    """Whether it was refused: then nothing was done."""
    hash: str


@dataclass(frozen=True, slots=True)
class AuditCheck:
    """What a check of the log has found."""

    rows: int
    first: int
    """The number of the first row; 0 if there is none."""
    head: str
    """The number and the hash of the last row, as `number:hash`: keep it elsewhere, and give it to a later check."""
    problems: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


class AuditLog:
    """Lists and checks what was done."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def list(
        self,
        *,
        actor: str | None = None,
        verb: str | None = None,
        target: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> Page[AuditEntry]:
        """Actions, the newest first, a page at a time.

        Args:
            target: the id of a run, the name of a workflow, a schedule, a queue, a flow or a sink, the id of a key, or
                `*` for the whole store.
            after: `next` of the page before.
        """
        where = "engine.audit.list"
        given.whole(where, "limit", limit, most=PAGE_SIZE_MAX)
        wanted = AuditFilter(
            actor=_text(where, "actor", actor),
            verb=_text(where, "verb", verb),
            target=_text(where, "target", target),
            since_at=_at(where, "since", since),
            until_at=_at(where, "until", until),
        )
        if after is not None and not (after.isascii() and after.isdigit() and len(after) <= NUMBER_DIGITS_MAX):
            raise InvalidArgumentError(where, "after", after, "give `next` of the page before")
        rows = await self._access.store.list_audit(wanted, before=None if after is None else int(after), limit=limit)
        return Page([entry_of(row) for row in rows], next=str(rows[-1].number) if len(rows) == limit else None)

    async def verify(self, *, since: str | None = None) -> AuditCheck:
        """Check every row of the log against the one before it.

        A log of which the end was cut off looks whole by itself: give the `head` of an earlier check as `since`. One
        so old that its row was pruned shows nothing, and that is a problem too.

        Args:
            since: the `head` of an earlier check.
        """
        check = _Check(None if since is None else _head(since))
        after = 0
        while rows := await self._access.store.read_audit(after=after, limit=PAGE_SIZE_MAX):
            for row in rows:
                check.take(row)
            after = rows[-1].number
        return check.done()

    async def has_done(self, request: str, target: str) -> bool:
        """Whether something was done to a target by a request that its sender named (`outlive.acting(request=...)`).

        It is looked for among the newest actions on that target. An action is in the log if and only if it happened, so
        a request whose answer was lost finds out here.
        """
        rows = await self._access.own_store.list_audit(AuditFilter(target=target), limit=PAGE_SIZE_MAX)
        return any(request in row.body and _is_by(row, request) for row in rows)

    async def record(self, verb: str, target: str = "", *, reason: str = "", is_denied: bool = False) -> None:
        """Write something into the log that wrote nothing else: an export, an attempt. Nothing is written if no
        principal acts (`outlive.acting`)."""
        where, acting = "engine.audit.record", ACTING.get()
        verb = given.text(where, "verb", verb, like="export")
        target = given.text(where, "target", target, like="order-42", least=0)
        reason = given.text(where, "reason", reason, like="", least=0, most=given.TEXT_CHARACTERS_MAX)
        if acting is not None:
            await self._access.own_store.append_audit([acting.action(verb, target, reason, is_denied=is_denied)])

    async def append(self, actions: Sequence[Action]) -> None:
        """Write several actions, each with its actor."""
        await self._access.own_store.append_audit(actions)


def _is_by(row: AuditRow, request: str) -> bool:
    try:
        action = decode_action(row.body)
    except msgspec.MsgspecError:
        return False
    return action.request == request and not action.is_denied


def entry_of(row: AuditRow) -> AuditEntry:
    """A row as people see it; one that cannot be read says so."""
    try:
        action = decode_action(row.body)
    except msgspec.MsgspecError:
        action = Action(actor="?", verb="?", reason=f"this row cannot be read: {row.body}")
    return AuditEntry(
        number=row.number,
        at=instant_of(row.at),
        actor=action.actor,
        verb=action.verb,
        target=action.target,
        reason=action.reason,
        key=action.key,
        via=action.via,
        address=action.address,
        is_denied=action.is_denied,
        hash=row.hash,
    )


class _Check:
    """Follows the chain."""

    def __init__(self, known: tuple[int, str] | None) -> None:
        self._known = known
        self._first: AuditRow | None = None
        self._last: AuditRow | None = None
        self._pruned: dict[str, str] = {}
        """What rows say of rows that have gone: the number of the last one, and its hash."""
        self._rows = 0
        self._problems: builtins.list[str] = []

    def take(self, row: AuditRow) -> None:
        """Look at the next row."""
        self._rows += 1
        last, self._last = self._last, row
        if last is None:
            self._first = row
            if row.number == 1 and row.hash != hash_of(NO_HASH, row.number, row.at, row.body):
                self._found("row 1 was changed, or is not the first one: its hash is not over what it says")
        elif row.number != last.number + 1:
            self._found(f"rows {last.number + 1} to {row.number - 1} are missing")
        elif row.hash != hash_of(last.hash, row.number, row.at, row.body):
            self._found(f"row {row.number} was changed, or the one before it was: its hash is not over the two")
        if self._known is not None and row.number == self._known[0] and row.hash != self._known[1]:
            self._found(f"row {row.number} has another hash than it had at the earlier check")
        action = entry_of(row)
        if row.found_by not in (None, (action.actor, action.verb, action.target)):
            self._found(f"row {row.number} is listed as something else than what it says")
        if (action.actor, action.verb) == (STORE, PRUNED):
            self._pruned[action.target] = action.reason

    def done(self) -> AuditCheck:
        """What was found."""
        first, last = self._first, self._last
        if first is not None and first.number > 1:
            gone = self._pruned.get(str(first.number - 1))
            if gone is None:
                self._found(f"the rows before {first.number} are missing, and no row says that they were pruned")
            elif first.hash != hash_of(gone, first.number, first.at, first.body):
                self._found(f"row {first.number} was changed, or does not follow the rows that were pruned")
        if self._known is not None:
            self._compare(*self._known)
        head = "" if last is None else f"{last.number}:{last.hash}"
        return AuditCheck(self._rows, 0 if first is None else first.number, head, tuple(self._problems))

    def _compare(self, number: int, digits: str) -> None:
        """Say what the last row of an earlier check shows that the rows themselves do not."""
        first, last = self._first, self._last
        reached = 0 if last is None else last.number
        if reached < number:
            self._found(f"the log ends at row {reached}, and had {number} at the earlier check")
        elif first is not None and number < first.number and self._pruned.get(str(number)) != digits:
            self._found(
                f"row {number}, the last one at the earlier check, has gone, so nothing shows that the rows behind it "
                f"are the same; if it was pruned, give the head of a later check"
            )

    def _found(self, problem: str) -> None:
        if len(self._problems) < PROBLEMS_MAX:
            self._problems.append(problem)


def _head(since: object) -> tuple[int, str]:
    number, _, digits = since.partition(":") if isinstance(since, str) else ("", "", "")
    if not (number.isascii() and number.isdigit()) or len(digits) != len(NO_HASH):
        raise InvalidArgumentError("engine.audit.verify", "since", since, "give the `head` of an earlier check")
    return int(number), digits


def _text(where: str, name: str, value: object) -> str | None:
    return None if value is None else given.text(where, name, value, like="ann", most=given.KEY_CHARACTERS_MAX)


def _at(where: str, name: str, value: datetime | None) -> int | None:
    return None if value is None else round(given.instant(where, name, value).timestamp() * _MICROSECONDS)
