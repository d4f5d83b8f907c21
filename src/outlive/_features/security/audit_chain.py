"""Whether the audit log is whole: its rows, followed from the first one to the last.

What each row says is bound to the row before it by its hash. That shows a change in the middle. It does not show that
the chain was written again: that its end was cut off, or its beginning behind a row which says that retention deleted
it, or that all of it is another one. Three things from outside of the store show these:

* the head of an earlier check: the row it names must be there, with the same hash;
* how long rows are kept: nothing younger may have been pruned, and nothing at all if all is kept;
* a key that the store does not have, by which workers seal the log and prove what they prune.
"""

from __future__ import annotations

import hmac
import re
from collections import OrderedDict
from typing import NamedTuple

import msgspec

from outlive._features.security.audit_values import AuditCheck, AuditEntry
from outlive._kernel.model.instant import MICROSECONDS, instant_of
from outlive._kernel.model.retention import KeepAudit
from outlive._kernel.store.audit import (
    NO_HASH,
    PRUNED,
    SEALED,
    STORE,
    Action,
    AuditRow,
    decode_action,
    hash_of,
    proof_of,
)
from outlive.errors import InvalidArgumentError

PROBLEMS_MAX = 100
SEALED_BEHIND_MAX = 10_000
"""How many rows may come between a row and its seal."""
SKEW_MAX = 60 * MICROSECONDS
"""How much the clocks of a worker and of the store may differ, in microseconds."""
UNSEALED_SPAN_MAX = 86_400 * MICROSECONDS
"""How old a row may be, in microseconds, when it is sealed: workers do it every ten minutes."""


_HEAD = re.compile(r"(\d{1,18}):(.{64})(?::(\d{1,18}):(\d{1,18}))?", re.ASCII)


class Head(NamedTuple):
    """The ends of the log at a check."""

    number: int
    """The number of the last row."""
    hash: str
    first: int = 0
    """The number of the first row; 0 if it is not known."""
    first_at: int = 0
    """When the first row was written."""

    def __str__(self) -> str:
        return ":".join(map(str, self))

    @classmethod
    def read(cls, where: str, text: object) -> Head:
        """The head that a person has kept.

        Raises:
            InvalidArgumentError: it is none.
        """
        match = _HEAD.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise InvalidArgumentError(where, "since", text, "give the `head` of an earlier check")
        number, digits, first, first_at = match.groups("0")
        return cls(int(number), digits, int(first), int(first_at))


class _Said(NamedTuple):
    """A statement in a row of the store itself about another row."""

    by: int
    """The number of the row that says it."""
    at: int
    hash: str
    proof: str


class Chain:
    """Follows the chain. With `known`, the head of an earlier check, and with how long rows are kept and the key."""

    def __init__(self, known: Head | None, keep: KeepAudit | None, *, now_at: int) -> None:
        self._known, self._keep, self._now_at = known, keep, now_at
        self._key = None if keep is None else keep.key
        self._first: AuditRow | None = None
        self._last: AuditRow | None = None
        self._pruned: dict[str, _Said] = {}
        """The statements about rows that were deleted, by the number of the last of these."""
        self._recent: OrderedDict[str, str] = OrderedDict()
        """The hashes of the last rows, for seals; only with a key."""
        self._sealed = 0
        self._unsealed_at: int | None = None
        """When the first row behind the last seal was written."""
        self._sealed_late = 0
        """The last row that was old already when it was sealed."""
        self._knows = False
        """Whether the last row of the earlier check is here as it was."""
        self._rows = 0
        self._problems: list[str] = []

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
        if self._known is not None and row.number == self._known.number:
            self._knows = row.hash == self._known.hash
            if not self._knows:
                self._found(f"row {row.number} has another hash than it had at the earlier check")
        action = action_of(row)
        if row.found_by not in (None, (action.actor, action.verb, action.target)):
            self._found(f"row {row.number} is listed as something else than what it says")
        if action.actor == STORE and action.verb == PRUNED:
            self._pruned[action.target] = _Said(row.number, row.at, action.reason, action.proof)
        if self._key is not None:
            self._seal(self._key, row, action)

    def _seal(self, key: bytes, row: AuditRow, action: Action) -> None:
        """Look at what a row proves."""
        if action.actor == STORE and action.verb == SEALED:
            number, digest = action.target, action.reason
            if not _is_proven(key, SEALED, number, digest, action.proof):
                self._found(f"row {row.number} says that row {number} is sealed, and was not written with this key")
            elif (hash_now := self._recent.get(number)) is not None:
                self._take_seal(row, int(number), is_same=hash_now == digest)
        elif self._unsealed_at is None:
            self._unsealed_at = row.at
        self._recent[str(row.number)] = row.hash
        if len(self._recent) > SEALED_BEHIND_MAX:
            self._recent.popitem(last=False)

    def _take_seal(self, seal: AuditRow, number: int, *, is_same: bool) -> None:
        if not is_same:
            self._found(f"row {number} has another hash than it had when row {seal.number} sealed it")
        if not is_same or number <= self._sealed:  # A copy of an earlier seal proves nothing more.
            return
        if self._unsealed_at is not None and seal.at - self._unsealed_at > UNSEALED_SPAN_MAX:
            self._sealed_late = number
        # Rows between the sealed one and its seal were written just before the seal.
        self._sealed, self._unsealed_at = number, None if number == seal.number - 1 else seal.at

    def done(self) -> AuditCheck:
        """The result of the check."""
        first, last = self._first, self._last
        gone = None
        if first is not None and first.number > 1:
            gone = self._pruned.get(str(first.number - 1))
            self._judge_pruned(first, gone)
        if self._known is not None:
            self._compare(self._known)
        if self._key is not None and last is not None:
            self._judge_seals()
        head = "" if first is None or last is None else str(Head(last.number, last.hash, first.number, first.at))
        return AuditCheck(
            rows=self._rows,
            first=0 if first is None else first.number,
            head=head,
            problems=tuple(self._problems),
            pruned=0 if first is None else first.number - 1,
            pruned_at=None if gone is None else instant_of(gone.at),
            pruned_since=0 if first is None else self._gone_since(first),
            sealed=self._sealed,
        )

    def _judge_pruned(self, first: AuditRow, gone: _Said | None) -> None:
        """See whether rows that have gone went by retention."""
        if gone is None:
            self._found(f"the rows before {first.number} are missing, and no row says that they were pruned")
            return
        if first.hash != hash_of(gone.hash, first.number, first.at, first.body):
            self._found(f"row {first.number} was changed, or does not follow the rows that were pruned")
        until = first.number - 1
        said = f"row {gone.by} says that rows up to {until} were pruned"
        if self._keep is None:
            self._found(f"{said}, and this check does not know how long rows are kept (keep)")
        if self._key is not None and not _is_proven(self._key, PRUNED, str(until), gone.hash, gone.proof):
            self._found(f"{said}, and was not written with this key")

    def _compare(self, known: Head) -> None:
        """Say what the last row of an earlier check shows that the rows themselves do not."""
        first, last, number = self._first, self._last, known.number
        reached = 0 if last is None else last.number
        if reached < number:
            self._found(f"the log ends at row {reached}, and had {number} at the earlier check")
        elif first is not None and number < first.number:
            gone = self._pruned.get(str(number))
            if gone is None or gone.hash != known.hash:
                self._found(
                    f"row {number}, the last one at the earlier check, has gone, so nothing shows that the rows behind "
                    f"it are the same; if it was pruned, give the head of a later check"
                )
        if first is not None and self._gone_since(first):
            self._judge_age(known)

    def _judge_age(self, known: Head) -> None:
        """See whether the first row of the earlier check was old enough to go when it went."""
        span = None if self._keep is None else self._keep.span
        covering = [said for until, said in self._pruned.items() if until.isdecimal() and int(until) >= known.first]
        if span is None or not covering:
            return
        said = min(covering)
        if known.first_at > said.at - span + SKEW_MAX:
            self._found(
                f"row {said.by} says that row {known.first}, the first one at the earlier check, was pruned at "
                f"{instant_of(said.at):%Y-%m-%d %H:%M}, and it was not old enough: it was written at "
                f"{instant_of(known.first_at):%Y-%m-%d %H:%M}"
            )

    def _gone_since(self, first: AuditRow) -> int:
        """How many rows went after the earlier check; all that have gone, if it does not say what had gone before."""
        return 0 if self._known is None else max(0, first.number - max(1, self._known.first))

    def _judge_seals(self) -> None:
        """Say which rows no seal proves."""
        if self._sealed_late and not (self._knows and self._known and self._known.number >= self._sealed_late):
            self._found(
                f"rows up to {self._sealed_late} were a day old or more when they were sealed: only the head of a "
                f"check from before shows that they were not written again (since)"
            )
        if self._unsealed_at is not None and self._now_at - self._unsealed_at > UNSEALED_SPAN_MAX:
            since = f"behind {self._sealed}" if self._sealed else "of the log"
            self._found(f"the rows {since} are not sealed, and the first of them is a day old or more")

    def _found(self, problem: str) -> None:
        if len(self._problems) < PROBLEMS_MAX:
            self._problems.append(problem)


def _is_proven(key: bytes, verb: str, number: str, digest: str, proof: str) -> bool:
    return hmac.compare_digest(proof_of(key, verb, number, digest).encode(), proof.encode("utf-8", "replace"))


def entry_of(row: AuditRow) -> AuditEntry:
    """A row as people see it; one that cannot be read says so."""
    action = action_of(row)
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


def action_of(row: AuditRow) -> Action:
    """The action in a row."""
    try:
        return decode_action(row.body)
    except msgspec.MsgspecError:
        return Action(actor="?", verb="?", reason=f"this row cannot be read: {row.body}")
