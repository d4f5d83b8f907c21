"""Cano: what a machine writes into its log.

The page counts rows: one for each state that is entered, none for a router, one for a split, two for a state that
can be compensated, one for each step of a cursor. Here a row is what a state has done: its data and where it goes,
written together, so a resumed run knows more than where it was. A router still writes nothing; each branch of a
split has its own row, so a crash repeats only those that had not ended. What an undo needs is the data of that
row.
"""

import asyncio
from dataclasses import dataclass
from enum import Enum

import outlive


class S(Enum):
    RESERVE = "reserve"
    PICK = "pick"
    PACK = "pack"
    LABEL = "label"
    DONE = "done"


@dataclass
class Order:
    item: str
    labels: int = 0


order = outlive.Machine("rows", S, data=Order, start=S.RESERVE, exits=[S.DONE])


async def release(data: Order) -> None:
    print("gave back", data.item)


@order.state(S.RESERVE, undo=release)  # register_with_compensation
async def reserve(data: Order) -> S:
    return S.PICK


@order.router(S.PICK)  # register_router
def pick(data: Order) -> S:
    return S.PACK


async def wrap(data: Order) -> str:
    return "wrapped"


async def weigh(data: Order) -> str:
    return "weighed"


order.split(S.PACK, [wrap, weigh], join=outlive.machine.All(then=S.LABEL))  # register_split


@order.stepped(S.LABEL)  # register_stepped
async def label(data: Order, cursor: int | None) -> outlive.machine.More[int] | S:
    data.labels = (cursor or 0) + 1
    if data.item == "piano" and cursor == 1:
        raise ValueError("no label is large enough")
    return outlive.machine.More(data.labels) if data.labels < 3 else S.DONE


async def main() -> None:
    async with outlive.Engine("memory:") as engine:
        for item in ("lamp", "piano"):
            run = await engine.start(order, Order(item), id=item)
            try:
                print((await run.result()).data)
            except outlive.errors.RunFailedError as error:
                print(error)
            rows = [f"{event.seq} {event.type} {event.data.get('call', '')}" for event in await run.history()]
            print(*(rows if item == "lamp" else rows[5:]), sep="\n")


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# Order(item='lamp', labels=3)
# 0 RunCreated
# 1 StepSucceeded rows.RESERVE
# 2 StepSucceeded 1/rows.PACK.wrap
# 3 StepSucceeded 2/rows.PACK.weigh
# 4 StateLeft @state/rows.PACK
# 5 StepSucceeded rows.LABEL
# 6 StepSucceeded rows.LABEL#2
# 7 StepSucceeded rows.LABEL#3
# 8 RunSucceeded
# gave back piano
# run piano failed: ValueError: no label is large enough
# 5 StepSucceeded rows.LABEL
# 6 StepFailed rows.LABEL#2
# 7 StepSucceeded 3/rows.RESERVE.undo
# 8 RunFailed
