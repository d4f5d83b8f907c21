"""Workflows for schedules, and what tests of schedules ask."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import outlive
from outlive._features.schedules.in_code import OPTION
from outlive._kernel.define.registry import Registry
from outlive.testing import TestEngine
from tests.engine.support import stage


@outlive.workflow
async def tick_noted(at: datetime, day: date | None = None) -> str:
    """Notes when it was to run, and what its headers say."""
    run = outlive.current_run()
    stage.call((run.id, at.isoformat(), run.headers, day))
    return run.id


@outlive.workflow
async def tick_plain() -> str:
    """Ends at once."""
    return "done"


@outlive.workflow(queue=outlive.Queue("ticks", priorities=True, ageing=10))
async def tick_queued() -> str:
    """Waits for its turn."""
    return "done"


@outlive.workflow
async def tick_slow() -> str:
    """Takes two hours and a half, and cleans up."""
    try:
        await asyncio.sleep(9_000)
    finally:
        stage.call(("cleaned up", outlive.current_run().id))
    return "done"


@outlive.workflow
async def tick_patient() -> str:
    """Sleeps an hour and waits for a signal."""
    await asyncio.sleep(3_600)
    return await outlive.wait_for_signal("go", str)


@outlive.workflow
async def tick_failing() -> str:
    """Fails."""
    raise ValueError("the feed is empty")


def registry_with(workflow: outlive.types.Workflow[..., Any], *schedules: outlive.types.ScheduleSpec) -> Registry:
    """A registry whose code has this workflow with these schedules, and nothing else."""
    registry = Registry()
    registry.add_workflow(workflow.spec)
    registry.declare(OPTION, workflow.spec, schedules)
    return registry


async def hours_of(engine: TestEngine, name: str) -> list[tuple[int, str]]:
    """The hours of the ticks of all runs of a schedule, and their statuses."""
    page = await engine.list(tags={"schedule": name}, limit=200)
    return sorted((hour_in(run.id), run.status) for run in page)


def hour_in(run_id: str) -> int:
    """The hour in the id of the run of a tick."""
    return datetime.fromisoformat(run_id.partition("@")[2]).hour


def started(runs: Sequence[tuple[int, str]]) -> list[int]:
    """The hours alone."""
    return [hour for hour, _ in runs]
