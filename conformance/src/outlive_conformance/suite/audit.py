"""The audit log: in the transaction of the deed, and in one chain."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.store.audit import (
    NO_HASH,
    PRUNED,
    STORE,
    AuditFilter,
    AuditRow,
    body_of,
    decode_action,
    hash_of,
    proof_of,
)
from outlive._kernel.store.contract import Action, Outcome, Store
from outlive._kernel.store.schedules import ScheduleChange
from outlive.testing.clock import ManualClock
from outlive_conformance.suite.builders import begin, message, new_tree, stepped
from outlive_conformance.suite.facet import Facet

MINUTE = 60 * MICROSECONDS
ALL = AuditFilter()
SEEN = Action(actor="ann", verb="look", target="everything")


class AuditConformance(Facet):
    """`AuditTable`, and what other verbs write there."""

    async def test_audit_is_chained_in_order(self, store: Store, other: Store, clock: ManualClock) -> None:
        """Numbers from 1 on, the store's time, and a hash over the row before. [FE-O8]"""
        assert await store.read_audit(limit=9) == []
        await store.append_audit([act("start", "a"), act("cancel", "a", reason="no \0 \u2028 \U0001f600 need")])
        clock.advance(seconds=60)
        await other.append_audit([act("retry", "b")])

        rows = await store.read_audit(limit=9)
        assert [(row.number, row.at) for row in rows] == [
            (1, clock.now() - MINUTE),
            (2, clock.now() - MINUTE),
            (3, clock.now()),
        ]
        assert [decode_action(row.body) for row in rows] == [
            act("start", "a"),
            act("cancel", "a", reason="no \0 \u2028 \U0001f600 need"),
            act("retry", "b"),
        ]
        assert_chained(rows)
        assert await store.read_audit(after=1, limit=1) == rows[1:2]

    async def test_audit_is_written_with_a_change_and_not_without(self, store: Store) -> None:
        """Neither by a change that conflicts, nor by a start whose id is taken."""
        tree = await begin(store, "run-1")
        stale = tree.twin()
        await tree.step(audit=[act("step", "run-1")])

        assert await stale.try_write(stepped(store, "late"), audit=[act("late", "run-1")]) is Outcome.CONFLICT
        taken, free = new_tree(store, "run-1"), new_tree(store, "run-2")
        taken.audit, free.audit = [act("start", "run-1")], [act("start", "run-2")]
        outcomes = await store.commit([taken, free])
        assert [outcome for outcome, _ in outcomes] == [Outcome.CONFLICT, Outcome.COMMITTED]
        assert await said(store) == ["step run-1", "start run-2"]

    async def test_audit_of_an_accepted_message_only(self, store: Store) -> None:
        """Not of one that was seen before, nor of one to a run that is not there."""
        await begin(store, "run-1")
        for run_id in ("run-1", "run-1", "nowhere"):
            sent = replace(message(store, run_id, key="once"), audit=act("signal", run_id))
            await store.deliver([sent], inbox_messages_max=9)

        assert await said(store) == ["signal run-1"]

    async def test_audit_of_a_message_of_a_change(self, store: Store) -> None:
        """It goes the same way."""
        tree = await begin(store, "run-1")
        await begin(store, "run-2")
        await tree.step(messages=[replace(message(store, "run-2"), audit=act("signal", "run-2"))])

        assert await said(store) == ["signal run-2"]

    async def test_audit_of_a_schedule_that_changes(self, store: Store) -> None:
        """Not of a change that conflicts."""
        for revision in (0, 7, 1):
            change = ScheduleChange(
                name="digest",
                revision=revision,
                next_revision=revision + 1,
                data=b"x",
                audit=act(f"change{revision}", "digest"),
            )
            await store.change_schedules([change])

        assert await said(store) == ["change0 digest", "change1 digest"]

    async def test_audit_of_a_cell_that_changes(self, store: Store) -> None:
        """Not of one that holds the same as before, nor of a change that raises."""

        def fail(held: bytes | None, now_at: int) -> tuple[bytes, None]:
            raise ValueError("no")

        await store.change_cell("cell", lambda *_: (b"new", None), audit=act("change", "cell"))
        await store.change_cell("cell", lambda *_: (b"new", None), audit=act("again", "cell"))
        with pytest.raises(ValueError, match="no"):
            await store.change_cell("cell", fail, audit=act("fail", "cell"))

        assert await said(store) == ["change cell"]

    async def test_audit_of_trees_that_are_deleted(self, store: Store, clock: ManualClock) -> None:
        """Not of one that stays."""
        gone, stays = await begin(store, "gone"), await begin(store, "stays")
        await gone.succeed()
        clock.advance(seconds=1)
        audit = {gone.journal: act("purge", "gone"), stays.journal: act("purge", "stays")}

        assert await store.delete_trees(list(audit), ended_before=store.now(), audit=audit) == [gone.journal]
        assert await said(store) == ["purge gone"]

    async def test_audit_is_listed_newest_first(self, store: Store, clock: ManualClock) -> None:
        """By actor, verb, target and time, and page by page."""
        for number in range(4):
            clock.advance(seconds=60)
            await store.append_audit([act(f"verb{number % 2}", f"run-{number}", actor=f"actor{number // 2}")])
        now = clock.now()

        assert await found(store) == [4, 3, 2, 1]
        assert await found(store, limit=2, before=4) == [3, 2]
        assert await found(store, AuditFilter(actor="actor0")) == [2, 1]
        assert await found(store, AuditFilter(verb="verb1")) == [4, 2]
        assert await found(store, AuditFilter(target="run-2")) == [3]
        assert await found(store, AuditFilter(target="run-2", actor="actor0")) == []
        assert await found(store, AuditFilter(since_at=now - MINUTE)) == [4, 3]
        assert await found(store, AuditFilter(until_at=now - MINUTE)) == [2, 1]

    async def test_audit_is_pruned_from_the_beginning(self, store: Store, clock: ManualClock) -> None:
        """The last row stays, and one that says what has gone is added."""
        assert await store.prune_audit(before=clock.now() + 1, limit=9) == 0
        for number in range(4):
            await store.append_audit([act("look", str(number))])
            clock.advance(seconds=60)
        second = (await store.read_audit(limit=9))[1]

        assert await store.prune_audit(before=second.at, limit=0) == 0
        assert await store.prune_audit(before=second.at + 1, limit=9) == 2
        rows = await store.read_audit(limit=9)
        assert [row.number for row in rows] == [3, 4, 5]
        last = decode_action(rows[-1].body)
        assert (last.verb, last.target, last.reason) == (PRUNED, "2", second.hash)
        assert_chained(rows, after=second.hash)
        assert (last.actor, last.proof) == (STORE, "")
        assert await store.prune_audit(before=clock.now() + 1, limit=9, key=b"secret") == 2
        rows = await store.read_audit(limit=9)
        assert [row.number for row in rows] == [5, 6]
        last = decode_action(rows[-1].body)
        assert last.proof == proof_of(b"secret", PRUNED, "4", last.reason)

    async def test_audit_of_many_writers_is_one_chain(self, store: Store, other: Store) -> None:
        """However they come at once."""
        await begin(store, "run-1")
        await asyncio.gather(
            *(each.append_audit([SEEN]) for each in (store, other) * 5),
            *(
                each.deliver([replace(message(each, "run-1"), audit=act("signal", "run-1"))], inbox_messages_max=99)
                for each in (store, other) * 5
            ),
            *(each.change_cell("cell", add, audit=act("change", "cell")) for each in (store, other) * 5),
        )

        rows = await store.read_audit(limit=99)
        assert len(rows) == 30
        assert_chained(rows)

    async def test_audit_is_carried_over_as_it_is(self, store: Store, other: Store, clock: ManualClock) -> None:
        """Rows that are there already are left, and rows that do not continue the log are refused."""
        rows, at, last = [], clock.now() - MINUTE, NO_HASH
        for number in range(3, 8):
            body = body_of(act("start", f"a \0 {number}"))
            last = hash_of(last, number, at, body)
            rows.append(AuditRow(number, at, body, last))

        assert await store.carry_audit(rows[:2])
        assert await other.carry_audit(rows[:4])
        assert await store.carry_audit(rows[4:])
        assert await store.carry_audit(rows[:1])
        assert not await store.carry_audit([replace(rows[-1], body="{}")])
        assert not await store.carry_audit([replace(rows[0], number=8)])
        assert [replace(row, found_by=None) for row in await store.read_audit(limit=9)] == rows
        assert await found(store, AuditFilter(target="a \0 5")) == [5]
        await store.append_audit([SEEN])
        assert_chained((await store.read_audit(limit=9))[-2:], after=rows[-2].hash)


def act(verb: str, target: str, *, actor: str = "ann", reason: str = "") -> Action:
    """The action of a person."""
    return Action(actor=actor, verb=verb, target=target, reason=reason)


def add(held: bytes | None, _: int) -> tuple[bytes, None]:
    """One byte more."""
    return (held or b"") + b"x", None


async def said(store: Store) -> list[str]:
    """The verbs and targets in the log, in order."""
    actions = [decode_action(row.body) for row in await store.read_audit(limit=99)]
    return [f"{action.verb} {action.target}" for action in actions]


async def found(store: Store, wanted: AuditFilter = ALL, *, before: int | None = None, limit: int = 9) -> list[int]:
    """The numbers of the rows that pass."""
    return [row.number for row in await store.list_audit(wanted, before=before, limit=limit)]


def assert_chained(rows: list[AuditRow], *, after: str = NO_HASH) -> None:
    """Every hash is over the row before it."""
    for row in rows:
        assert row.hash == hash_of(after, row.number, row.at, row.body), row
        after = row.hash
    assert [row.number for row in rows] == list(range(rows[0].number, rows[0].number + len(rows)))
