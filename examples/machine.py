"""An order as a state machine: states, a router, a split, a timer, and what is taken back when it fails."""

import asyncio
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import outlive


class S(Enum):
    RESERVE = "reserve"
    PICK = "pick"
    PACK = "pack"
    COOL = "cool"
    SHIP = "ship"
    DONE = "done"
    LOST = "lost"


@dataclass
class Order:
    item: str
    stock: int
    notes: list[str] = field(default_factory=list)


order = outlive.Machine("order", S, data=Order, start=S.RESERVE, exits={S.DONE, S.LOST})


async def release(data: Order) -> None:
    print(f"gave back {data.item}")


@order.state(S.RESERVE, undo=release)  # a step: data and next state are one row of the journal
async def reserve(data: Order) -> S:
    print(f"reserved {data.item}")
    return S.PICK


@order.router(S.PICK)  # pure: no row
def pick(data: Order) -> S:
    return S.PACK if data.stock else S.LOST


async def wrap(data: Order) -> str:
    return "wrapped"


async def label(data: Order) -> str:
    return "labelled"


def merge(data: Order, results: dict[str, Any]) -> None:
    data.notes = sorted(results.values())


order.split(
    S.PACK, [wrap, label], join=outlive.machine.All(then=S.COOL), merge=merge
)  # each branch is durable on its own
order.timer(S.COOL, 0.2, then=S.SHIP)  # durable


@order.state(S.SHIP, raises=(ValueError,))
async def ship(data: Order) -> S:
    if data.item == "piano":
        raise ValueError("no truck for a piano")
    return S.DONE


async def main() -> None:
    async with outlive.Engine("sqlite:machine.db") as engine:
        for number, data in enumerate([Order("lamp", 3), Order("moon", 0), Order("piano", 1)], 1):
            run = await engine.start(order, data, id=f"order-{number}")
            try:
                result = await run.result()
                print(f"{run.id}: {result.state} {', '.join(result.data.notes)}".strip())
            except outlive.errors.RunFailedError as error:
                print(f"{run.id}: {error.failure.message if error.failure else error}")


if __name__ == "__main__":
    asyncio.run(main())
