"""Kill it with -9 while it sleeps, start it again: it goes on where it was."""

import asyncio

import outlive


@outlive.step
async def greet(name: str) -> str:
    return f"Hello, {name}!"


@outlive.workflow
async def hello(name: str) -> str:
    greeting = await greet(name)
    await asyncio.sleep(3)  # durable: kill -9 here and start again
    return greeting


async def main() -> None:
    async with outlive.Engine("sqlite:hello.db") as engine:  # "memory:", "postgresql://..."
        run = await engine.start(hello, "world", id="hello-1")  # the same id again: the same run
        print(await run.result())


if __name__ == "__main__":
    asyncio.run(main())
