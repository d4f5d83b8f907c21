"""What an exception of a step shows: where in the step it was raised, which step it was, and what went before."""

from __future__ import annotations

import traceback

import pytest

import outlive
from outlive.testing import TestEngine

SEEN: list[str] = []


class DeclinedError(Exception):
    """No step registers it."""


def reach_the_bank(attempt: int) -> None:
    if attempt == 9:
        raise ConnectionError("reset")
    raise DeclinedError(f"declined {attempt}")  # the line of the step


@outlive.step
async def charge_card(attempt: int) -> None:
    reach_the_bank(attempt)


@outlive.step(retry=outlive.Retry(attempts=3, first=1, jitter=0))
def charge_again() -> None:
    reach_the_bank(outlive.current_step().attempt)


@outlive.step(retry=outlive.Retry(attempts=15, first=0, jitter=0))
async def charge_for_ever() -> None:
    reach_the_bank(outlive.current_step().attempt)


@outlive.step(timeout=0.05)
async def hangs() -> None:
    import asyncio

    await asyncio.Event().wait()


@outlive.workflow
async def buys(attempt: int) -> None:
    try:
        await charge_card(attempt)  # the line of the workflow
    except Exception:
        SEEN.append(traceback.format_exc())
        raise


@outlive.workflow
async def buys_stubbornly() -> None:
    await charge_again()


@outlive.workflow
async def buys_for_ever() -> None:
    await charge_for_ever()


@outlive.workflow
async def hangs_for_ever() -> None:
    await hangs()


@outlive.workflow
async def orders() -> None:
    await hangs_for_ever()


@outlive.workflow
async def fails_itself() -> None:
    raise DeclinedError("by the workflow")


async def failing(
    engine: TestEngine, workflow: outlive.types.Workflow[..., None], *args: object
) -> outlive.errors.RunFailedError:
    """What a client gets."""
    with pytest.raises(outlive.errors.RunFailedError) as caught:
        await (await engine.start(workflow, *args)).result()
    return caught.value


@pytest.mark.parametrize("attempt", [1, 9])
async def test_the_lines_of_the_step_are_in_what_is_printed(attempt: int) -> None:
    """The workflow and the client see the file, the line and the function in the step, below the line that called it,
    for classes that are rebuilt and for other classes."""
    SEEN.clear()
    async with TestEngine() as engine:
        printed = "".join(traceback.format_exception(await failing(engine, buys, attempt)))

    for text in (*SEEN, printed):
        assert f'File "{__file__}", line' in text
        assert ", in reach_the_bank" in text
        assert "# the line of the step" in text if attempt == 1 else 'ConnectionError("reset")' in text
        assert (
            text.index("# the line of the workflow")
            < text.index(", in charge_card")
            < text.index(", in reach_the_bank")
        )
    assert 1 == len(SEEN)
    assert "outlive/_define" not in printed.partition("The above exception")[0]


async def test_a_step_that_takes_too_long_is_a_timeout_for_the_client() -> None:
    """The client finds the TimeoutError of a step behind the failure of its run, and behind that of a parent run."""
    async with TestEngine() as engine:
        alone = await failing(engine, hangs_for_ever)
        of_child = await failing(engine, orders)

    assert isinstance(alone.__cause__, TimeoutError)
    assert isinstance(alone.__cause__, outlive.errors.StepTimeoutError)
    assert "hangs" == alone.__cause__.step
    inner = of_child.__cause__
    assert inner is not None
    assert isinstance(inner.__cause__, TimeoutError)


async def test_step_failed_names_the_step() -> None:
    """A `StepFailedError` at the client names the step and the class of its error; an error of the workflow itself
    names no step."""
    async with TestEngine() as engine:
        of_step = (await failing(engine, buys, 1)).__cause__
        of_workflow = (await failing(engine, fails_itself)).__cause__

    assert isinstance(of_step, outlive.errors.StepFailedError)
    assert ("charge_card", f"{__name__}.DeclinedError") == (of_step.step, of_step.type_name)
    assert f"charge_card: {__name__}.DeclinedError: declined 1" == str(of_step)
    assert isinstance(of_workflow, outlive.errors.StepFailedError)
    assert ("", f"{__name__}.DeclinedError: by the workflow") == (of_workflow.step, str(of_workflow))


async def test_the_last_error_lists_the_earlier_attempts() -> None:
    """Who looks at the last one sees whether the others were like it."""
    async with TestEngine() as engine:
        cause = (await failing(engine, buys_stubbornly)).__cause__
    assert cause is not None

    name = f"{__name__}.DeclinedError"
    assert [f"earlier attempts failed too:\n  1: {name}: declined 1\n  2: {name}: declined 2"] == cause.__notes__


async def test_only_the_last_of_many_attempts_are_listed() -> None:
    """The error does not grow with a budget of thousands."""
    async with TestEngine() as engine:
        cause = (await failing(engine, buys_for_ever)).__cause__
    assert cause is not None

    (note,) = cause.__notes__
    assert "(4 before these)" in note
    assert ["5", "14"] == [note.splitlines()[line].split(":")[0].strip() for line in (2, -1)]
