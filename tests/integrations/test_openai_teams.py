"""Agents of the OpenAI Agents SDK that hand over, run in tools and use MCP servers."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
from agents import Agent, Model, ModelResponse, Usage, function_tool, handoff, set_tracing_disabled
from agents.mcp import MCPServer
from agents.testing import assistant_message, function_call
from mcp.types import CallToolResult, TextContent, Tool
from pydantic import BaseModel

import outlive
from outlive.events import StepSucceeded
from outlive.integrations.agents import People
from outlive.integrations.openai_agents import durable, run
from outlive.testing import TestEngine, crash_everywhere
from tests.engine.support import events_of

set_tracing_disabled(True)

CALLS: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def fresh_world() -> None:
    """Nothing was called yet."""
    CALLS.clear()


class Scripted(Model):  # type: ignore[misc]
    """A model that calls these tools, one after the other, and then says what it was given."""

    def __init__(self, *tools: str, says: str = "done") -> None:
        self._tools, self._says = tools, says

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
        CALLS["model"] += 1
        done = [] if isinstance(input, str) else [each for each in input if each.get("type") == "function_call_output"]
        nulls = [each for each in ([] if isinstance(input, str) else input) if None in each.values()]
        assert not nulls, "a provider refuses fields that it has left out and gets back as null"
        left = self._tools[len(done) :]
        given = {"input": "Dig!"} if left[:1] == ("ask",) else {}
        call = function_call(left[0], given, call_id=f"{left[0]}-{len(done)}") if left else None
        output = call or assistant_message(self._says)
        return ModelResponse(
            output=[output], usage=Usage(requests=1, input_tokens=10, output_tokens=5), response_id=None
        )

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        raise NotImplementedError("these agents do not stream")


@function_tool
async def look() -> str:
    """A tool of an inner agent."""
    CALLS["look"] += 1
    return "soil"


@function_tool(needs_approval=True)
async def dig() -> str:
    """A dangerous tool of an inner agent."""
    CALLS["dig"] += 1
    return "a hole"


class Hole(BaseModel):
    """What an agent answers with."""

    depth: int


class Shed(MCPServer):  # type: ignore[misc]
    """An MCP server."""

    @property
    def name(self) -> str:
        return "shed"

    async def connect(self) -> None:
        """It has no connection."""

    async def cleanup(self) -> None:
        """It has no connection."""

    async def list_tools(self, run_context: Any = None, agent: Any = None) -> list[Tool]:
        CALLS["list"] += 1
        return [Tool.model_validate({"name": "rake", "inputSchema": {"type": "object", "properties": {}}})]

    async def call_tool(self, tool_name: str, arguments: Any, meta: Any = None) -> CallToolResult:
        CALLS[tool_name] += 1
        return CallToolResult(content=[TextContent(type="text", text="raked")])

    async def list_prompts(self) -> Any:
        raise NotImplementedError

    async def get_prompt(self, name: str, arguments: Any = None) -> Any:
        raise NotImplementedError


gardener = durable(Agent(name="gardener", model=Scripted("look", "dig"), tools=[look, dig]))
plain = Agent(name="plain", model=Scripted("look"), tools=[look])
AGENTS: dict[str, Any] = {
    "tool": durable(Agent(name="boss", model=Scripted("ask"), tools=[gardener.as_tool("ask", "Asks.")])),
    "handoff": durable(Agent(name="boss", model=Scripted("transfer_to_gardener"), handoffs=[handoff(gardener)])),
    "mcp": durable(Agent(name="raker", model=Scripted("rake"), mcp_servers=[Shed()])),
    "plain tool": durable(Agent(name="boss", model=Scripted("ask"), tools=[plain.as_tool("ask", "Asks.")])),
    "plain handoff": durable(Agent(name="boss", model=Scripted("transfer_to_plain"), handoffs=[plain])),
    "late tool": durable(Agent(name="boss", model=Scripted("look"))),
    "model": durable(Agent(name="digger", model=Scripted(says='{"depth": 3}'), output_type=Hole)),
}
AGENTS["late tool"].tools.append(look)
digger = AGENTS["model"]
digger.handoffs.append(AGENTS["handoff"])  # Agents may hand over in a circle.
gardener.handoffs.append(digger)


@outlive.workflow(name="openai-team")
async def work(agent: str) -> dict[str, Any]:
    """The answer, and the agent that gave it."""
    answer = await run(AGENTS[agent], "Dig!", people=People(deadline=60))
    output = answer.final_output
    return {"output": output.depth if isinstance(output, Hole) else output, "by": answer.last_agent.name}


async def result_of(agent: str) -> tuple[Any, Any, list[str]]:
    """What a run of this agent ends with, what it has published, and its steps."""
    async with TestEngine() as engine:
        handle = await engine.start(work, agent)
        answer = await handle.result()
        steps = [event.call.removeprefix("agent/") for event in await events_of(handle, StepSucceeded)]
        return answer, (await handle.published())["usage"], steps


@pytest.mark.parametrize(
    ("agent", "by", "requests", "steps"),
    [
        ("tool", "boss", 5, ["boss.model", "gardener.model", "gardener.tool.look", "gardener.model#2"]),
        ("handoff", "gardener", 3, ["boss.model", "gardener.model", "gardener.model#2"]),
    ],
)
async def test_agents_work_together(agent: str, by: str, requests: int, steps: list[str]) -> None:
    """In a tool and by a handoff, each call is one step under the name of its agent; an inner agent asks people."""
    answer, used, made = await result_of(agent)

    assert {"output": "done", "by": by} == answer
    assert (requests, 5 * requests) == (used["requests"], used["output_tokens"])
    assert requests == CALLS["model"]
    assert 0 == CALLS["dig"], "no person has allowed it"
    assert steps == made[: len(steps)]


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["tool", "handoff", "mcp"])
async def test_agents_survive_a_crash_at_every_commit(agent: str) -> None:
    """While an inner agent waits for people, too."""
    report = await crash_everywhere(work, agent, max_points=5)

    assert "done" == report.result["output"]


async def test_tools_of_an_mcp_server_are_steps() -> None:
    """Listing them too: a replay asks no server."""
    answer, _, steps = await result_of("mcp")

    assert "done" == answer["output"]
    assert ["raker.tools.shed", "raker.model", "raker.tool.shed.rake", "raker.tools.shed#2", "raker.model#2"] == steps
    assert (2, 1) == (CALLS["list"], CALLS["rake"])


async def test_answer_can_be_a_model() -> None:
    """It is made of the answer in the journal."""
    answer, _, steps = await result_of("model")

    assert (3, ["digger.model"]) == (answer["output"], steps)


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        ("plain tool", r"agent 'plain', which runs in a tool of agent 'boss', .*durable\(agent\)"),
        ("plain handoff", r"agent 'plain', to which agent 'boss' hands over, .*durable\(agent\)"),
        ("late tool", r"agent 'boss' got look after it was made durable"),
    ],
)
async def test_an_agent_that_would_not_be_durable_is_refused_before_any_call(agent: str, message: str) -> None:
    """An agent, tool or hand-over that would not be durable is refused by its name before anything is called."""
    with pytest.raises(outlive.errors.RunFailedError, match=message):
        await result_of(agent)

    assert {} == CALLS
