"""Agents of Pydantic AI that run other agents, several at once, with outputs that are not text."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import outlive
from outlive.events import StepSucceeded
from outlive.integrations.pydantic_ai import Durability, asks_people
from outlive.testing import TestEngine, crash_everywhere
from tests.engine.support import events_of

CALLS: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def fresh_world() -> None:
    """Nothing was called yet."""
    CALLS.clear()


def answering(*parts: Any) -> FunctionModel:
    """A model that gives these answers, one after the other."""

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        CALLS["model"] += 1
        part = parts[sum(isinstance(message, ModelResponse) for message in messages)]
        return ModelResponse(parts=part if isinstance(part, list) else [part])

    return FunctionModel(answer)


class City(BaseModel):
    """What an agent answers with."""

    name: str
    size: int


scout: Agent[None, City] = Agent(
    answering(
        [ToolCallPart("look", {"where": where}, tool_call_id=where) for where in ("north", "south")],
        ToolCallPart("final_result", {"name": "Oslo", "size": "large"}),
        ToolCallPart("final_result", {"name": "Oslo", "size": 1}),
        ToolCallPart("final_result", {"name": "Oslo", "size": 3}),
    ),
    name="scout",
    output_type=City,
    retries=3,
    capabilities=[Durability()],
)


@scout.tool_plain
async def look(where: str) -> str:
    """Two of these run at once."""
    CALLS[f"look {where}"] += 1
    return f"houses in the {where}"


@scout.output_validator
def is_large(city: City) -> City:
    """A sync function that sends the model back."""
    if city.size < 3:
        raise ModelRetry("Look again.")
    return city


def lead(name: str, *capabilities: Any) -> Agent[None, str]:
    """An agent that asks another one."""
    return Agent(
        answering(ToolCallPart("send", {}, tool_call_id="1"), TextPart("done")),
        name=name,
        capabilities=[Durability(), *capabilities],
    )


in_workflow, in_step, asking = lead("in-workflow"), lead("in-step"), lead("asking")


@in_workflow.tool(metadata={"outlive": False})
async def send(ctx: RunContext[None]) -> str:
    """As workflow code: each call of the other agent is a step of its own."""
    return str((await scout.run("?", usage=ctx.usage)).output.name)


@in_step.tool(name="send")
async def send_in_step(ctx: RunContext[None]) -> str:
    """As the documentation of Pydantic AI has it: the other agent runs in the step of the tool."""
    return str((await scout.run("?", usage=ctx.usage)).output.name)


@asking.tool(name="send")
async def send_to_careful(ctx: RunContext[None]) -> str:
    """The other agent has to ask people."""
    agent: Agent[None, str] = Agent(
        answering(ToolCallPart("burn", {}), TextPart("done")), name="careful", capabilities=[asks_people()]
    )
    agent.tool_plain(requires_approval=True)(burn)
    return str((await agent.run("?", usage=ctx.usage)).output)


async def burn() -> str:
    """A dangerous tool."""
    CALLS["burn"] += 1
    return "burnt"


AGENTS = {"in-workflow": in_workflow, "in-step": in_step, "asking": asking}


@outlive.workflow(name="pydantic-team")
async def work(agent: str) -> dict[str, Any]:
    """What was counted."""
    answer = await AGENTS[agent].run("?")
    used = answer.usage
    return {"output": answer.output, "requests": used.requests, "input_tokens": used.input_tokens}


@outlive.workflow(name="pydantic-two-teams")
async def work_at_once() -> list[City]:
    """The same agent twice, at once."""
    answers = await asyncio.gather(scout.run("?"), scout.run("?"))
    return [answer.output for answer in answers]


@pytest.mark.parametrize("agent", ["in-workflow", "in-step"])
async def test_agent_in_a_tool_is_counted_once(agent: str) -> None:
    """Live and after a replay alike: what it used is in the journal, whether its calls are steps or part of one."""
    async with TestEngine() as engine:
        handle = await engine.start(work, agent)
        answer = await handle.result()
        used = (await handle.published())["usage"]
        steps = [event.call for event in await events_of(handle, StepSucceeded)]

    assert "done" == answer["output"]
    assert 6 == answer["requests"] == used["requests"] == CALLS["model"]
    assert answer["input_tokens"] == used["input_tokens"]
    assert (8 if agent == "in-workflow" else 3) == len(steps)
    assert "agent/scout.tool.look#2" in steps or agent == "in-step"


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["in-workflow", "in-step"])
async def test_agent_in_a_tool_survives_a_crash_at_every_commit(agent: str) -> None:
    """With the same answer and the same usage."""
    report = await crash_everywhere(work, agent, max_points=6)

    assert ("done", 6) == (report.result["output"], report.result["requests"])


async def test_agent_in_a_step_cannot_ask_people() -> None:
    """The message says how it could."""
    async with TestEngine() as engine:
        handle = await engine.start(work, "asking")
        with pytest.raises(outlive.errors.RunFailedError, match=r'tool .burn. needs .* metadata=\{"outlive": False\}'):
            await handle.result()

    assert 0 == CALLS["burn"]


async def test_two_runs_of_an_agent_at_once_keep_their_answers_apart() -> None:
    """With tools at once in each of them, and answers that are models and were sent back twice."""
    async with TestEngine() as engine:
        handle = await engine.start(work_at_once)
        assert [City(name="Oslo", size=3)] * 2 == await handle.result()

    assert {"model": 8, "look north": 2, "look south": 2} == CALLS


@pytest.mark.slow
async def test_two_runs_of_an_agent_at_once_survive_a_crash_at_every_commit() -> None:
    """Each call is known by its name and its number, whatever tasks make it."""
    report = await crash_everywhere(work_at_once, max_points=6)

    assert [City(name="Oslo", size=3)] * 2 == report.result
