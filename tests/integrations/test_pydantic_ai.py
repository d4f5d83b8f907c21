"""Agents of Pydantic AI as workflows: what is a step, what people are asked, what is counted, what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.exceptions import ModelHTTPError, UserError
from pydantic_ai.messages import (
    BinaryContent,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel
from pydantic_ai.toolsets import FunctionToolset

import outlive
from outlive._kernel.journal.value import codec_for
from outlive.events import StepSucceeded
from outlive.integrations.pydantic_ai import Durability, asks_people
from outlive.testing import TestEngine, crash_everywhere
from tests.engine.inside import session_id_of
from tests.engine.support import Place, events_of, in_time, note, until

CALLS: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def fresh_world() -> None:
    """Nothing was called yet."""
    CALLS.clear()


def results_in(messages: list[ModelMessage]) -> list[str]:
    """What the tools have returned so far."""
    parts = [part for message in messages for part in message.parts]
    return [str(part.content) for part in parts if isinstance(part, ToolReturnPart)]


async def write(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    """A model that asks for the weather twice, wants to delete a city, and says what came out of it."""
    CALLS["model"] += 1
    done = results_in(messages)
    if not done:
        yield {
            0: DeltaToolCall("weather", '{"city": "Oslo"}', tool_call_id="a"),
            1: DeltaToolCall("weather", '{"city": "Rome"}', tool_call_id="b"),
        }
    elif len(done) == 2:
        yield {0: DeltaToolCall("delete", '{"city": "Rome"}', tool_call_id="c")}
    else:
        for word in done[-1].split():
            yield f"{word} "


weather_agent = Agent(
    FunctionModel(stream_function=write),
    name="weather",
    capabilities=[Durability(stream="tokens"), asks_people(assignees=["ops"])],
)


@weather_agent.system_prompt
def speak_plainly() -> str:
    """A sync function that the loop of the agent calls: it must not go to a thread."""
    return "Be brief."


@weather_agent.tool_plain
def weather(city: str) -> str:
    """A sync tool: a step, on a thread."""
    CALLS[f"weather {outlive.current_step().name}"] += 1
    return f"sunny in {city}"


@weather_agent.tool_plain(requires_approval=True)
async def delete(city: str) -> str:
    """A dangerous tool."""
    CALLS["delete"] += 1
    return f"{city} is gone"


@outlive.workflow(name="pydantic-weather")
async def ask_weather(question: str) -> dict[str, Any]:
    """Answers with what it counted."""
    answer = await weather_agent.run(question)
    used = answer.usage
    return {"output": answer.output, "requests": used.requests, "tokens": used.output_tokens, "id": answer.run_id}


async def asked(run: outlive.types.RunHandle[Any]) -> None:
    """People have been asked."""

    async def has_asked() -> bool:
        return bool(await run.approvals())

    await until(has_asked)


async def test_agent_asks_people_streams_and_counts() -> None:
    """Models and tools are steps with names that people can read, in the journal of the run."""
    async with outlive.Engine("memory:") as engine:
        run = await engine.start(ask_weather, "How is it?")
        await asked(run)
        await run.approve("delete", by="ann")
        answer = await run.result()
        tokens = [token async for token in run.stream("tokens")]
        steps = [event.call for event in await events_of(run, StepSucceeded)]
        steps[1:3] = sorted(steps[1:3])  # Both tools run at once, and either may end first.
        published = await run.published()

    assert "Rome is gone " == answer["output"] == "".join(tokens)
    assert 3 == answer["requests"] == published["usage"]["requests"]
    assert answer["tokens"] == published["usage"]["output_tokens"] > 0
    assert [
        "agent/weather.model",
        "agent/weather.tool.weather",
        "agent/weather.tool.weather#2",
        "agent/weather.model#2",
        "agent/weather.tool.delete",
        "agent/weather.model#3",
    ] == steps
    assert {"model": 3, "weather weather.tool.weather": 2, "delete": 1} == CALLS


async def test_tool_that_people_refuse_is_not_called() -> None:
    """The model reads why."""
    async with outlive.Engine("memory:") as engine:
        run = await engine.start(ask_weather, "How is it?")
        await asked(run)
        await run.reject("delete", by="ann", comment="I live there")
        answer = await run.result()

    assert "ann did not allow this call: I live there " == answer["output"]
    assert 0 == CALLS["delete"]


async def test_agent_outside_of_a_run_is_an_ordinary_one() -> None:
    """No journal, no stream and no person to ask."""
    agent: Agent[None, str] = Agent(
        FunctionModel(stream_function=write), name="plain", capabilities=[Durability(stream="tokens"), asks_people()]
    )
    agent.tool_plain(requires_approval=True)(delete)

    @agent.tool_plain(name="weather")
    async def plain_weather(city: str) -> str:
        return f"sunny in {city}"

    with pytest.raises(UserError, match=r"(?i)approv|deferred"):
        await agent.run("How is it?")

    assert {"model": 2} == CALLS


def answering(*parts: Any) -> FunctionModel:
    """A model that gives these answers, one after the other; an exception is raised."""

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        part = parts[sum(isinstance(message, ModelResponse) for message in messages)]
        if isinstance(part, Exception):
            raise part
        return ModelResponse(parts=[part] if not isinstance(part, list) else part)

    return FunctionModel(answer)


AGENTS: dict[str, Agent[None, str]] = {}
"""A workflow is at the top level of a module; the agents of these tests are not."""


def agent_of(name: str, model: FunctionModel, *capabilities: Any) -> Agent[None, str]:
    """An agent that `converse` knows by its name."""
    AGENTS[name] = Agent(model, name=name, capabilities=[*(capabilities or [Durability()])])
    return AGENTS[name]


@outlive.workflow(name="pydantic-converse")
async def converse(agent: str) -> str:
    """The answer of one of the agents, or the error of its model."""
    try:
        return str((await AGENTS[agent].run("?")).output)
    except ModelHTTPError as error:
        return f"{error.status_code} {error.body}"


@outlive.workflow(name="pydantic-converse-exactly")
async def converse_exactly(agent: str) -> str:
    """With all that must be the same in every replay."""
    answer = await AGENTS[agent].run("?")
    return f"{answer.output} {answer.usage} {answer.run_id} {answer.conversation_id}"


async def look_up_late(word: str) -> str:
    """A tool that comes too late."""
    return word


@outlive.workflow(name="pydantic-converse-late")
async def converse_with_more(agent: str) -> str:
    """Brings a toolset that the agent was not made with."""
    toolset: FunctionToolset[None] = FunctionToolset(id="late")
    toolset.add_function(look_up_late)
    return str((await AGENTS[agent].run("?", toolsets=[toolset])).output)


async def result_of(agent: str) -> Any:
    """What a run of this agent ends with."""
    async with TestEngine() as engine:
        run = await engine.start(converse, agent)
        return await run.result()


async def test_agent_survives_a_crash_at_every_commit() -> None:
    """With the same answer, the same ids and the same usage, and no completed call made again."""
    agent = agent_of("dice", answering(ToolCallPart("roll", {}, tool_call_id="1"), TextPart("done")))

    @agent.tool_plain
    async def roll() -> int:
        return 6

    report = await crash_everywhere(converse_exactly, "dice", max_points=5)

    assert report.runs > 4
    assert report.result.startswith("done RunUsage")


async def test_two_dangerous_calls_at_once_are_two_questions() -> None:
    """The second has a number, and each call gets its own answer."""
    calls = [ToolCallPart("wipe", {"disk": disk}, tool_call_id=disk) for disk in ("a", "b")]
    agent = agent_of("wiper", answering(calls, TextPart("done")), Durability(), asks_people())

    @agent.tool_plain(requires_approval=True)
    async def wipe(disk: str) -> str:
        CALLS[disk] += 1
        return "wiped"

    async with outlive.Engine("memory:") as engine:
        run = await engine.start(converse, "wiper")
        await asked(run)
        assert ["wipe", "wipe-2"] == [entry.name for entry in await run.approvals()]
        await run.approve("wipe-2", by="ann")
        await run.reject("wipe", by="ann")
        assert "done" == await run.result()

    assert {"b": 1} == CALLS


async def test_deadline_of_a_question_is_a_no() -> None:
    """The model goes on with that answer."""
    model = answering(ToolCallPart("wipe", {}), TextPart("done"))
    agent = agent_of("wiper", model, Durability(), asks_people(deadline=60))

    @agent.tool_plain(requires_approval=True)
    async def wipe() -> str:
        CALLS["wipe"] += 1
        return "wiped"

    assert "done" == await result_of("wiper")
    assert 0 == CALLS["wipe"]


async def test_errors_reach_the_agent_as_they_are() -> None:
    """It decides by their class: a tool that asks for another try gets one, an error of a model is that error."""
    error = ModelHTTPError(503, "gpt", {"why": "busy"})
    agent = agent_of("dice", answering(ToolCallPart("roll", {}), ToolCallPart("roll", {}), error))

    @agent.tool_plain
    async def roll() -> int:
        CALLS["roll"] += 1
        if CALLS["roll"] == 1:
            raise ModelRetry("once more")
        return 6

    assert "503 {'why': 'busy'}" == await result_of("dice")
    assert 2 == CALLS["roll"]


@outlive.step
async def look_up(word: str) -> str:
    """A step that a tool calls."""
    CALLS["look_up"] += 1
    return word.upper()


async def test_a_tool_may_be_workflow_code() -> None:
    """With `metadata={"outlive": False}` it waits and calls steps itself."""
    agent = agent_of("shouter", answering(ToolCallPart("shout", {"word": "hey"}), TextPart("done")))

    @agent.tool_plain(metadata={"outlive": False})
    async def shout(word: str) -> str:
        return await look_up(word)

    assert "done" == await result_of("shouter")
    assert {"look_up": 1} == CALLS


async def test_options_of_a_tool_are_checked() -> None:
    """A word that means nothing is refused, and the error lists the words that mean something."""
    agent = agent_of("shouter", answering(ToolCallPart("shout", {}), TextPart("done")))

    @agent.tool_plain(metadata={"outlive": {"retries": 3}})
    async def shout() -> str:
        return "HEY"

    with pytest.raises(outlive.errors.RunFailedError, match="it may have heartbeat_timeout, retry, timeout"):
        await result_of("shouter")


async def test_toolsets_that_a_run_brings_are_refused() -> None:
    """They are not known when the agent is made, so they could not be steps."""
    agent_of("plain", answering(TextPart("done")))

    async with TestEngine() as engine:
        run = await engine.start(converse_with_more, "plain")
        with pytest.raises(outlive.errors.RunFailedError, match="Outlive"):
            await run.result()


def test_messages_of_the_framework_are_arguments_and_results() -> None:
    """A conversation with texts, tools and images can be passed to a run, and comes back with nothing lost."""
    messages: list[ModelMessage] = [
        ModelRequest(
            parts=[SystemPromptPart("be brief"), UserPromptPart(content=["see", ImageUrl(url="https://x.y/z")])]
        ),
        ModelResponse(parts=[TextPart("hm"), ToolCallPart(tool_name="look", args={"at": 1}, tool_call_id="c1")]),
        ModelRequest(parts=[ToolReturnPart(tool_name="look", content={"seen": [1, 2]}, tool_call_id="c1")]),
    ]
    cases: list[tuple[Any, Any]] = [
        (list[ModelMessage], messages),
        (ModelMessage, messages[0]),
        (ModelResponse, messages[1]),
        (dict[str, list[ModelMessage] | None], {"a": messages, "b": None}),
    ]
    for annotation, value in cases:
        codec = codec_for(annotation)
        assert value == codec.decode(codec.encode(value, "it"), "it")


class Sight(BaseModel):
    """What a tool returns."""

    far: int


def test_message_that_the_framework_reads_more_exactly_can_be_stored() -> None:
    """An image and what a tool returned come back as the framework reads them, with nothing lost."""
    image = BinaryContent(data=b"\x00\xff", media_type="image/png")
    request = ModelRequest(
        parts=[UserPromptPart(content=[image]), ToolReturnPart(tool_name="t", content=Sight(far=2), tool_call_id="c")]
    )
    codec = codec_for(list[ModelMessage])

    [back] = codec.decode(codec.encode([request], "it"), "it")

    assert (image.data, image.media_type) == (back.parts[0].content[0].data, back.parts[0].content[0].media_type)
    assert {"far": 2} == back.parts[1].content


chat_agent = Agent(
    FunctionModel(lambda messages, info: _say_what_was_read(messages)), name="chat", capabilities=[Durability()]
)


def _say_what_was_read(messages: list[ModelMessage]) -> ModelResponse:
    """A model that says how many messages it has read."""
    CALLS["model"] += 1
    return ModelResponse(parts=[TextPart(f"read {len(messages)}")])


@outlive.workflow(name="pydantic-chat")
async def chat_in_generations(messages: list[ModelMessage]) -> list[ModelMessage]:
    """Three turns in each journal."""
    turns = 0
    while (text := await outlive.wait_for_signal("say", str)) != "bye":
        messages = (await chat_agent.run(text, message_history=messages)).all_messages()
        turns += 1
        if turns == 3:
            outlive.continue_as_new(messages)
    return messages


async def test_long_conversation_goes_on_in_fresh_journals_and_after_a_restart(tmp_path: Path) -> None:
    """Each generation begins with all messages before it; no journal grows, and no answer is paid for twice."""
    turns = 10
    for turn in range(turns):
        # A worker of its own for each turn: it has the conversation from the journal alone.
        async with outlive.Engine(f"sqlite:{tmp_path / 'chat.db'}") as engine:
            await engine.start(chat_in_generations, [], id="chat", on_conflict="attach")
            await engine.get("chat").signal("say", f"text {turn}")
            await until(partial(_has_answered, turn + 1))
            assert len(await engine.get("chat").history()) < 30
    async with outlive.Engine(f"sqlite:{tmp_path / 'chat.db'}") as engine:
        await engine.get("chat").signal("say", "bye")
        messages = await engine.get("chat").result()
        ids = sorted(run.id for run in await engine.list())

    said = [part.content for message in messages for part in message.parts]
    assert said == [text for turn in range(turns) for text in (f"text {turn}", f"read {2 * turn + 1}")]
    assert ids == ["chat", "chat~gen1", "chat~gen2", "chat~gen3"]
    assert CALLS["model"] == turns


async def _has_answered(count: int) -> bool:
    return CALLS["model"] >= count


@outlive.workflow(name="pydantic-chat-of-hundreds")
async def chat_in_one_journal(turns: int) -> int:
    """All turns in one journal, which is longer than the guide advises; then a signal."""
    messages: list[ModelMessage] = []
    for turn in range(turns):
        messages = (await chat_agent.run(f"text {turn}", message_history=messages)).all_messages()
    await outlive.wait_for_signal("go")
    return len(messages)


@outlive.workflow(name="pydantic-neighbour")
async def neighbour(word: str) -> str:
    """Another run of the same worker."""
    return await note(word)


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_agent_of_hundreds_of_turns_goes_on_in_another_worker_beside_other_runs(tmp_path: Path) -> None:
    """Its replay takes seconds of CPU, as the framework looks through all messages at each turn. Another run moves
    meanwhile, the worker keeps its session with the shortest lease, and no answer is paid for twice."""
    turns, place = 400, Place(tmp_path / "chat.db")
    async with place.engine() as engine:
        run = await engine.start(chat_in_one_journal, turns, id="hundreds")
        await run.until("waiting", timeout=300)
    async with place.engine(lease_seconds=1.0) as engine:
        session = session_id_of(engine)
        run = engine.get("hundreds")
        await run.signal("go")

        async def is_being_replayed() -> bool:
            return (await run.why()).startswith("it is being replayed")

        await until(is_being_replayed)
        assert await in_time((await engine.start(neighbour, "moved")).result()) == "moved"
        assert await is_being_replayed()
        assert await run.result(timeout=300) == 2 * turns
        assert session_id_of(engine) == session
    assert CALLS["model"] == turns
