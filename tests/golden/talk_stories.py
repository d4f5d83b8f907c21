"""A golden story of runs that talk: a signal, a wait for another run, promises that are settled and failed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import outlive
from outlive.testing import TestEngine

sent: list[str] = []


@outlive.step(name="golden.send")
async def send(promise: str) -> None:
    """Where the teller of the story reads it."""
    sent.append(promise)


@outlive.workflow(name="golden.listener")
async def listener() -> dict[str, int]:
    """Ends when it is signalled."""
    return {"heard": await outlive.wait_for_signal("word", int)}


@outlive.workflow(name="golden.talk")
async def talk() -> list[object]:
    """Talks to another run, and waits for the world."""
    said: list[object] = []
    other = outlive.get("golden-listener", dict[str, int])
    await other.signal("word", 7)
    said.append(await other.result())
    try:
        await outlive.get("missing").result()
    except outlive.errors.RunNotFoundError as error:
        said.append(error.run_id)
    kept, broken = outlive.promise(int), outlive.promise()
    await send(kept.id)
    await send(broken.id)
    async with asyncio.timeout(3600):
        said.append(await kept)
    try:
        await broken
    except ValueError as error:
        said.append(str(error))
    return said


async def tell_talk(url: str) -> str:
    """One promise is settled before it is awaited, and one is failed."""
    sent.clear()
    async with TestEngine(url) as engine:
        await engine.start(listener, id="golden-listener")
        run = await engine.start(talk, id="golden-talk")
        await engine.settle()
        await engine.promises.fail(sent[1], ValueError("no such word"))
        await engine.promises.resolve(sent[0], 5)
        await run.result()
        return await engine.export(run.id)


TALK_STORIES: dict[str, Callable[[str], Awaitable[str]]] = {"talk": tell_talk}
