"""`outlive.flow.Builder`: the same document from code."""

from datetime import timedelta
from typing import Any

import pytest

import outlive
from outlive import flow
from outlive._features.flows.document.checking import parse_document
from outlive._features.flows.document.known_names import known_here
from outlive._features.flows.document.model import hash_of
from outlive.testing import TestEngine


@outlive.step(name="builder.reserve")
async def reserve(order: dict[str, Any]) -> dict[str, str]:
    """Hold an order."""
    return {"hold": f"hold-{order['id']}"}


@outlive.step(name="builder.charge")
async def charge(hold: str, text: str) -> str:
    """Charge a hold."""
    return f"{hold}: {text}"


@outlive.step(name="builder.release")
async def release(hold: str) -> None:
    """Undo a hold."""


TEXT = """
name: built-orders
description: Orders
input: { order: object }
timeout: 1h
vars:
  hook: { type: string, default: "https://example.com" }
triggers:
  - event: order.created
    if: event.data.cents > 0
steps:
  reserve:
    use: builder.reserve
    with: { order: "${{ input.order }}" }
    undo: { use: builder.release, with: { hold: "${{ result.hold }}" } }
  charge:
    use: builder.charge
    if: ${{ steps.reserve != null }}
    with: { hold: "${{ steps.reserve.hold }}", text: "to ${{ vars.hook }}, line ${{ input.order[\\"lines\\"][0] }}" }
    timeout: 30
    retry: { attempts: 2 }
  nap:
    use: sleep
    with: { seconds: 1 }
    after: [charge]
    must_run: true
output: { paid: "${{ steps.charge }}", all: ["${{ steps.reserve.hold }}"] }
tests:
  - name: one
    input: { order: { id: 1, lines: [a] } }
"""


def build() -> tuple[flow.Builder, object]:
    """The same flow, and its output."""
    make = flow.Builder("built-orders", description="Orders", input={"order": "object"}, timeout="1h")
    hook = make.var("hook", type="string", default="https://example.com")
    make.trigger(event="order.created", if_="event.data.cents > 0")
    held = make.step(
        "reserve",
        reserve,
        with_={"order": make.input.order},
        undo={"use": release, "with": {"hold": make.result.hold}},
    )
    paid = make.step(
        "charge",
        "builder.charge",
        if_="${{ steps.reserve != null }}",
        with_={"hold": held.hold, "text": f"to {hook}, line {make.input.order['lines'][0]}"},
        timeout=timedelta(seconds=30),
        retry={"attempts": 2},
    )
    make.step("nap", "sleep", with_={"seconds": 1}, after=[paid], must_run=True)
    make.test("one", input={"order": {"id": 1, "lines": ["a"]}})
    return make, {"paid": paid, "all": [held.hold]}


def test_code_and_text_make_the_same_document() -> None:
    """With the same hash, so that their runs are runs of one flow."""
    make, output = build()
    by_text = parse_document(TEXT, known=known_here())

    assert by_text == make.document(output=output)
    assert hash_of(by_text) == hash_of(parse_document(make.yaml(output=output), known=known_here()))


async def test_a_flow_made_by_the_builder_runs() -> None:
    """A flow made by the builder runs on an engine."""
    make, output = build()
    orders = make.build(output=output)
    async with TestEngine() as engine:
        run = await engine.start(orders, {"order": {"id": 7, "lines": ["a"]}})

        assert await run.result() == {"paid": "hold-7: to https://example.com, line a", "all": ["hold-7"]}


def test_a_flow_of_the_builder_is_checked_as_a_text_is() -> None:
    """A flow of the builder is checked as a text is, with all problems at once by path."""
    make = flow.Builder("built-wrong", timeout="soon")
    make.step("one", "sleep", with_={"second": 1, "x": flow.Reference("steps.two")})

    with pytest.raises(flow.FlowError, match="timeout: timeout is 'soon'; expected a time"):
        make.document()
    make = flow.Builder("built-wrong")
    make.step("one", "sleep", with_={"second": 1, "until": flow.Reference("steps.two")})
    with pytest.raises(flow.FlowError) as caught:
        make.document(output={"x": make.input})
    assert sorted(each.code for each in caught.value.problems) == ["expression", "unknown-field"]


def test_mistakes_of_a_program_are_refused_where_they_are_made() -> None:
    """A name twice, and a condition in Python, which would be decided while the flow is built."""
    make, _ = build()
    with pytest.raises(outlive.errors.InvalidArgumentError, match="a step of this flow has this name"):
        make.step("nap", "sleep")
    with pytest.raises(outlive.errors.InvalidArgumentError, match="write a condition as text"):
        assert make.input.order
