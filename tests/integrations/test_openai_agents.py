"""Agents of the OpenAI Agents SDK as workflows: steps, people who are asked, usage, and conversations."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
from agents.testing import assistant_message, function_call
from openai import OpenAIError

import outlive
from outlive.events import StepSucceeded
from outlive.integrations.agents import People
from outlive.integrations.openai_agents import Conversation, durable, run
from outlive.testing import TestEngine, crash_everywhere
from tests.engine.support import events_of, until

set_tracing_disabled(True)  # Noisy without a key, and the tests outside of workflows would start its thread.

CALLS: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def fresh_world() -> None:
    """Nothing was called yet."""
    CALLS.clear()


def results_in(asked: Any) -> list[str]:
    """What the tools have returned so far."""
    items = [] if isinstance(asked, str) else asked
    return [str(item["output"]) for item in items if item.get("type") == "function_call_output"]


class Gardener(Model):  # type: ignore[misc]
    """A model that calls `look`, then `dig`, and then says what came out of it."""

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
        CALLS["model"] += 1
        instructions, asked = system_instructions, input
        done = results_in(asked)
        if instructions == "fail":
            raise OpenAIError("no quota")
        if instructions == "chat":
            output = assistant_message(f"You have said {sum(item.get('role') == 'user' for item in asked)} things.")
        elif len(done) < 2:
            output = function_call(["look", "dig"][len(done)], {"where": "shed"}, call_id=f"call-{len(done)}")
        else:
            output = assistant_message(done[-1])
        return ModelResponse(
            output=[output], usage=Usage(requests=1, input_tokens=10, output_tokens=5), response_id=None
        )

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        raise NotImplementedError("these agents do not stream; the example does")


@function_tool
def look(where: str) -> str:
    """A sync tool: a step."""
    CALLS[f"look {outlive.current_step().name}"] += 1
    return f"soil at the {where}"


@function_tool(needs_approval=True)
async def dig(where: str) -> str:
    """A dangerous tool."""
    CALLS["dig"] += 1
    return f"a hole at the {where}"


gardener = durable(Agent(name="gardener", model=Gardener(), tools=[look, dig]))
failing = durable(Agent(name="failing", instructions="fail", model=Gardener()))
chatting = durable(Agent(name="chatting", instructions="chat", model=Gardener()))
plain = Agent(name="plain", model=Gardener())


@outlive.workflow(name="openai-garden")
async def work_in_garden(request: str) -> str:
    """Answers with what it counted."""
    answer = await run(gardener, request, people=People(assignees=["ops"]))
    return f"{answer.final_output} {answer.context_wrapper.usage.output_tokens}"


@outlive.workflow(name="openai-streamed")
async def work_streamed(request: str) -> str:
    """The events of the SDK in a workflow: the same agent, by `Runner.run_streamed`."""
    answer = Runner.run_streamed(chatting, [{"role": "user", "content": request}])
    kinds = {event.type async for event in answer.stream_events()}
    assert "run_item_stream_event" in kinds
    return str(answer.final_output)


@outlive.workflow(name="openai-failing")
async def work_and_fail(request: str) -> str:
    """The error of a model."""
    try:
        return str((await run(failing, request)).final_output)
    except OpenAIError as error:
        return f"caught {error}"


@outlive.workflow(name="openai-plain")
async def work_without_steps(request: str) -> None:
    """An agent that was not made durable."""
    await run(plain, request)


@outlive.workflow(name="openai-chat")
async def chat(said: list[str]) -> str:
    """One conversation, over several turns."""
    session = Conversation("ann")
    outputs = [(await run(chatting, line, session=session)).final_output for line in said]
    return str(outputs[-1])


async def asked(handle: outlive.types.RunHandle[Any]) -> None:
    """People have been asked."""

    async def has_asked() -> bool:
        return bool(await handle.approvals())

    await until(has_asked)


async def test_agent_asks_people_and_counts() -> None:
    """Models and tools are steps with names that people can read."""
    async with outlive.Engine("memory:") as engine:
        handle = await engine.start(work_in_garden, "Dig!")
        await asked(handle)
        [entry] = await handle.approvals()
        assert ("dig", 'Call dig(where="shed")?', ("ops",)) == (entry.name, entry.title, entry.assignees)
        await handle.approve("dig", by="ann")
        assert "a hole at the shed 15" == await handle.result()
        published = await handle.published()
        steps = [event.call for event in await events_of(handle, StepSucceeded)]

    assert {"requests": 3, "input_tokens": 30, "output_tokens": 15} == published["usage"]
    assert [
        "agent/gardener.model",
        "agent/gardener.tool.look",
        "agent/gardener.model#2",
        "agent/gardener.tool.dig",
        "agent/gardener.model#3",
    ] == steps
    assert {"model": 3, "look gardener.tool.look": 1, "dig": 1} == CALLS


async def test_tool_that_people_refuse_is_not_called() -> None:
    """The model reads why."""
    async with outlive.Engine("memory:") as engine:
        handle = await engine.start(work_in_garden, "Dig!")
        await asked(handle)
        await handle.reject("dig", by="ann", comment="my roses")
        assert "ann did not allow this call: my roses 15" == await handle.result()

    assert 0 == CALLS["dig"]


async def test_agent_survives_a_crash_at_every_commit() -> None:
    """Its conversation too: each line is in it once."""
    report = await crash_everywhere(chat, ["a", "b"], max_points=5)

    assert report.runs > 4
    assert "You have said 2 things." == report.result


async def test_conversation_is_remembered_by_the_store() -> None:
    """For the next run, and for code outside of runs; an item can be taken back."""
    async with outlive.Engine("memory:") as engine:
        first = await engine.start(chat, ["a"])
        assert "You have said 1 things." == await first.result()
        second = await engine.start(chat, ["b", "c"])
        assert "You have said 3 things." == await second.result()

        conversation = Conversation("ann", store=engine.checkpoints)
        assert ["a", "b", "c"] == [item["content"] for item in await conversation.get_items() if item["role"] == "user"]
        [last] = await conversation.get_items(limit=1)
        assert last == await conversation.pop_item()
        assert 5 == len(await conversation.get_items())
        await conversation.clear_session()
        assert [] == await conversation.get_items()
        assert await conversation.pop_item() is None
        odd = Conversation("ann & bob / 7", store=engine.checkpoints)
        await odd.add_items([{"role": "user", "content": "any text is an id"}])
        assert 1 == len(await odd.get_items())
        assert [] == await conversation.get_items()


async def test_streamed_run_works_in_a_workflow() -> None:
    """Events come when the answer is in the journal."""
    async with TestEngine() as engine:
        handle = await engine.start(work_streamed, "a")
        assert "You have said 1 things." == await handle.result()


async def test_error_of_a_model_reaches_the_workflow_as_it_is() -> None:
    """By its class, out of the journal."""
    async with TestEngine() as engine:
        handle = await engine.start(work_and_fail, "Dig!")
        assert "caught no quota" == await handle.result()


async def test_agent_that_is_not_durable_is_refused() -> None:
    """With what to do about it."""
    async with TestEngine() as engine:
        handle = await engine.start(work_without_steps, "Dig!")
        with pytest.raises(outlive.errors.RunFailedError, match=r"durable\(agent\)"):
            await handle.result()


async def test_durable_agent_outside_of_a_run_is_an_ordinary_one() -> None:
    """No step, no journal; tools that need approval interrupt it as ever."""
    answer = await run(chatting, [{"role": "user", "content": "a"}])

    assert "You have said 1 things." == answer.final_output
