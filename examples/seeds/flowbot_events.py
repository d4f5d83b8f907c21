"""Flowbot: an event is consumed once, and what has ended is never touched.

The page's guard keeps a recovered run from taking the same event again. Its record and the run are two writes
there; here the run is the record: it is created in the transaction that accepts the event, under an id that is
made of the event. So no event is lost between the two, and none starts two runs.
"""

import asyncio

import outlive


@outlive.step
async def bookmark(url: str) -> str:
    print("bookmarking", url)
    return url


@outlive.workflow(on_event="bookmark.created")
async def on_bookmark(event: dict) -> str:
    return await bookmark(event["url"])


async def main() -> None:
    async with outlive.Engine("memory:") as engine:
        for _ in range(3):  # the sender was not answered, and sends it again
            sent = await engine.events.send(
                "bookmark.created", {"url": "https://example.org"}, id="evt-1", source="hub"
            )
            print("taken:", [run.is_new for run in sent.runs])
            await engine.get(sent.runs[0].run_id).result()
        await engine.events.send("bookmark.created", {"url": "https://example.net"}, id="evt-2", source="hub")
        runs = await engine.list(workflow="on_bookmark")
        for run in runs:
            await engine.get(run.id).result()
        print(len(runs), "runs")
        try:
            await engine.resume(runs[0].id)  # PipelineDone is never touched
        except outlive.errors.ConflictError as error:
            print(error.code)


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# taken: [True]
# bookmarking https://example.org
# taken: [False]
# taken: [False]
# bookmarking https://example.net
# 2 runs
# run_not_parked
