"""Approvals, all their lives: taken back when no workflow waits any more, kept in restarts, asked by children."""

from __future__ import annotations

from typing import Any

import pydantic
import pytest

import outlive
from outlive.errors.run import ApprovalClosedError, ApprovalNotFoundError
from outlive.events import ApprovalClosed, ApprovalDecided, ApprovalRequested
from outlive.types import Approval, RunHandle
from tests.approvals.asking import (
    Refund,
    asking,
    asking_family,
    asking_parent,
    asking_plainly,
    asking_until,
    asking_with_patience,
    has_asked,
)
from tests.engine.inside import crash
from tests.engine.support import DAY, Place, events_of, in_time, until, waits

pytestmark = pytest.mark.any_store

# -- Taken back --------------------------------------------------------------------------------------------------------


async def test_a_deadline_that_passes_closes_the_approval(place: Place) -> None:
    """The workflow gets the error, and so does a person who decides later. [FE-W5]"""
    async with place.engine() as engine:
        run = await engine.start(asking_until, 2 * DAY)
        await waits(run)
        place.clock.skip(seconds=2 * DAY)

        assert "ApprovalExpiredError refund" == await in_time(run.result())
        with pytest.raises(ApprovalClosedError, match="nothing was decided"):
            await run.approve("refund", by="ann")
        (entry,) = await run.approvals()
        assert entry.closed_at is not None
        assert entry.deadline is not None
        assert ("closed", None, True) == (entry.status, entry.decision, entry.closed_at >= entry.deadline)


async def test_no_decision_counts_after_the_deadline_though_no_worker_runs(place: Place) -> None:
    """An approval whose deadline has passed is over, also if no worker has noticed; what was decided in time counts."""
    async with place.engine() as engine:
        early = await engine.start(asking_until, DAY, id="early")
        late = await engine.start(asking_until, DAY, id="late")
        await waits(early)
        await waits(late)
    async with place.engine(worker=False) as client:
        await client.approvals.approve("early", "refund", by="ann")
        place.clock.skip(seconds=DAY)
        with pytest.raises(ApprovalClosedError, match="its deadline has passed"):
            await client.approvals.approve("late", "refund", by="ann")
        assert ["approved", "closed"] == [(await client.approvals.list(id))[0].status for id in ("early", "late")]
    async with place.engine() as engine:
        assert "ann" == await in_time(engine.get("early").result())
        assert "ApprovalExpiredError refund" == await in_time(engine.get("late").result())


async def test_a_timeout_around_it_closes_the_approval(place: Place) -> None:
    """The run goes on, and a decision that comes later is refused."""
    async with place.engine() as engine:
        run = await engine.start(asking_with_patience, DAY)
        await waits(run)
        place.clock.skip(seconds=DAY)
        await until_closed(run)

        with pytest.raises(ApprovalClosedError, match="the run no longer waits for it"):
            await run.approve("refund", by="ann")
        await run.signal("go", "gone")
        assert "gone" == await in_time(run.result())


async def until_closed(run: RunHandle[Any]) -> None:
    """Return when a run has taken a request back."""

    async def is_so() -> bool:
        return bool(await events_of(run, ApprovalClosed))

    await until(is_so)


async def test_cancelling_the_run_closes_the_approval(engine: outlive.Engine) -> None:
    """In the journal, and for who decides."""
    run = await engine.start(asking)
    await waits(run)
    await run.cancel()

    with pytest.raises(outlive.errors.RunCancelledError):
        await in_time(run.result())
    assert 1 == len(await events_of(run, ApprovalClosed))
    with pytest.raises(ApprovalClosedError):
        await run.approve("refund", by="ann", form={"cents": 1})


async def test_a_run_that_is_replaced_closes_its_approval(engine: outlive.Engine) -> None:
    """Its code could not say so; its end does. The new run asks again."""
    old = await engine.start(asking_plainly, id="run-1")
    await waits(old)
    new = await engine.start(asking_plainly, id="run-1", on_conflict="replace")
    await has_asked(new)

    with pytest.raises(ApprovalClosedError, match="the run has ended"):
        await engine.approvals.approve("run-1~old1", "go", by="ann")
    await new.approve("go", by="bob")
    assert [("bob", True, None, True)] == await in_time(new.result())


async def test_a_form_that_its_validator_refuses_is_set_aside_and_people_are_asked_again() -> None:
    """The audit says what became of the first decision; the second one, on a request of its own, ends the wait."""
    async with Place(None).engine() as engine:
        run = await engine.start(asking_picky, id="run-1")
        await waits(run)
        await run.approve("refund", by="ann", form={"cents": 5})

        async def is_asked_again() -> bool:
            return ["closed", "pending"] == [entry.status for entry in await run.approvals()]

        await until(is_asked_again)
        refused, again = await run.approvals()
        assert "the decision of ann was set aside, and it is asked again: it cannot be read as Picky" in refused.reason
        assert "it is odd" in refused.reason
        with pytest.raises(ApprovalClosedError, match="it is odd"):
            await run.approve("refund", by="ann", form={"cents": 6}, request=refused.id)
        assert "by finance (asked again, as the decision could not be used: it cannot be read as" in await run.why()
        (found,) = await run.dead_letters()
        assert ("decision", "refund", "ann", {"cents": 5}) == (
            found.kind,
            found.name,
            found.value["by"],
            found.value["form"],
        )

        assert (await run.approve("refund", by="bob", form={"cents": 6})).is_first
        assert "Picky(cents=6)" == await in_time(run.result())
        assert ("approved", again.id) == ((await run.approvals())[1].status, again.id)


class Picky(pydantic.BaseModel):
    cents: int

    @pydantic.field_validator("cents")
    @classmethod
    def even(cls, cents: int) -> int:
        if cents % 2:
            raise ValueError("it is odd")
        return cents


@outlive.workflow
async def asking_picky() -> str:
    return repr((await outlive.wait_for_approval("refund", title="Refund?", form=Picky, assignees=["finance"])).form)


# -- Through time and death --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_killed", [False, True])
async def test_a_request_survives_a_restart(place: Place, *, is_killed: bool) -> None:
    """It is asked once, and decided after days, in another process."""
    first = await place.engine().__aenter__()
    run = await first.start(asking, id="run-1")
    await waits(run)
    await (crash(first) if is_killed else first.__aexit__(None, None, None))
    place.clock.skip(seconds=3 * DAY)

    async with place.engine() as second:
        again = second.get("run-1")
        await second.approvals.approve("run-1", "refund", by="ann", form={"cents": 1})
        assert "yes ann Refund(cents=1, note='')" == await in_time(again.result())
        assert 1 == len(await events_of(again, ApprovalRequested)) == len(await events_of(again, ApprovalDecided))


async def test_a_large_form_comes_as_it_was(place: Place) -> None:
    """Too large for the journal, it is a blob."""
    note = "x" * 300_000
    async with place.engine() as engine:
        run = await engine.start(asking, id="run-1")
        await waits(run)
        await run.approve("refund", by="ann", form={"cents": 1, "note": note})

        assert note in await in_time(run.result())
        assert {"cents": 1, "note": note} == (await run.approve("refund", by="bob")).form


class Reverse:
    """A payload codec."""

    name = "reverse"

    def encode(self, data: bytes) -> bytes:
        """Backwards."""
        return data[::-1]

    def decode(self, data: bytes) -> bytes:
        """Forwards."""
        return data[::-1]


async def test_requests_and_decisions_go_through_payload_codecs(place: Place) -> None:
    """The store holds the request and the decision of an approval encoded; the engine reads both back."""
    async with place.engine(codecs=[Reverse()]) as engine:
        run = await engine.start(asking, id="run-1")
        await waits(run)
        await run.approve("refund", by="ann", form={"cents": 5})
        assert "yes ann Refund(cents=5, note='')" == await in_time(run.result())

        (requested,), (decided,) = await events_of(run, ApprovalRequested), await events_of(run, ApprovalDecided)
        assert ("reverse",) == requested.payload.via == decided.payload.via
        assert ("Refund?", "approved") == ((entry := (await run.approvals())[0]).title, entry.status)


async def test_a_waiting_run_says_whom_it_waits_for(engine: outlive.Engine) -> None:
    """In one sentence."""
    run = await engine.start(asking)
    await waits(run)
    assert "it waits for approval 'refund' (\"Refund?\") by finance" == await run.why()

    run = await engine.start(asking_until, DAY)
    await waits(run)
    (entry,) = await run.approvals()
    assert entry.deadline is not None
    assert f"it waits for approval 'refund' until {entry.deadline.isoformat(timespec='seconds')}" == await run.why()


# -- Trees -------------------------------------------------------------------------------------------------------------


async def test_a_child_may_ask(engine: outlive.Engine) -> None:
    """It is decided by its own id, or by that of its root if no other run of the tree can be meant."""
    run = await engine.start(asking_parent, 2, id="run-1")
    assert ["run-1~1", "run-1~2"] == [entry.run_id for entry in await has_asked(run, 2)]
    assert ["run-1~2"] == [entry.run_id for entry in await engine.approvals.list("run-1~2")]

    with pytest.raises(ApprovalNotFoundError, match="run-1~1 child, run-1~2 child"):
        await engine.approvals.approve("run-1", "child", by="ann")
    await engine.approvals.approve("run-1~2", "child", by="bob")
    await engine.approvals.approve("run-1", "child", by="ann")
    assert ["ann", "bob"] == await in_time(run.result())


async def test_a_root_id_means_the_approval_of_the_root_first(engine: outlive.Engine) -> None:
    """A decision with the id of a root is for the root, even if a child asks for the same name."""
    run = await engine.start(asking_family, id="run-1")
    await has_asked(run, 2)

    await engine.approvals.approve("run-1", "child", by="ann")
    assert not (await engine.approvals.approve("run-1", "child", by="bob")).is_first
    await engine.approvals.approve("run-1~1", "child", by="bob")
    assert ["ann", "bob"] == await in_time(run.result())


async def test_an_answer_may_be_a_result(engine: outlive.Engine) -> None:
    """An approval is a value like others, and comes back as it was."""
    run = await engine.start(returning_it)
    await waits(run)
    decided = await run.approve("refund", by="ann", form={"cents": 5})

    answer = await in_time(run.result())
    assert Approval(name="refund", approved=True, by="ann", at=decided.at, form=Refund(5)) == answer
    assert "succeeded" == await run.status()


@outlive.workflow
async def returning_it() -> Approval[Refund]:
    return await outlive.wait_for_approval("refund", form=Refund)
