"""Approvals: asked durably, filled in and checked, decided once, and answered to everybody."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import outlive
from outlive.errors import ConfigurationError, EngineClosedError, RunNotFoundError
from outlive.errors.program import NotInRunError
from outlive.errors.run import ApprovalClosedError, ApprovalFormError, ApprovalNotFoundError
from outlive.events import ApprovalDecided, ApprovalRequested
from tests.approvals.asking import (
    Model,
    Refund,
    asking,
    asking_declared,
    asking_late,
    asking_models,
    asking_plainly,
    has_asked,
)
from tests.engine.faults import FaultyStore, faulty, unknown
from tests.engine.support import Place, events_of, in_time, registry_of, stage, waits

pytestmark = pytest.mark.any_store


@outlive.step
async def look_again() -> None:
    """Something that takes a moment."""


async def ask_later() -> bool:
    """Ask the same person something else, while the first request is open."""
    await look_again()
    return bool(await outlive.wait_for_approval("second", assignees=["ann"]))


@outlive.workflow
async def child_of_two_requests() -> list[bool]:
    """One person is asked two things."""
    first, second = await asyncio.gather(outlive.wait_for_approval("first", assignees=["ann"]), ask_later())
    return [bool(first), second]


@outlive.workflow
async def parent_of_two_requests() -> list[bool]:
    """Its child asks."""
    return await child_of_two_requests()


# -- Asking and deciding -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [{"cents": 5}, Refund(5)])
async def test_an_approval_brings_the_form_as_its_type(engine: outlive.Engine, form: Any) -> None:
    """Whether it was filled in as plain values or as the type itself."""
    run = await engine.start(asking, id="run-1")
    await waits(run)

    decided = await engine.approvals.approve("run-1", "refund", by="ann", form=form, comment="fine")
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


async def test_child_asks_a_person_who_has_an_open_request_of_it(place: Place) -> None:
    """Both requests of a child run are open, and it goes on when both are decided: on SQLite its worker could not write
    the second one, and tried for ever."""
    async with place.engine(poll_seconds=0.02) as engine:
        run = await engine.start(parent_of_two_requests, id="run-1")
        await waits(run)
        found = await engine.approvals.list(assignee="ann")
        assert ["first", "second"] == sorted(it.name for it in found)
        for it in found:
            await engine.approvals.approve(it.run_id, it.name, by="ann")

        assert [True, True] == await in_time(run.result())


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
    ("form", "message"),
    [
        (None, r"nothing is filled in: at \$: 'cents' is missing"),
        ({}, r"at \$: 'cents' is missing"),
        ({"cents": "5"}, r"at \$.cents: '5' is not of type integer"),
        (object(), "type object has no stored form"),
    ],
)
async def test_a_form_that_does_not_fit_decides_nothing(place: Place, form: Any, message: str) -> None:
    """The schema is in the journal: it is checked also in a process without the code."""
    async with place.engine() as engine, place.engine(worker=False, registry=registry_of()) as client:
        run = await engine.start(asking, id="run-1")
        await waits(run)

        with pytest.raises(ApprovalFormError, match=f"approval 'refund' does not fit: {message}"):
            await client.approvals.approve("run-1", "refund", by="ann", form=form)
        assert ["pending"] == [entry.status for entry in await client.approvals.list("run-1")]
        await client.approvals.approve("run-1", "refund", by="ann", form={"cents": 1})
        await in_time(run.result())


async def test_nothing_can_be_filled_in_where_nothing_is_asked(engine: outlive.Engine) -> None:
    """A form that no code would read is refused."""
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
async def test_a_decision_that_could_not_be_read_is_refused(engine: outlive.Engine, wrong: dict[str, Any]) -> None:
    """Such a form would park the run, so the call of its sender raises instead."""
    run = await engine.start(asking_plainly)
    await waits(run)

    with pytest.raises(ConfigurationError):
        await run.approve("go", **wrong)
    assert ["pending"] == [entry.status for entry in await run.approvals()]


# -- Once --------------------------------------------------------------------------------------------------------------


async def test_the_first_decision_is_the_only_one(place: Place) -> None:
    """Many decide at once, in two processes: one is first, and everybody gets what that one decided. [TS-R10 FE-W5]"""
    async with place.engine() as engine, place.engine(worker=False) as client:
        run = await engine.start(asking_plainly, id="run-1")
        await waits(run)

        deciders = [
            (engine, client)[number % 2].approvals.approve("run-1", "go", by=f"p{number}") for number in range(10)
        ]
        answers = await asyncio.gather(*deciders, client.approvals.reject("run-1", "go", by="nay"))
        ((first, approved, _, _),) = await in_time(run.result())
        assert {first} == {answer.by for answer in answers}
        assert {approved} == {answer.approved for answer in answers}
        assert 1 == sum(answer.is_first for answer in answers)
        assert 1 == len(await events_of(run, ApprovalDecided))


async def test_a_second_decision_returns_the_first_one(engine: outlive.Engine) -> None:
    """A second decision changes nothing and returns the first, even after the end of the run and with a form that does
    not fit."""
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
        assert (await client.approvals.approve("run-1", "go", by="ann")).is_first
        assert "ann" == (await client.approvals.reject("run-1", "go", by="bob")).by
        assert ["approved"] == [entry.status for entry in await client.approvals.list("run-1")]
    async with place.engine() as engine:
        assert [("ann", True, None, True)] == await in_time(engine.get("run-1").result())


async def test_a_first_decision_whose_answer_was_lost_is_still_first(place: Place) -> None:
    """The store lost its answer, and the decision is sent again: it finds itself."""
    async with place.engine() as engine:
        run = await engine.start(asking_plainly, id="run-1")
        await waits(run)
    stores: list[FaultyStore] = []
    async with place.engine(worker=False, wrap=faulty(stores)) as client:
        stores[0].after["deliver"].append(unknown())
        assert (await client.approvals.approve("run-1", "go", by="ann")).is_first
        assert 2 == stores[0].calls["deliver"]


async def test_a_decision_that_is_overtaken_gets_the_first_one_back(place: Place) -> None:
    """Another person decides, and the run ends, while the decision is on its way."""
    stores: list[FaultyStore] = []
    async with place.engine() as engine, place.engine(worker=False, wrap=faulty(stores)) as client:
        run = await engine.start(asking_plainly, id="run-1")
        await waits(run)
        stores[0].gates["deliver"] = asyncio.Event()
        slow = asyncio.create_task(client.approvals.reject("run-1", "go", by="bob"))
        await in_time(stores[0].waiting["deliver"].wait())
        await run.approve("go", by="ann")
        await in_time(run.result())
        stores[0].gates["deliver"].set()

        answer = await in_time(slow)
        assert ("ann", False) == (answer.by, answer.is_first)


async def test_a_decision_that_the_end_of_the_run_overtakes_is_refused(place: Place) -> None:
    """A second decision decides nothing, and the error says who decided."""
    stores: list[FaultyStore] = []
    async with place.engine() as engine, place.engine(worker=False, wrap=faulty(stores)) as client:
        run = await engine.start(asking_plainly, id="run-1")
        await waits(run)
        stores[0].gates["deliver"] = asyncio.Event()
        slow = asyncio.create_task(client.approvals.approve("run-1", "go", by="bob"))
        await in_time(stores[0].waiting["deliver"].wait())
        await run.cancel()
        with pytest.raises(outlive.errors.RunCancelledError):
            await in_time(run.result())
        stores[0].gates["deliver"].set()

        with pytest.raises(ApprovalClosedError):
            await in_time(slow)


async def test_an_approval_may_be_asked_for_again_under_its_name(engine: outlive.Engine) -> None:
    """A run may ask again for an approval of the same name, and a decision on the first request is not one on the
    second."""
    run = await engine.start(asking_plainly, 2)
    (first,) = await has_asked(run)
    await run.approve("go", by="ann", request=first.id)
    (second,) = await has_asked(run)
    assert ("@approval/go", "@approval/go#2") == (first.id, second.id)

    assert not (await run.reject("go", by="bob", request=first.id)).is_first
    await run.reject("go", by="bob", request=second.id)
    assert [("ann", True), ("bob", False)] == [answer[:2] for answer in await in_time(run.result())]


# -- Not there ---------------------------------------------------------------------------------------------------------


async def test_an_approval_that_was_not_asked_for_is_not_found(engine: outlive.Engine) -> None:
    """The error says which ones wait. [TS-R11]"""
    run = await engine.start(asking, id="run-1")
    await waits(run)

    message = r"'run-1' has not asked for approval 'other'; .*: run-1 refund"
    with pytest.raises(ApprovalNotFoundError, match=message) as caught:
        await run.approve("other", by="ann")
    assert ("run-1 refund",) == caught.value.pending
    with pytest.raises(ApprovalNotFoundError):
        await run.approve("refund", by="ann", request="@approval/refund#2")
    with pytest.raises(RunNotFoundError):
        await engine.approvals.approve("run-2", "refund", by="ann")
    with pytest.raises(RunNotFoundError):
        await engine.approvals.list("run-2")


async def test_no_decision_is_taken_before_it_is_asked_for(engine: outlive.Engine) -> None:
    """A signal may come early; a decision that no run has asked for yet may not."""
    run = await engine.start(asking_late)
    await stage.gate("first").reached()

    with pytest.raises(ApprovalNotFoundError, match="waits for none"):
        await run.approve("refund", by="ann")
    stage.gate("first").open()
    await has_asked(run)
    await run.approve("refund", by="ann")
    assert "ann" == await in_time(run.result())


async def test_a_name_must_be_one_that_journals_can_use(engine: outlive.Engine) -> None:
    """Else two requests could have one identity."""
    run = await engine.start(asking_strangely, "refund#2")

    with pytest.raises(outlive.errors.RunFailedError, match="use letters, digits"):
        await in_time(run.result())


@outlive.workflow
async def asking_strangely(name: str, options: dict[str, Any] | None = None) -> str:
    return str((await outlive.wait_for_approval(name, **(options or {}))).by)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"deadline": 0}, "deadline=0 cannot work: give more than 0 seconds"),
        ({"deadline": 1e12}, "up to 100 years"),
        ({"deadline": "soon"}, "give more than 0 seconds"),
        ({"deadline": True}, "deadline=True cannot work: give more than 0 seconds"),
        ({"escalate_after": 5}, "escalate_after= and escalate_to= go together"),
        ({"escalate_to": ["boss"]}, "escalate_after= and escalate_to= go together"),
        ({"remind_every": 5}, "remind_every= needs notify="),
        ({"assignees": "finance"}, "give a list"),
        ({"assignees": [5]}, "cannot work: give text"),
        ({"title": 5}, "cannot work: give text"),
        ({"notify": "mail"}, "give a step"),
    ],
)
async def test_a_request_that_makes_no_sense_is_refused(
    engine: outlive.Engine, options: dict[str, Any], message: str
) -> None:
    """Before anybody is asked."""
    run = await engine.start(asking_strangely, "refund", options)

    with pytest.raises(outlive.errors.RunFailedError, match=message):
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
