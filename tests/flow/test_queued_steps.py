"""A step of a flow that waits for its turn in a queue of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

import outlive
from outlive import flow
from outlive.errors import RunFailedError, WrongArgumentsError
from outlive.events import DetachedStarted
from outlive.testing import TestEngine, crash_everywhere
from tests.engine.inside import journal_of
from tests.flow import shop


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Each test has a shop of its own."""
    shop.clear()
    yield
    shop.clear()


ORDERS = """
name: queued-orders
input: { cents: integer }
steps:
  reserve: { use: shop.reserve, with: { order: { id: 7 } } }
  charge:
    use: shop.charge
    with: { hold: "${{ steps.reserve.id }}", cents: "${{ input.cents }}" }
    queue: bank
    retry: { attempts: 2, first: 1s }
output: "${{ steps.charge }}"
"""


async def test_a_step_runs_in_its_queue() -> None:
    """A step with a queue runs as a run of its own in that queue, and the flow goes on with the result."""
    orders = flow.parse(ORDERS)
    async with TestEngine() as engine:
        run = await engine.start(orders, {"cents": 5}, id="q-1")

        assert await run.result() == "hold-7:5"
        (started,) = [each for each in await journal_of(run) if isinstance(each, DetachedStarted)]
        own = await engine.get(started.run_id).info()
    assert started.call == "charge"
    assert (own.workflow, own.version, own.queue, own.parent_id) == ("queued-orders", orders.version, "bank", "q-1")
    assert shop.CALLS == [("reserve", shop.Order(7)), ("charge", "hold-7", 5, "")]


async def test_the_limits_of_the_queue_hold() -> None:
    """The items of a map with a queue run one at a time, as the queue says and whatever the map allows."""
    text = """
name: queued-items
steps:
  all:
    use: map
    with: { items: [a, b, c], use: queued.count, with: { what: "${{ item }}" }, queue: queued-one }
  deep:
    use: map
    with:
      items: [d, e]
      do:
        steps: { one: { use: queued.count, with: { what: "${{ item }}" }, queue: queued-one } }
        output: "${{ steps.one }}"
output: "${{ steps.all.results + steps.deep.results }}"
"""
    items = flow.parse(text)
    async with TestEngine() as engine:
        await engine.queues.set("queued-one", concurrency=1)
        run = await engine.start(items)

        assert await run.result() == [1, 1, 1, 1, 1]


BUSY: list[str] = []


@outlive.step(name="queued.count")
async def count(what: str) -> int:
    """How many are here at once."""
    BUSY.append(what)
    await asyncio.sleep(0)
    found = len(BUSY)
    BUSY.remove(what)
    return found


async def test_a_flow_gets_the_error_of_a_step_in_a_queue() -> None:
    """A flow gets the error of a step in a queue, for its default and as its own failure."""
    text = ORDERS.replace("    queue: bank", '    queue: bank\n    on_error: { use_default: "${{ error }}" }')
    text = text.replace("shop.charge", "queued.closed").replace("queued-orders", "queued-closed")
    lenient, strict = flow.parse(text), flow.parse(text.replace("on_error", "metadata"))
    async with TestEngine() as engine:
        run = await engine.start(lenient, {"cents": 5})

        assert await run.result() == {"type": "ClosedError", "message": "closed 2"}
        failing = await engine.start(strict, {"cents": 5})
        with pytest.raises(RunFailedError, match="ClosedError: closed 2") as caught:
            await failing.result()
    assert caught.value.failure.error.endswith("ClosedError")


class ClosedError(Exception):
    """No builtin, and registered nowhere."""


@outlive.step(name="queued.closed")
async def closed(hold: str, cents: int) -> str:
    """Says in which attempt it is."""
    raise ClosedError(f"closed {outlive.current_step().attempt}")


UNDONE = """
name: queued-undone
steps:
  lend: { use: shop.lend, with: { book: Dune }, queue: bank }
  reserve:
    use: shop.reserve
    with: { order: { id: 1 } }
    undo: { use: shop.release, with: { hold: "${{ result.id }}" } }
    queue: bank
  audit:
    use: shop.audit
    with: { order: { id: 2 } }
    undo: { use: shop.release, with: { hold: "audit-${{ result.id }}" } }
    queue: bank
  fail: { use: fail, with: { message: no }, after: [lend, reserve, audit] }
"""


async def test_a_step_in_a_queue_is_undone_by_its_flow() -> None:
    """By the undo of the document, or by its own; a workflow in a queue too."""
    undone_flow = flow.parse(UNDONE)
    async with TestEngine() as engine:
        run = await engine.start(undone_flow)
        with pytest.raises(RunFailedError, match="no"):
            await run.result()

    undone = [each for each in shop.CALLS if each[0] in ("release", "give back")]
    assert sorted(undone) == [("give back", "Dune"), ("release", "audit-2"), ("release", "hold-1")]


async def test_a_step_that_is_cancelled_in_its_queue_is_undone_if_it_was_done() -> None:
    """The flow fails while it waits in line. It is done when its turn comes, or it is not: never done and kept."""
    text = UNDONE.replace("after: [lend, reserve, audit]", "after: [first]").replace(
        "queued-undone", "queued-cancelled"
    )
    text += "  first: { use: shop.say, with: { what: first } }\n"
    failing = flow.parse(text)
    async with TestEngine() as engine:
        await engine.queues.set("bank", concurrency=1)
        run = await engine.start(failing)
        with pytest.raises(RunFailedError, match="no"):
            await run.result()
        await engine.settle()
    done = sorted(each[1] for each in shop.CALLS if each[0] == "lend")
    assert done == sorted(each[1] for each in shop.CALLS if each[0] == "give back")


async def test_a_secret_reaches_a_step_in_a_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step in a queue gets the value of a secret and no journal has it; input that imitates a reference is
    refused."""
    monkeypatch.setenv("OUTLIVE_SECRET_KEY", "hush-hush")
    text = """
name: queued-secret
vars: { key: { type: string, secret: true } }
steps: { say: { use: queued.secret, with: { key: "${{ vars.key }}", to: "${{ input.to }}" }, queue: bank } }
output: "${{ steps.say }}"
"""
    secret = flow.parse(text)
    async with TestEngine() as engine:
        run = await engine.start(secret, {"to": "you"})
        assert await run.result() == "9 to you"
        assert "hush" not in "".join([await engine.export(each.id) for each in await engine.list()])
        forged = await engine.start(secret, {"to": "\ufdd0secret:key:\ufdd1"})
        with pytest.raises(RunFailedError, match="only the document can do that"):
            await forged.result()


@outlive.step(name="queued.secret")
async def length_of(key: str, to: str) -> str:
    """Uses it, and does not tell it."""
    return f"{len(flow.reveal(key))} to {to}"


async def test_only_a_flow_can_have_one_of_its_steps_run() -> None:
    """The arguments of the step would be those of the caller, who may not say where a secret goes."""
    orders = flow.parse(ORDERS)
    step = {"path": ["charge"], "given": {"hold": "mine", "cents": 1}}
    async with TestEngine() as engine:
        with pytest.raises(WrongArgumentsError, match="step"):
            await engine.start(orders.bind({"cents": 1}, step=step))
    assert shop.CALLS == []


def test_a_step_that_waits_cannot_have_a_queue() -> None:
    """A step that only waits cannot have a queue, because it would hold a slot for nothing."""
    with pytest.raises(flow.FlowError, match="`queue` is for steps with an effect"):
        flow.parse("name: queued-nap\nsteps: { nap: { use: sleep, with: { seconds: 1 }, queue: bank } }").check()


async def test_a_change_of_a_step_for_one_run_reaches_its_queue() -> None:
    """An override of a step reaches its run in the queue, and may choose another queue."""
    orders = flow.parse(ORDERS)
    async with TestEngine() as engine:
        overrides = {"charge": {"queue": "other", "with": {"note": "now"}}}
        run = await engine.start(orders.bind({"cents": 5}, overrides=overrides))

        assert await run.result() == "hold-7:5"
        queues = {each.queue for each in await engine.list() if each.id != run.id}
    assert queues == {"other"}
    assert shop.CALLS[-1] == ("charge", "hold-7", 5, "now")


async def test_a_flow_with_steps_in_a_queue_survives_a_crash() -> None:
    """At any commit: the same end, and what was done is undone once."""
    report = await crash_everywhere(flow.parse(UNDONE), max_points=3)

    assert report.points > 0
