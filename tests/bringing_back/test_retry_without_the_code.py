"""Retries and forks from a program that does not have the code: a worker that has it does them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

import outlive
from outlive._kernel.client import interventions
from outlive._kernel.client.definitions import Describer
from outlive._kernel.define.intervention import Intervention, intervention_spec
from outlive._kernel.define.registry import Registry
from outlive._kernel.store.contract import WorkerInfo
from outlive.errors import InvalidArgumentError, RunExistsError, RunFailedError, UnserialisableError
from outlive.errors.run import RunNotForkableError, RunNotRetriableError
from outlive.events import RunRetried
from outlive.testing import TestEngine, crash_everywhere
from outlive.testing.crash.everywhere import POINTS_MAX
from outlive.types import Workflow
from tests.engine.inside import journal_of, store_of
from tests.engine.support import Place, registry_of, stage, until

pytestmark = pytest.mark.any_store


@dataclass
class IvReceipt:
    """What a step returns that a stranger has no class for."""

    cents: int


@outlive.step
async def iv_price(item: str) -> IvReceipt:
    """The step whose result is edited."""
    stage.call(f"price of {item}")
    return IvReceipt(len(item))


@outlive.step
async def iv_charge(receipt: IvReceipt) -> int:
    """Works when it is repaired."""
    if not stage.count("repaired"):
        raise ConnectionError("no answer")
    return receipt.cents


@outlive.workflow
async def iv_order(item: str) -> int:
    """Two steps."""
    return await iv_charge(await iv_price(item))


@outlive.workflow
async def iv_raises() -> None:
    """What no retry helps."""
    raise KeyError("x")


class Tenants(outlive.middleware.Middleware):
    """Wants a header in whatever is done for a run."""

    async def on_step(self, step: outlive.types.StepContext, call_next: Callable[[], Awaitable[Any]]) -> Any:
        """Note those of Outlive's own."""
        stage.values.setdefault(step.name, step.headers.get("tenant"))
        return await call_next()


@pytest.fixture
async def owner(place: Place) -> AsyncIterator[outlive.Engine]:
    """A worker that has the code."""
    async with place.engine(registry=registry_of(iv_order, iv_raises), middleware=[Tenants()]) as engine:
        yield engine


@pytest.fixture
async def stranger(place: Place, owner: outlive.Engine) -> AsyncIterator[outlive.Engine]:
    """A program on the same store that has no code at all."""
    await Describer(store_of(owner), registry_of(iv_order, iv_raises)).describe()
    async with place.engine(registry=Registry(), worker=False) as engine:
        yield engine


async def fail(engine: outlive.Engine, item: str = "lamp") -> outlive.types.RunHandle[int]:
    """A run that has failed."""
    run = await engine.start(iv_order, item, id="order-7", headers={"tenant": "a"})
    with pytest.raises(RunFailedError):
        await run.result()
    return run


@pytest.mark.every_store
async def test_a_worker_retries_a_run_for_a_program_without_the_code(
    owner: outlive.Engine, stranger: outlive.Engine
) -> None:
    """The run goes on where it failed, and the request is a run that says so."""
    run = await fail(owner)
    stage.call("repaired")

    await stranger.retry("order-7", reason="the bank is back")

    assert await run.result() == 4
    assert stage.calls == ["price of lamp", "repaired"]
    (retried,) = [event for event in await journal_of(run) if isinstance(event, RunRetried)]
    assert retried.reason == "the bank is back"
    (request,) = await stranger.list(workflow="outlive.intervention:iv_order")
    assert request.status == "succeeded"
    assert stage.values["outlive.intervene"] == "a"


async def test_a_worker_forks_a_run_for_a_program_without_the_code(
    owner: outlive.Engine, stranger: outlive.Engine
) -> None:
    """Plain values become what the step returns and the workflow takes."""
    await fail(owner)
    stage.call("repaired")

    edited = await stranger.fork("order-7", at="iv_charge", set={"iv_price": {"cents": 9}}, id="order-7b")
    other = await stranger.fork("order-7", at=1, input={"item": "candle"})

    assert await owner.get(edited.id).result() == 9
    assert await owner.get(other.id).result() == 6
    assert stage.calls == ["price of lamp", "repaired", "price of candle"]


async def test_a_refusal_of_the_worker_reaches_the_caller(owner: outlive.Engine, stranger: outlive.Engine) -> None:
    """A caller without the code gets the error of the worker that refused its retry or fork, with its class and
    words."""
    await fail(owner)
    hopeless = await owner.start(iv_raises, id="hopeless")
    with pytest.raises(RunFailedError):
        await hopeless.result()

    with pytest.raises(
        RunNotRetriableError, match=r"hopeless.*its workflow raised KeyError.*change the code"
    ) as caught:
        await stranger.retry("hopeless")
    assert caught.value.run_id == "hopeless"
    with pytest.raises(RunNotForkableError, match="no call 'pay'; it has iv_price, iv_charge"):
        await stranger.fork("order-7", at="pay")
    with pytest.raises(UnserialisableError, match="give a value of type IvReceipt"):
        await stranger.fork("order-7", set={"iv_price": "cheap"})
    with pytest.raises(InvalidArgumentError, match=r"engine\.fork.*\$\.item"):
        await stranger.fork("order-7", at=1, input={"item": 7})
    with pytest.raises(RunExistsError, match="use another id"):
        await stranger.fork("order-7", id="order-7")
    outcomes = await stranger.retry(workflow="iv_raises")
    assert [outcome.error for outcome in outcomes] == ["RunNotRetriableError"]


async def test_a_fork_whose_id_is_taken_is_not_asked_for(owner: outlive.Engine, stranger: outlive.Engine) -> None:
    """So the audit log has no fork that there never was."""
    await fail(owner)
    with owner.audit.acting("ann"), pytest.raises(RunExistsError, match="use another id for the fork"):
        await stranger.fork("order-7", id="order-7")

    assert await stranger.audit.list() == []


async def test_without_a_worker_that_has_the_code_nothing_is_asked(place: Place) -> None:
    """The caller hears at once which code is missing."""
    async with place.engine(registry=registry_of(iv_order)) as owner:
        await fail(owner)
    async with place.engine(registry=registry_of(iv_raises)) as stranger:
        with pytest.raises(RunNotRetriableError, match=r"iv_order@1 is not defined.*no live worker.*start a worker"):
            await stranger.retry("order-7")
        with pytest.raises(RunNotForkableError, match=r"iv_order@9 is not defined.*no live worker"):
            await stranger.fork("order-7", version=9)
        assert [run.id for run in await stranger.list()] == ["order-7"]


async def test_workers_of_a_queue_do_it_in_its_line(place: Place) -> None:
    """If they alone have the code, and take nothing else."""
    async with (
        place.engine(registry=registry_of(iv_order), queues=["iv-mail"]) as owner,
        place.engine(registry=Registry(), worker=False) as stranger,
    ):
        run = await owner.start(iv_order, "lamp", id="order-7", queue="iv-mail")
        with pytest.raises(RunFailedError):
            await run.result()
        stage.call("repaired")

        await stranger.retry("order-7")

        assert await run.result() == 4
        (request,) = await stranger.list(workflow="outlive.intervention:iv_order")
        assert request.queue == "iv-mail"


async def test_a_request_that_is_not_answered_is_withdrawn(
    owner: outlive.Engine, stranger: outlive.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not carried out later, when the caller has done something else."""
    monkeypatch.setattr(interventions, "ANSWER_SECONDS", 0.05)
    await fail(owner)
    await owner.pause(all=True, by="ann")

    with pytest.raises(RunNotRetriableError, match=r"no worker has answered.*paused by ann.*withdrawn"):
        await stranger.retry("order-7")

    await owner.resume(all=True)
    (request,) = await stranger.list(workflow="outlive.intervention:iv_order")
    assert request.status == "cancelled"
    with pytest.raises(RunNotRetriableError, match="it is a request to retry or fork another run"):
        await owner.retry(request.id)
    with pytest.raises(RunNotForkableError, match="it is a request to retry or fork another run"):
        await owner.fork(request.id)
    assert await owner.get("order-7").status() == "failed"


async def test_a_worker_that_stops_meanwhile_is_missed_by_the_name_of_the_workflow(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person has never heard of the workflow in which Outlive asks for it."""
    monkeypatch.setattr(interventions, "ANSWER_SECONDS", 0.05)
    async with place.engine(registry=registry_of(iv_order)) as owner:
        await fail(owner)
        before = [await store_of(owner).list_workers(with_runs=False)]
    async with place.engine(registry=Registry(), worker=False) as stranger:
        now = store_of(stranger).list_workers

        async def list_workers(*, with_runs: bool = True) -> list[WorkerInfo]:
            return before.pop() if before else await now(with_runs=with_runs)

        monkeypatch.setattr(store_of(stranger), "list_workers", list_workers)
        with pytest.raises(RunNotRetriableError, match=r"\(no live worker has iv_order@1; start one that defines it\)"):
            await stranger.retry("order-7")


async def test_a_request_that_is_carried_out_twice_is_done_once(owner: outlive.Engine) -> None:
    """The worker that takes over from one that died finds out that it was done."""
    await fail(owner)
    stage.call("repaired")
    asked_at = store_of(owner).now()
    again: Workflow[[Intervention], object] = Workflow(intervention_spec("iv_order", 1), {})
    await owner.retry("order-7")
    await owner.fork("order-7", id="fork")
    await until(lambda: _has_ended(owner, "order-7"))

    for wanted in (
        Intervention(verb="retry", run_id="order-7", at=asked_at),
        Intervention(verb="fork", run_id="order-7", at=asked_at, new_id="fork"),
    ):
        assert await (await owner.start(again, wanted)).result() is None
    late = Intervention(verb="retry", run_id="order-7", at=asked_at + 3600 * 1_000_000)
    assert "it is succeeded" in str(await (await owner.start(again, late)).result())


@outlive.step
async def iv_mortal_step() -> str:
    """Works when its run has been retried."""
    if not stage.values["repaired"]:
        raise ConnectionError("no answer")
    return "done"


@outlive.workflow
async def iv_mortal() -> str:
    """One step."""
    return await iv_mortal_step()


@pytest.mark.parametrize("points", [5, pytest.param(POINTS_MAX, marks=pytest.mark.slow)])
async def test_a_request_survives_every_crash(points: int) -> None:
    """A run that a request retries is retried once, at whichever commit the worker that carries it out is killed."""
    again: Workflow[[Intervention], object] = Workflow(intervention_spec("iv_mortal", 1), {})

    async def bring_back(engine: TestEngine, run_id: str) -> None:
        run = engine.get(run_id)
        stage.values["repaired"] = any(isinstance(event, RunRetried) for event in await journal_of(run))
        with suppress(RunFailedError):
            await run.result()
        stage.values["repaired"] = True
        request = await engine.start(again, Intervention(verb="retry", run_id=run_id, at=0), id="request")
        assert await request.result() is None
        assert 1 == len([event for event in await journal_of(run) if isinstance(event, RunRetried)])

    await crash_everywhere(iv_mortal, drive=bring_back, max_points=points)


async def _has_ended(engine: outlive.Engine, run_id: str) -> bool:
    return (await engine.get(run_id).info()).has_ended
