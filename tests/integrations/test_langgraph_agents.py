"""Prebuilt agents of LangGraph, graphs in graphs, and what durable graphs refuse."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import create_react_agent
from langgraph.types import interrupt

import outlive
from outlive.errors import ConfigurationError
from outlive.events import StepSucceeded
from outlive.integrations.agents import People
from outlive.integrations.langgraph import durable, run
from outlive.testing import TestEngine, crash_everywhere
from tests.engine.support import events_of

CALLS: Counter[str] = Counter()
PEOPLE = People(deadline=60)


@pytest.fixture(autouse=True)
def fresh_world() -> None:
    """Nothing was called yet."""
    CALLS.clear()


class Gardener(BaseChatModel):  # type: ignore[misc]
    """A model that calls `dig` in two places at once, and then says that it is done."""

    @property
    def _llm_type(self) -> str:
        return "gardener"

    def bind_tools(self, tools: Any, **options: Any) -> Gardener:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        CALLS["model"] += 1
        places = [] if any(isinstance(message, ToolMessage) for message in messages) else ["here", "there"]
        answer = AIMessage(
            "" if places else "done",
            tool_calls=[{"name": "dig", "args": {"where": where}, "id": where} for where in places],
            usage_metadata={"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
        )
        return ChatResult(generations=[ChatGeneration(message=answer)])


@tool  # type: ignore[untyped-decorator, unused-ignore]
async def dig(where: str) -> str:
    """Dig a hole."""
    CALLS[f"dig {where}"] += 1
    return f"a hole {where}"


def prebuilt(**options: Any) -> Any:
    """An agent that LangGraph makes."""
    with pytest.warns(DeprecationWarning, match="has been moved"):
        return create_react_agent(Gardener(), [dig], **options)


class Log(TypedDict):
    """The state of the graphs below."""

    log: Annotated[list[str], operator.add]


async def look(state: Log) -> dict[str, list[str]]:
    """A node of an inner graph."""
    CALLS["look"] += 1
    return {"log": ["soil"]}


async def ask(state: Log) -> dict[str, list[str]]:
    """A node of an inner graph that asks people."""
    return {"log": [interrupt("Really?")["message"]]}


inner = StateGraph(Log)
inner.add_node("look", look)
inner.add_node("ask", ask)
inner.add_edge(START, "look")
inner.add_edge("look", "ask")


async def call_inner(state: Log) -> dict[str, list[str]]:
    """A node whose code calls a graph that asks people."""
    answer: dict[str, list[str]] = await inner.compile().ainvoke({"log": []})
    return answer


async def pass_on(state: MessagesState) -> dict[str, list[BaseMessage]]:
    """A node that returns an answer again, as middleware of LangChain does."""
    return {"messages": [state["messages"][-1]]}


def one_node(name: str, node: Any, state: Any = Log) -> Any:
    """A graph with one node."""
    builder = StateGraph(state)
    builder.add_node(name, node)
    builder.add_edge(START, name)
    return builder


agent = durable(prebuilt(), name="gardener")
team_builder = one_node("gardener", prebuilt(), MessagesState)
team_builder.add_node("pass_on", pass_on)
team_builder.add_edge("gardener", "pass_on")
team = durable(team_builder, name="team")
nested = durable(one_node("inner", inner.compile()), name="outer")
hidden = durable(one_node("caller", call_inner), name="hidden")
GRAPHS: dict[str, Callable[[], Any]] = {"agent": lambda: agent, "team": lambda: team, "plain": inner.compile}


@outlive.workflow(name="langgraph-agent")
async def work(graph: str) -> list[str]:
    """What was said."""
    state = await run(GRAPHS[graph](), {"messages": [("user", "Dig!")]})
    return [str(message.content) for message in state["messages"]]


@outlive.workflow(name="langgraph-nested")
async def work_nested() -> list[str]:
    """A graph in a graph."""
    log: list[str] = (await run(nested, {"log": []}, people=PEOPLE))["log"]
    return log


@outlive.workflow(name="langgraph-hidden")
async def work_hidden() -> None:
    """A graph that a node calls."""
    await run(hidden, {"log": []}, people=PEOPLE)


@pytest.mark.parametrize(("graph", "prefix"), [("agent", "gardener"), ("team", "team.gardener")])
async def test_prebuilt_agent_makes_each_call_in_a_step(graph: str, prefix: str) -> None:
    """By itself or as a node of a graph: each call of the model and of a tool is one step, and usage is counted once,
    also if another node passes an answer on."""
    async with TestEngine() as engine:
        handle = await engine.start(work, graph)
        said = await handle.result()
        steps = sorted(event.call for event in await events_of(handle, StepSucceeded))
        published = await handle.published()

    assert ["Dig!", "", "a hole here", "a hole there", "done"] == said
    names = [f"{prefix}.{each}" for each in ("agent", "agent#2", "tools", "tools#2")]
    assert [f"agent/{each}" for each in [*names, *(["team.pass_on"] if graph == "team" else [])]] == steps
    assert {"requests": 2, "input_tokens": 20, "output_tokens": 10} == published["usage"]
    assert {"model": 2, "dig here": 1, "dig there": 1} == CALLS


LATE = "No person has decided in time, so the call was not made."


async def test_graph_in_a_graph_asks_people() -> None:
    """The node that asks is called again with the answer, and the node before it is not."""
    async with TestEngine() as engine:
        handle = await engine.start(work_nested)
        assert ["soil", LATE] == await handle.result()

    assert {"look": 1} == CALLS


@pytest.mark.slow
async def test_graph_in_a_graph_survives_a_crash_at_every_commit() -> None:
    """A graph in a graph ends in the same way after a crash at every commit, also while it waits for people."""
    assert ["soil", LATE] == (await crash_everywhere(work_nested, max_points=5)).result


async def test_interrupt_of_a_graph_that_a_node_calls_is_refused() -> None:
    """The answer would not reach it: the message says what to do instead."""
    async with TestEngine() as engine:
        handle = await engine.start(work_hidden)
        with pytest.raises(outlive.errors.RunFailedError, match=r"node hidden.caller calls a graph .*add_node"):
            await handle.result()


async def test_graph_that_is_not_durable_is_refused_in_a_workflow() -> None:
    """Its nodes would be called again by every replay."""
    async with TestEngine() as engine:
        handle = await engine.start(work, "plain")
        with pytest.raises(outlive.errors.RunFailedError, match=r"durable\(graph\)"):
            await handle.result()


def test_graph_that_stops_at_a_node_is_refused() -> None:
    """`interrupt_before` would ask no person, and was meant to."""
    with pytest.raises(ConfigurationError, match=r"call interrupt"):
        durable(prebuilt(interrupt_before=["tools"]))
