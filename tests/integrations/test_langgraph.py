"""Graphs of LangGraph as workflows, and LangGraph's checkpoints on a store."""

from __future__ import annotations

import asyncio
import operator
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt

import outlive
from outlive.errors import ConfigurationError
from outlive.events import StepSucceeded
from outlive.integrations.agents import People
from outlive.integrations.langgraph import Saver, durable, run
from outlive.testing import TestEngine, crash_everywhere
from tests.engine.support import events_of, until

CALLS: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def fresh_world() -> None:
    """Nothing was called yet."""
    CALLS.clear()


class Garden(TypedDict):
    """The state of the graph below."""

    log: Annotated[list[str], operator.add]


def look(state: Garden) -> dict[str, list[str]]:
    """A sync node: a step, on a thread."""
    CALLS["look"] += 1
    return {"log": ["soil"]}


async def dig(state: dict[str, Any]) -> dict[str, list[str]]:
    """Called for each place at the same time."""
    CALLS["dig"] += 1
    return {"log": [f"dug {state['where']}"]}


async def plant(state: Garden) -> Command[str]:
    """Asks twice before it acts, and says itself where to go."""
    CALLS["plant"] += 1
    first = interrupt({"tool": "plant", "arguments": {"what": "roses"}})
    second = interrupt("Really?")
    return Command(update={"log": [f"{first['approved']} {second['message']}"]}, goto=END)


def places(state: Garden) -> list[Send]:
    """A sync function of a conditional edge."""
    return [Send("dig", {"where": where}) for where in ("here", "there")]


builder = StateGraph(Garden)
builder.add_node("look", look)
builder.add_node("dig", dig)
builder.add_node("plant", plant)
builder.add_edge(START, "look")
builder.add_conditional_edges("look", places, ["dig"])
builder.add_edge("dig", "plant")
garden = durable(builder, name="garden")
PEOPLE = People(assignees=["ops"])


@outlive.workflow(name="langgraph-garden")
async def work_in_garden() -> list[str]:
    """What the graph has in its log at the end."""
    state = await run(garden, {"log": []}, people=PEOPLE)
    log: list[str] = state["log"]
    return log


async def is_asked(handle: outlive.types.RunHandle[Any], name: str) -> None:
    """People have been asked under this name."""

    async def has_asked() -> bool:
        return any(entry.name == name for entry in await handle.approvals())

    await until(has_asked)


async def decide(handle: outlive.types.RunHandle[Any]) -> None:
    """Yes to the first question, no to the second."""
    await is_asked(handle, "plant")
    await handle.approve("plant", by="ann")
    await is_asked(handle, "interrupt")
    await handle.reject("interrupt", by="bob", comment="no")


async def test_nodes_are_steps_and_interrupts_ask_people() -> None:
    """In branches, with sync and async nodes, and as often as a node asks."""
    async with outlive.Engine("memory:") as engine:
        handle = await engine.start(work_in_garden)
        await decide(handle)
        log = await handle.result()
        steps = [event.call for event in await events_of(handle, StepSucceeded)]
        titles = [entry.title for entry in await handle.approvals()]

    assert ["soil", "dug here", "dug there", "True bob did not allow this call: no"] == log
    assert ['Call plant(what="roses")?', 'Call interrupt(value="Really?")?'] == titles
    names = ["look", "dig", "dig#2", "plant", "plant#2", "plant#3"]
    assert {f"agent/garden.{name}" for name in names} == set(steps)
    assert {"look": 1, "dig": 2, "plant": 3} == CALLS


async def test_graph_goes_on_in_another_engine_after_each_question(tmp_path: Path) -> None:
    """A graph goes on in another engine after each question with the earlier answers, and calls only the node that asks
    again."""
    store = f"sqlite:{tmp_path / 'garden.db'}"
    async with outlive.Engine(store) as engine:
        await is_asked(await engine.start(work_in_garden, id="garden-1"), "plant")
    async with outlive.Engine(store) as engine:
        await engine.approvals.approve("garden-1", "plant", by="ann")
        await is_asked(engine.get("garden-1"), "interrupt")
    async with outlive.Engine(store) as engine:
        await engine.approvals.reject("garden-1", "interrupt", by="bob", comment="no")
        log = await (await engine.start(work_in_garden, id="garden-1")).result()

    assert ["soil", "dug here", "dug there", "True bob did not allow this call: no"] == log
    assert {"look": 1, "dig": 2, "plant": 3} == CALLS


async def chat_node(state: MessagesState) -> dict[str, list[BaseMessage]]:
    """A chat model of LangChain that streams."""
    answer = AIMessage("Hello to you", usage_metadata={"input_tokens": 7, "output_tokens": 3, "total_tokens": 10})
    model = GenericFakeChatModel(messages=iter([AIMessage("Hello to you")]))
    text = "".join([chunk.text async for chunk in model.astream(state["messages"])])
    assert text == str(answer.text)
    return {"messages": [answer]}


chat_builder = StateGraph(MessagesState)
chat_builder.add_node("chat", chat_node)
chat_builder.add_edge(START, "chat")
chat_graph = durable(chat_builder.compile(), name="chat", stream="tokens")


@outlive.workflow(name="langgraph-chat")
async def chat(said: str) -> dict[str, Any]:
    """The answer, as messages are in the state of a graph."""
    state = await run(chat_graph, {"messages": [HumanMessage(said)]})
    last = state["messages"][-1]
    return {"type": type(last).__name__, "text": str(last.text)}


async def test_chat_model_streams_its_text_and_its_usage_is_counted() -> None:
    """Messages are themselves again when they come out of the journal."""
    async with outlive.Engine("memory:") as engine:
        handle = await engine.start(chat, "Hello")
        assert {"type": "AIMessage", "text": "Hello to you"} == await handle.result()
        assert ["Hello", " ", "to", " ", "you"] == [token async for token in handle.stream("tokens")]
        assert {"requests": 1, "input_tokens": 7, "output_tokens": 3} == (await handle.published())["usage"]


async def test_graph_survives_a_crash_at_every_commit() -> None:
    """With the same answer."""
    report = await crash_everywhere(chat, "Hello", max_points=5)

    assert "Hello to you" == report.result["text"]


async def test_durable_graph_outside_of_a_run_is_an_ordinary_one() -> None:
    """Its nodes and edges are called as ever."""
    state = await garden.ainvoke({"log": []})

    assert ["soil", "dug here", "dug there"] == state["log"]


def test_only_a_graph_can_be_made_durable() -> None:
    """Something else is refused with what it was."""
    with pytest.raises(ConfigurationError, match="no str"):
        durable("graph")


async def test_saver_keeps_threads_on_a_store() -> None:
    """A graph that was interrupted goes on with another Saver on the same store; threads can be copied and deleted."""
    config: Any = {"configurable": {"thread_id": "thread 1/ä"}}
    async with outlive.Engine("memory:", worker=False) as engine:
        first = builder.compile(checkpointer=Saver(engine.checkpoints))
        assert "__interrupt__" in await first.ainvoke({"log": []}, config)

        second = builder.compile(checkpointer=Saver(engine.checkpoints))
        await second.ainvoke(Command(resume={"approved": True}), config)
        state = await second.ainvoke(Command(resume={"message": "yes"}), config)
        assert ["soil", "dug here", "dug there", "True yes"] == state["log"]
        assert {"look": 1, "dig": 2, "plant": 3} == CALLS

        saver = Saver(engine.checkpoints)
        history = [each async for each in saver.alist(config)]
        assert [3, 2, 1, 0, -1] == [each.metadata["step"] for each in history]
        old = await saver.aget_tuple(history[-1].config)
        assert old is not None
        assert old.checkpoint["id"] == history[-1].checkpoint["id"]

        await saver.acopy_thread("thread 1/ä", "copy")
        copied = await second.aget_state({"configurable": {"thread_id": "copy"}})
        assert state["log"] == copied.values["log"]
        await saver.adelete_thread("thread 1/ä")
        assert await saver.aget_tuple(config) is None
        assert await saver.aget_tuple({"configurable": {"thread_id": "copy"}}) is not None


async def test_saver_serves_sync_code_on_other_threads() -> None:
    """On the thread of the event loop it would wait for itself, and says so."""
    config: Any = {"configurable": {"thread_id": "1"}}
    async with outlive.Engine("memory:", worker=False) as engine:
        saver = Saver(engine.checkpoints)
        await builder.compile(checkpointer=saver).ainvoke({"log": []}, config)
        with pytest.raises(ConfigurationError, match="another thread"):
            saver.get_tuple(config)

        assert await asyncio.to_thread(saver.get_tuple, config) == await saver.aget_tuple(config)
        assert await asyncio.to_thread(lambda: list(saver.list(config, limit=1)))
        await asyncio.to_thread(saver.delete_thread, "1")
        assert await saver.aget_tuple(config) is None


saved = builder.compile(checkpointer=Saver())


@outlive.workflow(name="langgraph-saved")
async def work_with_saver() -> None:
    """A Saver in workflow code."""
    await saved.ainvoke({"log": []}, {"configurable": {"thread_id": "1"}})


@outlive.step
async def work_in_one_step() -> int:
    """A whole graph in a step, with the store of the engine."""
    state = await saved.ainvoke({"log": []}, {"configurable": {"thread_id": outlive.current_step().run_id}})
    return len(state["log"])


@outlive.workflow(name="langgraph-in-a-step")
async def work_in_a_step() -> int:
    """A Saver in a step."""
    return await work_in_one_step()


async def test_saver_works_in_steps_and_is_refused_in_workflows() -> None:
    """With what to do instead."""
    async with TestEngine() as engine:
        handle = await engine.start(work_in_a_step)
        assert 3 == await handle.result()
        refused = await engine.start(work_with_saver)
        with pytest.raises(outlive.errors.OutliveError, match="keeps the state of a graph"):
            await refused.result()
