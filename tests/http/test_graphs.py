"""Flows and machines as graphs, over HTTP: of a document, of a machine, and of a run with where it is."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import pytest

import outlive
from outlive import Machine, Retry
from outlive._kernel.client.definitions import Describer
from outlive._kernel.define.registry import Registry
from outlive.http import Api
from outlive.testing import TestEngine
from tests.engine.inside import store_of
from tests.engine.support import registry_of
from tests.http import shop
from tests.http.caller import Caller

FLOW = """\
name: graph-flow
input: { cents: { type: integer, minimum: 1 } }
vars:
  region: { type: string, default: north }
  key: { type: string, secret: true, env: KEY }
steps:
  look: { use: noop, with: { what: "${{ input.cents }}" } }
  ask:
    use: approval
    after: [look]
    with: { name: pay, title: "Pay?" }
  rare: { use: noop, if: "${{ input.cents > 100 }}", after: [look], must_run: true }
  pay: { use: noop, after: [ask, rare] }
output: "${{ steps.pay }}"
"""


class S(enum.Enum):
    """Of an order."""

    BEGIN = 1
    WAIT = 2
    CHOOSE = 3
    PAY = 4
    DONE = 5
    LOST = 6


@dataclass
class Order:
    """What the machine carries."""

    cents: int = 1
    note: str = ""


graph_machine = Machine("graph_machine", S, data=Order, start=S.BEGIN, exits=[S.DONE, S.LOST])


@graph_machine.state(S.BEGIN, to=[S.WAIT], undo=lambda order: None)
async def begin(order: Order) -> S:
    """Begins."""
    return S.WAIT


@graph_machine.workflow(S.WAIT, to=[S.CHOOSE])
async def wait(order: Order) -> S:
    """Waits for a signal."""
    order.cents = await outlive.wait_for_signal("cents")
    return S.CHOOSE


@graph_machine.router(S.CHOOSE, to=[S.WAIT, S.PAY])
def choose(order: Order) -> S:
    """Waits again for less than nothing."""
    return S.WAIT if order.cents < 0 else S.PAY


@graph_machine.state(S.PAY, to=[S.DONE, S.LOST], retry=Retry(attempts=2, first=60))
async def pay(order: Order) -> S:
    """Fails while the bank is closed."""
    if not shop.Flag.is_up:
        raise shop.Refusal("closed")
    return S.DONE


class L(enum.Enum):
    """One state, and its end."""

    PAY = 1
    PAID = 2


graph_late = Machine("graph_late", L, start=L.PAY, exits=[L.PAID])


@graph_late.state(L.PAY, to=[L.PAID], retry=Retry(attempts=1))
async def pay_late() -> L:
    """Fails while the bank is closed."""
    if not shop.Flag.is_up:
        raise shop.Refusal("closed")
    return L.PAID


graph_broken = Machine("graph_broken", L, start=L.PAY, exits=[L.PAID])


@graph_broken.workflow(L.PAY, to=[L.PAID])
async def pay_never() -> L:
    """Fails, and is not a step."""
    raise ValueError("too dear")


class C(enum.Enum):
    """Round and round."""

    NEXT = 1
    ROUND = 2
    OUT = 3


class Rounds:
    """How often the circle was gone round."""

    count = 0


graph_circle = Machine("graph_circle", C, start=C.NEXT, exits=[C.OUT], snapshot_after=5)


@graph_circle.state(C.NEXT, to=[C.ROUND])
async def begin_round() -> C:
    """Goes on."""
    return C.ROUND


@graph_circle.workflow(C.ROUND, to=[C.NEXT, C.OUT])
async def end_round() -> C:
    """Waits after a dozen rounds."""
    Rounds.count += 1
    if Rounds.count > 12:
        await outlive.wait_for_signal("out")
    return C.NEXT


def note_of(graph: dict[str, Any], name: str) -> str:
    """What is said of a box."""
    return next(str(node["note"]) for node in graph["nodes"] if node["id"] == name)


def states(graph: dict[str, Any]) -> dict[str, str]:
    """Where a run is, by box."""
    return {node["id"]: node["state"] for node in graph["nodes"]}


async def test_a_flow_is_a_graph_with_the_lines_of_its_document(api: Caller) -> None:
    """Published, or a draft; arrows go from what a step waits for."""
    await api.post("/api/v1/flows", {"document": FLOW})
    await api.post("/api/v1/flows/drafts", {"document": f"# A line.\n{FLOW.replace('Pay?', 'Pay now?')}"})

    found = (await api.get("/api/v1/flows/graph-flow/graph")).data
    draft = (await api.get("/api/v1/flows/graph-flow/graph?draft=true")).data
    missing = await api.get("/api/v1/flows/graph-flow/graph?revision=7")

    nodes = {node["id"]: node for node in found["nodes"]}
    assert ("flow", {"look": 7, "ask": 8, "rare": 12, "pay": 13}) == (
        found["kind"],
        {id: node["line"] for id, node in nodes.items()},
    )
    assert [8, 9, 13, 14] == [node["line"] for node in draft["nodes"]]
    assert ("approval", ["look"], True) == (
        nodes["ask"]["kind"],
        nodes["ask"]["needs"],
        nodes["rare"]["is_conditional"],
    )
    assert {("look", "ask"), ("look", "rare"), ("ask", "pay"), ("rare", "pay")} == {
        (arrow["start"], arrow["end"]) for arrow in found["arrows"]
    }
    assert nodes["look"]["y"] < nodes["ask"]["y"] == nodes["rare"]["y"] < nodes["pay"]["y"]
    assert (404, "flow_not_found") == (missing.status, missing.code)


async def test_a_document_has_schemas_of_input_and_variables(api: Caller) -> None:
    """A document comes with the JSON Schemas of its input and of the variables that a start may give, without
    secrets."""
    await api.post("/api/v1/flows", {"document": FLOW})

    found = (await api.get("/api/v1/flows/graph-flow/document")).data

    assert {"cents": {"type": "integer", "minimum": 1}} == found["input"]["properties"]
    assert {"region": {"type": "string", "default": "north"}} == found["vars"]["properties"]


async def test_a_document_is_checked_and_not_stored(api: Caller) -> None:
    """All mistakes with line, column and suggestion; what can be read is drawn."""
    wrong = FLOW.replace("after: [ask, rare]", "after: [aks]").replace("input.cents >", "input.sents >")

    fine = (await api.post("/api/v1/flows/check", {"document": FLOW})).data
    found = (await api.post("/api/v1/flows/check", {"document": wrong})).data
    broken = (await api.post("/api/v1/flows/check", {"document": "name: [\n"})).data
    flows = (await api.get("/api/v1/flows")).data

    assert (True, [], "graph-flow", 4) == (fine["is_fine"], fine["problems"], fine["name"], len(fine["graph"]["nodes"]))
    assert {"cents"} == set(fine["input"]["properties"])
    assert [(12, False), (13, False)] == [(it["line"], it["is_warning"]) for it in found["problems"]]
    assert "did you mean ask?" == found["problems"][1]["suggestion"]
    assert "steps.pay.after[0]" == found["problems"][1]["path"]
    assert (False, "", None) == (broken["is_fine"], broken["name"], broken["graph"])
    assert 1 <= broken["problems"][0]["line"] <= 2
    assert [] == flows["items"]


async def test_the_graph_of_a_run_of_a_flow_has_its_state(api: Caller, engine: TestEngine) -> None:
    """The graph of a run of a flow has the state of each step and the arrows that the run has taken."""
    await api.post("/api/v1/flows", {"document": FLOW})
    await engine.settle()
    await api.post("/api/v1/flows/graph-flow/runs", {"input": {"cents": 5}, "id": "g-1"})
    await engine.settle()
    waiting = (await api.get("/api/v1/runs/g-1/graph")).data
    await api.post("/api/v1/runs/g-1/approvals/pay/approve", {"by": "ann"})
    await engine.settle()
    ended = (await api.get("/api/v1/runs/g-1/graph")).data

    found = {node["id"]: node for node in waiting["nodes"]}
    assert ("waiting", 8, "pending") == (found["ask"]["state"], found["ask"]["line"], found["pay"]["state"])
    assert "approval 'pay'" in found["ask"]["note"]
    assert ("succeeded", "skipped", "succeeded") == tuple(states(ended)[id] for id in ("ask", "rare", "pay"))
    assert {("look", "ask"), ("ask", "pay")} == {(it["start"], it["end"]) for it in ended["arrows"] if it["is_taken"]}


async def test_a_machine_is_a_graph_with_the_state_of_a_run(api: Caller, engine: TestEngine) -> None:
    """Routers leave no event: they are passed when the next state is known."""
    alone = (await api.get("/api/v1/workflows/graph_machine/graph")).data
    run = await engine.start(graph_machine, Order(), id="m-1")
    await engine.settle()
    first = (await api.get("/api/v1/runs/m-1/graph")).data
    await run.signal("cents", -1)
    await engine.settle()
    again = (await api.get("/api/v1/runs/m-1/graph")).data
    shop.Flag.is_up = False
    await run.signal("cents", 7)
    await engine.settle()
    retrying = (await api.get("/api/v1/runs/m-1/graph")).data
    shop.Flag.is_up = True
    await run.result()
    ended = (await api.get("/api/v1/runs/m-1/graph")).data

    nodes = {node["id"]: node for node in alone["nodes"]}
    assert ("machine", None, True, True) == (
        alone["kind"],
        nodes["WAIT"]["state"],
        nodes["BEGIN"]["is_start"],
        nodes["LOST"]["is_exit"],
    )
    assert ("succeeded", "waiting", "pending") == tuple(states(first)[name] for name in ("BEGIN", "WAIT", "PAY"))
    assert ("waiting", "succeeded") == (states(again)["WAIT"], states(again)["CHOOSE"])
    assert 2 == next(node["visits"] for node in again["nodes"] if node["id"] == "WAIT")
    assert ("CHOOSE", "WAIT") in {(it["start"], it["end"]) for it in again["arrows"] if it["is_taken"]}
    paying = next(node for node in retrying["nodes"] if node["id"] == "PAY")
    assert ("retrying", 1, "tests.http.shop.Refusal: closed") == (paying["state"], paying["attempts"], paying["note"])
    assert ("succeeded", "succeeded", "pending") == tuple(states(ended)[name] for name in ("PAY", "DONE", "LOST"))


async def test_the_graph_of_a_failed_machine_shows_undone_and_failed_states(api: Caller, engine: TestEngine) -> None:
    """The graph of a failed machine shows its earlier state as undone and the state that failed with its error."""
    shop.Flag.is_up = False
    run = await engine.start(graph_machine, Order(), id="m-2")
    await run.signal("cents", 7)
    with pytest.raises(outlive.errors.OutliveError):
        await run.result()

    ended = (await api.get("/api/v1/runs/m-2/graph")).data

    assert ("undone", "failed", "pending") == tuple(states(ended)[name] for name in ("BEGIN", "PAY", "DONE"))
    assert "tests.http.shop.Refusal: closed" == note_of(ended, "PAY")


async def test_a_failure_outside_of_steps_is_noted_where_the_machine_stands(api: Caller, engine: TestEngine) -> None:
    """Only the end of the run tells it."""
    run = await engine.start(graph_broken, id="m-3")
    with pytest.raises(outlive.errors.RunFailedError):
        await run.result()

    ended = (await api.get("/api/v1/runs/m-3/graph")).data

    assert "ValueError: too dear" == note_of(ended, "PAY")


async def test_time_in_line_and_before_a_retry_is_not_time_in_a_state(api: Caller, engine: TestEngine) -> None:
    """A state takes time from when a worker begins it."""
    shop.Flag.is_up = True
    run = await engine.start(graph_late, id="late-1", delay=3600)
    await run.result()
    delayed = (await api.get("/api/v1/runs/late-1/graph")).data
    shop.Flag.is_up = False
    run = await engine.start(graph_late, id="late-2")
    with pytest.raises(outlive.errors.OutliveError):
        await run.result()
    await engine.skip(hours=1)
    shop.Flag.is_up = True
    await run.retry()
    await run.result()
    retried = (await api.get("/api/v1/runs/late-2/graph")).data

    for graph in (delayed, retried):
        [begun] = [node for node in graph["nodes"] if node["id"] == "PAY"]
        assert "succeeded" == begun["state"]
        assert (begun["took"] or 0) < 60


async def test_a_server_without_the_code_has_the_graph_that_a_worker_described() -> None:
    """With the schema of what the machine takes."""
    async with TestEngine(_registry=Registry(), worker=False) as server:
        await Describer(store_of(server), registry_of(graph_machine)).describe()
        api = Caller(Api(server))
        graph = (await api.get("/api/v1/workflows/graph_machine/graph")).data
        described = (await api.get("/api/v1/workflows/graph_machine")).data["items"][0]

    assert ["BEGIN", "WAIT", "CHOOSE", "PAY", "DONE", "LOST"] == [node["id"] for node in graph["nodes"]]
    assert "Order" in described["arguments"]["$defs"]
    assert {"DONE", "LOST"} == set(described["result"]["$defs"]["MachineResult"]["properties"]["state"]["enum"])


async def test_a_snapshot_stands_for_what_came_before_it(api: Caller, engine: TestEngine) -> None:
    """The graph begins where the machine stood, and counts from there."""
    Rounds.count = 0
    await engine.start(graph_circle, id="c-1")
    await engine.settle()

    found = (await api.get("/api/v1/runs/c-1/graph")).data

    history = (await api.get("/api/v1/runs/c-1/history")).data
    assert "SnapshotTaken" == history["items"][0]["type"]
    assert {"ROUND": "waiting", "NEXT": "succeeded", "OUT": "pending"} == states(found)
    assert max(node["visits"] for node in found["nodes"]) < Rounds.count


async def test_a_function_has_an_empty_graph(api: Caller, engine: TestEngine) -> None:
    """So has a run of it; what is not known is 404."""
    await engine.start(shop.api_order, 5, id="f-1")
    run = (await api.get("/api/v1/runs/f-1/graph")).data
    workflow = (await api.get("/api/v1/workflows/api_order/graph")).data
    unknown = await api.get("/api/v1/workflows/api_nothing/graph")

    assert ("function", []) == (run["kind"], run["nodes"])
    assert ("function", "api_order") == (workflow["kind"], workflow["name"])
    assert (404, "unknown_workflow") == (unknown.status, unknown.code)
