"""Runs that the engine makes for itself act in the name of others: no key has them do more than was asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import outlive
from outlive._features.bulk import workflow as bulk
from outlive._kernel.define import intervention
from outlive._kernel.replay.command import StepSpec
from outlive.http import Api
from outlive.testing import TestEngine
from tests.http.caller import Caller

API = "/api/v1"


@outlive.workflow
async def own_runs_order(number: int) -> int:
    """What is deleted."""
    return number


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[TestEngine]:
    """A worker, a run, and an admin's order to delete others."""
    async with TestEngine(f"sqlite:{tmp_path / 'runs.db'}") as engine:
        await engine.start(own_runs_order, 1, id="kept")
        await engine.settle()
        yield engine


async def operator(engine: TestEngine) -> Caller:
    """One who may delete nothing."""
    return Caller(Api(engine, auth="keys"), key=(await engine.keys.create("op", scope="operator")).secret)


async def pausing(engine: TestEngine, caller: Caller, id: str) -> Caller:
    """An admin has all runs of a workflow deleted, and an operator pauses that before it begins."""
    assert (await caller.post(f"{API}/workflows/outlive.bulk/pause")).status == 200
    with engine.audit.acting("boss"):
        await engine.bulk.start("purge", id=id, workflow="nothing", older_than=0)
    assert (await caller.post(f"{API}/runs/{id}/pause")).status == 202
    return caller


async def test_no_operator_says_which_runs_an_admin_deletes(engine: TestEngine) -> None:
    """Skipping the step that chooses them takes no result. [S33]"""
    caller = await pausing(engine, await operator(engine), "b-1")
    chosen: dict[str, Any] = {"groups": [{"run_ids": ["kept"]}], "refused": [], "after": None}

    await caller.post(f"{API}/runs/b-1/skip", {"result": chosen})
    await caller.post(f"{API}/workflows/outlive.bulk/resume")
    await engine.settle()

    assert (await caller.get(f"{API}/runs/kept")).status == 200
    assert "takes no result" in (await caller.get(f"{API}/runs/b-1")).data["reason"]


async def test_no_operator_repeats_what_an_admin_has_asked_for(engine: TestEngine) -> None:
    """A fork would do it once more, in the name of that person. [S33]"""
    with engine.audit.acting("boss"):
        await (await engine.bulk.start("purge", id="b-1", workflow="nothing", older_than=0)).result()
    caller = await operator(engine)

    for edit in ({}, {"at": "outlive.choose"}):
        answer = await caller.post(f"{API}/runs/b-1/fork", {"id": "b-2", **edit})
        assert (answer.status, answer.code) == (409, "run_not_forkable")
    await engine.settle()

    assert (await caller.get(f"{API}/runs/b-2")).status == 404


async def test_no_operator_begins_again_with_what_an_admin_has_stopped(engine: TestEngine) -> None:
    """A purge that was cancelled goes on for an admin alone, also as one of many runs that are retried. [S33]"""
    caller = await pausing(engine, await operator(engine), "b-1")
    assert (await caller.post(f"{API}/runs/b-1/cancel")).status == 202
    await caller.post(f"{API}/workflows/outlive.bulk/resume")
    await engine.settle()

    refused = await caller.post(f"{API}/runs/b-1/retry")
    chosen = {"verb": "retry", "id": "b-2", "workflow": "outlive.bulk", "status": ["cancelled"]}
    assert (await caller.post(f"{API}/bulk/operations", chosen)).status == 201
    await engine.settle()

    assert (refused.status, refused.code) == (409, "run_not_retriable")
    assert (await caller.get(f"{API}/runs/b-1")).data["status"] == "cancelled"
    admin = Caller(Api(engine, auth="keys"), key=(await engine.keys.create("ann", scope="admin")).secret)
    assert (await admin.post(f"{API}/runs/b-1/retry")).status == 200


@pytest.mark.parametrize("module", [bulk, intervention], ids=lambda module: module.__name__)
def test_no_person_says_what_a_step_in_the_name_of_another_has_done(module: Any) -> None:
    """Every step of these modules, also one that comes. [S33]"""
    steps = [value for value in vars(module).values() if isinstance(value, StepSpec)]

    assert steps
    assert [step.name for step in steps if not step.options.unsettable] == []
