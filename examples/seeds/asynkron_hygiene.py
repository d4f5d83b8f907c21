"""Asynkron: schema hygiene, or how instances go.

The page: completed orchestrations are removed by an option, purged on demand with `DELETE
/runtime/orchestrations/{id}`, and the size of the table is watched for those that never complete. Here the option
is `retention`, per workflow and per kind of end, and at least an hour, so that a repeated start still finds its
run; the DELETE is an operation of the HTTP API; and each run that does not move says why.
"""

import asyncio
import urllib.request
from datetime import timedelta

import uvicorn

import outlive
from outlive.testing import TestEngine


@outlive.workflow
async def short() -> str:
    return "done"


@outlive.workflow
async def stuck() -> None:
    await outlive.wait_for_signal("late")


AUTO_DELETE = outlive.retention.Keep("short", succeeded=timedelta(hours=1))


async def purge(server: uvicorn.Server, run_id: str) -> int:
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/v1/runs/{run_id}", method="DELETE")
    answer = await asyncio.to_thread(urllib.request.urlopen, request)
    answer.close()
    server.should_exit = True
    await serving
    return int(answer.status)


async def main() -> None:
    engine = TestEngine(retention=[AUTO_DELETE])
    server = uvicorn.Server(uvicorn.Config(engine.asgi(), port=0, log_level="error"))
    async with engine:
        for number in (1, 2):
            await (await engine.start(short, id=f"short-{number}")).result()
        waiting = await engine.start(stuck, id="stuck-1")
        print("DELETE:", await purge(server, "short-1"), [run.id for run in await engine.list(status="succeeded")])
        await engine.skip(hours=2)
        print("after two hours:", [run.id for run in await engine.list()])
        print(await waiting.why())


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# DELETE: 200 ['short-2']
# after two hours: ['stuck-1']
# it waits for signal 'late'
