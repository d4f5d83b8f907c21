"""A pool of licences that many runs share: a run that hands them out by asks, and takes them back by signals.

A run that was given a licence may die, be cancelled or hang: so the pool takes a licence back when its time is over.
"""

import asyncio

import outlive

LEASE_SECONDS = 3600


@outlive.workflow(name="patterns.pool")
async def pool(licences: list[str]) -> int:
    free: asyncio.Queue[str] = asyncio.Queue()
    back: dict[str, asyncio.Event] = {}
    for licence in licences:
        free.put_nowait(licence)

    async def lend(licence: str) -> None:
        back[licence] = asyncio.Event()
        try:
            await asyncio.wait_for(back[licence].wait(), LEASE_SECONDS)
        except TimeoutError:
            outlive.publish(lost=licence)
        free.put_nowait(licence)

    async def take_back() -> None:
        while True:
            back[await outlive.wait_for_signal("give back", str)].set()

    lent = 0
    async with asyncio.TaskGroup() as group:
        taking = group.create_task(take_back())
        async for ask in outlive.asks("take", str):
            if ask.body == "close":
                ask.reply("closed")
                break
            licence = await free.get()  # Those who ask meanwhile wait in order.
            lent += 1
            group.create_task(lend(licence))
            ask.reply(licence)
        taking.cancel()
    return lent


@outlive.step(name="patterns.take_licence")
async def take_licence() -> str:
    key = outlive.current_step().idempotency_key  # Interrupted and called again, it gets the same licence.
    return str(await outlive.current_engine().ask("pool", "take", "", key=key))


@outlive.workflow(name="patterns.licensed")
async def render(number: int) -> str:
    licence = await take_licence()
    try:
        return f"film {number} with {licence}"
    finally:
        await outlive.signal("pool", "give back", licence)


async def main() -> None:
    async with outlive.Engine("memory:") as engine:
        run = await engine.start(pool, ["licence A", "licence B"], id="pool")
        films = [await engine.start(render, number) for number in range(4)]
        print(sorted([(await film.result())[:6] for film in films]))
        await run.ask("take", "close")
        print(await run.result(), "licences were lent")


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# ['film 0', 'film 1', 'film 2', 'film 3']
# 4 licences were lent
