"""Finding runs: by what they wait for, what they failed with, when they began and how their ids begin; both ways round,
and counted."""

from __future__ import annotations

from typing import Any

from outlive._kernel.journal.event import (
    ApprovalClosed,
    ApprovalDecided,
    ApprovalEscalated,
    ApprovalRequested,
    RunFailed,
    RunSuspended,
    RunTagged,
)
from outlive._kernel.model import Failure, RunFilter, RunStatus, Wait, WaitKind
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.run import GroupField
from outlive._kernel.store.contract import Store
from outlive.testing.clock import ManualClock
from outlive_conformance.suite.builders import NONCE, Writer, begin, claim, created, get_run, hire, value
from outlive_conformance.suite.facet import Facet
from outlive_conformance.suite.queries import list_ids


class FindingConformance(Facet):
    """`list_runs`, `count_runs` and `count_groups`."""

    # -- What they wait for ----------------------------------------------------------------------------------

    async def test_runs_are_found_by_what_they_wait_for(self, store: Store) -> None:
        """By the name of a signal, an ask, an approval or another run; timers and retries have no name of a user's."""
        await suspend(store, "signal", Wait(WaitKind.SIGNAL, "paid"))
        await suspend(store, "approval", Wait(WaitKind.APPROVAL, "paid"), Wait(WaitKind.TIMER, "@timer"))
        await suspend(store, "child", Wait(WaitKind.CHILD, "run-7"), Wait(WaitKind.SIGNAL, "paid", run=3))
        await suspend(store, "ask", Wait(WaitKind.ASK, "paid"))
        await suspend(store, "other", Wait(WaitKind.SIGNAL, "unpaid"), Wait(WaitKind.RETRY, "paid"))

        assert await list_ids(store, waiting_for="paid") == ["signal", "child", "ask", "approval"]
        assert await list_ids(store, waiting_for="run-7") == ["child"]
        for name in ("@timer", "pai", "PAID", "", "x" * 5_000):
            assert await list_ids(store, waiting_for=name) == []

    async def test_a_run_that_goes_on_waits_for_nothing(self, store: Store, clock: ManualClock) -> None:
        """Claimed, suspended for something else, ended or parked: what it waited for does not find it any more."""
        await hire(store, "worker-a")
        for run_id in ("moves", "parks", "ends"):
            await suspend(store, run_id, Wait(WaitKind.SIGNAL, "go"), wake_at=clock.now())
        assert await list_ids(store, waiting_for="go") == ["parks", "moves", "ends"]

        await claim(store, "worker-a")

        assert await list_ids(store, waiting_for="go") == []

    async def test_a_run_that_waits_at_once_is_found(self, store: Store) -> None:
        """Created and suspended in one change, as a worker does; and when it waits for something else later."""
        tree = await suspend(store, "run-1", Wait(WaitKind.SIGNAL, "a"), Wait(WaitKind.SIGNAL, "b"))
        assert await list_ids(store, waiting_for="a") == await list_ids(store, waiting_for="b") == ["run-1"]

        await tree.suspend(waits=(Wait(WaitKind.SIGNAL, "b"), Wait(WaitKind.SIGNAL, "c")))

        assert await list_ids(store, waiting_for="a") == []
        assert await list_ids(store, waiting_for="b") == await list_ids(store, waiting_for="c") == ["run-1"]

    async def test_runs_that_sleep_are_found(self, store: Store, clock: ManualClock) -> None:
        """A run is found that a timer will wake, until it is claimed; a wait of another kind with such a name is
        not."""
        await hire(store, "worker-a")
        timer = Wait(WaitKind.TIMER, "@timer#2", clock.now())
        await suspend(store, "sleeps", timer, wake_at=clock.now())
        await suspend(store, "waits too", Wait(WaitKind.SIGNAL, "go"), timer)
        await suspend(store, "waits", Wait(WaitKind.SIGNAL, '"kind":"timer"'), Wait(WaitKind.RETRY, "timer"))

        assert await list_ids(store, sleeps=True) == ["waits too", "sleeps"]
        assert await list_ids(store, sleeps=True, waiting_for="go") == ["waits too"]
        assert await list_ids(store, sleeps=True, id_prefix="sl", statuses=(RunStatus.WAITING,)) == ["sleeps"]
        await claim(store, "worker-a")
        assert await list_ids(store, sleeps=True) == ["waits too"]

    async def test_runs_that_were_not_begun_in_time_are_found(self, store: Store, clock: ManualClock) -> None:
        """Until they are begun, or have ended."""
        await hire(store, "worker-a")
        for run_id, seconds in (("late", 5), ("later", 10), ("begun", 5)):
            await begin(store, run_id, workflow=run_id, begin_by=clock.now() + seconds * MICROSECONDS)
        await begin(store, "unlimited")
        await claim(store, "worker-a", definitions=("begun@1",))
        assert await list_ids(store, overdue_at=clock.now()) == []
        clock.advance(seconds=7)
        assert await list_ids(store, overdue_at=clock.now()) == ["late"]
        clock.advance(seconds=7)
        assert await list_ids(store, overdue_at=clock.now()) == ["later", "late"]
        assert await count(store, overdue_at=clock.now(), workflow="late") == 1
        assert await list_ids(store, overdue_at=clock.now(), workflow="begun") == []

    async def test_runs_that_the_engine_makes_for_itself_can_be_left_out(self, store: Store) -> None:
        """By the names of their workflows, whatever index finds the others."""
        names = ("outlive.bulk", "outlive.intervention:order", "outlive.batch.step:a", "outlive.batch.run:b")
        for name in (*names, "outlive.batch", "order"):
            tree = await begin(store, name.replace(":", "-"), workflow=name, queue="q")
            await tree.write(failed(store, Failure("shop.Sad")))

        assert await list_ids(store, hides_internal=True) == ["outlive.batch", "order"]
        filters: tuple[dict[str, Any], ...] = (
            {},
            {"queue": "q"},
            {"error": "Sad"},
            {"statuses": (RunStatus.FAILED,)},
            {"id_prefix": "o"},
        )
        for fields in filters:
            assert await count(store, **fields) == 6
            assert await count(store, hides_internal=True, **fields) == 2
        assert await list_ids(store, hides_internal=True, workflow="outlive.bulk") == []

    async def test_a_strange_name_is_only_a_name(self, store: Store) -> None:
        """Whatever a user calls a signal."""
        for number, strange in enumerate(("it's", 'a "b"', "\\", "☃", "a' OR 1=1 --", "l" * 3_000)):
            await suspend(store, f"run-{number}", Wait(WaitKind.SIGNAL, strange))

            assert await list_ids(store, waiting_for=strange) == [f"run-{number}"]

    # -- What they failed with -------------------------------------------------------------------------------

    async def test_runs_are_found_by_what_they_failed_with(self, store: Store) -> None:
        """By the name of the exception's class, with as much of its module before it as one likes."""
        await fail(
            store, "card", Failure("shop.errors.CardDeclined", 'say "type":"X"', cause=Failure("builtins.OSError"))
        )
        await fail(store, "other", Failure("bank.CardDeclined"))
        await fail(store, "bare", Failure("CardDeclined"))
        await fail(store, "longer", Failure("shop.NotCardDeclined"))
        await (await begin(store, "fine")).succeed()

        assert await list_ids(store, error="CardDeclined") == ["other", "card", "bare"]
        assert await list_ids(store, error="errors.CardDeclined") == ["card"]
        assert await list_ids(store, error="shop.errors.CardDeclined") == ["card"]
        for name in ("rs.CardDeclined", "cardDeclined", "X", "OSError", "shop", ""):
            assert await list_ids(store, error=name) == []

    async def test_a_failed_step_is_found_by_what_it_raised(self, store: Store) -> None:
        """`StepFailedError` only carries an exception whose class the workflow does not know."""
        attributes = {"step": "charge", "type_name": "shop.CardDeclined"}
        await fail(store, "run-1", Failure("outlive.errors.StepFailedError", "charge", ["charge"], attributes))

        assert (
            await list_ids(store, error="CardDeclined") == await list_ids(store, error="shop.CardDeclined") == ["run-1"]
        )
        assert await list_ids(store, error="StepFailedError") == []

    # -- When they began, and how their ids begin ------------------------------------------------------------

    async def test_runs_are_found_by_when_they_were_created(self, store: Store, clock: ManualClock) -> None:
        """From an instant on, before an instant, or between two; with every other filter."""
        instants = []
        for number in range(4):
            instants.append(clock.now())
            await begin(store, f"run-{number}", tags={"a": "b"}, notify="parent")
            clock.advance(seconds=1)
        _, first, second, third = instants

        for fields in ({}, {"tags": {"a": "b"}}, {"workflow": "greet"}, {"parent_id": "parent"}, {"id_prefix": "run"}):
            assert await list_ids(store, since_at=third, **fields) == ["run-3"]
            assert await list_ids(store, until_at=first, **fields) == ["run-0"]
            assert await list_ids(store, since_at=first, until_at=third, **fields) == ["run-2", "run-1"]
            assert await list_ids(store, since_at=second, until_at=second, **fields) == []
            assert await list_ids(store, until_at=0, **fields) == []

    async def test_runs_are_found_by_how_their_ids_begin(self, store: Store) -> None:
        """Letter by letter; nothing in it is a wild card."""
        for run_id in ("order-1", "order-2", "orders", "ord%", "ord_r", "Order-3"):
            await begin(store, run_id)

        assert await list_ids(store, id_prefix="order-") == ["order-2", "order-1"]
        assert await list_ids(store, id_prefix="order-1") == ["order-1"]
        assert await list_ids(store, id_prefix="ord%") == ["ord%"]
        assert await list_ids(store, id_prefix="ord_") == ["ord_r"]
        assert await list_ids(store, id_prefix="x\U0001f600") == []
        assert len(await list_ids(store, id_prefix="")) == 6

    async def test_runs_are_found_by_when_they_ended(self, store: Store, clock: ManualClock) -> None:
        """From an instant on, before an instant, or between two; an open run has not ended."""
        for number in range(4):
            tree = await begin(store, f"run-{number}", tags={"a": "b"}, workflow=f"flow-{number % 2}")
            clock.advance(seconds=1)
            if number < 3:
                await tree.succeed()
        first, second, third = [(await get_run(store, f"run-{number}")).finished_at or 0 for number in range(3)]

        for fields in ({}, {"tags": {"a": "b"}}, {"id_prefix": "run"}, {"statuses": (RunStatus.SUCCEEDED,)}):
            assert await list_ids(store, finished_since_at=second, **fields) == ["run-2", "run-1"]
            assert await list_ids(store, finished_until_at=second, **fields) == ["run-0"]
            assert await list_ids(store, finished_since_at=first, finished_until_at=third, **fields) == [
                "run-1",
                "run-0",
            ]
            assert await list_ids(store, finished_since_at=third + 1, **fields) == []
            assert await count(store, finished_since_at=0, **fields) == 3
        assert await list_ids(store, finished_since_at=first, workflow="flow-1") == ["run-1"]
        assert await list_ids(store, finished_since_at=0, statuses=(RunStatus.PENDING,)) == []

    async def test_runs_are_found_by_their_ids(self, store: Store, clock: ManualClock) -> None:
        """In the order of every list, each once, and only if the rest of the filter fits too."""
        for name in ("a", "it's", "☃", "b"):
            clock.advance(seconds=1)
            await begin(store, name, workflow=f"flow-{name}")

        assert await list_ids(store, ids=("a", "☃", "unknown", "it's", "a")) == ["☃", "it's", "a"]
        assert await list_ids(store, ids=("a", "b"), workflow="flow-b") == ["b"]
        assert await list_ids(store, ids=("a", "b"), statuses=(RunStatus.FAILED,)) == []
        assert await count(store, ids=("a", "A", "b")) == 2
        assert await count(store, ids=tuple(f"x-{number}" for number in range(1_000))) == 0

    async def test_runs_are_found_by_the_version_of_their_workflow(self, store: Store) -> None:
        """Alone or with the workflow; the version of a flow is large."""
        for number, version in enumerate((1, 2, 2**48 - 1, 2)):
            await begin(store, f"run-{number}", version=version, workflow=f"flow-{number % 2}")

        assert await list_ids(store, version=2) == ["run-3", "run-1"]
        assert await list_ids(store, version=2**48 - 1) == ["run-2"]
        assert await list_ids(store, version=2, workflow="flow-0") == []
        assert await count(store, version=1) == 1

    async def test_every_field_narrows(self, store: Store) -> None:
        """Whichever of the indexes finds the runs, each has to pass the whole filter."""
        for number in range(8):
            tags = {"odd": str(number % 2), "half": str(number // 4)}
            tree = await begin(store, f"{'ab'[number % 2]}-{number}", tags=tags, workflow=f"flow-{number % 4}")
            if number in (1, 3, 6):
                await tree.write(failed(store, Failure("shop.Sad")))

        wanted: dict[str, Any] = {"tags": {"odd": "1", "half": "0"}, "error": "Sad"}
        assert await list_ids(store, **wanted) == ["b-3", "b-1"]
        assert await list_ids(store, **wanted, workflow="flow-1") == ["b-1"]
        assert await list_ids(store, **wanted, statuses=(RunStatus.FAILED, RunStatus.PARKED), id_prefix="b-3") == [
            "b-3"
        ]
        assert await list_ids(store, **wanted, statuses=(RunStatus.PENDING,)) == []
        assert await list_ids(store, statuses=(RunStatus.FAILED,), id_prefix="a") == ["a-6"]
        assert await count(store, **wanted) == 2
        assert await count(store, **wanted, workflow="flow-1", id_prefix="b", roots_only=True) == 1

    # -- Whom they ask ---------------------------------------------------------------------------------------

    async def test_runs_are_found_by_whom_they_ask_for_approval(self, store: Store) -> None:
        """One person, or anyone; from the request on until it is decided or closed, whatever else the run does."""
        tree = await begin(store, "tree")
        await tree.spawn(1)
        other = await begin(store, "other", workflow="order")
        await begin(store, "quiet")
        await tree.write(asked(store, "a", "ann", "it's"), asked(store, "b", "bob", run=1))
        await other.write(asked(store, "a"), asked(store, "b", "ann"))

        assert await list_ids(store, asks="ann") == ["tree", "other"]
        assert await list_ids(store, asks="it's") == ["tree"]
        assert await list_ids(store, asks="bob") == ["tree~1"]
        assert await list_ids(store, asks="") == ["tree~1", "tree", "other"]
        assert await list_ids(store, asks="", workflow="order") == ["other"]
        assert await list_ids(store, asks="cid") == await list_ids(store, waiting_for="ann") == []
        assert await count(store, asks="ann") == 2

        await other.write(ApprovalClosed(at=store.now(), call="@closing", approval="b"))
        await tree.suspend(waits=(Wait(WaitKind.APPROVAL, "a"),))
        await tree.write(
            ApprovalEscalated(at=store.now(), call="e", approval="a", payload=value(1), assignees=("cid",))
        )
        assert await list_ids(store, asks="ann") == []
        assert await list_ids(store, asks="cid") == await list_ids(store, waiting_for="a") == ["tree"]

        await tree.write(ApprovalDecided(at=store.now(), approval="a", payload=value(1)))
        await tree.succeed(run=1)
        await other.succeed()
        assert await list_ids(store, asks="") == []

    # -- Other tags ------------------------------------------------------------------------------------------

    async def test_a_run_with_other_tags_is_found_by_these_alone(self, store: Store) -> None:
        """A root, a child, and a run that had none; the other rows keep theirs."""
        tree = await begin(store, "tree", tags={"stage": "new", "team": "a"})
        await tree.spawn(1)
        await begin(store, "other", tags={"stage": "new"})

        await tree.write(tagged(store, {"stage": "packing", "team": "a"}), tagged(store, {"stage": "it's"}, run=1))
        await tree.suspend()

        assert await list_ids(store, tags={"stage": "new"}) == ["other"]
        assert await list_ids(store, tags={"stage": "packing", "team": "a"}) == ["tree"]
        assert await list_ids(store, tags={"stage": "it's"}) == ["tree~1"]
        assert (await get_run(store, "tree")).tags == {"stage": "packing", "team": "a"}

        await tree.write(tagged(store, {"stage": "sent"}), tagged(store, {}))
        assert await list_ids(store, tags={"stage": "sent"}) == await list_ids(store, tags={"team": "a"}) == []
        assert (await get_run(store, "tree")).tags == {}

    async def test_a_run_that_is_born_with_other_tags_is_found_by_them(self, store: Store) -> None:
        """Created and tagged in one change, as a worker does."""
        tree = Writer(store, "tree")
        await tree.write(
            created(store, nonce=NONCE, tags={"a": "1"}),
            tagged(store, {"a": "2"}),
            created(store, run=1, call="child", tags={"b": "1"}),
            tagged(store, {"b": "2"}, run=1),
        )

        assert await list_ids(store, tags={"a": "1"}) == await list_ids(store, tags={"b": "1"}) == []
        assert await list_ids(store, tags={"a": "2"}) == ["tree"]
        assert await list_ids(store, tags={"b": "2"}) == ["tree~1"]

    # -- Order, pages, counts --------------------------------------------------------------------------------

    async def test_every_list_can_be_read_both_ways(self, store: Store, clock: ManualClock) -> None:
        """Oldest first, and from any run to both sides, whatever finds the runs."""
        trees = await plant(store, clock)
        made = [tree.run_id for tree in trees]
        for fields in FOUND_BY:
            await check_both_ways(store, made, **fields)
        await check_both_ways(store, made[:1], root_id="run-0")
        for tree in trees:
            await tree.write(failed(store, Failure("shop.Sad")))
        await check_both_ways(store, made, error="Sad")

    async def test_runs_are_counted_up_to_the_limit(self, store: Store, clock: ManualClock) -> None:
        """A count says how many there are, or that there are so many and maybe more."""
        trees = await plant(store, clock)
        for fields in FOUND_BY:
            await check_count(store, len(trees), **fields)
        await check_count(store, 1, root_id="run-0")
        for tree in trees:
            await tree.write(failed(store, Failure("shop.Sad")))
        await check_count(store, len(trees), error="Sad")
        await check_count(store, len(trees), error="shop.Sad")

    async def test_runs_are_counted_by_status(self, store: Store) -> None:
        """Roots and children, of one workflow or of all."""
        tree = await begin(store, "tree")
        await tree.spawn(1)
        await tree.succeed(run=1)
        await (await begin(store, "done", workflow="other")).succeed()

        assert await count(store) == 3
        assert await count(store, roots_only=True) == 2
        assert await count(store, statuses=(RunStatus.SUCCEEDED,)) == 2
        assert await count(store, statuses=(RunStatus.SUCCEEDED,), roots_only=True) == 1
        assert await count(store, statuses=(RunStatus.SUCCEEDED, RunStatus.PENDING), workflow="other") == 1
        assert await count(store, statuses=(RunStatus.PARKED,)) == 0

    async def test_runs_are_counted_in_groups(self, store: Store) -> None:
        """By status, workflow or queue; each group ends at the limit, and one without such runs is left out."""
        for number in range(6):
            queue = "mail" if number % 2 else ""
            tree = await begin(
                store, f"run-{number}", workflow=f"flow-{number % 3}", queue=queue, tags={"a": str(number // 3)}
            )
            if number in (1, 4):
                await tree.succeed()
        await (await begin(store, "tree", workflow="flow-2")).spawn(1)

        async def groups(by: GroupField, *, limit: int = 100, most: int = 100, **fields: Any) -> dict[str, int]:
            found = await store.count_groups(RunFilter(**fields), by, limit=limit, groups_max=most)
            assert list(found) == sorted(found)
            return found

        assert await groups("status") == {"pending": 5, "running": 1, "succeeded": 2}
        assert await groups("status", roots_only=True) == {"pending": 5, "succeeded": 2}
        assert await groups("status", statuses=(RunStatus.SUCCEEDED, RunStatus.FAILED)) == {"succeeded": 2}
        assert await groups("workflow", roots_only=True) == {"flow-0": 2, "flow-1": 2, "flow-2": 3}
        assert await groups("workflow", tags={"a": "1"}) == {"flow-0": 1, "flow-1": 1, "flow-2": 1}
        assert await groups("workflow", statuses=(RunStatus.SUCCEEDED,)) == {"flow-1": 2}
        assert await groups("workflow", workflow="flow-1", queue="mail") == {"flow-1": 1}
        assert await groups("workflow", roots_only=True, limit=2, most=2) == {"flow-0": 2, "flow-1": 2}
        assert await groups("queue", roots_only=True) == {"": 4, "mail": 3}
        assert await groups("queue", queue="mail", tags={"a": "0"}) == {"mail": 1}
        assert await groups("queue", ids=("run-0", "run-1", "tree"), limit=1) == {"": 1, "mail": 1}
        for by in ("status", "workflow", "queue"):
            assert await groups(by, workflow="unknown") == {}


FOUND_BY: tuple[dict[str, Any], ...] = (
    {},
    {"tags": {"a": "b"}},
    {"parent_id": "parent"},
    {"id_prefix": "run-"},
    {"ids": tuple(f"run-{number}" for number in range(9))},
    {"version": 1},
    {"waiting_for": "go"},
    {"sleeps": True},
)


async def plant(store: Store, clock: ManualClock) -> list[Writer]:
    """Runs that each of `FOUND_BY` finds, two of each instant, oldest first."""
    trees = []
    for number in range(6):
        if number % 2 == 0:
            clock.advance(seconds=1)
        tree = await begin(store, f"run-{number}", tags={"a": "b"}, notify="parent")
        waits = (Wait(WaitKind.SIGNAL, "go"), Wait(WaitKind.TIMER, "@timer", clock.now()))
        await tree.write(RunSuspended(at=store.now(), waits=waits))
        trees.append(tree)
    return trees


async def check_both_ways(store: Store, made: list[str], **fields: Any) -> None:
    """A filter lists these runs, oldest first, and from each of them to both sides."""
    wanted = RunFilter(**fields)
    found = await store.list_runs(wanted, oldest_first=True)
    assert [run.id for run in found] == made
    assert await list_ids(store, **fields) == made[::-1]
    for place, run in enumerate(found):
        here = run.created_at, run.id
        newer = await store.list_runs(wanted, after=here, oldest_first=True, limit=2)
        older = await store.list_runs(wanted, before=here, limit=2)
        between = await store.list_runs(wanted, after=(found[0].created_at, made[0]), before=here)
        assert [run.id for run in newer] == made[place + 1 : place + 3]
        assert [run.id for run in older] == made[:place][::-1][:2]
        assert [run.id for run in between] == made[1:place][::-1]


async def check_count(store: Store, made: int, **fields: Any) -> None:
    """A filter finds so many runs."""
    assert await count(store, **fields) == made
    assert await count(store, limit=made, **fields) == made
    assert await count(store, limit=1, **fields) == 1
    assert await count(store, **fields | {"workflow": "unknown"}) == 0


async def count(store: Store, *, limit: int = 1_000, **fields: Any) -> int:
    """How many runs pass the filter."""
    return await store.count_runs(RunFilter(**fields), limit=limit)


async def suspend(store: Store, run_id: str, *waits: Wait, wake_at: int | None = None) -> Writer:
    """A tree that was suspended in the change that created it."""
    tree = Writer(store, run_id)
    await tree.write(created(store, nonce=NONCE), RunSuspended(at=store.now(), waits=waits, wake_at=wake_at))
    return tree


def asked(store: Store, call: str, *assignees: str, run: int = 0) -> ApprovalRequested:
    """A run asks people for a decision."""
    return ApprovalRequested(at=store.now(), run=run, call=call, name=call, payload=value(1), assignees=assignees)


def tagged(store: Store, tags: dict[str, str], *, run: int = 0) -> RunTagged:
    """A run gives itself other tags."""
    return RunTagged(at=store.now(), run=run, call="@tags", tags=tags)


def failed(store: Store, failure: Failure) -> RunFailed:
    """The end of a run."""
    return RunFailed(at=store.now(), failure=failure)


async def fail(store: Store, run_id: str, failure: Failure) -> None:
    """A tree that has failed."""
    await (await begin(store, run_id)).write(failed(store, failure))
