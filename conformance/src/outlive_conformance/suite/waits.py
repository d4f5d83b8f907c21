"""Waits: a suspended run sleeps until its wake-up or until a message comes, and no wake-up is lost."""

from __future__ import annotations

from msgspec.structs import replace

from outlive._kernel.journal.event import RunSuspended
from outlive._kernel.model import RunStatus, Wait, WaitKind
from outlive._kernel.store.contract import MessageKind, Outcome, Store
from outlive.testing.clock import ManualClock
from outlive_conformance.suite.builders import (
    DEFINITION,
    Writer,
    begin,
    claim,
    get_run,
    hire,
    message,
    read_message_ids,
    read_names,
    send,
    stepped,
)
from outlive_conformance.suite.facet import Facet


class WaitsConformance(Facet):
    """A run becomes due by time, or by `deliver`."""

    # -- Time ----------------------------------------------------------------------------------------------

    async def test_waits_of_a_suspended_run_are_in_its_row(self, store: Store, clock: ManualClock) -> None:
        """The row says what it waits for and until when."""
        waits = (Wait(WaitKind.TIMER, "sleep", clock.now() + 5), Wait(WaitKind.SIGNAL, "paid", None, 2))
        tree = await begin(store)
        await tree.suspend(waits=waits, wake_at=clock.now() + 5)

        run = await get_run(store, "run-1")

        assert (run.status, run.waits, run.wake_at) == (RunStatus.WAITING, waits, clock.now() + 5)

    async def test_sleeping_run_is_due_at_its_wake_up(self, store: Store, clock: ManualClock) -> None:
        """Not a microsecond earlier, and then once. [TS-S6]"""
        await hire(store, "worker-a", lease_seconds=3_600)
        tree = await begin(store)
        await tree.suspend(wake_at=clock.now() + 60_000_000)

        clock.advance(seconds=59.999_999)
        assert await claim(store, "worker-a") == []

        clock.advance(seconds=0.000_001)
        assert await claim(store, "worker-a") == ["run-1"]
        assert await claim(store, "worker-a") == []

    async def test_run_that_waits_for_a_message_never_wakes_by_itself(self, store: Store, clock: ManualClock) -> None:
        """Without a wake-up it costs no look."""
        tree = await begin(store)
        await tree.suspend()
        clock.advance(seconds=10 * 365 * 86_400)
        await hire(store, "worker-a")

        claims = await store.claim_runs("worker-a", [DEFINITION], limit=10)

        assert (claims.claims, claims.next_wake_at) == ([], None)

    async def test_worker_learns_how_long_it_may_sleep(self, store: Store, clock: ManualClock) -> None:
        """The next wake-up is the earliest one that is still to come, of a run that it could claim."""
        await hire(store, "worker-a")
        await begin(store, "due")
        await sleep_until(await begin(store, "later"), clock.now() + 2_000)
        await sleep_until(await begin(store, "next"), clock.now() + 1_000)
        await sleep_until(await begin(store, "stranger", workflow="other"), clock.now() + 500)

        claims = await store.claim_runs("worker-a", [DEFINITION], limit=10)

        assert [each.run.id for each in claims.claims] == ["due"]
        assert claims.next_wake_at == clock.now() + 1_000

    async def test_worker_without_anything_to_come_may_sleep_on(self, store: Store) -> None:
        """There is no next wake-up in an empty store, nor when all runs have a living owner or have ended."""
        await hire(store, "worker-a")
        await hire(store, "worker-b")
        assert (await store.claim_runs("worker-a", [DEFINITION], limit=10)).next_wake_at is None

        await begin(store, "owned", worker="worker-b")
        await (await begin(store, "ended")).succeed()

        assert (await store.claim_runs("worker-a", [DEFINITION], limit=10)).next_wake_at is None

    # -- Messages ------------------------------------------------------------------------------------------

    async def test_message_wakes_a_run_that_waits(self, store: Store) -> None:
        """The run it is for is due at once, and the message is there for the worker that claims it. [TS-S7]"""
        await hire(store, "worker-a")
        tree = await begin(store)
        await tree.suspend()

        await send(store, message(store, "run-1"))

        assert await claim(store, "worker-a") == ["run-1"]
        assert await read_names(store, tree) == ["go"]

    async def test_message_wakes_a_run_that_sleeps(self, store: Store, clock: ManualClock) -> None:
        """It does not wait for the end of the timer."""
        await hire(store, "worker-a")
        tree = await begin(store)
        await tree.suspend(wake_at=clock.now() + 60_000_000)

        await send(store, message(store, "run-1"))

        assert await claim(store, "worker-a") == ["run-1"]

    async def test_run_that_is_released_with_messages_is_due_whatever_a_later_change_consumes(
        self, store: Store
    ) -> None:
        """Changes of one commit come out as if each was committed alone, one after the other."""
        await hire(store, "worker-a")
        tree = await begin(store, worker="worker-a")
        await send(store, message(store, "run-1"))
        suspended = RunSuspended(at=store.now(), waits=(), wake_at=None)
        first, later = tree.change(suspended), tree.twin()
        later.fold.apply(suspended)
        later.seq += 1
        second = later.change(stepped(store), consumed=await read_message_ids(store, tree))

        outcomes = await store.commit([first, second])

        assert [outcome for outcome, _ in outcomes] == [Outcome.COMMITTED] * 2
        assert await read_names(store, tree) == []
        assert await claim(store, "worker-a") == ["run-1"]

    async def test_message_to_a_child_wakes_its_root(self, store: Store) -> None:
        """Only roots are claimed."""
        await hire(store, "worker-a")
        tree = await begin(store)
        child_id = await tree.spawn(1)
        await tree.suspend()

        await send(store, message(store, child_id))

        assert await claim(store, "worker-a") == ["run-1"]

    async def test_message_changes_nothing_but_the_wake_up(self, store: Store, clock: ManualClock) -> None:
        """The rest of the row is a fold of the journal, and a message is not an event yet."""
        tree = await begin(store)
        await tree.suspend(waits=(Wait(WaitKind.SIGNAL, "go"),))
        before = await get_run(store, "run-1")
        clock.advance(seconds=5)

        await send(store, message(store, "run-1"))

        assert await get_run(store, "run-1") == replace(before, wake_at=clock.now())

    async def test_refused_message_wakes_no_run(self, store: Store) -> None:
        """A repetition of what was heard before is not news."""
        await hire(store, "worker-a")
        tree = await begin(store)
        await send(store, message(store, "run-1", key="k"))
        await tree.suspend(consumed=await read_message_ids(store, tree))

        await send(store, message(store, "run-1", key="k"))

        assert await claim(store, "worker-a") == []

    async def test_message_that_came_while_the_run_was_let_go_wakes_it(self, store: Store, other: Store) -> None:
        """An owner that suspends without having seen the message does not put the run to sleep over it."""
        await hire(store, "worker-a")
        tree = await begin(store, worker="worker-a")
        await send(other, message(other, "run-1"))

        await tree.suspend()

        assert await claim(store, "worker-a") == ["run-1"]

    async def test_message_wakes_a_run_before_the_timer_that_it_was_let_go_with(
        self, store: Store, clock: ManualClock
    ) -> None:
        """Whatever wake-up the owner wrote, a message that waits is sooner."""
        await hire(store, "worker-a")
        tree = await begin(store, worker="worker-a")
        await send(store, message(store, "run-1"))

        await tree.suspend(wake_at=clock.now() + 60_000_000)

        assert await claim(store, "worker-a") == ["run-1"]

    async def test_run_sleeps_when_its_messages_are_consumed(self, store: Store) -> None:
        """Suspending and consuming in one change leaves nothing to wake for."""
        await hire(store, "worker-a")
        tree = await begin(store, worker="worker-a")
        await send(store, message(store, "run-1"))

        await tree.suspend(consumed=await read_message_ids(store, tree))

        assert await claim(store, "worker-a") == []

    async def test_run_that_ends_with_messages_waiting_stays_ended(self, store: Store) -> None:
        """A message that will not be read wakes no run."""
        await hire(store, "worker-a")
        tree = await begin(store, worker="worker-a")
        await send(store, message(store, "run-1"))

        await tree.succeed()

        assert (await get_run(store, "run-1")).wake_at is None
        assert await claim(store, "worker-a") == []

    # -- Parked runs ---------------------------------------------------------------------------------------

    async def test_parked_run_is_not_due(self, store: Store, clock: ManualClock) -> None:
        """It waits for a person, and says why."""
        tree = await begin(store)
        await tree.park("the code changed")
        clock.advance(seconds=86_400)
        await hire(store, "worker-a")

        run = await get_run(store, "run-1")

        assert (run.status, run.reason) == (RunStatus.PARKED, "the code changed")
        assert await claim(store, "worker-a") == []

    async def test_signal_does_not_wake_a_parked_run(self, store: Store) -> None:
        """It is accepted and kept until a person resumes the run."""
        await hire(store, "worker-a")
        tree = await begin(store)
        await tree.park()

        await send(store, message(store, "run-1"))

        assert await claim(store, "worker-a") == []
        assert await read_names(store, tree) == ["go"]

    async def test_resume_wakes_a_parked_run(self, store: Store) -> None:
        """The worker that claims it finds the RESUME, and what came before it."""
        await hire(store, "worker-a")
        tree = await begin(store)
        await tree.park()
        await send(store, message(store, "run-1", "early"))

        await send(store, message(store, "run-1", "resume", kind=MessageKind.RESUME))

        assert await claim(store, "worker-a") == ["run-1"]
        assert await read_names(store, tree) == ["early", "resume"]

    async def test_message_that_came_while_the_run_was_parked_leaves_it_parked(self, store: Store) -> None:
        """An owner that parks a run with messages waiting does park it."""
        await hire(store, "worker-a")
        tree = await begin(store, worker="worker-a")
        await send(store, message(store, "run-1"))

        await tree.park()

        assert await claim(store, "worker-a") == []

    async def test_resume_that_came_while_the_run_was_parked_wakes_it(self, store: Store, other: Store) -> None:
        """A person who was quicker than the worker is not ignored."""
        await hire(store, "worker-a")
        tree = await begin(store, worker="worker-a")
        await send(other, message(other, "run-1"), message(other, "run-1", kind=MessageKind.RESUME))

        await tree.park()

        assert await claim(store, "worker-a") == ["run-1"]


async def sleep_until(tree: Writer, wake_at: int) -> None:
    """Suspend a run with a timer."""
    await tree.suspend(wake_at=wake_at)
