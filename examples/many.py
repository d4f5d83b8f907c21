"""Many at once: map in a workflow, and a batch of runs from outside; each item is durable on its own."""

import asyncio

import outlive


@outlive.step(retry=outlive.Retry(attempts=1))
async def resize(image: bytes) -> int:
    if image == b"broken":
        raise ValueError("this is not a picture")
    return len(image) // 2


@outlive.workflow
async def album(images: list[bytes]) -> str:
    results = await outlive.map(resize, images, concurrency=20, tolerate=outlive.limits.Tolerance(failures=5))
    sizes = [result for result in results if isinstance(result, int)]
    return f"{len(sizes)} of {len(images)} pictures, {sum(sizes)} bytes"


@outlive.workflow
async def import_row(row: int) -> int:
    return await resize(b"x" * row)


async def main() -> None:
    async with outlive.Engine("sqlite:many.db") as engine:
        run = await engine.start(album, [b"a picture", b"broken", b"another one"], id="album-1")
        print(await run.result())

        rows = list(range(0, 100, 10))
        batch = await engine.start_batch(import_row, rows, concurrency=50, id="import-1")
        async for item in batch.items():  # as they finish
            assert item.result == rows[item.index] // 2
        print(await batch.results())  # in input order


if __name__ == "__main__":
    asyncio.run(main())
