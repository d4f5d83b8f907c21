"""What a person reads after a mistake: what happened, in their own words, and what to do next."""

from __future__ import annotations

from typing import Any

import pytest

import outlive
from outlive.errors import RunExistsError, RunNotFoundError, UnserialisableError, WrongArgumentsError
from outlive.errors.program import NotInRunError
from outlive.errors.run import ApprovalNotFoundError
from outlive.errors.store import StoreUrlError
from outlive.testing import TestEngine
from tests.engine.support import waits


@outlive.step
async def message_step(count: int) -> int:
    return count


@outlive.workflow
async def message_order(number: int, *, gift: bool = False) -> int:
    return number


@outlive.workflow
async def message_other() -> None: ...


@outlive.workflow
async def message_asks(name: str) -> str:
    return (await outlive.wait_for_approval(name)).by


@outlive.workflow
async def message_parent() -> None:
    async with outlive.saga():
        first, second = await outlive.start(message_asks, "refund"), await outlive.start(message_asks, "refund")
        await first.result()
        await second.result()


@outlive.workflow
async def message_calls_wrongly() -> str:
    wrong: Any = message_step
    try:
        await wrong()
    except WrongArgumentsError as error:
        return str(error)
    return "called"


@pytest.fixture
async def engine() -> Any:
    """A running engine in memory."""
    async with TestEngine() as engine:
        yield engine


async def test_an_unknown_id_is_an_unknown_id(engine: Any) -> None:
    """Only the error of a signal says how a signal creates its run."""
    with pytest.raises(RunNotFoundError, match=r"no run has id 'gone' in this store; .*engine\.list\(\)") as looked:
        await engine.get("gone").status()
    assert "signal" not in str(looked.value)
    with pytest.raises(RunNotFoundError, match="send it with a workflow to start"):
        await engine.signal("gone", "paid")


async def test_an_approval_that_the_run_has_not_asked_for(engine: Any) -> None:
    """It says so, and what the run asks for instead."""
    run = await engine.start(message_asks, "refund", id="run-1")
    await waits(run)

    with pytest.raises(ApprovalNotFoundError, match=r"'run-1' has not asked for approval 'refnd'; .*: run-1 refund"):
        await run.approve("refnd", by="ann")
    with pytest.raises(ApprovalNotFoundError, match="has not asked for approval 'refund' with the request 'another'; "):
        await run.approve("refund", by="ann", request="another")
    other = await engine.start(message_other, id="run-2")
    await other.result()
    with pytest.raises(ApprovalNotFoundError, match="has not asked for approval 'refund'; it waits for none"):
        await other.approve("refund", by="ann")


async def test_an_approval_that_two_runs_ask_for(engine: Any) -> None:
    """Both are named, by the ids that tell them apart."""
    run = await engine.start(message_parent, id="run-1")
    await waits(run)

    with pytest.raises(ApprovalNotFoundError, match=r"several runs .*run-1~1 refund, run-1~2 refund"):
        await run.approve("refund", by="ann")


async def test_an_id_that_is_taken_gets_advice_that_helps(engine: Any) -> None:
    """The error of a start that attaches does not advise to attach."""
    await engine.start(message_other, id="run-1")

    with pytest.raises(RunExistsError, match="message_other") as attached:
        await engine.start(message_order, 1, id="run-1")
    assert "attach" not in str(attached.value)
    with pytest.raises(RunExistsError, match="or `attach` to get that run"):
        await engine.start(message_other, id="run-1", on_conflict="reject")


async def test_arguments_that_do_not_fit_name_the_workflow_and_how_to_give_them(engine: Any) -> None:
    """By position, or by name with bind."""
    with pytest.raises(WrongArgumentsError) as missing:
        await engine.start(message_order, id="run-1")
    assert isinstance(missing.value, TypeError)
    message = str(missing.value)
    assert "message_order(number: 'int', *, gift: 'bool' = False) -> 'int'" in message
    assert "missing a required argument: 'number'" in message
    assert "message_order.bind(" in message
    with pytest.raises(WrongArgumentsError, match=r"message_order.*unexpected keyword argument 'colour'"):
        message_order.bind(1, colour="red")  # type: ignore[call-arg]
    run = await engine.start(message_calls_wrongly)
    assert "message_step(" in (message := await run.result())
    assert "bind" not in message


async def test_a_value_of_another_type_raises_with_what_is_wanted(engine: Any) -> None:
    """In the words of the annotation."""
    with pytest.raises(UnserialisableError, match=r"argument 1 of message_order .*type int, not 'seven'"):
        await engine.start(message_order, "seven")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("sqlite:///x.db", r"'sqlite:x\.db' .*'sqlite:/x\.db'"),
        ("sqlite:////var/x.db", r"'sqlite:/var/x\.db'"),
        ("sqlite://server/x.db", "'server' stands where a host would"),
        ("sqlite:x.db?mode=ro", r"\?mode=ro.*Engine\("),
        ("sqlite:x.db#part", "#part"),
        ("sqlite:", "names no file"),
        ("sqlite::memory:", 'a store in memory is "memory:"'),
        ("memory:?x=1", "has no name"),
        ("SQLITE:x.db", "scheme"),
    ],
)
def test_a_url_that_could_mean_two_things_is_refused(url: str, message: str) -> None:
    """Nothing is opened that the person may not have meant."""
    with pytest.raises(StoreUrlError, match=message):
        outlive.Engine(url)


async def test_arguments_by_name_belong_into_bind(engine: Any) -> None:
    """Who gives them to `start` is shown how."""
    with pytest.raises(TypeError, match=r"engine\.start: number=1 .*message_order\.bind\(number=1\)"):
        await engine.start(message_order, number=1)


async def test_a_workflow_that_was_called_is_not_one_to_start(engine: Any) -> None:
    """The parentheses come from habit."""
    with pytest.raises(TypeError, match=r"give the workflow and then its arguments, for example start\(order, 7\)"):
        await engine.start(message_order(1))


async def test_a_coroutine_that_was_not_awaited_is_named(engine: Any) -> None:
    """The commonest slip in async code."""
    forgotten: Any = message_other()
    with pytest.raises(UnserialisableError, match="await it"):
        await engine.start(message_order, forgotten)
    forgotten.close()


def test_function_that_needs_a_run_says_where_to_call_it() -> None:
    """`current_step` and `continue_as_new` outside a run say in which decorated function to call them."""
    with pytest.raises(NotInRunError, match=r"call it in a function decorated with @outlive\.step"):
        outlive.current_step()
    with pytest.raises(NotInRunError, match=r"@outlive\.workflow, in a run that an engine runs"):
        outlive.continue_as_new()
