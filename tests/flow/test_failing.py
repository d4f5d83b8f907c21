"""Flows whose steps fail: what is tried again, what takes the place of a result, what is stopped and what is undone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from outlive import flow
from outlive.errors import RunFailedError, RunTimedOutError
from outlive.testing import TestEngine
from tests.flow import shop


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Each test has a shop of its own."""
    shop.clear()
    yield
    shop.clear()


async def output_of(text: str, given: Any = None) -> Any:
    """What a flow gives."""
    parsed = flow.parse(text)
    async with TestEngine() as engine:
        return await (await engine.start(parsed, given)).result()


def saying(options: str, *, name: str) -> str:
    """A flow of one step that says `it`, with these options."""
    head = f"name: failing-{name}\nsteps:\n  one:\n    use: shop.say\n    with: {{ what: it }}\n"
    return f'{head}    {options}\noutput: "${{{{ steps.one }}}}"\n'


async def test_a_default_takes_the_place_of_a_result() -> None:
    """The default of a failed step takes the place of its result and may name the error."""
    shop.FAILURES["it"] = [ValueError("no")]
    text = saying('on_error: { use_default: { was: "${{ error.type }}: ${{ error.message }}" } }', name="default")

    assert await output_of(text) == {"was": "ValueError: no"}


async def test_a_default_of_null_is_a_default() -> None:
    """Null is a value."""
    shop.FAILURES["it"] = [ValueError("no")]
    assert await output_of(saying("on_error: { use_default: null }", name="null")) is None


async def test_a_failure_fails_the_flow() -> None:
    """With the error of the step, and no second attempt: the step has answered."""
    shop.FAILURES["it"] = [ValueError("no")]
    with pytest.raises(RunFailedError, match="ValueError: no"):
        await output_of(saying("on_error: fail", name="fail"))

    assert shop.CALLS == ["it"]


@pytest.mark.parametrize("error", [ConnectionError("away"), TimeoutError("slow")])
async def test_an_error_of_transport_is_tried_again_without_being_asked(error: Exception) -> None:
    """Three times: it says nothing about the step."""
    shop.FAILURES["it"] = [error, error, error]
    assert await output_of(saying("once: false", name="transport")) == "it"
    assert shop.CALLS == ["it"] * 4

    shop.clear()
    shop.FAILURES["it"] = [error] * 9
    with pytest.raises(RunFailedError, match=str(error)):
        await output_of(saying("once: false", name="transport"))
    assert shop.CALLS == ["it"] * 4


async def test_a_step_that_is_called_once_is_not_tried_again() -> None:
    """Whatever the error is."""
    shop.FAILURES["it"] = [ConnectionError("away")]
    with pytest.raises(RunFailedError, match="away"):
        await output_of(saying("once: true", name="once"))

    assert shop.CALLS == ["it"]


@pytest.mark.parametrize("option", ["on_error: { retry: { attempts: 3, first: 1m } }", "retry: { attempts: 3 }"])
async def test_a_retry_is_for_the_errors_of_the_step_too(option: str) -> None:
    """A step whose document asks for three attempts succeeds at the third, and fails after three failures."""
    shop.FAILURES["it"] = [ValueError("no")] * 2
    assert await output_of(saying(option, name="retry")) == "it"

    shop.FAILURES["it"] = [ValueError("no")] * 3
    with pytest.raises(RunFailedError, match="ValueError: no"):
        await output_of(saying(option, name="retry"))


@pytest.mark.parametrize(
    ("named", "attempts"),
    [
        ("on: [503]", 2),
        ("on: [StatusError]", 2),
        ("on: [Exception]", 2),
        ("on: [500, KeyError]", 1),
        ("not_on: [503]", 1),
        ("not_on: [500, KeyError]", 2),
        ("on: [Exception], not_on: [StatusError]", 1),
    ],
)
async def test_a_retry_names_errors_and_statuses(named: str, attempts: int) -> None:
    """A retry names errors by their class or one above it, or by their status; `not_on` takes some of them out."""
    shop.FAILURES["it"] = [shop.StatusError(503)] * 9
    with pytest.raises(RunFailedError, match="status 503"):
        await output_of(saying(f"retry: {{ attempts: 2, {named} }}", name="named"))

    assert shop.CALLS == ["it"] * attempts


async def test_a_flow_has_a_retry_for_its_steps() -> None:
    """For steps that have none of their own."""
    text = saying("timeout: 1m", name="flow-retry") + "retry: { attempts: 2, first: 0 }\n"
    shop.FAILURES["it"] = [ValueError("no")]
    assert await output_of(text) == "it"


async def test_a_step_has_a_timeout() -> None:
    """For each attempt; too late is an error of transport."""
    text = """
name: failing-timeout
steps:
  slow: { use: shop.wait, with: { seconds: 9 }, timeout: 20ms, on_error: { use_default: late }, retry: { attempts: 1 } }
output: "${{ steps.slow }}"
"""
    assert await output_of(text) == "late"
    assert shop.CALLS == ["cancelled"]


async def test_a_wait_has_a_timeout() -> None:
    """A durable one."""
    text = """
name: failing-wait
steps:
  paid: { use: wait_for_signal, with: { name: paid }, timeout: 2d, on_error: { use_default: "${{ error.type }}" } }
output: "${{ steps.paid }}"
"""
    assert await output_of(text) == "TimeoutError"


async def test_a_flow_has_a_timeout() -> None:
    """For the whole run."""
    with pytest.raises(RunTimedOutError):
        await output_of("name: failing-long\ntimeout: 1h\nsteps: { nap: { use: sleep, with: { seconds: 2h } } }\n")


BESIDE = """
name: failing-{how}
on_failure: {how}
steps:
  bad: {{ use: shop.say, with: {{ what: bad }} }}
  nap: {{ use: sleep, with: {{ seconds: 1h }} }}
  rested: {{ use: shop.say, with: {{ what: rested }}, after: [nap] }}
  never: {{ use: shop.say, with: {{ what: never }}, after: [bad] }}
"""


@pytest.mark.parametrize(("how", "expected"), [("stop", ["bad"]), ("finish", ["bad", "rested"])])
async def test_a_failure_stops_the_others_or_lets_them_finish(how: str, expected: list[str]) -> None:
    """A failed step stops the other steps or lets them finish, as its flow says, and a step that waits for it never
    runs. [FB-R14 FB-R15]"""
    shop.FAILURES["bad"] = [ValueError("bad")]
    with pytest.raises(RunFailedError, match="ValueError: bad"):
        await output_of(BESIDE.format(how=how))

    assert shop.CALLS == expected


async def test_completed_steps_are_undone_newest_first() -> None:
    """A flow that fails undoes its completed steps newest first, by the undo of the document or by that of the step."""
    text = """
name: failing-undo
steps:
  reserve:
    use: shop.reserve
    with: { order: { id: 1 } }
    undo: { use: shop.release, with: { hold: "${{ result.id }} of ${{ run.id }}" } }
  lend: { use: shop.lend, with: { book: Dune }, after: [reserve] }
  bad: { use: shop.say, with: { what: bad }, after: [lend] }
"""
    shop.FAILURES["bad"] = [ValueError("bad")]
    parsed = flow.parse(text)
    async with TestEngine() as engine:
        run = await engine.start(parsed, id="undo-1")
        with pytest.raises(RunFailedError, match="ValueError: bad"):
            await run.result()

    undone = [("give back", "Dune"), ("release", "hold-1 of undo-1")]
    assert shop.CALLS == [("reserve", shop.Order(1)), ("lend", "Dune"), "bad", *undone]


async def test_a_child_is_undone_by_the_document() -> None:
    """With its result as plain data."""
    text = """
name: failing-child
steps:
  audit:
    use: shop.audit
    with: { order: { id: 1, cents: 4 } }
    undo: { use: shop.say, with: { what: "undo ${{ result.cents }}" } }
  bad: { use: shop.say, with: { what: bad }, after: [audit] }
"""
    shop.FAILURES["bad"] = [ValueError("bad")]
    with pytest.raises(RunFailedError, match="ValueError: bad"):
        await output_of(text)

    assert shop.CALLS == ["audit 1 1", "bad", "undo 5"]


RETRIED = """
name: failing-retried
steps:
  first: { use: shop.say, with: { what: first } }
  bad: { use: shop.say, with: { what: bad }, after: [first] }
output: "${{ steps.first + ' ' + steps.bad }}"
"""


async def test_a_flow_that_has_failed_goes_on_at_the_step_that_failed() -> None:
    """`engine.retry`: the same run; what was done stays."""
    shop.FAILURES["bad"] = [ValueError("bad")]
    parsed = flow.parse(RETRIED)
    async with TestEngine() as engine:
        run = await engine.start(parsed, id="retried")
        with pytest.raises(RunFailedError, match="ValueError: bad"):
            await run.result()
        await engine.retry("retried")

        assert await run.result() == "first bad"
    assert shop.CALLS == ["first", "bad", "bad"]


async def test_a_flow_is_forked_at_a_step() -> None:
    """By its id in the flow; a result can be set."""
    parsed = flow.parse(RETRIED)
    async with TestEngine() as engine:
        await (await engine.start(parsed, id="forked")).result()
        fork = await engine.fork("forked", at="bad", set={"first": "other"}, id="fork")

        assert await fork.result() == "other bad"
    assert shop.CALLS == ["first", "bad", "bad"]


async def test_nothing_is_undone_when_all_went_well() -> None:
    """The saga is the whole flow."""
    text = """
name: failing-well
steps:
  lend: { use: shop.lend, with: { book: Dune } }
output: "${{ steps.lend.book }}"
"""
    assert await output_of(text) == "Dune"
    assert shop.CALLS == [("lend", "Dune")]


async def test_a_child_is_tried_again_as_another_run() -> None:
    """After a durable delay."""
    shop.FAILURES["audit 1 1"] = [ValueError("no")]
    text = """
name: failing-runs
steps:
  audit: { use: shop.audit, with: { order: { id: 1 } }, retry: { attempts: 2, first: 30s } }
output: "${{ steps.audit.id }}"
"""
    parsed = flow.parse(text)
    async with TestEngine() as engine:
        assert await (await engine.start(parsed, id="again")).result() == 1
        assert sorted(run.id for run in await engine.list(workflow="shop.audit")) == ["again~1", "again~2"]


@pytest.mark.parametrize(
    ("limit", "seconds"), [("bank 2/m", 30), ("bank 2 in any 40s", 40), ("bank 1 in any 2 m", 240)], ids=str
)
async def test_a_limit_holds_for_all_steps_that_name_it(limit: str, seconds: int) -> None:
    """Three calls of two a minute take half a minute, and of two in any 40 s take 40 s."""
    text = f"""
name: failing-limit
steps:
  all:
    use: map
    with: {{ items: [1, 2, 3], use: shop.say, with: {{ what: "${{{{ item }}}}" }}, limit: {limit} }}
"""
    parsed = flow.parse(text)
    async with TestEngine() as engine:
        began = engine.clock.now()
        await (await engine.start(parsed)).result()
        took = engine.clock.now() - began

    assert seconds <= took / 1_000_000 < seconds + 20


@pytest.mark.parametrize(
    ("step", "says"),
    [
        ("{ use: shop.say, with: { what: 1 }, limit: often }", "'often' is not a rate limit"),
        ("{ use: shop.say, with: { what: 1 }, limit: bank 5 in any s }", "'bank 5 in any s' is not a rate limit"),
        ("{ use: shop.audit, with: { order: {} }, once: true }", "`once` is for steps"),
        ("{ use: sleep, with: { seconds: 1 }, once: true }", "sleep has none"),
        (
            "{ use: sleep, with: { seconds: 1 }, undo: { use: shop.release, with: { hold: h } } }",
            "no effect of its own",
        ),
        ("{ use: shop.say, with: { what: 1 }, undo: { use: sleep } }", "'sleep' cannot undo a step"),
        ("{ use: shop.say, with: { what: 1 }, undo: { use: shop.release } }", "it needs hold"),
    ],
)
async def test_an_option_that_a_step_cannot_have_is_refused(step: str, says: str) -> None:
    """An option that a step cannot have is refused before anything runs."""
    parsed = flow.parse(f"name: failing-refused\nsteps:\n  one: {step}\n")
    async with TestEngine() as engine:
        with pytest.raises(flow.FlowError) as caught:
            await engine.start(parsed)

    assert says in str(caught.value)
