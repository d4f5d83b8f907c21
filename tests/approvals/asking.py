"""Workflows that ask people, for the tests of approvals."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pydantic

import outlive
from outlive.errors import ApprovalExpiredError
from outlive.types import ApprovalRequest, RunHandle
from tests.engine.support import hold, until


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
    except ApprovalExpiredError as error:
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
async def asking_family() -> list[str]:
    child = asyncio.create_task(asking_child())
    return [(await outlive.wait_for_approval("child")).by, await child]


@outlive.workflow
async def asking_late() -> str:
    await hold("first")
    return (await outlive.wait_for_approval("refund")).by


async def has_asked(run: RunHandle[Any], pending: int = 1) -> list[ApprovalRequest]:
    """Return when a run waits for this many decisions, with them."""

    async def is_so() -> bool:
        return pending == sum(entry.status == "pending" for entry in await run.approvals())

    await until(is_so)
    return [entry for entry in await run.approvals() if entry.status == "pending"]
