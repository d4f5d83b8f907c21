"""Approvals: asked durably, decided once, answered to everybody, and taken back when nobody waits any more."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import msgspec
import pydantic
import pytest

import outlive
from outlive import Approval, ApprovalExpired, RunStatus
from outlive._journal.event import ApprovalClosed, ApprovalDecided, ApprovalRequested
from outlive.client.audit import ApprovalEntry
from outlive.client.handle import RunHandle
from outlive.errors import (
    ApprovalClosedError,
    ApprovalFormError,
    ApprovalNotFoundError,
    ConfigurationError,
    EngineClosedError,
    NotInRunError,
    RunNotFoundError,
)
from tests.engine.faults import FaultyStore, faulty, unknown
from tests.engine.support import DAY, Place, crash, events_of, hold, in_time, parks, registry_of, stage, until, waits


@dataclass(frozen=True)
class Refund:
    cents: int
    note: str = ""


class Model(pydantic.BaseModel):
    cents: int = pydantic.Field(gt=0)
    tags: list[str] = []


@outlive.workflow
async def asking() -> str:
    answer = await outlive.wait_for_approval("refund", title="Refund?", form=Refund, assignees=["finance"])
    return f"{'yes' if answer else 'no'} {answer.by} {answer.form} {answer.comment}".strip()


@outlive.workflow
async def asking_plainly(times: int = 1) -> list[Any]:
    answers = [await outlive.wait_for_approval("go") for _ in range(times)]
    return [(answer.by, answer.approved, answer.form, answer.is_first) for answer in answers]


@outlive.workflow
async def asking_until(seconds: float) -> str:
    try:
        answer = await outlive.wait_for_approval("refund", deadline=timedelta(seconds=seconds))
    except ApprovalExpired as error:
        return f"{type(error).__name__} {error.name}"
    return answer.by


@outlive.workflow
async def asking_with_patience(seconds: float) -> str:
    try:
        async with asyncio.timeout(seconds):
            return (await outlive.wait_for_approval("refund")).by
    except TimeoutError:
        return str(await outlive.wait_for_signal("go"))


@outlive.workflow
async def asking_models() -> Model | None:
    return (await outlive.wait_for_approval("refund", form=Model)).form


@outlive.workflow(approvals={"refund": Model})
async def asking_declared() -> int:
    answer = await outlive.wait_for_approval("refund", form=dict)
    return int((answer.form or {})["cents"])


@outlive.workflow
async def asking_child() -> str:
    return (await outlive.wait_for_approval("child")).by


@outlive.workflow
async def asking_parent(children: int) -> list[str]:
    return list(await asyncio.gather(*(asking_child() for _ in range(children))))


@outlive.workflow
async def asking_late() -> str:
    await hold("first")
    return (await outlive.wait_for_approval("refund")).by


async def has_asked(run: RunHandle[Any], pending: int = 1) -> list[ApprovalEntry]:
    """Return when a run waits for this many decisions, with them."""

    async def is_so() -> bool:
        return pending == sum(entry.status == "pending" for entry in await run.approvals())

    await until(is_so)
    return [entry for entry in await run.approvals() if entry.status == "pending"]


# -- Asking and deciding -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [{"cents": 5}, Refund(5)])
async def test_an_approval_brings_the_form_as_its_type(engine: outlive.Engine, form: Any) -> None:
    """Whether it was filled in as plain values or as the type itself."""
    run = await engine.start(asking, id="run-1")
    await waits(run)

    decided = await engine.approve("run-1", "refund", by="ann", form=form, comment="fine")
    assert (True, True, "ann", {"cents": 5, "note": ""} if isinstance(form, Refund) else form) == (
        decided.approved,
        decided.is_first,
        decided.by,
        decided.form,
    )
    assert "yes ann Refund(cents=5, note='') fine" == await in_time(run.result())


async def test_a_rejection_is_an_answer_and_is_false(engine: outlive.Engine) -> None:
    """It needs no form, and `if answer:` does not let it pass."""
    run = await engine.start(asking)
    await waits(run)

    assert not await run.reject("refund", by="bob", comment="too much")
    assert "no bob None too much" == await in_time(run.result())


async def test_models_are_filled_in_and_checked_by_themselves(engine: outlive.Engine) -> None:
    """A pydantic model as a form."""
    run = await engine.start(asking_models)
    (entry,) = await has_asked(run)
    assert entry.schema == Model.model_json_schema()

    with pytest.raises(ApprovalFormError, match=r"at \$.cents: 0 must be more than 0"):
        await run.approve("refund", by="ann", form={"cents": 0})
    await run.approve("refund", by="ann", form=Model(cents=5, tags=["a"]))
    assert Model(cents=5, tags=["a"]) == await in_time(run.result())


@pytest.mark.parametrize(
    ("form", "told"),
    [
        (None, "nothing is filled in"),
        ({}, r"at \$: 'cents' is missing"),
        ({"cents": "5"}, r"at \$.cents: '5' is not of type integer"),
        (object(), "object has no JSON"),
    ],
)
async def test_a_form_that_does_not_fit_decides_nothing(place: Place, form: Any, told: str) -> None:
    """The schema is in the journal: it is checked also where nobody has the code."""
    async with place.engine() as engine, place.engine(worker=False, registry=registry_of()) as client:
        run = await engine.start(asking, id="run-1")
        await waits(run)

        with pytest.raises(ApprovalFormError, match=f"approval 'refund' does not fit: {told}"):
            await client.approve("run-1", "refund", by="ann", form=form)
        assert ["pending"] == [entry.status for entry in await client.approvals("run-1")]
        await client.approve("run-1", "refund", by="ann", form={"cents": 1})
        await in_time(run.result())


async def test_nothing_can_be_filled_in_where_nothing_is_asked(engine: outlive.Engine) -> None:
    """A form that nobody would read is refused."""
    run = await engine.start(asking_plainly)
    await waits(run)

    with pytest.raises(ApprovalFormError, match="there is nothing to fill in"):
        await run.approve("go", by="ann", form={"cents": 1})


async def test_a_declared_form_is_checked_by_its_type(place: Place) -> None:
    """Where this process has the workflow; elsewhere the schema is all there is."""
    async with place.engine() as engine:
        run = await engine.start(asking_declared)
        await waits(run)

        with pytest.raises(ApprovalFormError, match="Input should be greater than 0"):
            await run.approve("refund", by="ann", form={"cents": 0})
        await run.approve("refund", by="ann", form={"cents": 1})
        assert 1 == await in_time(run.result())


@pytest.mark.parametrize("wrong", [{"by": ""}, {"by": 5}, {"by": "ann", "comment": 5}, {"by": "\ud800"}])
async def test_a_decision_that_nobody_could_read_is_refused(engine: outlive.Engine, wrong: dict[str, Any]) -> None:
    """It would park the run; its sender is told instead."""
    run = await engine.start(asking_plainly)
    await waits(run)

    with pytest.raises(ConfigurationError):
        await run.approve("go", **wrong)
    assert ["pending"] == [entry.status for entry in await run.approvals()]


# -- Once --------------------------------------------------------------------------------------------------------------


async def test_the_first_decision_is_the_only_one(place: Place) -> None:
    """Many decide at once, in two processes: one is first, and everybody gets what that one decided."""
    async with place.engine() as engine, place.engine(worker=False) as client:
        run = await engine.start(asking_plainly, id="run-1")
        await waits(run)

        deciders = [(engine, client)[number % 2].approve("run-1", "go", by=f"p{number}") for number in range(10)]
        answers = await asyncio.gather(*deciders, client.reject("run-1", "go", by="nay"))
        ((first, approved, _, _),) = await in_time(run.result())
        assert {first} == {answer.by for answer in answers}
        assert {approved} == {answer.approved for answer in answers}
        assert 1 == sum(answer.is_first for answer in answers)
        assert 1 == len(await events_of(run, ApprovalDecided))


async def test_a_second_decision_gets_the_first_one_back(engine: outlive.Engine) -> None:
    """Also after the end of the run, and whatever its form looks like."""
    run = await engine.start(asking)
    await waits(run)
    first = await run.approve("refund", by="ann", form={"cents": 5}, comment="fine")
    await in_time(run.result())

    second = await run.reject("refund", by="bob", form="nonsense")
    assert (False, "ann", True, "fine", {"cents": 5}, first.at) == (
        second.is_first,
        second.by,
        second.approved,
        second.comment,
        second.form,
        second.at,
    )
    assert 1 == len(await events_of(run, ApprovalDecided))


async def test_a_decision_that_still_lies_in_the_inbox_counts(place: Place) -> None:
    """No worker runs: the decision is durable, is listed, and is the only one."""
    async with place.engine() as engine:
        run = await engine.start(asking_plainly, id="run-1")
        await waits(run)
    async with place.engine(worker=False) as client:
        assert (await client.approve("run-1", "go", by="ann")).is_first
        assert "ann" == (await client.reject("run-1", "go", by="bob")).by
        assert ["approved"] == [entry.status for entry in await client.approvals("run-1")]
    async with place.engine() as engine:
        assert [("ann", True, None, True)] == await in_time(engine.get("run-1").result())


async def test_who_decides_first_and_is_not_told_so_is_still_first(place: Place) -> None:
    """The store lost its answer, and the decision is sent again: it finds itself."""
    async with place.engine() as engine:
        run = await engine.start(asking_plainly, id="run-1")
        await waits(run)
    stores: list[FaultyStore] = []
    async with place.engine(worker=False, wrap=faulty(stores)) as client:
        stores[0].after["deliver"].append(unknown())
        assert (await client.approve("run-1", "go", by="ann")).is_first
        assert 2 == stores[0].calls["deliver"]


async def test_a_decision_that_is_overtaken_gets_the_first_one_back(place: Place) -> None:
    """Somebody else decides, and the run ends, while it is on its way."""
    stores: list[FaultyStore] = []
    async with place.engine() as engine, place.engine(worker=False, wrap=faulty(stores)) as client:
        run = await engine.start(asking_plainly, id="run-1")
        await waits(run)
        stores[0].gates["deliver"] = asyncio.Event()
        slow = asyncio.create_task(client.reject("run-1", "go", by="bob"))
        await in_time(stores[0].waiting["deliver"].wait())
        await run.approve("go", by="ann")
        await in_time(run.result())
        stores[0].gates["deliver"].set()

        answer = await in_time(slow)
        assert ("ann", False) == (answer.by, answer.is_first)


async def test_a_decision_that_the_end_of_the_run_overtakes_is_refused(place: Place) -> None:
    """It decides nothing, and who decided is told."""
    stores: list[FaultyStore] = []
    async with place.engine() as engine, place.engine(worker=False, wrap=faulty(stores)) as client:
        run = await engine.start(asking_plainly, id="run-1")
        await waits(run)
        stores[0].gates["deliver"] = asyncio.Event()
        slow = asyncio.create_task(client.approve("run-1", "go", by="bob"))
        await in_time(stores[0].waiting["deliver"].wait())
        await run.cancel()
        with pytest.raises(outlive.RunCancelled):
            await in_time(run.result())
        stores[0].gates["deliver"].set()

        with pytest.raises(ApprovalClosedError):
            await in_time(slow)


async def test_one_name_may_be_asked_for_again(engine: outlive.Engine) -> None:
    """The oldest open request is meant, or the one that is named."""
    run = await engine.start(asking_plainly, 2)
    (first,) = await has_asked(run)
    await run.approve("go", by="ann", request=first.id)
    (second,) = await has_asked(run)
    assert ("@approval/go", "@approval/go#2") == (first.id, second.id)

    assert not (await run.reject("go", by="bob", request=first.id)).is_first
    await run.reject("go", by="bob", request=second.id)
    assert [("ann", True), ("bob", False)] == [answer[:2] for answer in await in_time(run.result())]


# -- Not there ---------------------------------------------------------------------------------------------------------


async def test_an_approval_that_nobody_asked_for_is_not_found(engine: outlive.Engine) -> None:
    """The error says which ones wait. [TS-R11]"""
    run = await engine.start(asking, id="run-1")
    await waits(run)

    with pytest.raises(ApprovalNotFoundError, match=r"'other' of run 'run-1' .*\(run-1 refund\)") as caught:
        await run.approve("other", by="ann")
    assert ["run-1 refund"] == caught.value.pending
    with pytest.raises(ApprovalNotFoundError):
        await run.approve("refund", by="ann", request="@approval/refund#2")
    with pytest.raises(RunNotFoundError):
        await engine.approve("run-2", "refund", by="ann")
    with pytest.raises(RunNotFoundError):
        await engine.approvals("run-2")


async def test_nobody_decides_before_it_is_asked(engine: outlive.Engine) -> None:
    """A signal may come early; a decision on what nobody has asked yet may not."""
    run = await engine.start(asking_late)
    await stage.gate("first").reached()

    with pytest.raises(ApprovalNotFoundError, match="none waits"):
        await run.approve("refund", by="ann")
    stage.gate("first").open()
    await has_asked(run)
    await run.approve("refund", by="ann")
    assert "ann" == await in_time(run.result())


async def test_a_name_must_be_one_that_journals_can_use(engine: outlive.Engine) -> None:
    """Else two requests could have one identity."""
    run = await engine.start(asking_strangely, "refund#2")

    with pytest.raises(outlive.RunFailed, match="cannot be a name"):
        await in_time(run.result())


@outlive.workflow
async def asking_strangely(name: str, options: dict[str, Any] | None = None) -> str:
    return str((await outlive.wait_for_approval(name, **(options or {}))).by)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"deadline": 0}, "deadline=0 must be more than 0 seconds"),
        ({"deadline": 1e12}, "at most 100 years"),
        ({"deadline": "soon"}, "must be more than 0 seconds"),
        ({"deadline": True}, "deadline=True must be more than 0 seconds"),
        ({"escalate_after": 5}, "escalate_after= and escalate_to= go together"),
        ({"escalate_to": ["boss"]}, "escalate_after= and escalate_to= go together"),
        ({"remind_every": 5}, "remind_every= needs notify="),
        ({"assignees": "finance"}, "give a list"),
        ({"assignees": [5]}, "5 is not text"),
        ({"title": 5}, "5 is not text"),
        ({"notify": "mail"}, "is not a step"),
    ],
)
async def test_a_request_that_makes_no_sense_is_refused(
    engine: outlive.Engine, options: dict[str, Any], told: str
) -> None:
    """Before anybody is asked."""
    run = await engine.start(asking_strangely, "refund", options)

    with pytest.raises(outlive.RunFailed, match=told):
        await in_time(run.result())
    assert [] == await events_of(run, ApprovalRequested)


async def test_an_approval_means_something_only_in_a_run() -> None:
    """Elsewhere the name says so."""
    with pytest.raises(NotInRunError):
        await outlive.wait_for_approval("refund")


async def test_a_closed_engine_takes_no_decision(place: Place) -> None:
    """Its handles say so."""
    async with place.engine() as engine:
        run = await engine.start(asking_plainly)
        await waits(run)
    with pytest.raises(EngineClosedError):
        await run.approve("go", by="ann")


# -- Taken back --------------------------------------------------------------------------------------------------------


async def test_a_deadline_that_passes_closes_the_approval(place: Place) -> None:
    """The workflow is told, and whoever decides later is told too."""
    async with place.engine() as engine:
        run = await engine.start(asking_until, 2 * DAY)
        await waits(run)
        place.clock.skip(seconds=2 * DAY)

        assert "ApprovalExpired refund" == await in_time(run.result())
        with pytest.raises(ApprovalClosedError, match="nothing was decided"):
            await run.approve("refund", by="ann")
        (entry,) = await run.approvals()
        assert entry.closed_at is not None
        assert entry.deadline is not None
        assert ("closed", None, True) == (entry.status, entry.decision, entry.closed_at >= entry.deadline)


async def test_nobody_decides_after_the_deadline_though_no_worker_runs(place: Place) -> None:
    """What nobody has found out yet is over all the same; what was decided in time counts."""
    async with place.engine() as engine:
        early = await engine.start(asking_until, DAY, id="early")
        late = await engine.start(asking_until, DAY, id="late")
        await waits(early)
        await waits(late)
    async with place.engine(worker=False) as client:
        await client.approve("early", "refund", by="ann")
        place.clock.skip(seconds=DAY)
        with pytest.raises(ApprovalClosedError, match="its deadline has passed"):
            await client.approve("late", "refund", by="ann")
        assert ["approved", "closed"] == [(await client.approvals(id))[0].status for id in ("early", "late")]
    async with place.engine() as engine:
        assert "ann" == await in_time(engine.get("early").result())
        assert "ApprovalExpired refund" == await in_time(engine.get("late").result())


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

    with pytest.raises(outlive.RunCancelled):
        await in_time(run.result())
    assert 1 == len(await events_of(run, ApprovalClosed))
    with pytest.raises(ApprovalClosedError):
        await run.approve("refund", by="ann", form={"cents": 1})


async def test_a_run_that_is_replaced_closes_its_approval(engine: outlive.Engine) -> None:
    """Its code could not say so; its end does. The new run asks anew."""
    old = await engine.start(asking_plainly, id="run-1")
    await waits(old)
    new = await engine.start(asking_plainly, id="run-1", on_conflict="replace")
    await has_asked(new)

    with pytest.raises(ApprovalClosedError, match="the run has ended"):
        await engine.approve("run-1~old1", "go", by="ann")
    await new.approve("go", by="bob")
    assert [("bob", True, None, True)] == await in_time(new.result())


async def test_a_form_that_cannot_be_read_parks_the_run(place: Place) -> None:
    """The decision is not lost: code that can read it goes on with it after a resume."""
    async with place.engine() as engine:
        run = await engine.start(asking_picky, id="run-1")
        await waits(run)
        await run.approve("refund", by="ann", form={"cents": 5})

        assert "the form of approval 'refund' cannot be read as Picky" in await parks(run)
        assert "approved" == (await run.approvals())[0].status
    registry = registry_of()
    registry.add_workflow(msgspec.structs.replace(asking.spec, name="asking_picky"))
    async with place.engine(registry=registry) as engine:
        await engine.resume("run-1")
        assert "yes ann Refund(cents=5, note='')" == await in_time(engine.get("run-1").result())


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
    return str(await outlive.wait_for_approval("refund", title="Refund?", form=Picky, assignees=["finance"]))


# -- Through time and death --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_killed", [False, True])
async def test_a_request_survives_a_restart(place: Place, *, is_killed: bool) -> None:
    """It is asked once, and decided after days by whoever is there."""
    first = await place.engine().__aenter__()
    run = await first.start(asking, id="run-1")
    await waits(run)
    await (crash(first) if is_killed else first.__aexit__(None, None, None))
    place.clock.skip(seconds=3 * DAY)

    async with place.engine() as second:
        again = second.get("run-1")
        await second.approve("run-1", "refund", by="ann", form={"cents": 1})
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
    """What people were asked and said is as secret as everything else."""
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
    """It is decided by its own id, or by that of its root if nobody else of the tree is meant."""
    run = await engine.start(asking_parent, 2, id="run-1")
    assert ["run-1~1", "run-1~2"] == [entry.run_id for entry in await has_asked(run, 2)]
    assert ["run-1~2"] == [entry.run_id for entry in await engine.approvals("run-1~2")]

    with pytest.raises(ApprovalNotFoundError, match="run-1~1 child, run-1~2 child"):
        await engine.approve("run-1", "child", by="ann")
    await engine.approve("run-1~2", "child", by="bob")
    await engine.approve("run-1", "child", by="ann")
    assert ["ann", "bob"] == await in_time(run.result())


async def test_an_answer_may_be_a_result(engine: outlive.Engine) -> None:
    """An approval is a value like others, and comes back as it was."""
    run = await engine.start(returning_it)
    await waits(run)
    decided = await run.approve("refund", by="ann", form={"cents": 5})

    answer = await in_time(run.result())
    assert Approval(name="refund", approved=True, by="ann", at=decided.at, form=Refund(5)) == answer
    assert RunStatus.SUCCEEDED is await run.status()


@outlive.workflow
async def returning_it() -> Approval[Refund]:
    return await outlive.wait_for_approval("refund", form=Refund)
