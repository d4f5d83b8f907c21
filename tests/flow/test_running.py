"""How a flow runs: order, laziness, conditions, arguments, names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import outlive
from outlive import flow
from outlive.errors import RunFailedError
from outlive.events import RunCreated, StepSucceeded, TimerFired
from outlive.testing import TestEngine
from tests.engine.inside import journal_of
from tests.flow import shop


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Each test has a shop of its own."""
    shop.clear()
    shop.MEETING.clear()
    yield
    shop.clear()


async def output_of(text: str, given: Any = None) -> Any:
    """What a flow gives."""
    parsed = flow.parse(text)
    async with TestEngine() as engine:
        return await (await engine.start(parsed, given)).result()


ORDERS = """
name: running-orders
input: { order: { type: object } }
steps:
  charge:
    use: shop.charge
    with: { hold: "${{ steps.reserve.id }}", cents: "${{ input.order.cents }}" }
  reserve:
    use: shop.reserve
    with: { order: "${{ input.order }}" }
output: "${{ steps.charge }}"
"""


async def test_order_comes_from_references() -> None:
    """Not from the document, in which the second comes first; and a step gets its own type. [FE-A4]"""
    assert await output_of(ORDERS, {"order": {"id": 7, "cents": 5}}) == "hold-7:5"
    assert shop.CALLS == [("reserve", shop.Order(7, 5)), ("charge", "hold-7", 5, "")]


@pytest.mark.parametrize("store", ["memory:", "sqlite:"])
async def test_a_flow_runs_on_an_engine(store: str, tmp_path: Any) -> None:
    """A flow runs on an engine in memory and on a file, and is listed with its name and hash. [FE-A2]"""
    url = store if store == "memory:" else f"{store}{tmp_path / 'flow.db'}"
    orders = flow.parse(ORDERS)
    async with outlive.Engine(url) as engine:
        run = await engine.start(orders, {"order": {"id": 1, "cents": 2}}, id="o-1")

        assert await run.result() == "hold-1:2"
        found = next(iter(await engine.list(id_prefix="o-1")))
    assert (found.workflow, found.version) == ("running-orders", int(orders.hash, 16))


async def test_the_journal_knows_a_step_by_its_id() -> None:
    """The journal has the steps, children and timers of a flow under the ids of the document, even when they run side
    by side."""
    text = """
name: running-names
steps:
  one: { use: shop.say, with: { what: 1 } }
  two: { use: shop.say, with: { what: 2 } }
  nap: { use: sleep, with: { seconds: 5m } }
  child: { use: shop.audit, with: { order: { id: 1 } } }
"""
    names = flow.parse(text)
    async with TestEngine() as engine:
        run = await engine.start(names)
        await run.result()
        events = await journal_of(run)

    steps = {event.call for event in events if isinstance(event, StepSucceeded)}
    assert steps == {"one", "two", "shop.say"}
    assert [event.call for event in events if isinstance(event, RunCreated)] == ["", "child"]
    assert [event.call for event in events if isinstance(event, TimerFired)] == ["nap/@timer"]


async def test_independent_steps_run_side_by_side() -> None:
    """Three that wait for each other, and one that waits for all of them. [FE-S3]"""
    text = """
name: running-beside
steps:
  a: { use: shop.meet, with: { name: a, others: 3 } }
  b: { use: shop.meet, with: { name: b, others: 3 } }
  c: { use: shop.meet, with: { name: c, others: 3 } }
output: "${{ steps.a + steps.b + steps.c }}"
"""
    assert await output_of(text) == 9


async def test_a_step_that_is_not_needed_does_not_run() -> None:
    """Unless it must; and what that needs runs too."""
    text = """
name: running-lazy
steps:
  wanted: { use: shop.say, with: { what: wanted } }
  idle: { use: shop.say, with: { what: idle } }
  deep: { use: shop.say, with: { what: deep } }
  said: { use: shop.say, with: { what: "${{ steps.deep }}er" }, must_run: true }
output: "${{ steps.wanted }}"
"""
    assert await output_of(text) == "wanted"
    assert sorted(shop.CALLS) == ["deep", "deeper", "wanted"]


async def test_a_flow_without_an_output_runs_everything_and_gives_null() -> None:
    """An output that is null runs nothing."""
    text = "name: running-all\nsteps:\n  one: { use: shop.say, with: { what: one } }\n"

    assert await output_of(text) is None
    assert shop.CALLS == ["one"]
    assert await output_of(text + "output: null\n") is None
    assert shop.CALLS == ["one"]


async def test_a_step_whose_condition_is_false_has_the_result_null() -> None:
    """Steps that wait for it go on."""
    text = """
name: running-if
input: { wanted: boolean }
steps:
  maybe: { use: shop.say, with: { what: maybe }, if: "${{ input.wanted }}" }
  next: { use: shop.say, with: { what: "${{ steps.maybe == null ? 'nothing' : 'something' }}" } }
output: ["${{ steps.maybe }}", "${{ steps.next }}"]
"""
    assert await output_of(text, {"wanted": False}) == [None, "nothing"]
    assert await output_of(text, {"wanted": True}) == ["maybe", "something"]


async def test_after_orders_without_data() -> None:
    """One after the other, though neither uses the other."""
    text = """
name: running-after
steps:
  last: { use: shop.say, with: { what: last }, after: [middle] }
  middle: { use: shop.say, with: { what: middle }, after: [first] }
  first: { use: shop.say, with: { what: first } }
"""
    await output_of(text)
    assert shop.CALLS == ["first", "middle", "last"]


@pytest.mark.parametrize(("order", "expected"), [("breadth", "abcAC"), ("depth", "aAbcC")])
async def test_which_of_the_ready_steps_begins_first(order: str, expected: str) -> None:
    """Where only one runs at a time: all that are ready, or first what a step has made ready."""
    text = f"""
name: running-{order}
order: {order}
concurrency: 1
steps:
  a: {{ use: shop.say, with: {{ what: a }} }}
  A: {{ use: shop.say, with: {{ what: A }}, after: [a] }}
  b: {{ use: shop.say, with: {{ what: b }} }}
  c: {{ use: shop.say, with: {{ what: c }} }}
  C: {{ use: shop.say, with: {{ what: C }}, after: [c] }}
"""
    await output_of(text)
    assert "".join(shop.CALLS) == expected


async def test_a_result_is_plain_data() -> None:
    """An instant, a tuple or an object of a class reaches later steps and the output as plain JSON data."""
    text = """
name: running-plain
steps:
  stamp: { use: shop.stamp, with: { what: "${{ run.id }}" } }
  audit: { use: shop.audit, with: { order: { id: 3, cents: 4 }, depth: 2 } }
output: { stamp: "${{ steps.stamp }}", audit: "${{ steps.audit }}", year: "${{ steps.stamp.at }}" }
"""
    plain = flow.parse(text)
    async with TestEngine() as engine:
        found = await (await engine.start(plain, id="plain-1")).result()

    stamp = {"what": "plain-1", "at": "2026-01-02T00:00:00Z", "pair": [1, 2]}
    assert found == {"stamp": stamp, "audit": {"id": 3, "cents": 6}, "year": "2026-01-02T00:00:00Z"}


async def test_a_field_may_be_called_like_a_tag_of_the_journal() -> None:
    """Plain data is plain data, on its way in and out."""
    text = """
name: running-dollar
steps: { one: { use: shop.say, with: { what: "${{ input.given }}" } } }
output: "${{ steps.one }}"
"""
    assert await output_of(text, {"given": {"$": ["no", "tag"]}}) == {"$": ["no", "tag"]}


@pytest.mark.parametrize(
    ("with_", "use", "says"),
    [
        ("{ hold: x }", "shop.charge", "it needs cents"),
        ("{ hold: x, cent: 3, cents: 3 }", "shop.charge", "it has no parameter 'cent'; it takes hold, cents, note"),
        ("[1]", "shop.charge", "arguments by name"),
        ("{}", "shop.chrage", "did you mean shop.charge?"),
        ("{ order: { id: 1 }, dept: 2 }", "shop.audit", "it has no parameter 'dept'"),
    ],
)
async def test_a_call_that_cannot_work_is_refused_before_anything_runs(with_: str, use: str, says: str) -> None:
    """By the signature of the step; the error names the step and what it takes."""
    wrong = f"name: running-wrong\nsteps:\n  fine: {{ use: noop }}\n  one: {{ use: {use}, with: {with_} }}\n"
    async with TestEngine() as engine:
        with pytest.raises(flow.FlowError, match="one") as caught:
            await engine.start(flow.parse(wrong))

    assert says in str(caught.value)


async def test_an_argument_of_another_type_fails_the_step() -> None:
    """The type of the step reads it; another attempt would meet it again, and is not made."""
    given = '{ hold: a, cents: "${{ input.cents }}" }'
    text = f"name: running-type\nsteps:\n  one: {{ use: shop.charge, with: {given}, retry: {{}} }}\n"
    with pytest.raises(RunFailedError, match=r"argument of shop\.charge"):
        await output_of(text, {"cents": "many"})


async def test_an_input_that_does_not_fit_starts_no_run() -> None:
    """The run does not exist."""
    orders = flow.parse(ORDERS)
    async with TestEngine() as engine:
        with pytest.raises(flow.FlowInputError, match=r"running-orders .*input\.order"):
            await engine.start(orders, {}, id="none")

        assert await engine.count() == 0


async def test_a_flow_is_called_in_a_workflow() -> None:
    """A flow that a workflow calls runs as its child."""
    async with TestEngine() as engine:
        found = await (await engine.start(calls_a_flow, 4)).result()

    assert found == "hold-4:9"


@outlive.workflow(name="running.calls_a_flow")
async def calls_a_flow(number: int) -> Any:
    """The flow is a workflow."""
    return await flow.parse(ORDERS)({"order": {"id": number, "cents": 9}})


async def test_an_expression_that_has_no_value_fails_the_flow() -> None:
    """With the step, the expression, and what was found."""
    text = """
name: running-missing
steps:
  one: { use: shop.say, with: { what: { a: 1 } } }
  two: { use: shop.say, with: { what: "${{ steps.one.what.b }}" } }
output: "${{ steps.two }}"
"""
    with pytest.raises(RunFailedError, match=r"steps\.one"):
        await output_of(text)
