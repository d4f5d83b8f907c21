"""Approvals tell people: on request, with every reminder, when others are asked; a notice that fails ends nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import outlive
from outlive.events import ApprovalEscalated, StepFailed
from outlive.types import ApprovalNotice
from tests.engine.inside import crash
from tests.engine.support import DAY, Place, events_of, in_time, stage, until, until_calls, waits

pytestmark = pytest.mark.any_store


@outlive.step
async def tell(notice: ApprovalNotice) -> None:
    stage.call((notice.kind, notice.assignees))
    stage.values["notice"] = notice


@outlive.step
async def tell_slowly(notice: ApprovalNotice) -> None:
    stage.call(notice.kind)
    await stage.gate("mail").pass_through()


@outlive.step
async def tell_in_vain(notice: ApprovalNotice) -> None:
    stage.call(notice.kind)
    raise OSError("no route to host")


@outlive.step
async def tell_untyped(notice) -> None:  # type: ignore[no-untyped-def]
    stage.call(notice)


NOTIFY = {"tell": tell, "slowly": tell_slowly, "in vain": tell_in_vain, "untyped": tell_untyped}


@outlive.workflow
async def telling(how: str) -> str:
    answer = await outlive.wait_for_approval(
        "refund",
        title="Refund?",
        assignees=["finance"],
        deadline=10 * DAY,
        remind_every=DAY,
        escalate_after=2.5 * DAY,
        escalate_to=["boss"],
        notify=NOTIFY[how],
    )
    return answer.by


@pytest.fixture(autouse=True)
def open_mail() -> Iterator[None]:
    """Let the mail through, so that no step waits for it after a test."""
    yield
    stage.gate("mail").open()


async def test_people_are_notified_reminded_and_escalated_to(place: Place) -> None:
    """At their time, though the run is suspended in between; and no more once it is decided."""
    async with place.engine() as engine:
        run = await engine.start(telling, "tell", id="run-1")
        expected: list[Any] = [("requested", ("finance",))]
        await until_calls(*expected)
        for kind, people in [("reminder", ("finance",))] * 2 + [("escalated", ("finance", "boss"))]:
            await waits(run)
            place.clock.skip(seconds=DAY if kind == "reminder" else DAY / 2)
            expected.append((kind, people))
            await until_calls(*expected)

        await waits(run)
        assert "approval 'refund' (\"Refund?\") by finance, boss until" in await run.why()
        (entry,) = await run.approvals()
        assert (("finance", "boss"), True) == (entry.assignees, entry.escalated_at is not None)
        assert (
            ApprovalNotice(
                run_id="run-1",
                name="refund",
                kind="escalated",
                title="Refund?",
                assignees=("finance", "boss"),
                deadline=entry.deadline,
                request=entry.id,
            )
            == stage.values["notice"]
        )
        await run.approve("refund", by="boss")
        assert "boss" == await in_time(run.result())
        assert expected == stage.calls
        assert 1 == len(await events_of(run, ApprovalEscalated))


async def test_reminders_that_were_missed_are_not_made_good(place: Place) -> None:
    """No worker ran for days: people get one reminder, and others are asked."""
    async with place.engine() as engine:
        run = await engine.start(telling, "tell", id="run-1")
        await until_calls(("requested", ("finance",)))
        await waits(run)
    place.clock.skip(seconds=5.5 * DAY)
    async with place.engine() as engine:
        run = engine.get("run-1")

        async def are_told() -> bool:
            return 3 == len(stage.calls)

        await until(are_told)
        await waits(run)
        assert ["escalated", "reminder", "requested"] == sorted(kind for kind, _ in stage.calls)
        assert 3 == len(stage.calls)


async def test_a_notice_that_fails_leaves_the_approval_open(place: Place) -> None:
    """Its failure is in the journal, the next reminder tries again, and people can decide. [TS-R15]"""
    async with place.engine() as engine:
        run = await engine.start(telling, "in vain")
        await until_calls("requested")
        await waits(run)
        place.clock.skip(seconds=DAY)
        await until_calls("requested", "reminder")
        await waits(run)

        failures = await events_of(run, StepFailed)
        assert ["no route to host"] * 2 == [event.failure.message for event in failures]
        await run.approve("refund", by="ann")
        assert "ann" == await in_time(run.result())


async def test_a_decision_does_not_wait_for_a_notice(engine: outlive.Engine) -> None:
    """The mail still hangs, and a person decides: the run goes on, and the notice is cancelled."""
    run = await engine.start(telling, "slowly")
    await stage.gate("mail").reached()
    await run.approve("refund", by="ann")

    assert "ann" == await in_time(run.result())


async def test_a_hanging_notice_does_not_hold_up_the_escalation(place: Place) -> None:
    """Others are asked on time."""
    async with place.engine() as engine:
        run = await engine.start(telling, "slowly", id="run-1")
        await stage.gate("mail").reached()
        place.clock.skip(seconds=2.5 * DAY)
        await crash(engine)
    async with place.engine() as engine:
        run = engine.get("run-1")
        await stage.gate("mail").reached()
        await stage.gate("mail").reached()

        # The first notice was interrupted and is given again; the escalation is due.
        assert ["escalated", "requested", "requested"] == sorted(stage.calls)
        assert 1 == len(await events_of(run, ApprovalEscalated))
        await run.approve("refund", by="ann")
        assert "ann" == await in_time(run.result())


async def test_a_step_that_cannot_take_a_notice_is_found_before_anybody_is_asked(engine: outlive.Engine) -> None:
    """The error names the step."""
    run = await engine.start(telling, "untyped")

    with pytest.raises(outlive.errors.RunFailedError, match="tell_untyped"):
        await in_time(run.result())
    assert [] == await run.approvals()
