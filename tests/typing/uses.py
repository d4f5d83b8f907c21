"""Right and wrong uses of the front door, for type checkers: this file is read by them and never run.

A wrong use has a comment for each checker that expects the error. A checker also reports a comment that it does not
need, so a wrong use that is no longer found fails the check, as does a right use that is refused.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, assert_type

import outlive


@dataclass
class Order:
    id: str


@dataclass
class Hold:
    order: Order


@dataclass
class RefundForm:
    amount: int


# -- Names -------------------------------------------------------------------------------------------------------------

misspelt = outlive.worklfow  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]


# -- Resources ---------------------------------------------------------------------------------------------------------


class Pool: ...


def ping(pool: Pool) -> None: ...


@outlive.resource
async def pool() -> AsyncIterator[Pool]:
    yield Pool()


@outlive.resource(health=ping)
async def client(db: Pool = outlive.use(pool)) -> int:
    return 1


@outlive.resource
def plain_text() -> str:
    return ""


assert_type(pool, outlive.types.Resource[Pool])
assert_type(client, outlive.types.Resource[int])
assert_type(plain_text, outlive.types.Resource[str])


@outlive.step
async def save(order: Order, db: Pool = outlive.use(pool)) -> str:
    return order.id


@outlive.step
async def save_wrongly(order: Order, db: Pool = outlive.use(client)) -> None: ...  # type: ignore[assignment]  # pyright: ignore[reportArgumentType]


async def use_resources(order: Order) -> None:
    assert_type(await save(order), str)
    await save(order, db=Pool())


# -- Undoing a step ----------------------------------------------------------------------------------------------------


async def release(hold: Hold) -> None: ...


@outlive.step
async def release_step(hold: Hold) -> None: ...


async def release_number(number: int) -> None: ...


@outlive.step(undo=release)
async def reserve(order: Order) -> Hold:
    return Hold(order)


@outlive.step(undo=release_step, timeout=3)
def reserve_plainly(order: Order) -> Hold:
    return Hold(order)


@outlive.step(undo=release_number)  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]
async def reserve_wrongly(order: Order) -> Hold:
    return Hold(order)


@outlive.step(transaction=True, undo=release)
async def reserve_in_transaction(tx: outlive.types.Tx, order: Order) -> Hold:
    assert_type(await tx.execute("INSERT INTO holds VALUES ($1)", order.id), str)
    return Hold(order)


@outlive.step(transaction=True)
def count_in_transaction(tx: outlive.types.SyncTx) -> int:
    row = tx.fetchrow("SELECT count(*) AS holds FROM holds")
    return 0 if row is None else int(row["holds"])


outlive.step(timeout=[5])  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]


# -- Workflows and their arguments -------------------------------------------------------------------------------------


@outlive.workflow
async def checkout(order: Order, count: int = 1) -> Hold:
    async with outlive.saga() as block:
        assert_type(block, outlive.types.SagaBlock)
        await reserve("o-1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        assert_type(await reserve_in_transaction(order), Hold)
        assert_type(await count_in_transaction(), int)
        return assert_type(await reserve(order), Hold)


@outlive.workflow
async def refund(*, order_id: str) -> str:
    answer = await outlive.wait_for_approval("refund", form=RefundForm)
    if answer:
        return str(assert_type(answer.form, RefundForm).amount)
    assert_type(answer.form, RefundForm | None)
    assert_type(await outlive.map(reserve, [Order("o-1")]), list[Hold])
    await outlive.map(reserve, ["o-1"])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert_type(await outlive.run_step(reserve.fn, Order("o-1")), Any)
    assert_type(await outlive.run_step(release, Hold(Order("o-1")), name="release"), None)
    assert_type(await outlive.run_step(lambda: Hold(Order("o-1")), name="hold", retry=outlive.Retry()), Hold)
    await outlive.run_step(release, "o-1")  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]
    child = await outlive.start(checkout, Order("o-1"))
    await outlive.start(checkout, "o-1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    return (await child.result()).order.id


class Place(Enum):
    HERE = "here"
    THERE = "there"


journey = outlive.Machine("journey", Place, data=Order, start=Place.HERE, exits={Place.THERE})


async def starts(engine: outlive.Engine) -> None:
    run = await engine.start(checkout, Order("o-1"), id="run-1", timeout=5, tags={"shop": "north"})
    assert_type(run, outlive.types.RunHandle[Hold])
    await engine.start(checkout, Order("o-1"), 3)
    await engine.start(checkout, "o-1")  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]
    await engine.start(checkout)  # type: ignore[arg-type, call-arg]  # pyright: ignore[reportCallIssue, reportArgumentType]
    await engine.start(checkout, Order("o-1"), 3, 4)  # type: ignore[arg-type, call-arg]  # pyright: ignore[reportArgumentType]
    assert_type(await engine.start(refund.bind(order_id="o-1")), outlive.types.RunHandle[str])
    refund.bind(order_id=1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert_type(
        await engine.start(journey, Order("o-1")), outlive.types.RunHandle[outlive.machine.MachineResult[Place, Order]]
    )
    await engine.start(journey, "o-1")  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]
    await engine.start(5)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    engine.sync.start(checkout, "o-1")  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]


async def batches(engine: outlive.Engine) -> None:
    batch = assert_type(await engine.start_batch(reserve, [Order("o-1")]), outlive.types.Batch[Hold])
    async for item in batch.items():
        if item.error is None:
            assert_type(item.result, Hold)
        assert_type(item.value, Hold | BaseException)
    await engine.start_batch(reserve, [1])  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]


async def decisions(engine: outlive.Engine) -> outlive.types.Approval[Any]:
    return await engine.approvals.approve("run-1", "refund", by="ann", form=RefundForm(3))


async def connections(url: str) -> None:
    async with outlive.connect(url) as engine:
        run = await engine.start(checkout, Order("o-1"), id="run-1", timeout=5, tags={"shop": "north"})
        assert_type(await run.result(), Hold)
        await engine.start(checkout, "o-1")  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]
        assert_type(await (await engine.start(refund.bind(order_id="o-1"))).result(), str)
        await engine.start("checkout", {"order": {"id": "o-1"}}, version=2, id="run-2")
        assert_type(await engine.ask("run-1", "price", reply=int), int)
        await engine.list(status="failed", workflow="checkout")
        await engine.list(state="failed")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
        async for number in run.stream("numbers", int):
            assert_type(number, int)
    with outlive.connect(url).sync as sync:
        assert_type(sync.start(checkout, Order("o-1")).result(), Hold)
        sync.start("checkout", {"order": {"id": "o-1"}}, id="run-2").cancel(reason="rain")
        sync.start(checkout, "o-1")  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]
        sync.approvals.approve("run-1", "refund", form=RefundForm(3))
        sync.approvals.approve("run-1", "refund", who="ann")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
