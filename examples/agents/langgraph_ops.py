"""A graph of LangGraph that cleans up backups, asks a person before it deletes one, and survives kill -9.

    python examples/agents/langgraph_ops.py                                     # in one terminal: it waits for a person
    outlive approve clean-up-1 delete_backup --by ann --store sqlite:ops.db     # in another one

Each node is a step. The model is called with OpenAI's own client; a chat model of LangChain emits its text by itself.
"""

import asyncio
import json
from typing import Any

from backups import delete, find, main
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, convert_to_openai_messages
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import interrupt
from openai import AsyncOpenAI

import outlive
from outlive.integrations.agents import People
from outlive.integrations.langgraph import durable, run

EMPTY: dict[str, Any] = {"type": "object", "properties": {}}
NAMED = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
TOOLS: Any = [
    {"type": "function", "function": {"name": "list_backups", "parameters": EMPTY}},
    {"type": "function", "function": {"name": "delete_backup", "parameters": NAMED}},
]


async def ask_model(state: MessagesState) -> dict[str, list[BaseMessage]]:
    text, calls, used = "", [], None
    async with AsyncOpenAI() as client:
        stream = await client.chat.completions.create(
            model="gpt-5",
            messages=convert_to_openai_messages(state["messages"]),
            tools=TOOLS,
            stream=True,
            stream_options={"include_usage": True},
        )
        async for chunk in stream:
            used = chunk.usage or used
            for choice in chunk.choices:
                if choice.delta.content:
                    text += choice.delta.content
                    await outlive.emit("tokens", choice.delta.content)
                calls += choice.delta.tool_calls or []  # This model sends a call in one piece.
    return {
        "messages": [
            AIMessage(
                text,
                tool_calls=[
                    {"id": call.id, "name": call.function.name, "args": json.loads(call.function.arguments)}
                    for call in calls
                ],
                usage_metadata={
                    "input_tokens": used.prompt_tokens,
                    "output_tokens": used.completion_tokens,
                    "total_tokens": used.total_tokens,
                },
            )
        ]
    }


async def call_tool(state: MessagesState) -> dict[str, list[BaseMessage]]:
    [call] = state["messages"][-1].tool_calls
    if call["name"] == "list_backups":
        result = json.dumps(await find())
    else:
        answer = interrupt({"tool": call["name"], "arguments": call["args"]})
        result = await delete(call["args"]["name"]) if answer["approved"] else answer["message"]
    return {"messages": [ToolMessage(result, tool_call_id=call["id"])]}


def next_node(state: MessagesState) -> str:
    return "tool" if state["messages"][-1].tool_calls else END


builder = StateGraph(MessagesState)
builder.add_node("model", ask_model)
builder.add_node("tool", call_tool)
builder.add_edge(START, "model")
builder.add_conditional_edges("model", next_node)
builder.add_edge("tool", "model")
graph = durable(builder, name="ops", stream="tokens", node={"retry": outlive.Retry(attempts=3)})


@outlive.workflow(name="langgraph-ops")
async def clean_up(request: str) -> str:
    state = await run(graph, {"messages": [("user", request)]}, people=People(assignees=["ops"]))
    return str(state["messages"][-1].content)


if __name__ == "__main__":
    asyncio.run(main(clean_up))
