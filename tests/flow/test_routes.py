"""What a name means in one environment, and values that it gives to variables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import outlive
from outlive import flow
from outlive._features.flows.outside import settings
from outlive._features.flows.outside.settings import read
from outlive.testing import TestEngine

ROUTES = {
    "vars": {"suffix": "!"},
    "routes": {
        "routed.greet": "routed_loud",
        "routed.pay": [
            {"use": "routed_card", "conditions": [{"path": "country", "value": "SE"}], "params": {"provider": "x"}},
        ],
        "routed.bad": [{"use": "sleep", "conditions": [{"path": "a", "value": 1}]}, {"use": "routed_loud"}],
    },
}


@outlive.step
async def routed_loud(name: str, suffix: str) -> str:
    """Stands for routed.greet."""
    return f"{name.upper()}{suffix}"


@outlive.step
async def routed_soft(name: str, suffix: str) -> str:
    """Stands for routed.greet later."""
    return name


@outlive.step
async def routed_card(country: str, provider: str) -> str:
    """Stands for routed.pay in Sweden."""
    return f"{country} by {provider}"


@outlive.step(name="routed.pay")
async def routed_pay(country: str) -> str:
    """What the name means elsewhere."""
    return f"{country} by hand"


@pytest.fixture(autouse=True)
def _routes() -> Iterator[None]:
    with settings.using(read(ROUTES)):
        yield


async def test_routes_and_values_of_an_environment() -> None:
    """A name that no step has, one that has another meaning for some arguments, and a variable."""
    made = flow.parse("""
name: routed
input: { country: string }
vars: { suffix: { type: string } }
steps:
  greet: { use: routed.greet, with: { name: anna, suffix: "${{ vars.suffix }}" } }
  pay: { use: routed.pay, with: { country: "${{ input.country }}" } }
output: [ "${{ steps.greet }}", "${{ steps.pay }}" ]
""")
    async with TestEngine() as engine:
        swedish = await engine.start(made, {"country": "SE"})
        danish = await engine.start(made.bind({"country": "DK"}, vars={"suffix": "?"}))
        assert await swedish.result() == ["ANNA!", "SE by x"]
        assert await danish.result() == ["ANNA?", "DK by hand"]


async def test_routes_that_cannot_work() -> None:
    """To nothing, or to a step for some arguments and to what is none for others."""
    text = "name: routed_{0}\nsteps: {{ one: {{ use: {0}, with: {{ name: a, suffix: b }} }} }}"
    with (
        settings.using(read({"routes": {"routed_here": "routed_nowhere"}})),
        pytest.raises(flow.FlowError, match="nowhere"),
    ):
        flow.parse(text.format("routed_here")).check()
    with pytest.raises(flow.FlowError, match="lead to steps and to"):
        flow.parse(text.format("routed.bad")).check()


async def test_a_route_may_change_while_a_run_is_under_way(tmp_path: Path) -> None:
    """A step that has run keeps its result when its route changes, and a later step takes the new route."""
    text = """
name: routed_change
steps:
  greet: { use: routed.greet, with: { name: a, suffix: b } }
  wait: { use: wait_for_signal, after: [greet], with: { name: go } }
  again: { use: routed.greet, after: [wait], with: { name: a, suffix: b } }
output: [ "${{ steps.greet }}", "${{ steps.again }}" ]
"""
    made = flow.parse(text)
    url = f"sqlite:{tmp_path / 'runs.db'}"
    async with TestEngine(url) as engine:
        await engine.start(made, id="routed-1")
        await engine.settle()
    with settings.using(read({"routes": {"routed.greet": "routed_soft"}})):
        flow.parse(text)
        async with TestEngine(url) as engine:
            await engine.signal("routed-1", "go")
            assert await (engine.get("routed-1")).result() == ["Ab", "a"]
