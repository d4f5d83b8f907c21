"""Flowbot: which runs have not ended, and letting one go on, in a program and over HTTP.

The page has `GetIncompletePipelines` and `GetIncompleteWorkflows`, and three endpoints that are not yet
implemented: list all incomplete runs, resume a pipeline, resume a workflow. Here they are verbs of the engine, and
each verb is an operation of the HTTP API too. A run that is too old to go on by itself (`max_resume_age`) waits
there for a person.
"""

import asyncio
import json
import urllib.request

import uvicorn

import outlive

OPEN = ("pending", "running", "waiting", "parked")


@outlive.workflow
async def rss() -> str:
    await outlive.wait_for_signal("article")
    return "published"


def ask(method: str, url: str) -> dict:  # curl -X POST http://.../resume
    with urllib.request.urlopen(urllib.request.Request(url, method=method)) as response:
        return json.load(response)


async def main() -> None:
    engine = outlive.Engine("memory:")
    server = uvicorn.Server(uvicorn.Config(engine.asgi(), port=0, log_level="error"))  # or: outlive serve
    async with engine:
        for number in (1, 2):
            await (await engine.start(rss, id=f"rss-{number}")).until("waiting")
        await engine.pause("rss-2", by="ann", reason="the feed is broken")
        await engine.signal("rss-2", "article")
        for run in await engine.list(status=OPEN, order="created_at"):  # manager.GetIncompletePipelines()
            print(run.id, run.status, run.reason)

        serving = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        api = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/api/v1"
        listed = await asyncio.to_thread(ask, "GET", f"{api}/runs?status=parked")  # GET /service/recovery/incomplete
        print("over HTTP:", [(run["id"], run["status"]) for run in listed["items"]])
        await asyncio.to_thread(ask, "POST", f"{api}/runs/rss-2/resume")  # POST /service/recovery/resume/pipeline/:id
        print(await engine.get("rss-2").result())
        server.should_exit = True
        await serving


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# rss-1 waiting
# rss-2 parked paused by ann: the feed is broken
# over HTTP: [('rss-2', 'parked')]
# published
