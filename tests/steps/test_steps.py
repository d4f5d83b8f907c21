"""Steps: plain functions whose outcomes are journaled."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from uuid import UUID

import pytest

import outlive
from outlive.errors import StepFailedError
from outlive.errors.program import NotInRunError
from tests.engine.support import in_time, stage

pytestmark = pytest.mark.any_store


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


@dataclass(frozen=True)
class Parcel:
    id: UUID
    size: Size
    price: Decimal
    packed_at: datetime
    photo: bytes
    tags: frozenset[str]


class OutOfStockError(Exception):
    """Registered by a step, so it reaches the workflow as itself."""

    def __init__(self, sku: str, left: int) -> None:
        self.sku, self.left = sku, left
        super().__init__(f"only {left} of {sku} left")


class SecretError(Exception):
    """An error that is registered nowhere."""


PARCEL = Parcel(UUID(int=7), Size.LARGE, Decimal("1.10"), datetime(2025, 6, 1, tzinfo=UTC), b"\0\xff", frozenset("ab"))


@outlive.step
async def repack(parcel: Parcel, *, size: Size = Size.SMALL) -> Parcel:
    stage.call(parcel)
    return Parcel(parcel.id, size, parcel.price, parcel.packed_at, parcel.photo, parcel.tags)


@outlive.step
def whose_thread(name: str) -> str:
    stage.call(outlive.current_step().name)
    return threading.current_thread().name if name == "mine" else name


@outlive.step
def double(number: float) -> float:
    return 2 * number


@outlive.step
def hold_thread(name: str) -> str:
    stage.gate(name).pass_on_thread()
    return name


@outlive.step(raises=(OutOfStockError,))
async def reserve_or_fail(sku: str) -> None:
    try:
        raise KeyError(sku)
    except KeyError as error:
        raise OutOfStockError(sku, 3) from error


@outlive.step
async def fail_in_secret() -> None:
    error = SecretError("hidden", 42)
    error.code = 7  # type: ignore[attr-defined]
    error.add_note("a note")
    raise error from OSError(5, "disk")


@outlive.step
async def give_up() -> None:
    raise SystemExit(3)


@outlive.step
def give_up_on_thread() -> None:
    raise SystemExit(3)


@outlive.step
async def cancel_oneself() -> None:
    raise asyncio.CancelledError


@outlive.workflow
async def stepping_parcel(parcel: Parcel) -> Parcel:
    return await repack(await repack(parcel), size=Size.LARGE)


@outlive.workflow
async def stepping_thread() -> str:
    return await whose_thread("mine")


@outlive.workflow
async def stepping_held_thread(name: str) -> str:
    return await hold_thread(name)


@outlive.workflow
async def stepping_out_of_stock() -> str:
    try:
        await reserve_or_fail("shoe")
    except OutOfStockError as error:
        return f"{error}; {error.sku} {error.left}; {error.__cause__!r}"
    return "in stock"


@outlive.workflow
async def stepping_secret() -> dict[str, object]:
    try:
        await fail_in_secret()
    except StepFailedError as error:
        return {
            "text": str(error),
            "type": error.type_name,
            "attributes": error.attributes,
            "notes": error.__notes__,
            "cause": repr(error.__cause__),
            "is_traceback": "in fail_in_secret" in error.traceback_text,
        }
    return {}


@outlive.workflow
async def stepping_give_up(on_thread: bool) -> str:  # noqa: FBT001
    try:
        await (give_up_on_thread() if on_thread else give_up())
    except StepFailedError as error:
        return f"{error.type_name} {error.message}"
    return "went on"


@outlive.workflow
async def stepping_self_cancel() -> str:
    try:
        await cancel_oneself()
    except StepFailedError as error:
        return error.type_name
    return "went on"


async def test_arguments_and_results_are_typed_by_annotations(engine: outlive.Engine) -> None:
    """A step is given and gives back dataclasses, enums, decimals, datetimes, bytes and sets as they were."""
    run = await engine.start(stepping_parcel, PARCEL)

    assert PARCEL == await in_time(run.result())
    small = Parcel(PARCEL.id, Size.SMALL, PARCEL.price, PARCEL.packed_at, PARCEL.photo, PARCEL.tags)
    assert [PARCEL, small] == stage.calls


async def test_a_step_outside_a_run_is_the_plain_function() -> None:
    """Steps and workflows can be called and tested without an engine."""
    assert 5 == double.fn(2.5)
    assert PARCEL == await stepping_parcel(PARCEL)


async def test_a_sync_step_runs_on_a_thread_and_knows_itself(engine: outlive.Engine) -> None:
    """A sync step finds its own context on a thread of the engine."""
    run = await engine.start(stepping_thread)

    assert (await in_time(run.result())).startswith("outlive-step-")
    assert ["whose_thread"] == stage.calls


async def test_a_blocked_sync_step_does_not_stall_the_engine(engine: outlive.Engine) -> None:
    """While one sync step blocks its thread, other runs with sync steps start and finish."""
    blocked = await engine.start(stepping_held_thread, "a")
    await stage.gate("a").reached()

    assert (await in_time((await engine.start(stepping_thread)).result())).startswith("outlive-step-")
    stage.gate("a").open()
    assert "a" == await in_time(blocked.result())


async def test_a_registered_exception_reaches_the_workflow_as_itself(engine: outlive.Engine) -> None:
    """Class, message, attributes and cause are those of the exception that the step raised."""
    run = await engine.start(stepping_out_of_stock)

    assert "only 3 of shoe left; shoe 3; KeyError('shoe')" == await in_time(run.result())


async def test_an_unregistered_exception_reaches_the_workflow_as_step_failed(engine: outlive.Engine) -> None:
    """Nothing of it is lost: type, message, attributes, notes, cause and traceback are on `StepFailedError`."""
    answer = await in_time((await engine.start(stepping_secret)).result())

    assert f"{__name__}.SecretError" == answer["type"]
    assert "('hidden', 42)" in str(answer["text"])
    assert {"code": 7} == answer["attributes"]
    assert ["a note"] == answer["notes"]
    assert "OSError(5, 'disk')" == answer["cause"]
    assert answer["is_traceback"]


@pytest.mark.parametrize("on_thread", [False, True])
async def test_a_step_that_exits_has_failed(engine: outlive.Engine, *, on_thread: bool) -> None:
    """`sys.exit()` in a step neither ends the process nor leaves the run stuck."""
    run = await engine.start(stepping_give_up, on_thread)

    assert "SystemExit 3" == await in_time(run.result())


async def test_a_step_that_lets_a_cancellation_escape_has_failed(engine: outlive.Engine) -> None:
    """A `CancelledError` without a cancellation is a failure of the step and not the end of the run."""
    run = await engine.start(stepping_self_cancel)

    assert (await in_time(run.result())).endswith("CancelledError")


async def test_a_context_belongs_to_one_step() -> None:
    """`current_step()` outside a step says so."""
    with pytest.raises(NotInRunError, match="outside a step"):
        outlive.current_step()
