"""Prompts and arguments of tools, which people look for first: in histories, in steps that hang and in `why`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from agents import Agent as OpenAIAgent
from agents import Model, ModelResponse, Usage, function_tool, set_tracing_disabled
from agents.mcp import MCPServer
from agents.testing import assistant_message, function_call
from langchain_core.messages import AIMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Send
from mcp.types import CallToolResult, TextContent, Tool
from pydantic_ai import Agent
from pydantic_ai.messages import BinaryContent, ModelMessage, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.messages import ModelResponse as PydanticResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel

import outlive
from outlive.integrations.langgraph import durable as durable_graph
from outlive.integrations.langgraph import run as run_graph
from outlive.integrations.openai_agents import durable, run
from outlive.integrations.pydantic_ai import Durability
from tests.engine.support import in_time, stage

set_tracing_disabled(True)  # Noisy without a key.

REQUEST = "Dig at the shed!"
SECRET = "NL47-0001"
GIVEN = {"where": "shed", "iban": SECRET}
HIDDEN = {"where": "shed", "iban": "[redacted]"}


@pytest.fixture(autouse=True)
async def fresh_stage() -> None:
    """Nothing is under way yet."""
    stage.clear()


async def dig_slowly(where: str) -> str:
    """The part of each tool below that takes as long as a test wants."""
    await stage.gate("dig").pass_through()
    return f"a hole at the {where}"


# -- Pydantic AI --------------------------------------------------------------------------------------------------


async def ask_for_hole(messages: list[ModelMessage], info: AgentInfo) -> PydanticResponse:
    """A model that calls `dig` once."""
    has_dug = any(isinstance(part, ToolReturnPart) for message in messages for part in message.parts)
    return PydanticResponse([TextPart("done") if has_dug else ToolCallPart("dig", json.dumps(GIVEN))])


pydantic_agent = Agent(FunctionModel(ask_for_hole), name="digger", capabilities=[Durability()])


@pydantic_agent.tool_plain
async def dig(where: str, iban: str) -> str:
    """A tool of Pydantic AI."""
    return await dig_slowly(where)


@outlive.workflow(name="arguments-pydantic")
async def work_with_pydantic() -> str:
    """A prompt with a picture."""
    picture = BinaryContent(b"x" * 2_000, media_type="image/png")
    return str((await pydantic_agent.run([REQUEST, picture])).output)


# -- The OpenAI Agents SDK ----------------------------------------------------------------------------------------


class Digger(Model):  # type: ignore[misc]
    """A model that calls `dig` once."""

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
        has_dug = not isinstance(input, str) and any(each.get("type") == "function_call_output" for each in input)
        output = assistant_message("done") if has_dug else function_call("dig", GIVEN, call_id="1")
        return ModelResponse(output=[output], usage=Usage(requests=1), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        raise NotImplementedError("these agents do not stream")


@function_tool(name_override="dig")
async def dig_for_openai(where: str, iban: str) -> str:
    """A tool of the SDK."""
    return await dig_slowly(where)


class Shed(MCPServer):  # type: ignore[misc]
    """An MCP server with the tool."""

    @property
    def name(self) -> str:
        return "shed"

    @property
    def cached_tools(self) -> None:
        return None

    async def connect(self) -> None:
        pass

    async def cleanup(self) -> None:
        pass

    async def list_tools(self, run_context: Any = None, agent: Any = None) -> list[Tool]:
        return [Tool(name="dig", description="digs", inputSchema={"type": "object", "properties": {}})]

    async def call_tool(self, tool_name: str, arguments: Any, meta: Any = None) -> CallToolResult:
        return CallToolResult(content=[TextContent(type="text", text=await dig_slowly(arguments["where"]))])

    async def list_prompts(self) -> Any:
        raise NotImplementedError

    async def get_prompt(self, name: str, arguments: Any = None) -> Any:
        raise NotImplementedError


openai_agent = durable(OpenAIAgent(name="digger", instructions="Be brief.", model=Digger(), tools=[dig_for_openai]))
mcp_agent = durable(OpenAIAgent(name="digger", model=Digger(), mcp_servers=[Shed()]))


@outlive.workflow(name="arguments-openai")
async def work_with_openai() -> str:
    """An agent with a tool of its own."""
    return str((await run(openai_agent, REQUEST)).final_output)


@outlive.workflow(name="arguments-mcp")
async def work_with_mcp() -> str:
    """An agent with an MCP server."""
    return str((await run(mcp_agent, REQUEST)).final_output)


# -- LangGraph ----------------------------------------------------------------------------------------------------


async def model_node(state: MessagesState) -> dict[str, Any]:
    """A node that asks a model."""
    return {"messages": [AIMessage("I dig.")]}


async def dig_node(state: dict[str, Any]) -> dict[str, Any]:
    """A node that is given a state of its own."""
    await dig_slowly(state["where"])
    return {"messages": [AIMessage("done")]}


builder = StateGraph(MessagesState)
builder.add_node("model", model_node)
builder.add_node("dig", dig_node)
builder.add_edge(START, "model")
builder.add_conditional_edges("model", lambda state: [Send("dig", GIVEN)], ["dig"])
builder.add_edge("dig", END)
digging_graph = durable_graph(builder, name="digger")


@outlive.workflow(name="arguments-langgraph")
async def work_with_langgraph() -> str:
    """A graph whose second node is sent what it needs."""
    state = await run_graph(digging_graph, {"messages": [("user", REQUEST)]})
    return str(state["messages"][-1].text)


WAYS = [
    pytest.param(work_with_pydantic, "digger.tool.dig", id="pydantic_ai"),
    pytest.param(work_with_openai, "digger.tool.dig", id="openai_agents"),
    pytest.param(work_with_mcp, "digger.tool.shed.dig", id="openai_mcp"),
    pytest.param(work_with_langgraph, "digger.dig", id="langgraph"),
]


@pytest.mark.parametrize(("workflow", "tool"), WAYS)
async def test_prompts_and_arguments_of_tools_are_seen(workflow: Any, tool: str) -> None:
    """The arguments of a tool that hangs are in the steps under way and in `why`, later they are in the history as the
    prompt is, and a redacted field is in none of them."""
    async with outlive.Engine("memory:", record_arguments=True, redact=["iban"]) as engine:
        handle = await engine.start(workflow)
        await stage.gate("dig").reached()
        (step,) = await handle.steps(arguments=True)
        why = await handle.why()
        stage.gate("dig").open()
        assert "done" == await in_time(handle.result())
        history = await handle.history()

    assert (tool, HIDDEN) == (step.name, step.arguments)
    assert f'{tool}(where="shed", iban="[redacted]")' in why
    shown = [event.data["arguments"] for event in history if event.data.get("arguments")]
    assert HIDDEN in shown
    prompts = [json.dumps(each) for each in shown if each != HIDDEN]
    assert prompts
    assert all(REQUEST in prompt for prompt in prompts)
    assert not [prompt for prompt in prompts if SECRET in prompt]


async def test_instructions_are_part_of_a_prompt() -> None:
    """The instructions of an agent of the OpenAI SDK are shown with the request, and its settings are not."""
    async with outlive.Engine("memory:", record_arguments=True) as engine:
        handle = await engine.start(work_with_openai)
        await stage.gate("dig").reached()
        stage.gate("dig").open()
        await in_time(handle.result())
        (first, *_) = [event.data["arguments"] for event in await handle.history() if event.data.get("arguments")]

    assert {"instructions", "input"} == set(first)
    assert "Be brief." == first["instructions"]


async def test_pictures_in_a_prompt_are_shown_by_their_size() -> None:
    """The bytes of a picture in a prompt are not shown."""
    async with outlive.Engine("memory:", record_arguments=True) as engine:
        handle = await engine.start(work_with_pydantic)
        await stage.gate("dig").reached()
        stage.gate("dig").open()
        await in_time(handle.result())
        (first, *_) = [event.data["arguments"] for event in await handle.history() if event.data.get("arguments")]

    text = msgspec.json.encode(first).decode()
    assert "xxxx" not in text
    assert "image/png" in text
