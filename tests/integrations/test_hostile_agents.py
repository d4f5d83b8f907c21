"""What a model, a tool or an operator could do by what they write: to the people who decide, to the process, to others.

Tools have names and arguments that a model wrote, and values in a journal may have been set by an operator.
"""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import json
import logging
import operator
from collections import Counter
from collections.abc import AsyncIterator
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypedDict
from uuid import UUID

import ormsgpack
import pytest
from agents import Agent as OpenAIAgent
from agents import Model, ModelResponse, Usage, function_tool, set_tracing_disabled
from agents.testing import assistant_message, function_call
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.messages import ModelResponse as PydanticResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel

import outlive
from outlive.http import Api, ApiLimits
from outlive.http.operation import OPERATIONS
from outlive.integrations.agents import (
    CALLS_MAX,
    QUESTIONS_MAX,
    TITLE_CHARACTERS_MAX,
    People,
    ask_all,
    call_step,
    question,
)
from outlive.integrations.graph_values import GraphValues, types_in
from outlive.integrations.langgraph import durable as durable_graph
from outlive.integrations.langgraph import run as run_graph
from outlive.integrations.openai_agents import durable, run
from outlive.integrations.pydantic_ai import Durability, asks_people
from outlive.testing import TestEngine
from tests.engine.support import until
from tests.http.caller import Caller

set_tracing_disabled(True)  # Noisy without a key.

CANARY = "kanarienvogel-4711"
FAR = "192.0.2.7"
RUNS = "/api/v1/runs"
CALLS: Counter[tuple[str, int]] = Counter()
WANTED: list[list[tuple[str, dict[str, Any]]]] = []
"""What the models below call, turn by turn: the ids of calls and their arguments."""


@pytest.fixture(autouse=True)
def fresh_world() -> None:
    """Nothing was called yet."""
    CALLS.clear()
    WANTED.clear()


# -- Code in journals ---------------------------------------------------------------------------------------------


class Plot(BaseModel):
    """A model of pydantic in a state."""

    where: str


@dataclasses.dataclass
class Plan:
    """A dataclass in a state, which has another class in a field."""

    plots: list[Plot]


class Tool(Enum):
    """An enum in a state."""

    SPADE = "spade"


class Point(NamedTuple):
    """A named tuple in a state."""

    x: int


@dataclasses.dataclass
class Stranger:
    """In no state."""

    text: str = ""


class Garden(TypedDict):
    """The state of the graph below."""

    log: Annotated[list[Any], operator.add]
    plan: Plan | None
    tool: Annotated[Tool, "any"] | None
    point: Point | None


STATE = {"plan": Plan([Plot(where="shed")]), "tool": Tool.SPADE, "point": Point(1)}
RETURNED: list[Any] = []


async def look(state: Garden) -> dict[str, Any]:
    """Returns what a test has given."""
    return {"log": ["soil"], **(RETURNED[-1] if RETURNED else STATE)}


async def end(state: Garden) -> dict[str, Any]:
    """Sees the values of the node before."""
    same = all(state.get(name) == value for name, value in STATE.items())
    return {"log": [f"same: {same}"]}


builder = StateGraph(Garden)
builder.add_node("look", look)
builder.add_node("end", end)
builder.add_edge(START, "look")
builder.add_edge("look", "end")
garden = durable_graph(builder, name="garden")


@outlive.workflow(name="values-garden")
async def work_in_garden() -> list[str]:
    """The log of the graph."""
    state = await run_graph(garden, {"log": []})
    return [str(each) for each in state["log"]]


def packed(*parts: Any, code: int = 0) -> dict[str, list[str]]:
    """A value of LangGraph's serializer that names what is to be called."""
    data = ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb(parts)))
    return {"$packed": ["msgpack", base64.b64encode(data).decode()]}


def attacks(path: Path) -> dict[str, dict[str, list[str]]]:
    """Values that write a file if they are decoded to what they name."""
    code = f"open({str(path)!r}, 'w').close()"
    lc = {"lc": 2, "type": "constructor", "id": ["builtins", "exec"], "args": [code]}
    return {
        "function": packed("builtins", "exec", code),
        "class": packed("subprocess", "Popen", [["touch", str(path)]], code=1),
        "keywords": packed("subprocess", "Popen", {"args": ["touch", str(path)]}, code=2),
        "method": packed("pathlib", "Path", str(path), "touch", code=3),
        "model": packed("builtins", "exec", {"source": code}, "x", code=5),
        "json": {"$packed": ["json", base64.b64encode(json.dumps(lc).encode()).decode()]},
        "pickle": {"$packed": ["pickle", base64.b64encode(b"cos\nsystem\n(S'x'\ntR.").decode()]},
        "hidden": packed("builtins", "set", [[1, ormsgpack.Ext(0, ormsgpack.packb(("builtins", "exec", code)))]]),
    }


@pytest.mark.parametrize("attack", sorted(attacks(Path("x"))))
async def test_the_result_of_a_node_that_an_operator_sets_runs_no_code(tmp_path: Path, attack: str) -> None:
    """LangGraph's serializer imports and calls what a value names; a key of one tenant may set
    results. [S18 S33 S48]"""
    path = tmp_path / "written"
    async with TestEngine() as engine:
        await (await engine.start(work_in_garden, id="a", tags={"tenant": "a"})).result()
        key = await engine.keys.create("a", scope="operator", tags={"tenant": "a"})
        api = Caller(Api(engine, auth="keys"), key=key.secret, address=FAR)
        result = {"returned": {"log": [attacks(path)[attack]]}, "sent": []}
        forked = await api.post(f"{RUNS}/a/fork", {"id": "forked", "set": {"garden.look": result}})
        await engine.settle()
        why = await engine.get("forked").why()

    assert 201 == forked.status
    assert not path.exists()
    assert "failed: outlive.errors.ConfigurationError: a value of a node" in why


async def test_values_of_the_state_of_a_graph_come_back_as_they_were() -> None:
    """Classes that its types name, at any depth, are decoded. [S18 S48]"""
    async with TestEngine() as engine:
        assert ["soil", "same: True"] == await (await engine.start(work_in_garden)).result()


async def test_a_node_that_returns_a_class_that_is_not_named_fails_at_once() -> None:
    """A node that returns a class that is not named fails at once, and not in a later replay; a class in `types=` comes
    back. [S18 S48]"""
    RETURNED.append({"log": [(Stranger("x"),)]})
    try:
        async with TestEngine() as engine:
            refused = await engine.start(work_in_garden)
            with pytest.raises(outlive.errors.RunFailedError, match=f"names {__name__}.Stranger, and neither the"):
                await refused.result()
    finally:
        RETURNED.clear()
    known = GraphValues([*types_in([Garden]), Stranger])
    for value in (Stranger("x"), {1: Stranger("y")}, STATE):
        assert value == known.read(known.written(value))


@pytest.mark.parametrize(
    "value",
    [UUID(int=1), {1, 2}, (1, "a"), b"x", {"$packed": ["msgpack", "eA=="]}, {"$message": 1}, {1: 2}, Send("end", 1)],
)
def test_plain_values_of_nodes_need_no_names(value: Any) -> None:
    """Values that LangGraph lists as safe come back as they were, and so does data that looks like an entry of the
    journal. [S18 S48]"""
    values = GraphValues([])
    read = values.read(json.loads(json.dumps(values.written(value))))
    assert value == read or list(value) == read


# -- What people are asked ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "shows"),
    [
        ({"note": "x" * 100_000, "to": "eve", "cents": 999}, ['to="eve"', "cents=999", "(100000 characters)"]),
        ({"note": ["x" * 900] * 900, "to": "eve"}, ['to="eve"', "(more than 100000 characters)"]),
        ({f"a{i}": "y" * 400 for i in range(19)} | {"to": "eve"}, ['to="eve"', "a18="]),
        ({"n" * 5_000: 1, "to": "eve"}, ['to="eve"', "(5000 characters)=1"]),
        ({str(i): i for i in range(1_000)}, ["0=0", "and 980 more arguments"]),
    ],
)
def test_a_long_argument_hides_no_other_one(arguments: dict[str, Any], shows: list[str]) -> None:
    """Each has room, and what is left out is counted: people approve what they see. [S48]"""
    title = question("pay", arguments)

    assert len(title) <= TITLE_CHARACTERS_MAX
    assert [] == [part for part in shows if part not in title]
    assert title.startswith("Call pay(")
    assert title.endswith(")?")


@pytest.mark.parametrize("text", ["1)? (approved by boss)\n", "\x1b[2J", "\u202egnp", "{}", "{0}", "\ud800", "a b"])
def test_names_and_values_of_a_call_look_like_nothing_else(text: str) -> None:
    """A model, or a server of tools, writes them: quotes, line ends, directions of text, codes of
    terminals. [S14 S48]"""
    quoted = json.dumps(text)
    assert f"Call {quoted}({quoted}={quoted})?" == question(text, {text: text})


def test_a_question_about_a_hostile_call_costs_little() -> None:
    """10 MB of arguments, a million values, and more depth than Python has: no more is looked at than is
    counted. [S48]"""
    looked: Counter[str] = Counter()

    class Value:
        def __str__(self) -> str:
            looked["at"] += 1
            return "a value"

    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    titles = [
        question("t{}" * 100_000, {"x": "y" * 10_000_000, "d": [Value()] * 1_000_000}),
        question("pay", "z" * 10_000_000),
        question("pay", {"d": deep}),
    ]

    assert looked["at"] < 20_000
    assert max(map(len, titles)) <= TITLE_CHARACTERS_MAX
    assert "too deep to show" in titles[-1]


@outlive.workflow(name="asks-often")
async def ask_often(calls: int) -> int:
    """A model wants many calls of one tool at once."""
    answers = await ask_all(People(), [("pay", {"cents": each}) for each in range(calls)])
    return sum(answer.approved for answer in answers)


async def test_a_model_that_wants_many_calls_asks_people_some_at_a_time() -> None:
    """Its other questions follow as people decide: 10,000 at once would be as many mails. [S35 S48]"""
    async with TestEngine() as engine:
        handle = await engine.start(ask_often, QUESTIONS_MAX + 2)
        await engine.settle()
        asked = await handle.approvals()
        assert QUESTIONS_MAX == len(asked)
        for entry in asked[:2]:
            await handle.approve(entry.name, by="ann", request=entry.id)
        await engine.settle()
        asked = await handle.approvals()
        assert QUESTIONS_MAX == sum(entry.status == "pending" for entry in asked)
        assert ["Call pay(cents=100)?", "Call pay(cents=101)?"] == [entry.title for entry in asked[-2:]]
        for entry in asked[2:]:
            await handle.reject(entry.name, by="ann", request=entry.id)
        assert 2 == await handle.result()


MAY_END = asyncio.Event()


async def run_with_others() -> None:
    """A tool that takes as long as a test wants."""
    CALLS["tool", 0] += 1
    await MAY_END.wait()


@outlive.workflow(name="calls-often")
async def call_often(calls: int) -> int:
    """A model wants many calls at once."""
    return len(await asyncio.gather(*(call_step(run_with_others, name="tool", options={}) for _ in range(calls))))


async def test_a_model_that_wants_many_calls_has_some_of_them_at_a_time() -> None:
    """10,000 at once would keep the worker from other runs, and be a flood for what the tool asks. [S35 S48]"""
    MAY_END.clear()
    async with TestEngine() as engine:
        handle = await engine.start(call_often, CALLS_MAX + 5)
        await until_calls(CALLS_MAX)
        assert CALLS_MAX == CALLS["tool", 0]
        MAY_END.set()
        assert CALLS_MAX + 5 == await handle.result()
        assert CALLS_MAX + 5 == CALLS["tool", 0]


async def until_calls(count: int) -> None:
    """So many tools have begun, and the loop has turned often enough for more."""

    async def have_begun() -> bool:
        return CALLS["tool", 0] >= count

    await until(have_begun)
    for _ in range(100):
        await asyncio.sleep(0)


# -- Decisions are for the call that people saw --------------------------------------------------------------------


class Payer(Model):  # type: ignore[misc]
    """Calls what `WANTED` says, turn by turn, and then says what came out of it."""

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
        CALLS["model", 0] += 1
        done = [] if isinstance(input, str) else [it for it in input if it.get("type") == "function_call_output"]
        calls = WANTED[CALLS["model", 0] - 1] if CALLS["model", 0] <= len(WANTED) else []
        output = [function_call("pay", arguments, call_id=call_id) for call_id, arguments in calls]
        said = assistant_message(str([it["output"] for it in done]))
        return ModelResponse(output=output or [said], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        raise NotImplementedError("these agents do not stream")


@function_tool(needs_approval=True)
async def pay(to: str, cents: int) -> str:
    """A dangerous tool."""
    CALLS[to, cents] += 1
    return f"{to} has it"


payer = durable(OpenAIAgent(name="payer", model=Payer(), tools=[pay]))


@outlive.workflow(name="openai-payer")
async def openai_pays(request: str) -> str:
    """Pays if people say so."""
    return str((await run(payer, request, people=People(assignees=["boss"]))).final_output)


async def write(messages: list[ModelMessage], info: AgentInfo) -> PydanticResponse:
    """The same for Pydantic AI."""
    CALLS["model", 0] += 1
    done = [part.content for each in messages for part in each.parts if isinstance(part, ToolReturnPart)]
    calls = WANTED[CALLS["model", 0] - 1] if CALLS["model", 0] <= len(WANTED) else []
    parts = [ToolCallPart("transfer", json.dumps(given), tool_call_id=call_id) for call_id, given in calls]
    return PydanticResponse(parts or [TextPart(str(done))])


agent = Agent(FunctionModel(write), name="payer", capabilities=[Durability(), asks_people(assignees=["boss"])])


@agent.tool_plain(requires_approval=True)
async def transfer(to: str, cents: int) -> str:
    """A dangerous tool."""
    CALLS[to, cents] += 1
    return f"{to} has it"


@outlive.workflow(name="pydantic-payer")
async def pydantic_pays(request: str) -> str:
    """Pays if people say so."""
    return str((await agent.run(request)).output)


ASKED: list[int] = []


async def draw(state: Garden) -> Command[str]:
    """Asks a model for a number each time it is called, as nodes do that ask people behind it."""
    ASKED.append(len(ASKED) + 1)
    answer = interrupt({"tool": "draw", "arguments": {"cents": ASKED[-1]}})
    return Command(update={"log": [f"{answer['approved']} {answer['arguments']['cents']}"]}, goto=END)


drawing = StateGraph(Garden)
drawing.add_node("draw", draw)
drawing.add_edge(START, "draw")
drawn = durable_graph(drawing, name="drawing")


@outlive.workflow(name="langgraph-draws")
async def langgraph_draws() -> list[str]:
    """The log of the graph."""
    state = await run_graph(drawn, {"log": []})
    return [str(each) for each in state["log"]]


SMALL, LARGE = {"to": "ann", "cents": 1}, {"to": "eve", "cents": 999}


@pytest.mark.parametrize("workflow", [openai_pays, pydantic_pays])
@pytest.mark.parametrize(
    "turns", [[[("1", SMALL)], [("1", LARGE)]], [[("1", SMALL), ("1", LARGE)]], [[("1", LARGE), ("1", SMALL)]]]
)
async def test_an_approval_lets_no_other_call_with_the_same_id_through(workflow: Any, turns: Any) -> None:
    """The id of a call is the model's: in a later turn, or twice in one, with other arguments. [S48]"""
    WANTED.extend(turns)
    async with TestEngine() as engine:
        handle = await engine.start(workflow, "pay", id="pays")
        await engine.settle()
        for entry in await handle.approvals():
            if '"eve"' not in entry.title:
                await handle.approve(entry.name, by="boss", request=entry.id)
        await engine.settle()
        await engine.settle()

    assert 0 == CALLS["eve", 999]
    assert CALLS["ann", 1] <= 1


@pytest.mark.parametrize("workflow", [openai_pays, pydantic_pays])
async def test_a_decision_on_one_request_is_not_for_the_next_one(workflow: Any) -> None:
    """A late decision on the first request of a tool does not decide its second request, which has the same name.
    [S48]"""
    WANTED.extend([[("1", SMALL)], [("2", LARGE)]])
    async with TestEngine() as engine:
        handle = await engine.start(workflow, "pay")
        await engine.settle()
        [first] = await handle.approvals()
        await handle.approve(first.name, by="boss", request=first.id)
        await engine.settle()
        late = await handle.approve(first.name, by="bob", request=first.id)
        await engine.settle()
        asked = await handle.approvals()

    assert not late.is_first
    assert ["approved", "pending"] == [entry.status for entry in asked]
    assert (1, 0) == (CALLS["ann", 1], CALLS["eve", 999])


async def test_a_node_that_is_called_again_learns_what_people_approved() -> None:
    """It asks for another amount the second time, and LangGraph gives it the answer to the first. [S48]"""
    ASKED.clear()
    async with TestEngine() as engine:
        handle = await engine.start(langgraph_draws)
        await engine.settle()
        [entry] = await handle.approvals()
        assert "Call draw(cents=1)?" == entry.title
        await handle.approve("draw", by="boss")
        assert ["True 1"] == await handle.result()

    assert [1, 2] == ASKED


# -- What people may not see ---------------------------------------------------------------------------------------


@function_tool(needs_approval=True)
async def wire(iban: str) -> str:
    """Answers with JSON, as tools do."""
    return json.dumps({"iban": iban})


@function_tool(failure_error_function=None)
async def look_up(iban: str) -> str:
    """Fails with what it was given."""
    raise ValueError(f"no bank has {iban}")


class Teller(Model):  # type: ignore[misc]
    """Calls the tool that it is asked for, with a secret."""

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
        is_asked = isinstance(input, str) or len(input) == 1
        tool = (input if isinstance(input, str) else input[0]["content"]) if is_asked else ""
        called = function_call(tool, {"iban": CANARY}, call_id="1") if is_asked else assistant_message("done")
        return ModelResponse(output=[called], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        raise NotImplementedError("these agents do not stream")


teller = durable(OpenAIAgent(name="teller", model=Teller(), tools=[wire, look_up]))


@outlive.workflow(name="openai-teller")
async def openai_tells(tool: str) -> str:
    """What the agent says."""
    return str((await run(teller, tool)).final_output)


async def tell(messages: list[ModelMessage], info: AgentInfo) -> PydanticResponse:
    """The same for Pydantic AI."""
    if any(isinstance(part, ToolReturnPart) for each in messages for part in each.parts):
        return PydanticResponse([TextPart("done")])
    tool = str(messages[0].parts[-1].content)
    return PydanticResponse([ToolCallPart(tool, json.dumps({"iban": CANARY}), tool_call_id="1")])


clerk = Agent(FunctionModel(tell), name="clerk", capabilities=[Durability(), asks_people()])


@clerk.tool_plain(requires_approval=True, name="wire")
async def clerk_wires(iban: str) -> dict[str, str]:
    """Answers with what it was given."""
    return {"iban": iban}


@clerk.tool_plain(name="look_up")
async def clerk_looks_up(iban: str) -> str:
    """Fails with what it was given."""
    raise ValueError(f"no bank has {iban}")


@outlive.workflow(name="pydantic-teller")
async def pydantic_tells(tool: str) -> str:
    """What the agent says."""
    return str((await clerk.run(tool)).output)


class Account(TypedDict):
    """The state of a graph with a secret."""

    iban: str
    tool: str


async def open_account(state: Account) -> dict[str, str]:
    """Brings the secret in."""
    return {"iban": CANARY}


async def use_account(state: Account) -> dict[str, str]:
    """Asks people, or fails with what it was given."""
    if state["tool"] == "look_up":
        raise ValueError(f"no bank has {state['iban']}")
    interrupt({"tool": "wire", "arguments": {"iban": state["iban"]}})
    return {"iban": state["iban"]}


accounts = StateGraph(Account)
accounts.add_node("open", open_account)
accounts.add_node("use", use_account)
accounts.add_edge(START, "open")
accounts.add_edge("open", "use")
account = durable_graph(accounts, name="account")


@outlive.workflow(name="langgraph-teller")
async def langgraph_tells(tool: str) -> str:
    """What the graph ends with."""
    return str(len(await run_graph(account, {"tool": tool, "iban": ""})))


@pytest.mark.parametrize("workflow", [openai_tells, pydantic_tells, langgraph_tells])
async def test_a_secret_that_a_model_gives_to_a_tool_is_nowhere_in_what_comes_out(
    workflow: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """It is in the JSON of the answer of a model, in a question to people, and in the failure of a tool: lists,
    histories, `why`, logs, spans and figures. [S30 S48]"""
    caplog.set_level(logging.DEBUG)
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing = outlive.middleware.Tracing(provider)
    found: dict[str, str] = {}
    async with TestEngine(redact=("iban",), record_arguments=True, middleware=[tracing]) as engine:
        api = Caller(Api(engine, limits=ApiLimits(wait_seconds_max=0.0, look_seconds=0.0)))
        ended = [await engine.start(workflow, tool, id=tool) for tool in ("wire", "look_up")]
        await engine.settle()
        found |= await looked_at(api)
        [entry] = await ended[0].approvals()
        await ended[0].approve("wire", by="ann", request=entry.id)
        await engine.settle()
        found |= await looked_at(api)
        assert ["succeeded", "failed"] == [(await each.info()).status for each in ended]
        found["counters"] = repr(engine.counters)
    found["spans"] = "\n".join(span.to_json() for span in exporter.get_finished_spans())
    found["log"] = caplog.text

    assert 'Call wire(iban="[redacted]")?' == entry.title
    assert [] == [place for place, text in found.items() if CANARY in text]
    assert "no bank has [redacted]" in found["log"]
    assert "[redacted]" in found[f"{RUNS}/look_up/history"]


async def looked_at(api: Caller) -> dict[str, str]:
    """What every operation shows of runs that only looks, and what it shows of each event."""
    found: dict[str, str] = {}
    for it in OPERATIONS.values():
        is_about_runs = it.reach in ("run", "runs") or it.name == "metrics"
        if it.method != "GET" or not is_about_runs or it.name == "runs.follow_list":
            continue
        for run_id in ("wire", "look_up") if "run_id" in it.names else [""]:
            given = {"run_id": run_id, "seq": "0", "field": "input"}
            path = it.path.format(**{name: given.get(name, "x") for name in it.names})
            answer = await api.get(path, leave_when=lambda body: b"event: journal" in body)
            found[path] = answer.body.decode()
    for run_id in ("wire", "look_up"):
        for event in json.loads(found[f"{RUNS}/{run_id}/history"])["items"]:
            path = f"{RUNS}/{run_id}/history/{event['seq']}/result"
            found[path] = (await api.get(path)).body.decode()
    return found
