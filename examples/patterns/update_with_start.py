"""A cart that comes into being with the first thing that is put into it: an ask that creates its run.

The run and the ask are one transaction. The key makes a repeated request (a double click, a webhook) the same ask.
"""

import asyncio
from dataclasses import dataclass

import outlive


@dataclass
class Item:
    name: str
    cents: int


@outlive.workflow(name="patterns.cart")
async def cart(customer: str) -> str:
    total = 0

    async def serve() -> None:
        nonlocal total
        async for ask in outlive.asks("add", Item):
            total += ask.body.cents
            ask.reply(total)

    server = asyncio.create_task(serve())
    await outlive.wait_for_signal("checkout")
    await outlive.wait_condition(lambda: not outlive.current_run().asks_open)
    server.cancel()
    return f"{customer} pays {total} cents"


async def main() -> None:
    async with outlive.Engine("memory:") as engine:

        async def add(item: Item, key: str) -> int:
            total = await engine.ask("cart-ann", "add", item, start=(cart, "ann"), key=key)
            return int(total)

        print(await add(Item("hat", 1200), key="click-1"))
        print(await add(Item("hat", 1200), key="click-1"))
        print(await add(Item("cap", 800), key="click-2"))
        await engine.signal("cart-ann", "checkout")
        print(await engine.get("cart-ann").result())


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# 1200
# 1200
# 2000
# ann pays 2000 cents
