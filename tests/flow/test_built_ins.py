"""The built-ins that wait, decide, talk and run others."""

from __future__ import annotations

import builtins
import logging
from collections.abc import Iterator
from typing import Any

import pytest

import outlive
from outlive import flow
from outlive.errors import RunCancelledError, RunFailedError
from outlive.events import RunCreated, StepSucceeded
from outlive.testing import TestEngine
from tests.engine.inside import journal_of
from tests.flow import shop

ENDS_PROGRAMS = [
    each
    for each in vars(builtins).values()
    if isinstance(each, type) and issubclass(each, BaseException) and not issubclass(each, Exception)
]
"""Exceptions of Python that no `except Exception` catches."""


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Each test has a shop of its own."""
    shop.clear()
    yield
    shop.clear()


def stepping(name: str, step: str) -> flow.FlowWorkflow:
    """A flow of one step, whose output is its result."""
    return flow.parse(f'name: built-in-{name}\nsteps:\n  one: {step}\noutput: "${{{{ steps.one }}}}"\n')


async def result_of(name: str, step: str) -> Any:
    """What a flow of one step gives."""
    parsed = stepping(name, step)
    async with TestEngine() as engine:
        return await (await engine.start(parsed, id=name)).result()


async def test_noop_gives_what_it_is_given() -> None:
    """Anything, also what looks like an expression and is none."""
    assert await result_of("noop", "{ use: noop, with: { a: [1, null], b: { $literal: '${{ x }}' } } }") == {
        "a": [1, None],
        "b": "${{ x }}",
    }


async def test_log_writes_a_line(caplog: pytest.LogCaptureFixture) -> None:
    """With its level and fields, in the run that says it."""
    with caplog.at_level(logging.INFO, "outlive.flow"):
        await result_of("log", "{ use: log, with: { message: hello, level: warning, fields: { n: 3 } } }")

    [record] = [each for each in caplog.records if each.name == "outlive.flow"]
    assert (record.levelname, record.getMessage(), vars(record)["run_id"]) == ("WARNING", "one: hello n=3", "log")


@pytest.mark.parametrize("how", ["seconds: 1h30m", "seconds: 5400", "until: 2025-06-15T16:36:40Z"])
async def test_sleep_waits_durably(how: str) -> None:
    """A span, or until an instant: the clock of the tests begins at 15:06:40."""
    parsed = stepping("sleep", f"{{ use: sleep, with: {{ {how} }} }}")
    async with TestEngine() as engine:
        began = engine.clock.now()
        await (await engine.start(parsed)).result()

        assert round((engine.clock.now() - began) / 1_000_000) == 5_400


@pytest.mark.parametrize(("on", "expected"), [("a", 1), ("true", 2), ("7", 3), ("other", "none")])
async def test_switch_chooses_a_value(on: str, expected: Any) -> None:
    """By text, number or truth; `default` where none fits. [FE-S2]"""
    step = f"{{ use: switch, with: {{ on: {on}, cases: {{ a: 1, 'true': 2, '7': 3 }}, default: none }} }}"
    assert await result_of("switch", step) == expected


async def test_switch_without_a_fitting_case_fails() -> None:
    """Unless it has a default."""
    with pytest.raises(RunFailedError, match="no case for 'b'"):
        await result_of("switch-none", "{ use: switch, with: { on: b, cases: { a: 1 } } }")


async def test_fail_fails_with_an_error_of_its_own() -> None:
    """Which `on_error` sees."""
    with pytest.raises(RunFailedError, match="TooDear: 7 is too much"):
        await result_of("fail", "{ use: fail, with: { type: TooDear, message: 7 is too much } }")


@pytest.mark.parametrize("name", [each.__name__ for each in ENDS_PROGRAMS])
async def test_fail_raises_nothing_that_ends_a_worker(name: str) -> None:
    """A document with such a name is refused. A name that is computed fails its step. [S18]"""
    with pytest.raises(flow.FlowError, match="may not be the name of what ends a program"):
        flow.parse(f"{{ name: ends, steps: {{ one: {{ use: fail, with: {{ type: {name}, message: no }} }} }} }}")

    computed = f"${{{{ '{name}' + '' }}}}"
    with pytest.raises(RunFailedError, match="does not fit fail"):
        await result_of("fail-computed", f'{{ use: fail, with: {{ type: "{computed}", message: no }} }}')


async def test_publish_and_emit_show_something() -> None:
    """Fields, and items of a stream."""
    text = """
name: built-in-shown
steps:
  stage: { use: publish, with: { stage: packing, done: 3 } }
  item: { use: emit, with: { stream: lines, value: { n: 1 } } }
"""
    parsed = flow.parse(text)
    async with TestEngine() as engine:
        run = await engine.start(parsed)
        await run.result()

        assert await run.published() == {"stage": "packing", "done": 3}
        assert [item async for item in run.stream("lines")] == [{"n": 1}]


async def test_a_flow_waits_for_a_signal_of_another_flow() -> None:
    """Its value is the result."""
    waiting = stepping("waiting", "{ use: wait_for_signal, with: { name: paid } }")
    text = """
name: built-in-sending
steps:
  send: { use: signal, with: { run: waiting-1, name: paid, value: { cents: 5 }, key: k } }
  again: { use: signal, with: { run: waiting-1, name: paid, value: { cents: 6 }, key: k }, after: [send] }
"""
    sending = flow.parse(text)
    async with TestEngine() as engine:
        run = await engine.start(waiting, id="waiting-1")
        await engine.start(sending, id="sending-1")

        assert await run.result() == {"cents": 5}


@outlive.workflow(name="built_in.till")
async def till() -> int:
    """Answers one ask."""
    async for ask in outlive.asks("add"):
        ask.reply(ask.body + 1)
        return 1
    return 0


async def test_ask_gets_an_answer() -> None:
    """From another run, once."""
    parsed = stepping("ask", "{ use: ask, with: { run: till-1, name: add, value: 4 } }")
    async with TestEngine() as engine:
        await engine.start(till, id="till-1")

        assert await (await engine.start(parsed, id="asking-1")).result() == 5


async def test_approval_asks_people() -> None:
    """A rejection is a result."""
    parsed = stepping("approval", "{ use: approval, with: { title: Pay?, assignees: [ann], deadline: 2d } }")
    async with TestEngine() as engine:
        run = await engine.start(parsed, id="approval-1")
        [request] = await engine.approvals.list(assignee="ann")
        await engine.approvals.reject("approval-1", "one", by="ann", comment="too dear")
        decided = await run.result()

    assert (request.name, request.title) == ("one", "Pay?")
    assert (decided["approved"], decided["by"], decided["comment"]) == (False, "ann", "too dear")


INNER = """
name: built-in-inner
input: { n: { type: integer, default: 2 } }
vars: { factor: { type: integer, default: 10 } }
steps: { say: { use: shop.say, with: { what: "${{ input.n * vars.factor }}" } } }
output: "${{ steps.say }}"
"""


async def test_a_flow_runs_another_flow_as_a_child() -> None:
    """With its input and variables; by `use: flow`, or by its own name."""
    flow.parse(INNER)
    text = """
name: built-in-outer
steps:
  named: { use: flow, with: { name: built-in-inner, input: { n: 3 }, vars: { factor: 5 } } }
  used: { use: built-in-inner, with: { n: 4 } }
  plain: { use: built-in-inner }
output: ["${{ steps.named }}", "${{ steps.used }}", "${{ steps.plain }}"]
"""
    parsed = flow.parse(text)
    async with TestEngine() as engine:
        run = await engine.start(parsed, id="outer-1")

        assert await run.result() == [15, 40, 20]
        calls = [event.call for event in await journal_of(run) if isinstance(event, RunCreated)]
    assert calls == ["", "named/built-in-inner", "used", "plain"]


async def test_a_flow_of_the_library_uses_another_one_by_its_name() -> None:
    """A flow that uses another one by its name calls the revision that is published at the call."""
    steps = "steps: {{ a: {{ use: noop, with: {{ text: {} }} }} }}\n"
    greet = f"name: built-in-greet\n{steps}output: '${{{{{{{{ steps.a.text }}}}}}}}'\n"
    caller = "name: built-in-caller\nsteps: { inner: { use: built-in-greet } }\noutput: '${{ steps.inner }}'\n"
    async with TestEngine() as engine:
        await engine.flows.apply(greet.format("hello"))
        await engine.flows.apply(caller)
        assert await (await engine.flows.start("built-in-caller")).result() == "hello"
        await engine.flows.apply(greet.format("hi"))
        assert await (await engine.flows.start("built-in-caller")).result() == "hi"


async def test_start_starts_a_run_of_its_own() -> None:
    """Its result is the id; the run outlives the flow."""
    flow.parse(INNER)
    step = "{ use: start, with: { name: built-in-inner, input: { n: 7 }, id: mine, tags: { by: flow } } }"
    parsed = stepping("start", step)
    async with TestEngine() as engine:
        assert await (await engine.start(parsed)).result() == "mine"
        assert await engine.get("mine").result() == 70
        assert [run.id for run in await engine.list(tags={"by": "flow"})] == ["mine"]


async def test_a_workflow_with_a_queue_is_a_run_of_its_own_in_it() -> None:
    """The flow waits for its end."""
    parsed = stepping("queue", "{ use: shop.audit, with: { order: { id: 2, cents: 1 } }, queue: audits }")
    async with TestEngine() as engine:
        assert await (await engine.start(parsed)).result() == {"id": 2, "cents": 2}
        [run] = await engine.list(workflow="shop.audit")
    assert (run.queue, run.id == run.root_id) == ("audits", True)


MAP = """
name: built-in-map-{name}
steps:
  names: {{ use: noop, with: {{ prefix: no }} }}
  fan:
    use: map
    with:
      items: [1, 2, 3, 4]
      concurrency: 2
      tolerate: {tolerate}
      use: shop.say
      with: {{ what: "${{{{ steps.names.prefix }}}}${{{{ item * 10 + index }}}}" }}
output: "${{{{ steps.fan }}}}"
"""


async def test_map_calls_a_step_for_each_item() -> None:
    """In the order of the items, whatever ends first; the journal knows each by its place. [FE-S5]"""
    parsed = flow.parse(MAP.format(name="all", tolerate=0))
    async with TestEngine() as engine:
        run = await engine.start(parsed)
        found = await run.result()
        calls = [event.call for event in await journal_of(run) if isinstance(event, StepSucceeded)]

    assert found == {"results": ["no10", "no21", "no32", "no43"], "successful": 4, "failed": 0, "errors": []}
    assert sorted(calls) == [f"fan.{index}/shop.say" for index in range(4)]


@pytest.mark.parametrize("tolerate", ["1", "25%", "0.25"])
async def test_a_map_tolerates_some_failures(tolerate: str) -> None:
    """One item's failure is its own."""
    shop.FAILURES["no21"] = [ValueError("no")]
    parsed = flow.parse(MAP.format(name="some", tolerate=tolerate))
    async with TestEngine() as engine:
        found = await (await engine.start(parsed)).result()

    assert found["results"] == ["no10", None, "no32", "no43"]
    assert (found["successful"], found["failed"]) == (3, 1)
    assert found["errors"] == [{"index": 1, "type": "ValueError", "message": "no"}]


async def test_a_map_that_tolerates_nothing_fails_with_its_item() -> None:
    """A map that tolerates no failure fails with the error of its item and begins no more items."""
    shop.FAILURES["no10"] = [ValueError("no")]
    parsed = flow.parse(MAP.format(name="none", tolerate=0))
    async with TestEngine() as engine:
        with pytest.raises(RunFailedError, match="ValueError: no"):
            await (await engine.start(parsed)).result()

    assert len(shop.CALLS) <= 2


async def test_a_map_says_how_many_items_have_failed_when_that_is_too_many() -> None:
    """Each with its place."""
    shop.FAILURES |= {name: [ValueError("no")] for name in ("no10", "no21", "no32")}
    parsed = flow.parse(MAP.format(name="many", tolerate=1))
    async with TestEngine() as engine:
        with pytest.raises(RunFailedError, match="ToleranceExceededError: 2 "):
            await (await engine.start(parsed)).result()


async def test_a_map_that_is_cancelled_ends_there_with_all_its_items() -> None:
    """A cancelled map begins no further item and gives no result to a later step, and its run is cancelled."""
    parsed = flow.parse("""
name: built-in-map-cancelled
steps:
  fan:
    use: map
    with: { items: [1, 2, 3], concurrency: 2, use: wait_for_signal, with: { name: "answer-${{ item }}" } }
  after: { use: shop.say, with: { what: "${{ steps.fan.results }}" } }
output: "${{ steps.after }}"
""")
    async with TestEngine() as engine:
        run = await engine.start(parsed)
        await engine.settle()
        waiting = {wait.name for wait in (await run.info()).waits}
        await run.cancel()
        with pytest.raises(RunCancelledError):
            await run.result()

    assert waiting == {"answer-1", "answer-2"}
    assert shop.CALLS == []


async def test_a_map_runs_steps_that_are_written_in_place() -> None:
    """With references to each other, to the item, and to the steps around; nested too."""
    text = """
name: built-in-do
steps:
  base: { use: noop, with: { n: 100 } }
  fan:
    use: map
    with:
      items: [[1, 2], [3]]
      do:
        steps:
          inner:
            use: map
            with: { items: "${{ item }}", use: shop.say, with: { what: "${{ item + steps.base.n }}" } }
          total: { use: shop.say, with: { what: "${{ steps.inner.results.sum() }}" } }
        output: "${{ steps.total }}"
output: "${{ steps.fan.results }}"
"""
    parsed = flow.parse(text)
    async with TestEngine() as engine:
        run = await engine.start(parsed)
        assert await run.result() == [203, 103]
        calls = [event.call for event in await journal_of(run) if isinstance(event, StepSucceeded)]
    assert {"fan.0.inner.1/shop.say", "fan.1/total"} <= set(calls)


async def test_iterate_goes_on_until_there_is_a_result() -> None:
    """Each turn durable, with a durable pause between. [FE-S7]"""
    text = """
name: built-in-iterate
steps:
  poll:
    use: iterate
    with:
      start: { tries: 0 }
      every: 10m
      do:
        steps: { look: { use: shop.say, with: { what: "${{ item.tries + 1 }}" } } }
        output: "${{ steps.look < 4 ? {'next': {'tries': steps.look}} : {'result': 'ready'} }}"
output: "${{ steps.poll }}"
"""
    parsed = flow.parse(text)
    async with TestEngine() as engine:
        began = engine.clock.now()
        found = await (await engine.start(parsed)).result()
        took = engine.clock.now() - began

    assert found == {"result": "ready", "iterations": 4, "terminated": False}
    assert (shop.CALLS, round(took / 1_000_000)) == ([1, 2, 3, 4], 1_800)


async def test_iterate_is_bounded() -> None:
    """It says that it was stopped. [FE-S7]"""
    step = "{ use: iterate, with: { start: 1, max_iterations: 5, use: noop, with: { next: '${{ item + 1 }}' } } }"
    assert await result_of("bounded", step) == {"result": 6, "iterations": 5, "terminated": True}


async def test_a_flow_that_calls_itself_for_ever_fails() -> None:
    """It would fill the memory of one worker after the other."""
    endless = flow.parse("name: built-in-endless\nsteps: { again: { use: flow, with: { name: built-in-endless } } }")
    async with TestEngine() as engine:
        with pytest.raises(RunFailedError, match="flows call each other 30 deep"):
            await (await engine.start(endless)).result()
        assert await engine.count() == 31


@pytest.mark.parametrize(
    ("step", "says"),
    [
        ("{ use: sleep, with: \"${{ {'seconds': 1, 'until': '2026-01-01'} }}\" }", "either `seconds` or `until`"),
        ("{ use: sleep, with: { until: 2026-13-01 } }", "`until` is not an instant"),
        ("{ use: iterate, with: { use: noop, with: { other: 1 } } }", "turn 0 gave"),
        ("{ use: map, with: { items: [1], use: noop, concurrency: '${{ size(run.id) * 0 }}' } }", "`int` >= 1"),
        ("{ use: map, with: { items: [1], use: noop, tolerate: '${{ run.id }}' } }", "matching regex"),
        ("{ use: flow, with: { name: built-in-none } }", "no flow or workflow is called 'built-in-none'"),
    ],
)
async def test_a_value_that_a_built_in_cannot_use_fails_the_flow(step: str, says: str) -> None:
    """A value that a built-in cannot use, and that no check could find before, fails the flow with the reason."""
    with pytest.raises(RunFailedError) as caught:
        await result_of("wrong", step)

    assert says in str(caught.value)
